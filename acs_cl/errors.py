"""The errors of acs_cl, sorted by whose fault they are.

    AcsError
    ├── UsageError       the call was wrong: argument, name, range, a freed array, use after a fork
    │   ├── CheckError       a check found that the program does what it did not declare
    │   └── UnreadableError  an attribute has no value now
    ├── DeviceError      the device or its driver refused or failed
    │   ├── BuildError       a program that does not build, with its log
    │   ├── OutOfMemory      no memory, even after waiting for everything in flight
    │   └── StalledError     nothing ended for as long as the watchdog waits, with what runs
    ├── PoisonedError    the data never came to be, because a launch before it failed
    └── InternalError    a promise of this library was broken: a bug, please report it

A message says which launch, kernel and argument, what came, what was expected and what to do.
`PoisonedError.__cause__` is the failure that all others follow from.
"""

# Long because: what to say of right and wrong names is in tables.

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import index
from typing import NoReturn, cast

import numpy as np

from .records import NamedTuple


class AcsError(Exception):
    """Is the base of everything that acs_cl raises.

    >>> import acs_cl as acs
    >>> issubclass(acs.UsageError, acs.AcsError)
    True
    """

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as it is, whatever its class asks for where one is made."""
        return _again, (type(self), self.args), vars(self)


def _again(kind: type[AcsError], args: tuple[object, ...]) -> BaseException:
    """Make an error that came from another process, without what its class does to a new one."""
    base: type[BaseException] = kind
    while base.__module__ != "builtins":
        base = cast("type[BaseException]", base.__base__)
    error = base.__new__(kind)
    error.args = args
    return error


class UsageError(AcsError, ValueError):
    """Says that the call was wrong. Nothing was launched, and no earlier launch is lost.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     try:
    ...         rt.empty((2, -1), "f4")
    ...     except acs.UsageError as error:
    ...         print(error)
    shape (2, -1): an array cannot have a negative length
    """


class Finding(NamedTuple):
    """Says what a check found, in which launch and where, and the line of the program."""

    kind: str
    launch: int
    kernel: str
    argument: int | None
    parameter: str
    first_byte: int | None
    site: str
    text: str
    work_item: tuple[int, ...] | None = None
    """The first one that touches the byte, by global number, if it is known."""

    def __str__(self) -> str:
        return self.text


class CheckError(UsageError):
    """Says that a check (`Runtime(check=…)`) found an access that the program did not declare.

    `finding` has the fields kind, launch, kernel, argument, parameter, first_byte, site, text and
    work_item.
    """

    def __init__(self, message: str, finding: Finding) -> None:
        super().__init__(message)
        self.finding = finding


class UnreadableError(UsageError, AttributeError):
    """Says that an attribute has no value now, and why.

    It is an `AttributeError`, too. So tools that look at all attributes of an object go on.
    """


class CheckWarning(UserWarning):
    """Says something that a check found and that need not be wrong."""


class DeviceError(AcsError, RuntimeError):
    """Says that the device or its driver refused or failed.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     try:
    ...         rt.build("kernel void broken( {")
    ...     except acs.DeviceError as error:
    ...         print("does not build" in str(error))
    True
    """


class BuildError(DeviceError):
    """Says that a program does not build. `log` is the compiler's text, `line` the first line it
    names."""

    def __init__(self, message: str, log: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.line = line


class OutOfMemory(DeviceError, MemoryError):  # noqa: N818  as PyOpenCL and CUDA say it
    """Says that the device has no memory left, even after everything in flight had ended."""


class StalledError(DeviceError, TimeoutError):
    """Says that nothing has ended for as long as the watchdog waits, and what runs meanwhile.

    Nothing is lost: launches in flight go on, and may be waited for again.
    """


class PoisonedError(AcsError, RuntimeError):
    """Says that the data was never written, because a launch before it failed.

    `__cause__` is the first failure. Bytes stay poisoned until they are fully overwritten (`fill`,
    `set`, `copy_from`, a declared `writes=`) or freed.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     x = rt.zeros(4, "f4")
    ...     task = rt.call(lambda x: 1 / 0, writes=[x])
    ...     try:
    ...         x.get()
    ...     except acs.PoisonedError as error:
    ...         print(repr(error.__cause__))
    ZeroDivisionError('division by zero')
    """


class InternalError(AcsError, AssertionError):
    """Says that a promise of this library was broken. Please report it with the message."""


INSTEAD = {
    "Runtime": {
        "synchronize": "finish()", "sync": "finish()", "wait": "finish(), or wait() of a handle",
        "ones": "array(np.ones(…))", "full": "array(np.full(…))",
        "zeros_like": "zeros(x.shape, x.dtype)", "empty_like": "empty(x.shape, x.dtype)",
        "to_device": "array(…)", "asarray": "array(…)", "compile": "build(source)",
        "arange": "array(np.arange(…))", "random": "array(np.random.random(…))",
        "launch_many": "launch_many of a kernel", "malloc": "empty(shape, dtype)",
        "ones_like": "array(np.ones(x.shape, x.dtype))", "from_numpy": "array(…)",
        **dict.fromkeys(("copy", "memcpy"), "copy_from(…) of an array, or its set() and get()"),
        **dict.fromkeys(("capture", "begin_capture"), "record(), in a with statement"),
        "stream": "nothing: launches follow each other by their bytes", "profile": "measure()",
        "report": "measure(), whose block has report(path)",
        "Program": "build(source)", "time": "measure()", "memory": "plan.memory, or stats()",
        "backend": "plan.backend", "barrier": "finish(); launches follow each other by their bytes",
        "queue": "pyopencl.CommandQueue(rt.context), or acs_cl.Queue(rt.context, runtime=rt)",
    },
    "Array": {
        "numpy": "get()", "item": "get()", "tolist": "get().tolist()", "cpu": "get()",
        "copy": "rt.empty(x.shape, x.dtype) and copy_from(x)", "astype": "rt.array(x.get(), dtype)",
        "sum": "a kernel, or get().sum()", "max": "a kernel, or get().max()",
        "min": "a kernel, or get().min()", "mean": "a kernel, or get().mean()",
        "dot": "a kernel, or get().dot(…)", "transpose": "T", "flatten": "reshape(-1)",
        "ravel": "reshape(-1)", "to_numpy": "get()", "result": "get()", "compute": "get()",
        **dict.fromkeys(("to_host", "map_to_host", "copy_to_host"), "get()"),
        "get_async": "get(wait=False)", "clone": "rt.empty(x.shape, x.dtype) and copy_from(x)",
        "itemsize": "dtype.itemsize", "squeeze": "reshape(…)", "queue": "runtime",
        "map": "get(), and set(values) after", "release": "free()",
        **dict.fromkeys(("ptr", "int_ptr", "base_data"), "data, for PyOpenCL"),
        "block_until_ready": "get(), or wait() of a launch's handle",
        **dict.fromkeys(("wait", "finish", "synchronize"), "get(), or wait() of a launch's handle"),
        **{name: f"runtime.{name}" for name in ("device", "context")},
    },
    "Kernel": {
        "launch": "the kernel's call: kernel(global_size, local_size, …)",
        "run": "the kernel's call: kernel(global_size, local_size, …)",
        "set_args": "the arguments into the call: kernel(global_size, local_size, …)",
        "set_arg": "the arguments into the call: kernel(global_size, local_size, …)",
        "set_scalar_arg_dtypes": "nothing: a number becomes the parameter's type",
        "num_args": "len(kernel.signature.parameters)", "function_name": "name",
    },
    "Graph": {
        "run": "replay()", "launch": "replay()", "execute": "replay()", "instantiate": "replay()",
        "upload": "replay()", "launches": "len(graph)", "wait": "replay().wait()",
    },
    "acs_cl": {
        **dict.fromkeys(
            ("array", "zeros", "empty", "build", "record", "measure", "finish", "call", "load"),
            "rt = acs_cl.Runtime(), and its method of that name",
        ),
        **{name: f"import acs_cl.{name}" for name in ("dask", "testing")},
        **dict.fromkeys(("Buffer", "to_device"), "rt.array(values), of a Runtime"),
        **dict.fromkeys(("Stream", "CommandQueue"), "acs_cl.Runtime(), which has no streams"),
        **dict.fromkeys(("Context", "Device"), "acs_cl.Runtime(device), or pyopencl's"),
        "synchronize": "rt = acs_cl.Runtime(), and its finish()",
        "LocalMemory": "pyopencl.LocalMemory(nbytes)",
        **{name: f"acs_cl.errors.{name}" for name in (
            "BuildError", "CheckError", "CheckWarning", "InternalError", "OutOfMemory",
            "StalledError",
        )},
    },
    "Handle": {
        "get": "wait(), or get() of an array", "result": "wait()", "synchronize": "wait()",
        "query": "done", "elapsed": "rt.measure() around the launches",
        "profile": "rt.measure() around the launches", "time": "rt.measure() around the launches",
    },
}  # fmt: skip
"""What to write for a name that other libraries have and our class does not."""

MADE = {
    "Array": "write rt.array(values), rt.zeros(shape, dtype) or rt.empty(shape, dtype)",
    "Graph": "write `with rt.record() as graph:`, or rt.load(path)",
    "Kernel": "kernels are attributes of what rt.build(source) returns",
    "Program": "write rt.build(source)",
}
"""What makes the objects of a runtime, which is `rt` here."""

INNER = {
    "Array": (
        "address argument base engine holders home is_inside lead live offset overwrites place "
        "span spans view_at where"
    ),
    "Graph": ("access_of body engine explain making on_device pieces told_bands trial_of"),
    "Handle": "engine",
    "Kernel": (
        "binder cut_into_tiles declarations elements engine forgets globals_span guards "
        "is_for_python label options program source versions"
    ),
    "Program": "",
    "Queue": (
        "bypass deferred follows_others keep_word keeps_times mark may_be_held native_event "
        "not_understood owes pause_bypass pretend resumes_bypass sample_anew see_to seen_up_to "
        "settle settle_host status stop_bypass submit told tracker unmaps wait_until_submitted"
    ),
    "RecordedHandle": "call explain is_of nth",
    "ReplayHandle": "explain",
    "Runtime": "engine",
    "SeveralHandle": "numbers",
}
"""Members of public classes for the library's own modules. They are no promise."""


