"""Files in the user's cache folder that outlive a process. Files of other users are not believed.

The files decide when launches start, and hold texts that drivers compile. An entry from another
user would run with this user's rights. So a folder, and a file in it, counts only if it belongs to
the user (or to root) and no other user may write to it. `ssh` has the same rule for its keys. Both
are tested after they were opened, so nothing can replace them between test and reading.

The folders above are not tested. A user who may write there can replace our folder, but not by a
folder that belongs to this user. A symbolic link counts as its target. On Windows there are no such
owners; there the folder of the user's profile is the protection.

Input: the name of a folder, of a file, and text or values. Output: these, or None. Invariant: a
file that is missing, unreadable or refused counts as no file, and nothing here raises. A refusal is
logged once for each folder, by `logging`. `ACS_CL_CACHE=off` turns everything off; any other value
is the folder to use.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import cache as memo
from pathlib import Path
from typing import Any, TypeVar

from .digest import digest
from .environment import variable

Of = TypeVar("Of")

_ENVIRONMENT = ("ACS_CL_CACHE", "XDG_CACHE_HOME", "HOME")  # the variables that decide the folder
_POSIX = os.name == "posix"
_told: set[str] = set()


class RefusedError(OSError):
    """A folder or a file that another user could have written."""


def folder(kind: str) -> Path | None:
    """Return the folder for files of a kind. None: they are not kept."""
    where = _path(kind)
    return None if where is None else Path(where)


def _path(kind: str) -> str | None:
    return _folder(kind, *map(variable, _ENVIRONMENT))


@memo
def _folder(kind: str, wished: str, *_: str) -> str | None:
    """Return the folder as text, because a starting program asks for entries by the hundred."""
    if wished.lower() == "off":
        return None
    if not wished:
        import platformdirs  # here, because a program that never asks should not load it

        wished = platformdirs.user_cache_dir("acs_cl", appauthor=False)
    return os.path.join(os.path.expanduser(wished), kind)


def read(kind: str, name: str) -> str | None:
    """Return the text of a file. None: there is no file, or it is not believed."""
    try:
        with _opened(kind) as (prefix, at):
            # without waiting: anything but a regular file is refused below
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
            handle = os.open(prefix + name, flags, dir_fd=at)
            with open(handle, encoding="utf-8") as file:
                _ask(handle, kind, name)
                return file.read()
    except (OSError, ValueError):
        return None


def replace(kind: str, name: str, text: str) -> bool:
    """Keep a text under a name; return whether that worked. Other processes see the old file or the
    new one, never a part."""
    scratch = f".{os.getpid()}-{os.urandom(8).hex()}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with _opened(kind, make=True) as (prefix, at):
            try:
                handle = os.open(prefix + scratch, flags, 0o600, dir_fd=at)
                with open(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(prefix + scratch, prefix + name, src_dir_fd=at, dst_dir_fd=at)
            except (OSError, ValueError):
                with contextlib.suppress(OSError):
                    os.unlink(prefix + scratch, dir_fd=at)
                raise
    except (OSError, ValueError):
        return False
    return True


def kept(kind: str, name: str, form: int, made: Callable[[dict[str, Any]], Of]) -> Of | None:
    """Return what is made of the values that `keep` wrote under a name. None: there is nothing that
    can be believed, it has another format than `form`, or `made` raises because of what it is."""
    text = read(kind, name)
    try:
        found = json.loads(text or "")
        return made(found) if found["format"] == form else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def name_of(key: str) -> str:
    """Return the name of the file for what is kept under a key."""
    return digest(key, 32) + ".json"


def keep(kind: str, name: str, form: int, values: Mapping[str, object]) -> bool:
    """Keep values under a name, in format `form`; return whether that worked."""
    try:
        text = json.dumps({"format": form, **values}, indent=1, allow_nan=False)
    except ValueError:
        return False
    return replace(kind, name, text)


def append(kind: str, name: str, text: str) -> bool:
    """Add a text to a file, in one write; return whether that worked."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    try:
        with _opened(kind, make=True) as (prefix, at):
            handle = os.open(prefix + name, flags, 0o600, dir_fd=at)
            try:
                _ask(handle, kind, name)
                os.write(handle, text.encode())
            finally:
                os.close(handle)
    except (OSError, ValueError):
        return False
    return True


def trim(kind: str, most: int) -> None:
    """Delete the oldest files above a limit."""
    entries = []
    with contextlib.suppress(OSError), _opened(kind) as (prefix, at):
        with os.scandir(prefix if at is None else at) as listing:
            for entry in listing:
                with contextlib.suppress(OSError):
                    entries.append((entry.stat().st_mtime_ns, entry.name))
        entries.sort()
        for _, name in entries[: max(len(entries) - most, 0)]:
            with contextlib.suppress(OSError):
                os.unlink(prefix + name, dir_fd=at)


@contextlib.contextmanager
def _opened(kind: str, make: bool = False) -> Iterator[tuple[str, int | None]]:
    """Open a folder that is believed. Give a prefix for names, and the handle that they are
    relative to."""
    where = _path(kind)
    if where is None:
        raise FileNotFoundError(kind)
    if make:
        Path(where).mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _POSIX:
        yield f"{where}{os.sep}", None
        return
    handle = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _ask(handle, kind)
        yield "", handle
    finally:
        os.close(handle)


def _ask(handle: int, kind: str, name: str = "") -> None:
    """Refuse an open file or folder if another user could have written it."""
    found = os.fstat(handle)
    expected = stat.S_ISREG if name else stat.S_ISDIR
    if not expected(found.st_mode):
        raise RefusedError(name)
    if not _POSIX:
        return
    others = stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if found.st_uid in (os.geteuid(), 0) and not others:
        return
    where = _path(kind) or kind
    why = (
        f"others may write to it (mode {stat.S_IMODE(found.st_mode):04o})"
        if others
        else f"it belongs to somebody else (uid {found.st_uid})"
    )
    if where not in _told:
        _told.add(where)
        import logging  # here, because it is seldom needed

        logging.getLogger("acs_cl").warning(
            "acs_cl does not use %s in its cache: %s; remove it, or name another folder by "
            "ACS_CL_CACHE",
            os.path.join(where, name) if name else where,
            why,
        )
    raise RefusedError(where)
