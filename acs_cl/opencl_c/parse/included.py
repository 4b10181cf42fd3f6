"""Files that a source includes: read, refused where it is unclear which are meant, and told apart.

In: their names as the parser met them, and the words of the options. Out: texts, or a digest that
is another one as soon as the parser might read something else.
"""

from __future__ import annotations

import filecmp
import itertools
import json
import os
from collections.abc import Sequence

from acs_cl.devices.facts import CannotParse
from acs_cl.host.digest import digest

HERE = "-I."
"""Some drivers look for files that a source includes in the current folder first."""


def read(paths: Sequence[str]) -> list[str]:
    """The texts of files."""
    texts = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
        except OSError:
            raise CannotParse(f"cannot read {path} again") from None
    return texts


def refuse_ambiguous(paths: Sequence[str], words: Sequence[str]) -> None:
    """Refuse a file that another one could stand for: in which order folders are looked through is
    the driver's business."""
    folders = _folders(words)
    for path in paths:
        for folder in folders:
            name = os.path.relpath(path, folder)
            if name.startswith(os.pardir):
                continue
            for other in folders:
                place = os.path.join(other, name)
                if os.path.isfile(place) and not filecmp.cmp(path, place, shallow=False):
                    raise CannotParse(f"{name} is not the same in {folder} and in {other}")


def digest_of(paths: Sequence[str], words: Sequence[str]) -> str | None:
    """Tell what is included now from what was; None: that cannot be said.

    A file may also get in front of another one. Among the folders of the options that is refused.
    Beside a file that includes others, the time of its folder tells.
    """
    try:
        refuse_ambiguous(paths, [HERE, *words])
        texts = read(paths)
        beside = sorted({os.path.dirname(path) or os.curdir for path in paths})
        changed = [os.stat(folder).st_mtime_ns for folder in beside]
        parts = [os.getcwd(), list(paths), texts, changed]
    except (CannotParse, OSError):
        return None
    return None if any("__has_include" in text for text in texts) else digest(json.dumps(parts))


def _folders(words: Sequence[str]) -> list[str]:
    """Those that included files are looked for in."""
    folders = [word[2:] for word in words if word.startswith("-I") and len(word) > 2]
    return folders + [folder for word, folder in itertools.pairwise(words) if word == "-I"]
