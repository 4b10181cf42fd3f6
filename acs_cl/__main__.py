"""``python -m acs_cl``: the same as the command ``acs-cl``."""

from __future__ import annotations

import sys

from acs_cl.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
