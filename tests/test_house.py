"""Rules of the repository that no tool checks: who imports whom, sizes, the public surface, words.

A rule that gets in the way is changed here, in view of everybody, or not at all.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from test_public_surface import NAMES

import acs_cl

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("acs_cl", "emu", "benchmarks", "kernels_cl")  # what is installed, all below acs_cl

# Which modules of acs_cl a module may import, at its top or anywhere inside. A module may name
# only those above it, so the table read downwards is the direction of the arrow; a new module
# needs a line.
MAY_IMPORT = {
    "_version": "",
    "errors": "",
    "digest": "",
    "isolated": "",
    "host": "",
    "host.environment": "",
    "own_files": "host.environment",
    # records and the pure middle
    "timeline": "",
    "thread_time": "",
    "records": "errors",
    "ranges": "records errors",
    "window": "records errors",
    "poison": "records ranges errors",
    "skipped": "",
    "failures": "records poison errors",
    "explain": "records ranges errors",
    # the native core
    "core": "",
    "epochs": "core",
    "ledger": "core records window errors",
    # the driver's side
    "driver": "core records errors",
    "pocl": "errors host.environment",
    "devices": "_version pocl errors host.environment",
    "memory": "driver records errors",
    "commands": "driver records errors",
    "decisions": "driver commands records errors",
    "backends.base": "core driver records errors",
    "backends.queues": "backends.base core commands errors",
    "backends.emulate": "errors emu",
    "backends.emulated": "backends.base backends.emulate core driver records errors emu",
    # what a device can do
    "probe.record": "errors",
    "probe.facts": "devices errors",
    "probe.bench": "probe.facts driver",
    "probe.cost": "probe.bench probe.record",
    "probe.choice": "probe.facts probe.record devices",
    "probe.overlap": "timeline probe.bench probe.choice probe.record",
    "probe.store": "digest own_files probe.record",
    "probe": "probe.record probe.facts probe.bench probe.cost probe.choice probe.overlap"
    " probe.store devices errors",
    # from kernels to accesses
    "translate.facts": "",
    "translate.prelude": "translate.facts errors",
    "translate.cache": "_version digest own_files translate.facts",
    "translate.names": "",
    "contexts": "devices errors",
    "building": "contexts core devices errors translate.facts",
    "translate.macros": "building contexts translate.cache translate.facts errors",
    "translate.environment": "translate.facts translate.macros translate.names translate.prelude",
    "translate.clang": "translate.environment translate.facts translate.macros translate.names"
    " translate.prelude",
    "translate.nodes": "translate.clang",
    "translate.builtins": "",
    "translate.bodies": "translate.builtins translate.clang translate.nodes",
    "translate.outline": "translate.bodies translate.builtins translate.nodes",
    "translate.steadiness": "translate.bodies translate.nodes",
    "translate.preprocess": "translate.clang translate.environment translate.names",
    "translate.offsets": "translate.preprocess translate.clang translate.nodes translate.cache"
    " errors",
    # kernels as functions
    "kernel_files": "errors",
    "translate.tokens": "",
    "translate.survey": "translate.clang translate.nodes",
    "translate.blob": "translate.clang translate.nodes translate.survey",
    "translate.rename": "translate.survey translate.tokens",
    "translate.hoist": "translate.survey translate.tokens",
    "translate.functions": "kernel_files translate.facts translate.cache translate.clang"
    " translate.preprocess translate.tokens translate.survey translate.blob translate.rename"
    " translate.hoist",
    "translate.guards": "translate.clang translate.nodes translate.offsets translate.preprocess"
    " errors",
    "translate.watched": "translate.clang translate.nodes translate.offsets translate.preprocess",
    "translate.worker": "devices isolated translate.clang translate.functions",
    "translate": "translate.bodies translate.cache translate.clang translate.nodes"
    " translate.offsets errors",
    "signature": "",
    "inference": "signature translate.facts translate.bodies translate.cache translate.clang"
    " translate.nodes"
    " translate.outline translate.steadiness translate.macros errors",
    "declare": "records ranges signature errors",
    "reach": "ranges",
    "scalars": "signature errors",
    "views": "errors",
    "sizes": "",
    # the scheduler on the device
    "scheduler_source": "kernel_files",
    "tasks": "epochs commands decisions translate.functions",
    "warming": "devices digest epochs building driver isolated translate.cache",
    "schedulers": "core devices digest epochs building driver errors scheduler_source tasks warming"
    " translate.cache translate.clang translate.functions translate.worker",
    "segments": "core epochs tasks schedulers decisions poison records errors",
    "cutting": "epochs tasks schedulers segments commands decisions records errors",
    "choice": "",
    "backends.landing": "driver",
    "backends.sender": "backends.base backends.landing core driver epochs decisions memory"
    " schedulers segments warming errors",
    "backends.device": "choice core backends.base backends.sender driver epochs commands"
    " decisions memory records schedulers cutting segments tasks errors",
    "backends": "choice core backends.base backends.queues backends.emulate backends.emulated"
    " backends.sender backends.device errors",
    "arrays": "core records ranges views driver errors",
    "access": "records ranges arrays signature declare errors",
    "deciding": "translate.clang translate.guards records ranges arrays access building commands"
    " decisions driver errors",
    "standing": "records ranges arrays access signature declare errors",
    "converter": "scalars records arrays signature errors",
    "needed": "",
    "narrow": "arrays converter needed ranges reach records signature host.environment",
    "teaching": "core scalars arrays epochs records schedulers tasks",
    "built": "",
    "kernel": "sizes core teaching narrow translate.offsets translate.clang inference"
    " signature scalars standing records arrays access building"
    " converter deciding commands driver errors",
    "program": "kernel access building built driver errors",
    "strided": "building driver errors",
    # the parts of the runtime
    "handle": "core records errors",
    "transfers": "records arrays access commands driver handle strided errors",
    "trace": "thread_time timeline records errors",
    "stats": "records core",
    "sites": "",
    "check": "",
    "check.modes": "errors",
    "options": "backends epochs check.modes errors host.environment",
    "plan": "options probe backends errors",
    "progress": "",
    "gates": "access driver errors",
    "life": "core access commands records gates ledger driver progress failures errors",
    "ending": "core life",
    "captured": "records arrays commands decisions deciding memory",
    "graph_handles": "driver records explain handle life errors",
    "many": "core records access graph_handles errors",
    "graph": "core records ranges memory arrays access kernel handle graph_handles explain life"
    " captured commands cutting segments errors",
    # checks, where they are on
    "check.findings": "errors",
    "check.patterns": "",
    "check.memory": "check.patterns driver access ranges records errors",
    "check.case": "check.memory check.patterns signature",
    "check.naming": "check.case check.findings check.memory check.patterns commands decisions"
    " tasks signature",
    "check.access": "check.case",
    "check.uninitialised": "check.case check.memory",
    "check.releases": "",
    "check.foreign": "check.case check.findings check.memory check.releases",
    "check.leaks": "arrays handle",
    "check.sequence": "",
    "check.watch": "translate.facts translate.watched check.case check.memory check.naming"
    " building commands driver records errors",
    "check.passes": "check.case check.memory check.modes check.naming check.watch commands narrow"
    " ranges records scalars",
    "check.order": "access check.access check.case check.findings check.memory check.naming"
    " check.patterns check.sequence core commands decisions driver life records",
    "check.checker": "check.access check.case check.findings check.foreign check.leaks"
    " check.memory check.modes check.naming check.order check.passes check.patterns"
    " check.uninitialised check.watch access life commands devices driver progress records sites"
    " tasks errors",
    # the one that composes
    "measure": "core timeline life explain records trace errors",
    "reading": "transfers records arrays commands handle progress",
    "reasons": "kernel narrow reach records signature",
    "runtime": "reasons measure many core ledger teaching graph graph_handles segments"
    " choice contexts devices"
    " records window failures"
    " driver sizes skipped memory arrays views building kernel program commands decisions"
    " transfers reading handle explain stats trace sites options plan progress gates life ending"
    " backends"
    " errors"
    " check.checker",
    # PyOpenCL's own queues
    "queue_events": "errors",
    "passing": "core driver progress queue_events",
    "interception": "built passing queue_events",
    "queue_commands": "access commands core driver interception passing program records errors",
    "straight": "core queue_commands",
    "queue": "commands core driver gates interception life queue_commands queue_events records"
    " runtime straight errors",
    # what tests need of the inside
    "testing.changing": "",
    "testing.launches": "handle program queue runtime",
    "testing.queues": "testing.changing queue queue_commands runtime straight",
    "testing.scheduler": "testing.changing backends.device choice errors runtime schedulers",
    "testing.moments": "testing.changing contexts inference own_files runtime translate.macros",
    "testing": "testing.launches testing.queues testing.scheduler testing.moments",
    "__init__": "_version errors runtime arrays deciding graph kernel program handle queue",
    # commands
    "doctor": "_version core devices probe errors",
    "pictures": "timeline trace errors",
    "demo_filter": "__init__ arrays kernel_files errors",
    "demo": "__init__ arrays runtime devices trace stats kernel_files pictures demo_filter errors"
    " host.environment",
    "pipes": "",
    "script": "devices interception pipes queue runtime errors",
    "cli": "_version ending pipes devices doctor demo script benchmarks errors",
    "__main__": "cli",
    "pytest_plugin": "__init__",
}
FOLDERS_MAY_IMPORT = {
    "kernels_cl": set[str](),
    "emu": {"records", "ranges", "window", "epochs", "trace", "errors", "pipes", "emu"},
    "benchmarks": {"__init__", "devices", "probe", "trace", "kernels_cl", "emu", "benchmarks"}
    | {"kernel_files", "translate.clang", "translate.functions", "core", "records"}
    | {"commands", "driver", "inference", "ranges", "signature", "backends.device"},
}

ROOMS = ("workloads", "peers", "suite", "validation", "figures")  # of the benchmarks

# Objects that the user holds point back at the runtime they belong to. Their modules may name these
# in annotations (`if TYPE_CHECKING:`), which import nothing when the program runs.
MAY_BE_ANNOTATED = {"runtime", "handle", "memory", "kernel", "graph", "queue"}

STAGES = ("access", "window", "backends", "trace")
COMPOSES = {"runtime"}  # the only ones that know more than one stage

PURE = {"timeline", "records", "ranges", "window", "poison", "errors"}
PURE |= {f"emu.reference.{name}" for name in ("hazards", "footprints", "lanes")}
IMPURE = {"pyopencl", "threading", "time", "datetime", "asyncio", "concurrent", "queue", "random"}

PUBLIC = set(NAMES)

LONG = 300  # lines; more of them need a reason

# Written in pieces, so that this file keeps its own rule.
MACHINE_PATHS = [rf"(?<![\w.])/{name}/" for name in ("work", "root", "tmp/bash_jobs", "tmp/x")]
PACKAGE_HOSTS = [r"pypi\." + "org", r"python" + r"hosted\.org", r"deb\.debian\." + "org"]
FORBIDDEN = re.compile("|".join([*MACHINE_PATHS, r"/home/" + r"\w", *PACKAGE_HOSTS]))

IMPORT_BUDGET_S = 0.3  # beyond PyOpenCL's own
LAZY = ("clang", "pcpp", "matplotlib", "tabulate")  # loaded when first used, not at import


def sources(folder: str) -> Iterator[Path]:
    return (path for path in sorted((ROOT / folder).rglob("*.py")))


def name_of(path: Path) -> str:
    """The module's name below acs_cl: 'window', 'backends.lanes', 'backends', 'emu.engine'."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "acs_cl":
        parts = parts[1:]
    if parts[-1] == "__init__" and len(parts) > 1:
        parts = parts[:-1]
    return ".".join(parts)


