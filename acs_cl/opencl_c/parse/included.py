"""Files that a source includes: read, compared, and refused if it is unclear which are meant.

Input: their names from the parser, and the words of the options. Output: texts, or a digest that
changes as soon as the parser might read something else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from acs_cl.devices.facts import CannotParse
from acs_cl.host.digest import digest

HERE = "-I."
"""Some drivers look for included files in the current folder first."""


def read(paths: Sequence[str]) -> list[str]:
    """Return the texts of files."""
    texts = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
        except OSError:
            raise CannotParse(f"cannot read {path} again") from None
    return texts


def refuse_ambiguous(paths: Sequence[str], words: Sequence[str]) -> None:
    """Refuse a file if another one could be meant: each driver searches folders in its own
    order."""
    folders = [word[2:] for word in words if word.startswith("-I") and len(word) > 2]
    for path in paths:
        try:
            _refuse_ambiguous(path, folders)
        except OSError as error:  # a file is gone, or the current folder is
            raise CannotParse(f"cannot tell which file {path} is: {error.strerror}") from None


def _refuse_ambiguous(path: str, folders: Sequence[str]) -> None:
    import filecmp

    for folder in folders:
        name = os.path.relpath(path, folder)
        if name.startswith(os.pardir):
            continue
        for other in folders:
            place = os.path.join(other, name)
            if os.path.isfile(place) and not filecmp.cmp(path, place, shallow=False):
                raise CannotParse(f"{name} is not the same in {folder} and in {other}")


def digest_of(paths: Sequence[str], words: Sequence[str]) -> str | None:
    """Return a digest of the included files, which changes with them. None: not known. Another file
    may also take the place of an included one. In folders of the options that is refused. In the
    folder of a file with includes, the folder's time shows it."""
    try:
        refuse_ambiguous(paths, [HERE, *words])
        texts = read(paths)
        beside = sorted({os.path.dirname(path) or os.curdir for path in paths})
        changed = [os.stat(folder).st_mtime_ns for folder in beside]
        parts = [os.getcwd(), list(paths), texts, changed]
    except (CannotParse, OSError):
        return None
    return None if any("__has_include" in text for text in texts) else digest(json.dumps(parts))
