"""Which packages `make clients` takes, and what is run of each."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).resolve().parent / "client_programs"


class Client(NamedTuple):
    """A package, and its own tests."""

    package: str
    suites: tuple[str, ...] = ()
    """Test files below the package's sources; `module:NAME` where they come with the package."""
    options: tuple[str, ...] = ()
    """What pytest is told besides."""
    needs: tuple[str, ...] = ()
    environment: str = "venv"
    """Packages that want other versions of the same third one are apart, as is Nengo, whose plugin
    does not go with today's pytest."""
    crashing: tuple[tuple[str, str], ...] = ()
    """Tests that end the process at times, then or a while later, on any queue, by a part of their
    names, and why. They are left out."""
    without: str = ""
    """Why there are no tests, or not all of them."""
    before: str = ""
    """What Python runs before the tests."""
    variables: tuple[tuple[str, str], ...] = ()
    """Of the environment of the tests."""


POCL_FREES = (
    "PoCL 3.0 frees a wrong address when `clEnqueueSVMFree` runs, in a thread of its own "
    "(`pocl_exec_command`, common.c:671), so that this or the next test crashes"
)

CLIENTS = {
    "pyopencl": Client(
        "pyopencl",
        (
            "test_array.py",
            "test_algorithm.py",
            "test_clmath.py",
            "test_clrandom.py",
            "test_enqueue_copy.py",
            "test_arrays_in_structs.py",
            "test_wrapper.py",
        ),
        ("-k", "not large"),
        ("mako",),
        crashing=(("arrays_with_svm_allocators", POCL_FREES),),
    ),
    "silx": Client(
        "silx",
        ("module:silx.opencl",),
        needs=("scipy<1.12", "mako", "numpy<2"),
        environment="venv-numpy-1",
        # newer releases of SciPy fetch the picture from the network
        before=(
            "import scipy.datasets, scipy.misc;"
            "scipy.datasets.ascent = scipy.misc.ascent.__wrapped__"
        ),
        # of some programs that PoCL 3.0 builds from its cache, such as sift/reductions.cl, it finds
        # no kernel: plain PyOpenCL shows it
        variables=(("POCL_KERNEL_CACHE", "0"),),
    ),
    "pyfai": Client(
        "pyFAI", ("module:pyFAI.test.test_csr", "module:pyFAI.opencl.test.test_ocl_sort")
    ),
    "xobjects": Client("xobjects", ("tests/test_kernel.py", "tests/test_buffer.py")),
    "nengo_ocl": Client(
        "nengo-ocl",
        needs=("nengo", "scipy", "setuptools<80", "pytest<8"),
        environment="venv-nengo",
        without="the wheel lacks the fixtures of the package's own tests",
    ),
    "boxtree": Client(
        "boxtree",
        needs=("islpy<2025.3",),
        without="its tests want a newer arraycontext than the one that goes with the others",
    ),
    "arraycontext": Client(
        "arraycontext", ("test_arraycontext.py",), needs=("pytato", "islpy<2025.3")
    ),
    "reikna": Client(
        "reikna",
        (
            "test_algorithms/test_reduce.py",
            "test_algorithms/test_scan.py",
            "test_algorithms/test_transpose.py",
            "test_linalg/test_norm.py",
            "test_transformations.py",
        ),
        ("--api=ocl",),
        ("numpy>=2",),
    ),
    "loopy": Client("loopy", ("test_scan.py", "test_nbody.py"), needs=("mako", "islpy<2025.3")),
    "pyclesperanto_prototype": Client(
        "pyclesperanto-prototype",
        (str(PROGRAMS.parent / "client_pyclesperanto.py"),),
        needs=("numpy<2",),
        environment="venv-numpy-1",
        without="the package's own tests are not on PyPI: these are ours",
    ),
    "bempp_cl": Client("bempp-cl", without="the package's own tests are not on PyPI"),
    "gprmax": Client("gprMax", without="the package's own tests are not on PyPI"),
}


def program_of(name: str) -> Path | None:
    """The benchmark of a client."""
    path = PROGRAMS / f"{name}.py"
    return path if path.exists() else None
