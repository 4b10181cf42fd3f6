"""The command ``acs-cl``. Input: options. Output: an exit code.

One table has the sub-commands. Each brings its options and a function. A command's module is
imported when the command runs, so ``acs-cl --version`` touches no device and no plots.

Invariant: an error of the user or the device is one message on stderr and exit code 1, without a
traceback. A bug of this library shows its traceback. If the reader of a command's output leaves,
the command ends silently.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial

from acs_cl._version import __version__
from acs_cl.errors import AcsError, InternalError
from acs_cl.host.pipes import quietly

from ..records import NamedTuple


class Command(NamedTuple):
    """A sub-command: a line of help, its options, and its function, which returns the exit code."""

    help: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return quietly(lambda: _run(sys.argv[1:] if argv is None else list(argv)))


def _run(words: Sequence[str]) -> int:
    parser = _parser(words)
    if not words:
        parser.print_help(sys.stderr)
        return 2
    args = parser.parse_args(words)
    command: Command = COMMANDS[args.command]
    try:
        return command.run(args)
    except InternalError:
        raise
    except AcsError as error:
        print(f"acs-cl {args.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"acs-cl {args.command}: interrupted", file=sys.stderr)
        from .. import at_exit  # not needed for help

        at_exit.interrupted = True
        return 130


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser. Only named commands get their options, because some are slow to load."""
    parser = argparse.ArgumentParser(
        prog="acs-cl",
        description="Launch OpenCL kernels in program order; the independent ones run together.",
        epilog="Begin with `acs-cl doctor` and `acs-cl demo`; `acs-cl COMMAND --help` says more.",
    )
    parser.add_argument("--version", action="version", version=f"acs-cl {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.help, description=command.help)
        if name in words:
            command.options(one)
    return parser


def _device_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="SPEC", help="index, or a part of 'platform name / device name'"
    )


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    _device_option(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--fresh", action="store_true", help="measure again, whatever is cached")


def _demo_options(parser: argparse.ArgumentParser) -> None:
    _device_option(parser)
    parser.add_argument("--backend", metavar="NAME", help="the backend beside serial (auto)")
    parser.add_argument("--out", metavar="FILE.png", help="the picture (acs-cl-demo.png)")
    parser.add_argument("--quick", action="store_true", help="a smaller problem, for a first look")


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", metavar="NAME", help="the backend of its queues (auto)")
    parser.add_argument("--no-trace", action="store_true", help="no times, and so no overlap")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="then run it interleaved on its own queues and on ours, and say how long each took",
    )
    parser.add_argument(
        "--turns", type=int, default=3, metavar="N", help="runs of --compare on each side (3)"
    )
    parser.add_argument("--out", metavar="FILE", help="where the report goes, in place of stderr")
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="write a page: timeline, graph, advice, why no overlap",
    )
    _program_options(parser, "a script that uses PyOpenCL")


def _graph_options(what: str, parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", metavar="NAME", help="the backend of its runtimes, whatever it says"
    )
    _program_options(parser, what)


def _program_options(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module")
    parser.add_argument("program", metavar="PROGRAM", help=what)
    rest = parser.add_argument(
        "arguments",
        metavar="ARGS",
        nargs=argparse.REMAINDER,
        help="all that follows: PROGRAM's own",
    )
    rest.required = False  # there may be none, and an error would name it


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("timeline", help="what rt.measure().save or rt.trace.save wrote")
    parser.add_argument(
        "--out", metavar="FILE.html", help="the page; beside the timeline if not said"
    )
    parser.add_argument(
        "--title", metavar="TEXT", help="the head of the page (the name of the timeline)"
    )
    parser.add_argument(
        "--no-what-if", action="store_true", help="do not ask the emulator what would help"
    )


def _runs(module: str, name: str = "main") -> Callable[[argparse.Namespace], int]:
    """Return the ``main(args)`` of a module, which is imported only when it is called."""

    def run(args: argparse.Namespace) -> int:
        code: int = getattr(importlib.import_module(module), name)(args)
        return code

    return run


def _has(module: str) -> Callable[[argparse.ArgumentParser], None]:
    """Return the ``options(parser)`` of a module in the same way."""

    def options(parser: argparse.ArgumentParser) -> None:
        importlib.import_module(module).options(parser)

    return options


COMMANDS: dict[str, Command] = {
    "doctor": Command(
        "say what devices there are, and what auto chooses on them",
        _doctor_options,
        _runs("acs_cl.tools.doctor"),
    ),
    "demo": Command(
        "run an input-dependent pipeline, serial and concurrent, and draw both",
        _demo_options,
        _runs("acs_cl.benchmarks.demo"),
    ),
    "run": Command(
        "run a PyOpenCL program on acs_cl's queues, and say what it gained",
        _run_options,
        _runs("acs_cl.tools.run_script"),
    ),
    "report": Command(
        "make a page of a saved timeline: where time went, why launches did not overlap",
        _report_options,
        _runs("acs_cl.tools.report"),
    ),
    "tune": Command(
        "find the best order for a program's graphs, and how to cut their launches",
        partial(_graph_options, "a script"),
        _runs("acs_cl.tools.graphs", "tune"),
    ),
    "verify": Command(
        "prove that a saved graph, or the graphs a program records, keep program order",
        partial(_graph_options, "a file of `graph.save`, or a script"),
        _runs("acs_cl.tools.graphs", "verify"),
    ),
    "bench": Command(
        "time the workloads on every backend, beside PyOpenCL by itself",
        _has("acs_cl.benchmarks.bench"),
        _runs("acs_cl.benchmarks.bench"),
    ),
    "emu": Command(
        "run, compare and sweep simulated machines",
        _has("acs_cl.benchmarks.emulator"),
        _runs("acs_cl.benchmarks.emulator"),
    ),
}
