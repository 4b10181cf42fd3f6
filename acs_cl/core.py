"""Load the native core, `acs_cl/_core/`, and refuse one that does not fit these sources.

Every launch passes through it, and nothing replaces it. `_core.pyi` declares its contents. Other
modules import it from here as `native`, so that they never use a core that was not checked.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

INTERFACE = 134
"""The version of the border that these sources expect."""

_INSTALL = (
    "install a wheel of acs_cl, or build it with a C++17 compiler and Python's headers "
    "(Debian: apt-get install g++ python3-dev; then pip install acs_cl; in its sources: make venv)"
)


def _advice() -> str:
    """Say what to do. Python finds these sources before an installation if it starts in them."""
    here = Path(__file__).resolve().parent
    for place in sys.path:
        other = Path(place).resolve() / here.name
        if other != here and (other / "core.py").is_file():
            return (
                f"{here} hides the acs_cl that is installed in {other}; start Python in another "
                "folder than its sources, or build them: make venv"
            )
    return _INSTALL


try:
    from . import _core
except ImportError as error:
    raise ImportError(
        f"acs_cl has no native core that loads ({error}): {_advice()}", name="acs_cl._core"
    ) from error

native = _core
_found = getattr(native, "INTERFACE", None)  # None: only the folder of its sources is there
if _found != INTERFACE:
    what = (
        "was not built"
        if _found is None
        else f"was built from other sources (interface {_found}, expected {INTERFACE})"
    )
    raise ImportError(f"the native core of acs_cl {what}: {_advice()}", name="acs_cl._core")

ABOUT = f"native, {native.SOURCES[:12]}{', profiled' if native.IS_PROFILED else ''}"
"""What reports say about it: the beginning of the digest of its sources, and whether it is laid out
by how programs ran, as that of a wheel."""


def use_this_thread() -> None:
    """Make the calling thread the main one, as it is after a fork."""
    native.use_main_thread(threading.get_ident())


_main = threading.main_thread().ident
assert _main is not None
native.use_main_thread(_main)