def refuse_unknown(name: str, value: object, names: Collection[str], where: str = "") -> None:
    """Raise `UsageError` for a name that is none of those there are. `where`: it was found, if not
    in the call."""
    if isinstance(value, str) and value in names:
        return
    hint = meant(value, names)
    raise UsageError(f"unknown {name} {value!r}{where}; there are: {', '.join(names)}{hint}")


def refuse_options(options: Iterable[str], there: Collection[str]) -> None:
    """Raise `UsageError` for the first option that there is not, and say which one may be meant, or
    which there are."""
    for name in sorted(set(options).difference(there)):
        hint = meant(name, there) or f"; there are: {', '.join(sorted(there))}"
        raise UsageError(f"there is no option {name!r}{hint}")


def meant(name: object, names: Iterable[str]) -> str:
    """Say which of some names may be meant, as the end of a message."""
    near = nearest(name, names) if isinstance(name, str) else ""
    return f"; did you mean {near!r}?" if near else ""


def nearest(name: str, names: Iterable[str], alike: float = 0.6) -> str:
    """Return the most similar of some names, in capitals or not. `alike`: least similarity, up to
    1. Empty: none is similar enough."""
    from difflib import get_close_matches  # only mistakes need it

    small = {one.lower(): one for one in names}
    found = get_close_matches(name.lower(), small, 1, alike)
    return small[found[0]] if found else ""


