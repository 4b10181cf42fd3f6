"""Benchmarks by name: `python -m acs_cl.benchmarks COMMAND ...`."""

from __future__ import annotations

import sys
from importlib import import_module

COMMANDS = {
    "run": ("suite.run", "one benchmark, or all"),
    "everything": ("suite.everything", "all that docs/measurements shows, within so many seconds"),
    "compare": ("compare", "beside CUDA, PyTorch, or in GrCUDA's sizes"),
    "loops": ("suite.loops", "loops on the device beside those of the host, and CUDA's"),
    "devices": ("suite.devices", "programs on one device and on several"),
    "validate": ("validate", "the emulator beside a device"),
    "paper": ("validation.paper", "the paper's workloads on its device, simulated"),
    "bands": ("validation.bands", "what launches cut into parts would gain, simulated"),
    "emulator-speed": ("validation.emulator_speed", "how fast the emulator is"),
    "corpus": ("validation.corpus", "how many foreign kernels are translated"),
    "merge": ("figures.merge", "take new results into the committed ones"),
    "report": ("figures.report", "write the tables of README and docs, or check them"),
    "stamp": ("suite.provenance", "the commit of these sources, for another machine"),
}
"""By name: the module of this package that does it, and what it does."""


def main() -> int:
    """Run the command; the exit code."""
    name, *words = sys.argv[1:] or [""]
    if name not in COMMANDS:
        print("usage: python -m acs_cl.benchmarks COMMAND ...\n", file=sys.stderr)
        for one, (_, about) in COMMANDS.items():
            print(f"  {one:15} {about}", file=sys.stderr)
        return 0 if name in ("-h", "--help") else 2
    from pyopencl import Error  # here, so that the list of commands needs none of it

    from acs_cl.devices import advice

    try:
        code: int = import_module(f"acs_cl.benchmarks.{COMMANDS[name][0]}").main(words)
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted, before anything was measured", file=sys.stderr)
        code = import_module("acs_cl.benchmarks.suite.documents").INTERRUPTED
    except Error as error:  # what PyOpenCL alone builds, for comparison
        hint = advice(str(error))
        if not hint:
            raise
        print(f"benchmarks: {error}{hint}", file=sys.stderr)
        code = 1
    return code


if __name__ == "__main__":
    raise SystemExit(main())
