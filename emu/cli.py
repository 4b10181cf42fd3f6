"""``python -m acs_cl.emu``: simulate machines, make and convert traces, estimate a window unit.

Input: options. Output: tables on stdout, or JSON with ``--json``, a PNG with ``--png``; the exit
code.

Invariant: an error of the user is one message on stderr and exit code 1. Another command can offer
the same through `options` and `main`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from acs_cl.emu import report
from acs_cl.emu.convert import from_timeline, is_timeline
from acs_cl.emu.fields import MOST
from acs_cl.emu.generate import GRAPHS, Sizes, generate
from acs_cl.emu.machines import MACHINES, machine
from acs_cl.emu.orders import in_order
from acs_cl.emu.plots import draw
from acs_cl.emu.policies import ALL, POLICIES
from acs_cl.emu.spawning import WAYS, Parts, simulated, skewed
from acs_cl.emu.spec import Machine, WindowSpec
from acs_cl.emu.trace import MOST_GROUPS, Trace, load, save
from acs_cl.emu.window_unit import estimate
from acs_cl.errors import AcsError, InternalError, UsageError
from acs_cl.host.output import refuse_same
from acs_cl.host.pipes import quietly
from acs_cl.host.progress import Progress
from acs_cl.scheduler.orders import ORDERS

ITEMS = 256
"""Work-items of a group, if a timeline does not tell."""


def options(parser: argparse.ArgumentParser) -> Any:
    """Add the options of the command. Return its sub-commands, so that more can be added."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    run = commands.add_parser("run", help="one policy, and the serial stream")
    run.add_argument("policy", help=_policies())
    compare = commands.add_parser("compare", help="several policies, and the bounds")
    compare.add_argument("policies", nargs="*", help=f"each as for run; without any: all. {ALL}")
    sweep = commands.add_parser("sweep", help="one policy with one number at several values")
    sweep.add_argument("policy", help="as for run")
    sweep.add_argument("axis", help=f"a number of the policy, or {', '.join(report.SWEPT)}")
    sweep.add_argument("values", nargs="+", type=int, help="what that number is, run by run")
    for parser_ in (run, compare, sweep):
        _source(parser_)
        parser_.add_argument("--machine", default="paper", help=", ".join(MACHINES))
        parser_.add_argument(
            "--order", default="first_in", metavar="ORDER",
            help=f"send launches as a recorded graph would: {', '.join(ORDERS)}",
        )  # fmt: skip
        parser_.add_argument("--json", action="store_true", help="print one JSON document")
        parser_.add_argument("--png", metavar="FILE", help="draw a picture there, too")
    _unit_options(commands.add_parser("unit", help="memory, area and delays of a window unit"))
    _spawn_options(commands.add_parser("spawn", help="a launch that creates work, in several ways"))
    make = commands.add_parser("make", help="write a made-up trace")
    _source(make)
    make.add_argument("--spans", action="store_true", help="edges as bytes read and written")
    make.add_argument("--out", metavar="FILE", required=True, help="the trace")
    convert = commands.add_parser("convert", help="a timeline of rt.trace.save as a trace")
    convert.add_argument("timeline", help="what rt.trace.save or rt.measure().save wrote")
    convert.add_argument(
        "--items", type=int, default=ITEMS, metavar="N",
        help=f"work-items of a group where the timeline does not tell ({ITEMS})",
    )  # fmt: skip
    convert.add_argument("--out", metavar="FILE", required=True, help="the trace")
    return commands


def _unit_options(parser: argparse.ArgumentParser) -> None:
    one = WindowSpec()
    for option, default, what in (
        ("--slots", one.slots, "N, slots"),
        ("--distance", one.distance, "M, how many launches back the CPU looks"),
        ("--bits", one.id_bits, "bits of an id"),
    ):
        parser.add_argument(
            option, type=int, nargs="+", default=[default], metavar="NUMBER",
            help=f"{what}; all combinations of several ({default})",
        )  # fmt: skip
    parser.add_argument(
        "--clock-mhz", type=int, default=one.clock_mhz, metavar="MHZ",
        help=f"of the unit ({one.clock_mhz})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _spawn_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parents", type=int, default=1 << 16, help="work-items (65536)")
    parser.add_argument("--mean", type=int, default=32, help="items that one finds (32)")
    parser.add_argument(
        "--skew", type=float, default=1.5, help="less is more: the exponent of Pareto's law (1.5)"
    )
    parser.add_argument("--seed", type=int, default=0)
    for name, value in Parts()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"({value})")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _spawn(args: argparse.Namespace) -> None:
    parts = Parts(*(getattr(args, name) for name in Parts._fields))
    calls = skewed(args.parents, args.mean, args.skew, args.seed)
    found = {way: simulated(calls, parts, way) for way in WAYS}
    if args.json:
        print(json.dumps({"simulated_ns": found, "parts": parts._asdict()}))
        return
    for way, ns in found.items():
        print(f"{way:8} {ns / 1e3:12,.1f} us simulated {found['flat'] / ns:8.2f}x flat")