def whole(value: object) -> int | None:
    """Return a value as an integer. None: it is no single one, as a bool, a type or an array."""
    if isinstance(value, bool):
        return None
    try:
        return index(value)  # type: ignore[arg-type]  # asking for SupportsIndex takes 5 us
    except TypeError:
        return None


def is_number(value: object) -> bool:
    """Tell whether a value can be a time."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def truth(name: str, value: object, expected: str = "True or False") -> bool:
    """Return a value that says yes or no. `expected`: what the error says."""
    if not isinstance(value, (bool, np.bool_, int)) or value not in (False, True):
        raise UsageError(f"{name}={value!r}: expected {expected}")
    return bool(value)


def instead(name: str, *kinds: str) -> str:
    """Say what to write for a name that is missing, as the end of a message."""
    there = next((INSTEAD[kind][name] for kind in kinds if name in INSTEAD.get(kind, ())), "")
    return f"; write {there}" if there else ""


def no_attribute(owner: object, name: str) -> object:
    """Raise that an attribute is missing, and what to write instead: a class's `__getattr__`.

    Python asks here, too, where a property raised an `AttributeError`, and drops that. So the
    property is asked again.
    """
    found = next((vars(one)[name] for one in type(owner).__mro__ if name in vars(one)), None)
    if isinstance(found, property):
        value: object = found.__get__(owner)
        return value
    kind = type(owner).__name__
    hint = instead(name, *(base.__name__ for base in type(owner).__mro__))
    raise AttributeError(f"{kind!r} object has no attribute {name!r}{hint}", name=name, obj=owner)


def refuse_making(kind: type, parts: tuple[object, ...]) -> None:
    """Raise `UsageError` if a program makes an object that only a runtime makes, of the parts that
    it has itself: a class's `__new__`."""
    if not parts or not hasattr(parts[0], "calls"):  # the engine
        name = next(one.__name__ for one in kind.__mro__ if one.__name__ in MADE)
        raise UsageError(f"{name}(…): a program does not make one by its class; {MADE[name]}")


def no_copy(owner: object, what: str, instead_of_it: str) -> NoReturn:
    """Raise that an object stays in its process: a class's `__reduce__`. `copy` calls it, too."""
    raise UsageError(f"{owner!r}: {what} cannot be pickled, nor copied by `copy`; {instead_of_it}")


def offered(owner: object) -> list[str]:
    """Return the members that a program may use, for a shell to complete: a class's `__dir__`."""
    inner = {name for kind in type(owner).__mro__ for name in INNER.get(kind.__name__, "").split()}
    return sorted(set(object.__dir__(owner)) - inner)


def describe(value: object) -> str:
    """Describe an argument in an error message: its type, and its value if that is short."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if isinstance(value, np.ndarray):
        return f"{name} of shape {value.shape}"
    text = repr(value)
    return f"{name} {text}" if len(text) <= 40 else name