MODULES = {name_of(path): path for folder in FOLDERS for path in sources(folder)}
OF_LIBRARY = sorted(name for name, path in MODULES.items() if ROOT / "acs_cl" in path.parents)
OF_FOLDERS = sorted(set(MODULES) - set(OF_LIBRARY))


def is_for_types(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`, whose imports never happen."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def walk(node: ast.AST, types: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if types or not is_for_types(child):
            yield child
            yield from walk(child, types)


def imported(path: Path, types: bool) -> Iterator[str]:
    """Absolute names of everything a file imports, 'acs_cl.window' for `from . import window`."""
    package = ["acs_cl", *name_of(path).split(".")]
    if path.name != "__init__.py" or package[-1] == "__init__":
        package.pop()
    for node in walk(ast.parse(path.read_text("utf-8")), types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, node.module] if node.module else base)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def own(path: Path, types: bool = False) -> set[str]:
    """The modules of ours that a file imports, by their names below acs_cl.

    With `types`, those too that only its annotations need.
    """
    found = set()
    for name in imported(path, types):
        first, _, rest = name.partition(".")
        if first != "acs_cl" or rest.partition(".")[0] == "_core":  # which is no module of Python's
            continue
        while rest and rest not in MODULES:  # a name inside of a module
            rest = rest.rpartition(".")[0]
        found.add(rest or "__init__")
    return found


def allowed(name: str) -> set[str]:
    return set(MAY_IMPORT[name].split())


def beyond_what_it_may(name: str, may: set[str]) -> list[str]:
    """A folder's name in `may`, such as benchmarks, stands for all that is in it."""
    whole = may & set(FOLDERS)
    others = own(MODULES[name]) - may - {name}
    return sorted(other for other in others if other.partition(".")[0] not in whole)


# ---- the direction of the arrow ------------------------------------------------------------------


def test_every_module_has_its_line() -> None:
    missing = sorted(set(OF_LIBRARY) - set(MAY_IMPORT))
    assert not missing, f"say in MAY_IMPORT what these may import: {missing}"


def test_every_line_has_its_module() -> None:
    stale = sorted(set(MAY_IMPORT) - set(OF_LIBRARY))
    assert not stale, f"MAY_IMPORT speaks of modules that do not exist: {stale}"


def test_table_points_one_way() -> None:
    above = set(OF_FOLDERS)
    for name in MAY_IMPORT:
        assert allowed(name) <= above, f"{name} may import {allowed(name) - above}, not above it"
        above.add(name)


@pytest.mark.parametrize("name", OF_LIBRARY)
def test_module_imports_what_it_may(name: str) -> None:
    if name not in MAY_IMPORT:
        pytest.fail(f"{name} has no line in MAY_IMPORT")
    beyond = beyond_what_it_may(name, allowed(name))
    assert not beyond, f"{name} imports {beyond}; it may import {sorted(allowed(name))}"


@pytest.mark.parametrize("name", OF_FOLDERS)
def test_folder_imports_what_it_may(name: str) -> None:
    may = FOLDERS_MAY_IMPORT[name.partition(".")[0]]
    beyond = beyond_what_it_may(name, may)
    assert not beyond, f"{name} imports {beyond}; it may import {sorted(may)}"


@pytest.mark.parametrize("name", OF_LIBRARY)
def test_annotations_look_back_only_at_what_the_user_holds(name: str) -> None:
    path = MODULES[name]
    back = own(path, types=True) - own(path) - allowed(name)
    assert back <= MAY_BE_ANNOTATED, f"{name} annotates with {sorted(back - MAY_BE_ANNOTATED)}"


def test_only_the_runtime_knows_several_stages() -> None:
    for name in OF_LIBRARY:
        first = name.partition(".")[0]
        stages = {other.partition(".")[0] for other in own(MODULES[name])} & set(STAGES) - {first}
        limit = len(STAGES) if name in COMPOSES else 1
        assert len(stages) <= limit, f"{name} imports several stages: {sorted(stages)}"


def test_backends_know_nothing_of_earlier_stages() -> None:
    earlier = {"runtime", "window", "access", "poison", "arrays", "program"}
    for name in OF_LIBRARY:
        if name.partition(".")[0] == "backends":
            assert not own(MODULES[name], types=True) & earlier, name


def test_the_library_uses_no_model_of_the_core() -> None:
    for name in OF_LIBRARY:
        models = {one for one in own(MODULES[name], types=True) if "emu.reference" in one}
        assert not models, f"{name} imports {sorted(models)}"


def test_the_middle_is_pure() -> None:
    for name in sorted(PURE):
        outside = {other.partition(".")[0] for other in imported(MODULES[name], types=True)}
        outside &= IMPURE
        assert not outside, f"{name} imports {sorted(outside)}"
        assert own(MODULES[name], types=True) <= PURE, name


def test_rooms_of_the_benchmarks_point_one_way() -> None:
    """A room imports those before it; modules above the rooms are commands, which compose."""
    for name in OF_FOLDERS:
        folder, room, *_ = [*name.split("."), ""]
        if folder == "benchmarks" and room in ROOMS:
            below = {"", *ROOMS[: ROOMS.index(room) + 1]}
            others = {other for other in own(MODULES[name]) if other.startswith("benchmarks.")}
            beyond = sorted(o for o in others if o.split(".")[1] not in below)
            assert not beyond, f"{name} imports {beyond}"


def test_folders_are_imported_by_their_installed_names() -> None:
    """`import emu` works in the sources and not in a wheel; so does `import acs_cl.tests`."""
    for path in [*MODULES.values(), *sources("tests")]:
        for name in imported(path, types=True):
            first, _, rest = name.partition(".")
            assert first not in FOLDERS[1:], f"{path.name} imports {name}, not acs_cl.{name}"
            assert first != "acs_cl" or rest.partition(".")[0] not in ("tests", "acs_cl"), name


# ---- size and shape ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*MODULES.values(), *sources("tests")], ids=lambda path: path.name)
def test_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path} has no docstring"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_long_module_gives_its_reason(name: str) -> None:
    lines = MODULES[name].read_text("utf-8").splitlines()
    reason = any(line.startswith("# Long because: ") for line in lines[:60])
    assert len(lines) <= LONG or reason, (
        f"{name} has {len(lines)} lines; split it, or say '# Long because: ...' near its top"
    )


# ---- the public surface --------------------------------------------------------------------------


def test_public_surface_is_pinned_and_small() -> None:
    assert len(acs_cl.__all__) == len(set(acs_cl.__all__)) <= 12
    assert set(acs_cl.__all__) == PUBLIC


def test_nothing_else_looks_public() -> None:
    for name in PUBLIC:
        assert getattr(acs_cl, name) is not None  # which loads it
    seen = {
        name
        for name, value in vars(acs_cl).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert seen == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_has_docstring_with_example_that_runs(name: str) -> None:
    thing = getattr(acs_cl, name)
    text = vars(thing).get("__doc__")  # its own, not inherited
    assert text, f"acs_cl.{name} has no docstring"
    assert ">>> " in text, f"the docstring of acs_cl.{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for example in doctest.DocTestFinder().find(thing, name, module=inspect.getmodule(thing)):
        runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


# ---- words ---------------------------------------------------------------------------------------


def committed_texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            raw = path.read_bytes()
            if b"\0" not in raw:
                yield name, raw.decode("utf-8")


def test_no_machine_or_host_is_named() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in committed_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert not found, "\n".join(found)


# ---- import --------------------------------------------------------------------------------------


def run_python(code: str, cache: Path) -> str:
    """Run code in a new interpreter that keeps its byte code, as an installed package does."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=cache,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.alone
def test_import_is_quick_and_loads_no_tools(tmp_path: Path) -> None:
    code = (
        "import sys, time, pyopencl\n"
        "begin = time.perf_counter()\n"
        "import acs_cl\n"
        "acs_cl.Runtime\n"
        "print(time.perf_counter() - begin)\n"
        f"print([name for name in {LAZY!r} if name in sys.modules])\n"
    )
    run_python(code, tmp_path)  # writes the byte code
    runs = [run_python(code, tmp_path).splitlines() for _ in range(5)]
    took_s = statistics.median(float(run[0]) for run in runs)
    assert took_s < IMPORT_BUDGET_S, f"import acs_cl took {took_s:.3f} s beyond PyOpenCL"
    assert runs[0][1] == "[]", f"import acs_cl loads {runs[0][1]}"
