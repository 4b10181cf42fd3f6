"""A plugin of pytest for `make sanitize`: the core that it built, in place of the installed one.
Programs that tests start take it, too (`sanitizing/sitecustomize.py`)."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "build" / "sanitize"

(_path,) = BUILT.glob("_core.*")
_spec = spec_from_file_location("acs_cl._core", _path)
assert _spec is not None
assert _spec.loader is not None
_module = module_from_spec(_spec)
_spec.loader.exec_module(_module)
sys.modules["acs_cl._core"] = _module
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE / "sanitizing"), str(HERE)])
