"""The pytest plugin, by pytest's own tester: a user's tests run over backends, policies and seeds.

Runs with `--acs` are processes of their own, as a user's are, where the entry point brings the
plugin along. So is one of the others. The rest run in this process, which saves their imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyopencl as cl
import pytest

import acs_cl as acs

pytest_plugins = ("pytester",)

TEST = """
import numpy as np

SOURCE = '''
kernel void add(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[i] + 1; }
'''

def test_add(acs_runtime):
    rt = acs_runtime()
    prog = rt.build(SOURCE)
    x, y = rt.array(range(64), "f4"), rt.zeros(64)
    prog.add((64,), None, x, y%s)
    assert y.get()[3] == 4
"""


@pytest.fixture(scope="module")
def loaded(device: cl.Device) -> None:
    """What a checked launch imports is there: pytester takes away what its runs import."""
    with acs.Runtime(device, backend="serial", check="access,uninitialised") as rt:
        x, y = rt.array(range(64), "f4"), rt.zeros(64)
        rt.build("kernel void add(global const float *x, global float *y) { *y += *x; }").add(
            (64,), None, x, y
        )


OPTIONS = ("-p", "no:cacheprovider", "-v")


def run(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess(*OPTIONS, *options, timeout=300)


def run_here(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_inprocess(*OPTIONS, *options)


def test_a_test_runs_over_backends_policies_and_seeds(
    pytester: pytest.Pytester, device: cl.Device
) -> None:
    done = run(pytester, TEST % "", "--acs-cl-backends=serial,lanes")
    done.assert_outcomes(passed=6)
    done.stdout.fnmatch_lines(
        ["*test_add?serial-eager-0? PASSED*", "*test_add?serial-eager-1? PASSED*",
         "*test_add?lanes-eager-0? PASSED*", "*test_add?lanes-ready_first-1? PASSED*"],
        consecutive=False,
    )  # fmt: skip


def test_what_the_run_chooses_is_refused_in_the_test(
    pytester: pytest.Pytester, device: cl.Device
) -> None:
    text = "def test_add(acs_runtime):\n    acs_runtime(backend='lanes')\n"
    done = run_here(pytester, text, "--acs-cl-backends=device")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*acs_runtime: leave out backend, which this run *"])


@pytest.mark.parametrize(
    ("text", "option", "said"),
    [
        ("def test_add(acs_runtime):\n    acs_runtime(lanes='x')\n", "access", "*lanes='x': *"),
        ("def test_add(acs_runtime):\n    acs_runtime()\n", "nonsense", "*no check 'nonsense'*"),
        (
            "def test_add(request):\n    request.getfixturevalue('acs_runtime')\n",
            "access",
            "*acs_runtime: name it among the arguments *",
        ),
    ],
)
def test_what_is_wrong_fails_on_each_backend(
    text: str, option: str, said: str, pytester: pytest.Pytester, device: cl.Device
) -> None:
    done = run_here(pytester, text, "--acs-cl-backends=device", f"--acs-cl-check={option}")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([said])


SUITE = """
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

SOURCE = '''
kernel void add(global const float *x, global float *y)
{ int i = get_global_id(0); y[i] = x[i] + 1; }
'''

@pytest.fixture
def queue():
    context = cl.create_some_context(interactive=False)
    yield cl.CommandQueue(context)  # Intel's runtime lets a context go whose queue is still there

def test_it_is_ours(queue):
    assert type(queue).__module__.startswith("acs_cl")
    x = cl.array.to_device(queue, np.arange(64, dtype="f4"))
    assert ((x + 1) * 2).get()[3] == 8

def test_kernel(queue):
    program = cl.Program(queue.context, SOURCE).build()
    x, y = (cl.array.to_device(queue, np.arange(64, dtype="f4")) for _ in range(2))
    program.add(queue, (64,), None, x.data, y.data)
    assert y.get()[5] == 6
