"""README and docs: links lead somewhere, code runs, commands exist, and the words are plain.

A new page needs nothing: whatever lies in docs/ is held to these rules. Notes are dated records of
what was tried, so their words stay as they were written.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest
from conftest import Enter, Environment

import acs_cl as acs
from acs_cl.benchmarks.__main__ import COMMANDS
from acs_cl.benchmarks.figures import report
from acs_cl.tools import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = report.pages()
IDS = [page.relative_to(ROOT).as_posix() for page in PAGES]
README_LINES = 150
NOTES = ROOT / "docs" / "notes"
TODAY = [
    pytest.param(page, id=name)
    for page, name in zip(PAGES, IDS, strict=True)
    if NOTES not in page.parents
]
"""Pages that say what is so today. Notes keep the words and the commands of their day."""

FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n\n?)?^```(?P<kind>\w*)\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
NOT_RUN = 1
"""Python blocks that say why they cannot run."""


def fences(page: Path) -> Iterator[re.Match[str]]:
    """Give the fenced blocks of a page."""
    yield from FENCE.finditer(page.read_text(encoding="utf-8"))


def python_blocks(page: Path) -> list[re.Match[str]]:
    """Return the Python of a page, block by block."""
    return [block for block in fences(page) if block["kind"] == "python"]


def without_code(page: Path) -> str:
    """Return the page without fenced blocks and code in lines."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S | re.M)


# ---- code ----------------------------------------------------------------------------------------

TO_RUN = [
    pytest.param(page, block["text"], id=f"{name}-{index}")
    for page, name in zip(PAGES, IDS, strict=True)
    for index, block in enumerate(python_blocks(page), 1)
    if not block["why"]
]


@pytest.mark.parametrize(("page", "code"), TO_RUN)
def test_the_python_of_every_page_runs(
    page: Path,
    code: str,
    enter: Enter,
    environment: Environment,
    tmp_path: Path,
    device: cl.Device,
) -> None:
    for name in ("ACS_CL_BACKEND", "ACS_CL_TRACE", "ACS_CL_CHECK"):
        environment(**{name: None})
    enter(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, page.name, "exec"), names)
    for runtime in [one for one in names.values() if isinstance(one, acs.Runtime)]:
        with suppress(acs.PoisonedError):  # a page may show a failure, which is none of the tests
            runtime.close()


def test_blocks_that_are_not_run_say_why() -> None:
    silent = [block for page in PAGES for block in python_blocks(page) if block["why"]]
    assert len(silent) == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_fence_says_what_it_holds(page: Path) -> None:
    for block in fences(page):
        assert block["kind"], f"{page.name}: a block without a kind: {block['text'][:60]!r}"


# ---- commands ------------------------------------------------------------------------------------

TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
COMMAND = re.compile(
    r"(?:^|`)(acs-cl(?= |`|$)|make(?= |`|$)|python3? -m acs_cl\.)([ \w.-]*)", re.MULTILINE
)


@pytest.mark.parametrize("page", TODAY)
def test_every_command_of_a_page_exists(page: Path) -> None:
    for program, rest in COMMAND.findall(page.read_text(encoding="utf-8")):
        name = rest.split()[0] if rest.split() else ""
        if program == "acs-cl":
            assert not name or name.startswith("-") or name in cli.COMMANDS, f"acs-cl {name}"
        elif program == "make":
            assert not name or name in TARGETS, f"make {name}"
        else:
            assert (ROOT / name / "__main__.py").exists(), f"python -m acs_cl.{name}"
            if name == "benchmarks":
                assert rest.split()[1] in COMMANDS, f"benchmarks {rest}"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_option_of_a_command_exists(page: Path) -> None:
    for block in fences(page):
        if block["kind"] != "console":
            continue
        for line in re.findall(r"^(?:\$ )?acs-cl (.*)$", block["text"], re.MULTILINE):
            words = shlex.split(line, comments=True)
            cli._parser(words).parse_args(words)


