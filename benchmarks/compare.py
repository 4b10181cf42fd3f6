"""Compare with others in one run: `python -m acs_cl.benchmarks compare cuda --preset paper`.

`cuda`: synthetic graphs in CUDA C++, which needs `nvcc` and a card that both CUDA and OpenCL know.
`torch`: a static network in PyTorch, eager and as CUDA graphs. `few-groups`: GrCUDA's six
workloads, in launches as small as GrCUDA's own. A JSON file is written after each workload.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from acs_cl import UsageError, devices
from acs_cl.benchmarks.figures import comparison_tables
from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.peers.published import GRCUDA
from acs_cl.benchmarks.suite import beside_cuda, beside_torch, documents, few_groups
from acs_cl.benchmarks.suite.options import add_options, plan_of
from acs_cl.benchmarks.suite.progress import say
from acs_cl.benchmarks.workloads import catalogue, synthetic
from acs_cl.benchmarks.workloads.static import MODELS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks compare", description=__doc__.split("\n")[0])
    ways = parser.add_subparsers(dest="way", required=True)
    cuda = ways.add_parser("cuda", help="synthetic graphs in CUDA C++")
    add_options(cuda, "workloads", "--preset", "--backend", "--device", "--runs", "--seed")
    few = ways.add_parser("few-groups", help="GrCUDA's six in few groups")
    add_options(few, "workloads", "--preset", "--backend", "--device", "--runs")
    few.add_argument("--per-unit", type=int, action="append", metavar="N", help="several times")
    torch = ways.add_parser("torch", help="a static network in PyTorch")
    add_options(torch, "--preset", "--runs", "--seed")
    torch.add_argument("--network", choices=list(MODELS), default="randwire")
    torch.add_argument("--device", default="cuda", help="of PyTorch; 'cpu' runs eager only")
    torch.add_argument("--opencl", metavar="SPEC", help="device of acs_cl; 'none' for none")
    for one in (cuda, few):
        add_options(one, "--within")
    for one in (cuda, few, torch):
        add_options(one, "--json")
    args = parser.parse_args(argv)
    try:
        measure, text = WAYS[args.way]
        document = measure(args)
        print(text(document))
    except (UsageError, cuda_graphs.PeerError) as error:
        parser.exit(2, f"{error}\n")
    return documents.exit_code(document, 0)


def _cuda(args: argparse.Namespace) -> documents.Document:
    there = {workload.name: workload for workload in synthetic.WORKLOADS}
    wrong = [name for name in args.workloads if name not in there]
    if wrong:
        raise UsageError(f"no synthetic workload is called {wrong[0]!r}: {', '.join(there)}")
    if cuda_graphs.compiler() is None:
        raise UsageError(cuda_graphs.NO_COMPILER)
    plan = plan_of(args, [there[name] for name in args.workloads or there], "paper")
    document = documents.last_written(beside_cuda.growing(plan), args.json)
    say("", 1.0)
    return document


def _few_groups(args: argparse.Namespace) -> documents.Document:
    wrong = [name for name in args.workloads if name not in GRCUDA]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is none of GrCUDA's: {', '.join(GRCUDA)}")
    per_unit = args.per_unit or few_groups.PER_UNIT
    if min(per_unit) < 1:
        raise UsageError(f"--per-unit {min(per_unit)}: expected at least one group")
    some = [catalogue()[name] for name in args.workloads or GRCUDA]
    plan = plan_of(args, some, "paper", ["lanes"])
    document = documents.last_written(few_groups.growing(plan, per_unit), args.json)
    say("", 1.0)
    return document


def _torch(args: argparse.Namespace) -> documents.Document:
    document = beside_torch.measure(
        args.network,
        args.preset or "paper",
        args.device,
        opencl=None if args.opencl == "none" else devices.choose(args.opencl),
        runs=args.runs or 15,
        seed=args.seed or 0,
    )
    if args.json:
        documents.write(args.json, document)
    return document


WAYS = {
    "cuda": (_cuda, comparison_tables.cuda_text),
    "few-groups": (_few_groups, comparison_tables.few_groups_text),
    "torch": (_torch, comparison_tables.torch_text),
}
"""What measures, and what tells of it."""