"""


def test_a_suite_of_pyopencls_runs_on_our_queues(
    pytester: pytest.Pytester, device: cl.Device
) -> None:
    done = run(pytester, SUITE, "--acs")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*= acs_cl =*", "*queues 2, launches *", "*checked (access): *"])


def test_a_suite_says_which_backend_and_checks_it_wants(
    pytester: pytest.Pytester, device: cl.Device
) -> None:
    done = run(pytester, SUITE, "--acs", "--acs-cl-backends=lanes", "--acs-cl-check=off")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*ran on: lanes *"])
    done.stdout.no_fnmatch_line("*checked (*")
    done = run(pytester, SUITE, "--acs", "--acs-cl-backends=serial,lanes")
    done.stderr.fnmatch_lines(["*with --acs it is one of serial, *"])


def test_processes_of_xdist_have_queues_of_their_own(
    pytester: pytest.Pytester, device: cl.Device
) -> None:
    pytest.importorskip("xdist")
    done = run(pytester, SUITE, "--acs", "--acs-cl-backends=lanes", "-n1")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*= acs_cl =*", "*pytest-xdist's processes: nothing is summed up"])
    done.stdout.no_fnmatch_line("*made no queue*")


def test_without_the_option_queues_are_pyopencls(
    pytester: pytest.Pytester, device: cl.Device
) -> None:
    # which build nothing on a CPU that PoCL does not know, unless somebody has repaired it
    pytester.makeconftest("from acs_cl import devices\ndevices.choose()\n")
    done = run(pytester, SUITE)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.no_fnmatch_line("*= acs_cl =*")


def test_all_backends_by_default(pytester: pytest.Pytester, loaded: None) -> None:
    done = run_here(pytester, TEST % "", "--acs-cl-seeds=1")
    outcomes = done.parseoutcomes()
    assert outcomes.get("passed", 0) + outcomes.get("skipped", 0) == 6
    assert outcomes.get("passed", 0) >= 5


def test_other_backends_run_where_they_are_named(pytester: pytest.Pytester, loaded: None) -> None:
    done = run_here(pytester, TEST % "", "--acs-cl-backends=auto,emulated", "--acs-cl-seeds=1")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*test_add?emulated-eager-0? PASSED*"])


def test_a_wrong_reads_fails_with_launch_argument_and_line(
    pytester: pytest.Pytester, loaded: None
) -> None:
    done = run_here(pytester, TEST % ", reads=x[:32]", "--acs-cl-backends=lanes:eager")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(
        ["*CheckError: launch 3 of kernel 'add', at *test_a_wrong_reads*.py:12: its outcome "
         "depends on byte 128 of argument 0 *"]
    )  # fmt: skip


def test_checks_are_chosen_and_can_be_off(pytester: pytest.Pytester, loaded: None) -> None:
    wrong = TEST % ", reads=x[:32]"
    done = run_here(pytester, wrong, "--acs-cl-backends=serial", "--acs-cl-check=off")
    done.assert_outcomes(passed=1)
    done = run_here(pytester, wrong, "--acs-cl-backends=serial", "--acs-cl-check=access")
    done.assert_outcomes(failed=1)
    done = run_here(
        pytester, wrong, "--acs-cl-backends=serial", "--acs-cl-check=order,uninitialised"
    )
    done.assert_outcomes(passed=2)


def test_what_is_found_at_close_fails_the_test(pytester: pytest.Pytester, loaded: None) -> None:
    text = TEST.replace("assert y.get()[3] == 4", "f = cl.Buffer(rt.context, RW, 256)").replace(
        "import numpy as np", "import numpy as np, pyopencl as cl\nRW = cl.mem_flags.READ_WRITE"
    )
    text = text % "" + "    rt.launch(prog.add.native, (64,), None, f, y)\n    f.release()\n"
    done = run_here(pytester, text, "--acs-cl-backends=serial", "--acs-cl-check=access")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["*was released before anybody waited*"])


def test_wrong_options_are_usage_errors(pytester: pytest.Pytester) -> None:
    done = run_here(pytester, TEST % "", "--acs-cl-backends=vulkan")
    assert done.ret == pytest.ExitCode.USAGE_ERROR or done.ret == pytest.ExitCode.INTERRUPTED
    done.stdout.fnmatch_lines(["*there is no 'vulkan'*"])


def test_runs_that_do_not_use_it_load_no_opencl(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import sys\n"
        "def test_plain():\n"
        "    assert 'acs_cl.tools.pytest_plugin' in sys.modules\n"
        "    loaded = [name for name in ('pyopencl', 'numpy', 'acs_cl.runtime')\n"
        "              if name in sys.modules]\n"
        "    assert not loaded\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "ACS_CL"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