# ---- links ---------------------------------------------------------------------------------------

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors_of(page: Path) -> set[str]:
    """Return what the headings of a page are called in links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    found = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    return found | set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for place, anchor in LINK.findall(without_code(page)):
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{page.name}: {place}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{page.name}: {place}#{anchor}"


def test_the_api_page_has_every_public_name() -> None:
    page = ROOT / "docs" / "reference" / "api.md"
    listed = re.findall(r"^::: acs_cl\.(\w+)$", page.read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(acs.__all__)


# ---- the site ------------------------------------------------------------------------------------

SITE = ROOT / "docs" / "site" / "mkdocs.yml"


def test_the_navigation_of_the_site_has_every_page() -> None:
    listed = re.findall(r": ([\w/.-]+\.md)$", SITE.read_text(encoding="utf-8"), re.MULTILINE)
    there = [name.removeprefix("docs/") for name in IDS if name.startswith("docs/")]
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_headings_have_the_same_anchor_on_the_site(page: Path) -> None:
    """Spaces beside a dash, or letters beyond ASCII, give two names to one heading."""
    for anchor in anchors_of(page):
        assert "--" not in anchor, anchor
        assert anchor.isascii(), anchor


# ---- measured choices ----------------------------------------------------------------------------

CHOICES = ROOT / "docs" / "design" / "measured-choices.md"
SOURCES = [
    *(ROOT / "acs_cl").rglob("*.py"),
    *(ROOT / "acs_cl").rglob("*.?pp"),
    *(ROOT / "kernels_cl").glob("*.h"),
]


def test_measured_choices_are_those_of_the_sources() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", CHOICES.read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 10
    for name, value in rows:
        assigned = re.findall(rf"^{name}\b[\w, ]* = ([^\n,#]+)", text, re.MULTILINE)
        assigned += re.findall(rf"^#define {name} (\w+)$", text, re.MULTILINE)
        assert assigned, f"no source has {name}: take its row out of {CHOICES.name}"
        assert value.strip() in [one.strip() for one in assigned], f"{name} is {assigned}"


# ---- words ---------------------------------------------------------------------------------------

RETIRED = {
    r"in turns|took turns|take turns": "interleaved",
    r"unrest": "machine noise",
    r"(?:go|goes|went|gone|going) straight|straight to the driver": "bypass",
    r"quick launch(?:es)?": "native path",
    r"taught|lessons?": "launch plan",
    r"strangers": "external upstream",
    r"\bgated\b|patient launch": "a launch that waits for foreign events, or on the host",
    r"\bheir\b": "sole successor",
    r"\bgang\b|\bfused\b": "direct hand-over",
    r"dissolved": "returned to lanes",
    r"\brides\b": "shared scheduler",
    r"what is so|those that are so|the same of\b|whoever": "a plainer sentence",
}
"""Words that are not used as terms any more, and what to say."""
LONGEST_SENTENCE = 30  # words
GLOSSARY = ROOT / "docs" / "design" / "glossary.md"
NOT_VERBS = {
    "a",
    "an",
    "the",
    "what",
    "which",
    "who",
    "whether",
    "how",
    "where",
    "when",
    "of",
    "with",
}


def prose_of(page: Path) -> str:
    """Return the text of a page without tables, headings, code and generated blocks."""
    text = report.MARKED.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"^```.*?^```|^<!--.*?-->$", "", text, flags=re.S | re.M)
    return re.sub(r"^[|#].*$", "\n", text, flags=re.MULTILINE)


def sentences(text: str) -> list[str]:
    """Split prose into sentences; an item of a list is one at least."""
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|(?<=[.!?:;])[*)]*\s+", text)
    return [" ".join(part.split()) for part in parts if part.split()]


@pytest.mark.parametrize("page", TODAY)
def test_sentences_are_short(page: Path) -> None:
    long = [one for one in sentences(prose_of(page)) if len(one.split()) > LONGEST_SENTENCE]
    assert not long, "\n".join(f"{len(one.split())} words: {one}" for one in long)


@pytest.mark.parametrize("page", TODAY)
def test_retired_words_are_gone(page: Path) -> None:
    if page == GLOSSARY:
        pytest.skip("the glossary says what retired words are called now")
    text = re.sub(r"`[^`\n]*`", "", prose_of(page))
    for pattern, instead in RETIRED.items():
        found = re.search(pattern, text, re.IGNORECASE)
        assert not found, f"{page.name}: {found[0]!r}: say {instead!r}"


def public_docstrings() -> Iterator[tuple[str, str]]:
    """Give the docstrings of public names and of what they have."""
    for name in acs.__all__:
        thing = getattr(acs, name)
        yield name, vars(thing)["__doc__"]
        for member, value in vars(thing).items():
            text = None if member.startswith("_") else inspect.getdoc(value)
            if text and not isinstance(value, (int, str, tuple, type(None))):
                yield f"{name}.{member}", text


@pytest.mark.parametrize(("name", "text"), public_docstrings(), ids=lambda one: one[:40])
def test_public_docstrings_are_plain(name: str, text: str) -> None:
    text = re.sub(r"^ *>>> .*?(?:\n\s*\n|\Z)", "", text, flags=re.S | re.M)
    first = re.match(r"[\w']+", text)
    assert first, name
    assert first[0].lower() not in NOT_VERBS, f"{name} does not begin with a verb: {text[:60]}"
    for one in sentences(text):
        assert len(one.split()) <= 25, f"{name}: {len(one.split())} words: {one}"
    for pattern, instead in RETIRED.items():
        assert not re.search(pattern, text), f"{name}: {pattern}: say {instead!r}"


# ---- the README ----------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES


def test_the_readme_opens_with_code_that_is_short() -> None:
    first = python_blocks(ROOT / "README.md")[0]["text"]
    assert len([line for line in first.splitlines() if line.strip()]) <= 12
