"""Write the generated blocks and pictures of README.md and docs/ from results, or check them.

    python -m acs_cl.benchmarks report            # write them
    python -m acs_cl.benchmarks report --check    # write nothing; exit code 1 where one differs

Input: `benchmarks/results/`, and pages with marks: `<!-- generated: NAME -->`, the old text, `<!--
/generated -->`. Output: the same pages, with new text between the marks, which the function of that
name makes from the results.

A figure that was typed by hand becomes outdated unnoticed. So figures stand in such blocks only,
and a test searches for others. A new block needs a line in `BLOCKS` and a pair of marks in a page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import zip_longest
from pathlib import Path

from acs_cl.benchmarks.figures import first_seconds
from acs_cl.benchmarks.suite.documents import ResultError

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"

BLOCKS = {
    "figures": "figures.benchmark_tables:figures",
    "drivers": "figures.driver_tables:drivers",
    "tried": "figures.tried_tables:block",
    "workloads": "figures.workload_tables:workloads",
    "sweeps": "figures.sweep_tables:sweeps_block",
    "beside-cuda": "figures.comparison_tables:beside_cuda_block",
    "beside-pytorch": "figures.comparison_tables:beside_pytorch_block",
    "few-groups": "figures.comparison_tables:few_groups_block",
    "corpus": "figures.comparison_tables:corpus_block",
    "devices": "figures.device_tables:block",
    "clients": "figures.client_tables:tests",
    "clients-speed": "figures.client_tables:speed",
    "gains": "figures.gains:gains",
    "instructions": "figures.instruction_tables:block",
    "bands": "figures.band_tables:block",
    "first-seconds": "figures.first_seconds:block",
    "emulator-speed": "validation.emulator_speed:block",
    "emulator-results": "figures.paper_tables:block",
    "emulator-validation": "figures.validation_tables:block",
}
"""The maker of each block: a function of the folder of results, in a module of this package. It
returns Markdown."""
PICTURES = {f"docs/{first_seconds.FILE}": first_seconds.picture}
"""The maker of each file that a block shows: a similar function, which returns SVG."""

BEGIN, END = "<!-- generated: ", "<!-- /generated -->"
MARKED = re.compile(rf"{BEGIN}([\w-]+) -->\n(.*?){END}", re.DOTALL)


def pages(root: Path = ROOT) -> list[Path]:
    """Return all pages that may have generated blocks."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def made(name: str, results: Path = RESULTS) -> str:
    """Return the text of the block of that name."""
    if name not in BLOCKS:
        raise ResultError(f"no block is called {name!r}; there are {', '.join(sorted(BLOCKS))}")
    module, _, function = BLOCKS[name].partition(":")
    make: Callable[[Path], str] = getattr(import_module(f"acs_cl.benchmarks.{module}"), function)
    return make(results).strip()


def updated(text: str, make: Callable[[str], str]) -> str:
    """Return the page with every block made anew."""
    found = len(MARKED.findall(text))
    if not found == text.count(BEGIN) == text.count(END):
        raise ResultError(f"expected pairs of '{BEGIN}NAME -->' and '{END}', a line each")
    return MARKED.sub(lambda block: f"{BEGIN}{block[1]} -->\n\n{make(block[1])}\n\n{END}", text)


def regenerated(root: Path = ROOT, results: Path = RESULTS) -> Iterator[tuple[Path, str, str]]:
    """Return each page with blocks, and each picture: its text, and its new text."""
    for name, draw in PICTURES.items():
        path = root / name
        yield path, path.read_text(encoding="utf-8") if path.exists() else "", draw(results)
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        try:
            new = updated(text, lambda name: made(name, results))
        except ResultError as error:
            raise ResultError(f"{page.name}: {error}") from None
        if MARKED.search(text):
            yield page, text, new


def write(root: Path = ROOT, results: Path = RESULTS) -> list[Path]:
    """Write and return all pages whose blocks differ from the results."""
    changed = [(page, new) for page, text, new in regenerated(root, results) if new != text]
    for page, new in changed:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(new, encoding="utf-8")
    return [page for page, _ in changed]


def differences(root: Path = ROOT, results: Path = RESULTS) -> Mapping[str, str]:
    """Return pages whose blocks differ from the results, each with the first line that differs."""
    found = {}
    for page, text, new in regenerated(root, results):
        lines = zip_longest(text.splitlines(), new.splitlines(), fillvalue="")
        for number, (has, ought) in enumerate(lines, 1):
            if has != ought:
                found[page.name] = (
                    f"line {number}: has {has!r:.120}, the results give {ought!r:.120}"
                )
                break
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks report", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="FOLDER", help="of the pages")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    args = parser.parse_args(argv)
    try:
        if args.check:
            wrong = differences(args.root, args.results)
            for name, line in wrong.items():
                print(f"report: {name} is not what the results say: {line}", file=sys.stderr)
            return int(bool(wrong))
        for page in write(args.root, args.results):
            print(page.relative_to(args.root))
    except (ResultError, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    return 0
