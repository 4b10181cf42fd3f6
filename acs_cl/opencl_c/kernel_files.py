"""The OpenCL C sources that come with the library, by name.

Input: the name of a file in `kernels_cl`. Output: its text. A wheel has that folder inside the
package; a source tree has it beside the package. The first one found is used.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import InternalError

_PACKAGE = Path(__file__).resolve().parent.parent
_LOADER: Any = __loader__  # type: ignore[name-defined]
_SPAWN_HEADER = "acs_spawn.h"
_INCLUDES_SPAWN = rf"""(?m)^[ \t]*\#[ \t]*include[ \t]*[<"]{re.escape(_SPAWN_HEADER)}[>"].*$"""
FOLDERS = (_PACKAGE / "kernels_cl", _PACKAGE.parent / "kernels_cl")


def kernel_source(name: str) -> str:
    """Return the text of a file, such as 'demo.cl'. The package may be in an archive."""
    for folder in FOLDERS:
        try:
            return bytes(_LOADER.get_data(str(folder / name))).decode()
        except OSError:
            continue
    folder = next((one for one in FOLDERS if one.is_dir()), FOLDERS[0])
    there = ", ".join(sorted(path.name for path in folder.glob("*.cl"))) or "nothing there"
    raise InternalError(f"no kernel source {name!r} in {folder} ({there})")


def with_spawn_header(source: str) -> str:
    """Replace the #include of `acs_spawn.h` by its macro, so that the program needs no folder of
    headers. One line replaces one line, so line numbers in messages stay right."""
    if _SPAWN_HEADER not in source:
        return source
    header = kernel_source(_SPAWN_HEADER)
    return re.sub(_INCLUDES_SPAWN, lambda _: header[header.index("#define") :].rstrip(), source)
