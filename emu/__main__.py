"""``python -m acs_cl.emu``: the emulator from the command line."""

from __future__ import annotations

import sys

from acs_cl.emu.cli import command_line

if __name__ == "__main__":
    sys.exit(command_line())