def _policies() -> str:
    said = [f"{name} ({policy.help})" for name, policy in POLICIES.items()]
    return "; ".join(said) + ". Numbers in brackets: 'acs_hw(N=16, M=64)'"


def _source(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--trace", metavar="FILE", help="a trace, or a timeline that rt.trace.save wrote"
    )
    where.add_argument("--graph", choices=sorted(GRAPHS), default="layers", help="a made-up one")
    made = parser.add_argument_group("of a made-up graph")
    made.add_argument("--width", type=int, default=16, help="launches side by side (16)")
    made.add_argument("--steps", type=int, default=32, help="one after another (32)")
    made.add_argument("--seed", type=int, default=0, help="of its shape and sizes (0)")
    for option, (least, most), what in (
        ("--groups", Sizes().groups, "groups of a kernel"),
        ("--group-ns", Sizes().group_ns, "nanoseconds of a group"),
    ):
        made.add_argument(
            option, type=int, nargs=2, default=(least, most), metavar=("LEAST", "MOST"),
            help=f"{what} ({least} {most})",
        )  # fmt: skip


def _trace(args: argparse.Namespace) -> Trace:
    if args.trace and is_timeline(args.trace):
        trace, missing = from_timeline(args.trace, ITEMS)
        print(f"{args.trace} is a timeline. What it does not tell:", file=sys.stderr)
        for sentence in missing:
            print(f"- {sentence}", file=sys.stderr)
        return trace
    if args.trace:
        return load(args.trace)
    for name, (least, most), limit in (
        ("groups", args.groups, MOST_GROUPS),
        ("group-ns", args.group_ns, MOST),
    ):
        if not 1 <= least <= most <= limit:
            raise UsageError(
                f"--{name} are two numbers from 1 to {limit:,}, the lower first, got {least} {most}"
            )
    sizes = Sizes(groups=tuple(args.groups), group_ns=tuple(args.group_ns))
    return generate(
        args.graph, args.width, args.steps, args.seed, sizes, getattr(args, "spans", False)
    )


def _ordered(args: argparse.Namespace) -> tuple[Trace, Machine]:
    where = machine(args.machine)
    return in_order(_trace(args), args.order, where.gpu), where


def _run(args: argparse.Namespace) -> None:
    _show(args, report.compare(*_ordered(args), [args.policy]))


def _compare(args: argparse.Namespace) -> None:
    _show(args, report.compare(*_ordered(args), args.policies or ALL))


def _sweep(args: argparse.Namespace) -> None:
    trace, where = _ordered(args)
    say = Progress()
    try:
        found = report.sweep(trace, where, args.policy, args.axis, args.values, say)
    finally:
        say.end()
    _show(args, found)
    if len(found.values) < len(args.values):
        raise KeyboardInterrupt  # the command line reports it


def _show(args: argparse.Namespace, found: report.Comparison | report.Sweep) -> None:
    if args.png:
        draw(found, args.png)
    if args.json:
        print(json.dumps(report.plain(found), indent=1))
    elif isinstance(found, report.Comparison):
        print(report.comparison_text(found))
    else:
        print(report.sweep_text(found))


def _unit(args: argparse.Namespace) -> None:
    if args.clock_mhz < 1:
        raise UsageError(f"--clock-mhz is at least 1, got {args.clock_mhz}")
    specs = [
        WindowSpec(slots, distance, bits, args.clock_mhz)
        for slots, distance, bits in product(args.slots, args.distance, args.bits)
    ]
    units = [(spec, estimate(spec)) for spec in specs]
    if args.json:
        print(json.dumps(report.plain_units(units), indent=1))
    else:
        print(report.units_text(units))


def _make(args: argparse.Namespace) -> None:
    trace = _trace(args)
    save(trace, args.out)
    print(f"{args.out}: {len(trace.entries)} launches, {trace.name}")


def _convert(args: argparse.Namespace) -> None:
    if args.items < 1:
        raise UsageError(f"--items is at least 1, got {args.items}")
    trace, missing = from_timeline(args.timeline, args.items)
    refuse_same(args.timeline, args.out)
    save(trace, args.out)
    print(f"{args.out}: {len(trace.entries)} launches. What it does not tell:")
    for sentence in missing:
        print(f"- {sentence}")


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "run": _run,
    "compare": _compare,
    "sweep": _sweep,
    "unit": _unit,
    "spawn": _spawn,
    "make": _make,
    "convert": _convert,
}


def main(args: argparse.Namespace) -> int:
    """Do the work of the options; return the exit code."""
    for path in (getattr(args, "out", None), getattr(args, "png", None)):
        if path and not Path(path).resolve().parent.is_dir():
            raise UsageError(f"{path}: there is no such folder")
    COMMANDS[args.what](args)
    return 0


def command_line(argv: Sequence[str] | None = None) -> int:
    """Run the words of a command line."""
    return quietly(lambda: _told(argv))


def _told(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="python -m acs_cl.emu", description="The emulator.")
    options(parser)
    args = parser.parse_args(argv)
    try:
        return main(args)
    except InternalError:
        raise
    except AcsError as error:
        print(f"emu {args.what}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"emu {args.what}: interrupted", file=sys.stderr)
        return 130
