"""The OpenCL C sources that come with the library, by name.

In: the name of a file in `kernels_cl`. Out: its text. In a wheel that folder is inside the package,
in the sources it is beside it, as a top folder of its own; the first that is there is taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InternalError

_PACKAGE = Path(__file__).resolve().parent.parent
_LOADER: Any = __loader__  # type: ignore[name-defined]
FOLDERS = (_PACKAGE / "kernels_cl", _PACKAGE.parent / "kernels_cl")


def kernel_source(name: str) -> str:
    """The text of the file `name`, such as 'demo.cl'. The package may be in an archive."""
    for folder in FOLDERS:
        try:
            return bytes(_LOADER.get_data(str(folder / name))).decode()
        except OSError:
            continue
    folder = next((one for one in FOLDERS if one.is_dir()), FOLDERS[0])
    there = ", ".join(sorted(path.name for path in folder.glob("*.cl"))) or "nothing there"
    raise InternalError(f"no kernel source {name!r} in {folder} ({there})")
