"""A compiler that never ends on a kernel costs the program a bounded wait, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import endless_compiler
import pytest
from conftest import Environment

from acs_cl.host import isolated, threads

PROGRAM = """
import atexit, sys, threading, time
{at_exit}
import acs_cl as acs
from acs_cl.host import isolated
from acs_cl.scheduler import apart, builds, maker

rt = acs.Runtime(backend="device")
program = rt.build('''
kernel void quick(global int *x) {{ x[get_global_id(0)] += 2; }}
kernel void slow(global int *x) {{ x[get_global_id(0)] += {nonce}; }}
''')
rt.prebuild(program.quick)

def endless(*about):
    threading.Event().wait()

def stopped(*about):
    raise isolated.TooLate(0.5)

builds.PATIENCE_S = 0.5
{stand_in}
{apart}
rt.prebuild(program.slow)
rt.prebuild(program.slow)  # neither waits for ever
x = rt.zeros(64, "i4")
slow, quick = program.slow((64,), None, x), program.quick((64,), None, x)
print(rt.explain(slow), rt.explain(quick), sep=";")
assert x.get()[0] == 2 + {nonce}
print("right", rt.stats()["scheduler"]["tasks"])
rt.close()
sys.exit(3)
"""

STAND_INS = {
    "here": ("maker.build_told = endless", ""),
    "in a process of its own": (
        "apart.Apart.compile = stopped",
        # as where nobody compiles in this process first: NVIDIA's compiler holds up every launch
        "rt.engine.backend.schedulers.maker.tier = 'ptx'",
    ),
}


LAST = """
def goes_on():  # the last of all that is to be done
    print("works", flush=True)
    until = time.perf_counter() + {works_s}
    while time.perf_counter() < until:
        pass
    if {hangs}:
        threading.Event().wait()
    print("the end", flush=True)
atexit.register(goes_on)
"""


def run(at_exit: str = "", **about: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(at_exit=at_exit, **about)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("where", STAND_INS)
def test_a_kernel_that_no_compiler_ends_with_runs_on_lanes(where: str) -> None:
    stand_in, apart = STAND_INS[where]
    done = run(stand_in=stand_in, apart=apart, nonce=sum(map(ord, where)))
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("its scheduler was not built within 0.5 s") == 1, done.stdout
    assert done.stdout.splitlines()[-1] == "right 1"
    assert not done.stderr


@pytest.mark.parametrize(("hangs", "status"), [(False, 3), (True, 1)])
def test_a_program_beside_such_a_compiler_has_the_time_that_it_works(
    hangs: bool, status: int
) -> None:
    """It keeps its own exit status then. Where it waits for ever, it is ended."""
    works_s = 1.5 * threads.LAST_S
    done = run(
        LAST.format(works_s=works_s, hangs=hangs),
        stand_in="maker.build_told = endless",
        apart="",
        nonce=7,
    )
    assert done.returncode == status, done.stderr
    assert ("the end" in done.stdout) is not hangs
    assert not done.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="nothing stops a process here")
def test_a_program_without_a_processor_is_not_ended_for_it() -> None:
    about = {"stand_in": "maker.build_told = endless", "apart": "", "nonce": 7}
    last = LAST.format(works_s=threads.LAST_S, hangs=False)
    text = PROGRAM.format(at_exit=last, **about)
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as done:
        assert done.stdout is not None
        while "works" not in done.stdout.readline():
            assert done.poll() is None
        done.send_signal(signal.SIGSTOP)
        sleep(2 * threads.LAST_S)  # that it has none so long is what is tested
        done.send_signal(signal.SIGCONT)
        assert "the end" in done.stdout.read()
    assert done.returncode == 3


def test_a_process_that_never_ends_is_stopped() -> None:
    assert endless_compiler.__spec__ is not None
    with pytest.raises(isolated.TooLate, match="had not ended after"):
        isolated.Helper(endless_compiler.__name__, isolated.POLITE).ask({}, 0.2)
    assert not isolated._helpers


ENDS = """
import endless_compiler
from acs_cl.host import isolated, threads

class Builds:
    is_late = False  # the helper has a limit of its own

    def close(self):
        pass

def asks():
    try:
        isolated.Helper(endless_compiler.__name__, isolated.MODEST).ask({}, 1e6)
    except isolated.TooLate:
        print("stopped", flush=True)

threads.start(asks, "asks", Builds())
while not isolated._helpers:
    pass
"""


def test_a_program_that_ends_stops_its_helpers(environment: Environment) -> None:
    """On a busy machine one waited for minutes, and others outlived it."""
    environment(PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("stopped\n", "", 0)


LINGERS = """
import os, signal, sys
from pathlib import Path
import endless_compiler
from acs_cl.host import isolated, threads

class Builds:
    is_late = False

    def close(self):
        pass

lingers_s, lingers, way, begun, ends = sys.argv[1:]
isolated.LINGER_S = float(lingers_s)
manners = isolated.Manners(0, lingers == "True")
order = {"begun": begun, "ends": ends} if ends else {"begun": begun}

def asks():
    try:
        isolated.Helper(endless_compiler.__name__, manners).ask(order, 1e6)
    except isolated.TooLate:
        pass

threads.start(asks, "asks", Builds())
while not (Path(begun).exists() and Path(begun).read_text().endswith("\\n")):
    pass
if way == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("way", ["ends", "killed"])
@pytest.mark.parametrize(("lingers_s", "lingers"), [(600.0, True), (0.0, True), (600.0, False)])
def test_a_helper_outlives_its_program_for_a_while_if_it_may(
    environment: Environment, tmp_path: Path, way: str, lingers_s: float, lingers: bool
) -> None:
    environment(PYTHONPATH=os.pathsep.join(sys.path))
    begun, ends = tmp_path / "begun", tmp_path / "ends"
    may_end = lingers and lingers_s > 0
    told = [str(lingers_s), str(lingers), way, str(begun), str(ends) if may_end else ""]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LINGERS, *told],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    expected = 0 if way == "ends" else -signal.SIGKILL
    assert (done.stdout, done.stderr, done.returncode) == ("", "", expected)
    while is_there(int(begun.read_text())):
        sleep(0.01)
    assert ends.exists() is may_end


HELPED = """
import os
import sys
import order_counter
from acs_cl.host import isolated

helper = isolated.Helper(order_counter.__name__, isolated.Manners(0, sys.argv[1] == "True"))
assert helper.ask({"before": 0})
"""

IDLE = "print(*[process.pid for process in isolated._helpers])"


def printed_with_a_helper(environment: Environment, words: str, lingers: bool) -> str:
    """What a program prints once its helper has done an order, if it ends well."""
    environment(PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, "-c", HELPED + words, str(lingers)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("lingers", [True, False])
def test_a_helper_without_an_order_ends_with_its_program(
    environment: Environment, lingers: bool
) -> None:
    helper = int(printed_with_a_helper(environment, IDLE, lingers))
    while is_there(helper):
        sleep(0.01)


FORKS = """
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert helper.ask({"before": 1})
    helper.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("lingers", [True, False])
def test_a_process_that_was_forked_leaves_the_helpers_to_its_parent(
    environment: Environment, lingers: bool
) -> None:
    printed_with_a_helper(environment, FORKS, lingers)


def is_there(process: int) -> bool:
    """Tell whether a process runs that is not ours. Nobody may have taken note of its end yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
