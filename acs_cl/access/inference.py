"""Inference: the parameters of a kernel, and what the kernel may do to the memory behind each.

Input: a kernel, the source and options of its program, a device. Output: a `Signature`. The parsed
source comes first, because most programs are built without argument info and do not say `const`.
Argument info comes second. If nothing is known of a kernel, its signature says "read and written"
for every argument.

Invariant: a mode is never less than what the kernel does. If `anywhere` is not empty, modes are not
enough: the launch must wait for everything before it, and everything after it for the launch.
"""

# Long because: three sources of one record; the fall-backs only make sense side by side.

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from acs_cl.access.signature import Parameter, Signature
from acs_cl.devices import facts
from acs_cl.devices.facts import CannotParse, DeviceFacts, may_include
from acs_cl.opencl_c import cache
from acs_cl.opencl_c.parse import included

from ..records import NamedTuple

if TYPE_CHECKING:
    import pyopencl as cl

    from acs_cl.opencl_c.modes import bodies
    from acs_cl.opencl_c.outlines import Outline
    from acs_cl.opencl_c.parse import clang
    from acs_cl.opencl_c.parse.tree import Cursor, Type

NOTHING_KNOWN = "nothing known"

_QUALIFIERS = (
    r"\b(const|volatile|restrict|__restrict|(__)?(global|local|constant|private|generic)"
    r"|(__)?(read_only|write_only|read_write)|_Atomic)\b"
)
_SCALAR_BYTES = {
    "char": 1, "uchar": 1, "unsigned char": 1, "bool": 1, "short": 2, "ushort": 2,
    "unsigned short": 2, "half": 2, "int": 4, "uint": 4, "unsigned int": 4, "unsigned": 4,
    "float": 4, "long": 8, "ulong": 8, "unsigned long": 8, "double": 8,
}  # fmt: skip
_VECTOR = r"(u?(?:char|short|int|long)|half|float|double)(2|3|4|8|16)$"


def signature_of(
    kernel: cl.Kernel, source: str | None, options: facts.BuildOptions, device: cl.Device
) -> Signature:
    """Return the best signature that can be found for a built kernel."""
    name, count = kernel.function_name, kernel.num_args
    reason = "no source"
    if source:
        try:
            parsed = from_source(source, name, options, device)
        except CannotParse as failed:
            reason = failed.reason
        else:
            if len(parsed.parameters) == count:
                return parsed._replace(origin="arginfo+parsed" if _informs(kernel) else "parsed")
            reason = f"the source shows {len(parsed.parameters)} parameters, the kernel has {count}"
    informed = from_arg_info(kernel)
    if informed is not None:
        return informed._replace(program_globals=_may_have_globals(options), unclear=reason)
    return _unknown_signature(name, count, reason)._replace(
        program_globals=_may_have_globals(options)
    )


def _may_have_globals(options: facts.BuildOptions) -> bool:
    """Tell whether a program that was not read may have variables in writable memory. They came
    with OpenCL C 2.0, need no word such as `global`, and may stand in a file that is included."""
    words = facts.split_options(options)
    return any(re.match(r"-cl-std=CL([23]|C\+\+)", word, re.IGNORECASE) for word in words)


def _unknown_signature(name: str, count: int, reason: str) -> Signature:
    parameters = tuple(
        Parameter(f"argument {i}", "", "", False, "", 0, 0, False, "rw", NOTHING_KNOWN)
        for i in range(count)
    )
    origin = f"{NOTHING_KNOWN}: {reason}"
    return Signature(name, parameters, "", False, True, None, origin, unclear=reason)


# ---- argument info ----


def from_arg_info(kernel: cl.Kernel) -> Signature | None:
    """Make a signature from what the driver kept of the declaration. None: it kept nothing."""
    import pyopencl as cl

    try:
        parameters = tuple(_informed(kernel, i) for i in range(kernel.num_args))
    except cl.Error:  # KERNEL_ARG_INFO_NOT_AVAILABLE, or a driver without the call
        return None
    group: tuple[int, ...] | None = None
    try:
        device = kernel.context.devices[0]
        size = kernel.get_work_group_info(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, device)
        group = tuple(int(width) for width in size) if any(size) else None
    except cl.Error:
        pass
    return Signature(kernel.function_name, parameters, "", False, True, group, "arginfo")


def _informs(kernel: cl.Kernel) -> bool:
    """Tell whether the driver kept anything of the declaration."""
    import pyopencl as cl

    try:
        return not kernel.num_args or bool(kernel.get_arg_info(0, cl.kernel_arg_info.NAME))
    except cl.Error:
        return False


def _informed(kernel: cl.Kernel, index: int) -> Parameter:
    import pyopencl as cl

    info = cl.kernel_arg_info
    name = str(kernel.get_arg_info(index, info.NAME))
    type_name = _plain(str(kernel.get_arg_info(index, info.TYPE_NAME)))
    qualifier: Any = kernel.get_arg_info(index, info.TYPE_QUALIFIER)
    address: Any = kernel.get_arg_info(index, info.ADDRESS_QUALIFIER)
    access: Any = kernel.get_arg_info(index, info.ACCESS_QUALIFIER)
    if access != cl.kernel_arg_access_qualifier.NONE:
        mode = {
            cl.kernel_arg_access_qualifier.READ_ONLY: "r",
            cl.kernel_arg_access_qualifier.WRITE_ONLY: "w",
        }.get(access, "rw")
        return _opaque(name, type_name, "image", mode)
    if type_name == "sampler_t":
        return _opaque(name, type_name, "sampler", "")
    if qualifier & cl.kernel_arg_type_qualifier.PIPE:
        return _opaque(name, type_name, "pipe", "rw")
    if not type_name.endswith("*"):
        size = scalar_bytes(type_name)
        return Parameter(name, type_name, "private", False, "", 0, size, False, "", "")
    space = {
        cl.kernel_arg_address_qualifier.LOCAL: "local",
        cl.kernel_arg_address_qualifier.CONSTANT: "constant",
    }.get(address, "global")
    element = type_name[:-1].strip()
    const = space == "constant" or bool(qualifier & cl.kernel_arg_type_qualifier.CONST)
    mode, why = "rw", "const, which the body may take away" if const else "not const"
    if space == "constant":
        mode, why = "r", "constant"
    return Parameter(
        name, type_name, space, True, element, scalar_bytes(element), 0, const, mode, why
    )


def scalar_bytes(type_name: str) -> int:
    """Return the size of a built-in number or vector type by its name. 0: it is another type."""
    match = re.match(_VECTOR, type_name)
    if match:
        width = int(match.group(2))
        return _SCALAR_BYTES[match.group(1)] * (4 if width == 3 else width)
    return _SCALAR_BYTES.get(type_name, 0)


def _opaque(name: str, type_name: str, space: str, mode: str) -> Parameter:
    why = {"r": "read_only", "w": "write_only", "rw": "read_write"}.get(mode, "")
    return Parameter(name, type_name, space, False, "", 0, 0, mode == "r", mode, why)


def _plain(spelled: str) -> str:
    text = " ".join(re.sub(_QUALIFIERS, " ", spelled).split())
    return re.sub(r"\s*\*\s*", "*", text)


# ---- the parsed source ----


class _Kept(NamedTuple):
    """What is known of the kernels of a program."""

    key: str  # on disk
    lines: dict[str, str]  # what was there, by kernel
    signatures: dict[str, Signature]


PROGRAMS_KEPT = 1024
"""Programs whose signatures are remembered."""

_INCLUDED = "included"
"""Kind of an entry on disk: the names of files that a program includes."""

_UNITS_KEPT = 4
_units: OrderedDict[tuple[object, ...], clang.Unit | CannotParse] = OrderedDict()
_programs: dict[tuple[object, ...], _Kept] = {}
_lock = threading.RLock()  # the collector may call code of the program, which comes here again


def forget_programs() -> None:
    """Forget the signatures of programs, as in a new process."""
    with _lock:
        _programs.clear()


def from_source(
    source: str, kernel_name: str, options: facts.BuildOptions, device: cl.Device | None
) -> Signature:
    """Make a signature from the text of a program. Raises `CannotParse`."""
    known_facts = facts.facts_of(device)
    words = facts.split_options(options)
    includes = may_include(source, words)
    files = _included(source, words, known_facts) if includes else ""
    if files is None:
        return _parse_signature(source, kernel_name, words, device, known_facts)
    program = source, tuple(words), known_facts, files
    with _lock:
        kept = _programs.get(program)
        if kept is None:
            key = cache.key(source, "signatures" + files, words, known_facts)
            kept = _programs[program] = _Kept(key, cache.load_lines(key), {})
            if len(_programs) > PROGRAMS_KEPT:
                del _programs[next(iter(_programs))]
    signature = kept.signatures.get(kernel_name)
    if signature is None and kernel_name in kept.lines:
        signature = _from_text(kept.lines[kernel_name])
    if signature is None:
        signature = _parse_signature(source, kernel_name, words, device, known_facts)
        if includes and files != _included(source, words, known_facts):
            return signature  # something changed meanwhile
        cache.add_line(kept.key, kernel_name, _to_record(signature))
    kept.signatures[kernel_name] = signature
    return signature


def _included(source: str, words: list[str], known_facts: DeviceFacts) -> str | None:
    """Return a digest of the files that a program includes, if it was parsed before. None: the
    files are not known, or may change unseen."""
    record = cache.load(cache.key(source, _INCLUDED, words, known_facts))
    if record is None or "__has_include" in source:
        return None
    return included.digest_of([str(path) for path in record["files"]], words)


def _parse_signature(
    source: str, kernel_name: str, words: list[str], device: cl.Device | None, facts: DeviceFacts
) -> Signature:
    # here, so that a program whose kernels are all cached does not load it
    from acs_cl.opencl_c.parse import clang

    return clang.read(lambda: _read_signature(source, kernel_name, words, device, facts))


def _read_signature(
    source: str, kernel_name: str, words: list[str], device: cl.Device | None, facts: DeviceFacts
) -> Signature:
    from acs_cl.opencl_c.modes import bodies, steadiness
    from acs_cl.opencl_c.parse import clang
    from acs_cl.opencl_c.parse import nodes as n

    with clang.LOCK:
        unit = _unit(source, words, device, facts)
        if may_include(source, words):  # perhaps none, in conditions that do not hold
            key, names = cache.key(source, _INCLUDED, words, facts), sorted(unit.included)
            if cache.load(key) != (record := {"files": names}):  # as another kernel has left it
                cache.store(key, record)
        kernel = unit.kernels.get(kernel_name)
        if kernel is None:
            raise CannotParse(f"the source has no kernel {kernel_name}")
        try:
            found = bodies.analyse(unit, kernel)
        except n.TOO_DEEP:
            raise CannotParse("expressions nested too deeply") from None
        parameters = []
        anywhere = found.anywhere
        for cursor, (mode, why) in zip(n.parameters_of(kernel), found.modes, strict=True):
            parameters.append(_declared(cursor, mode, why))
            kind = cursor.type.get_canonical()
            if not anywhere and n.shape_of(kind) == n.RECORD and _holds_pointers(kind):
                anywhere = f"parameter {cursor.spelling} is a structure that holds pointers"
        group = clang.required_group(kernel)
        outlined, unclear = _outline(found, anywhere, facts)
        unsteady = steadiness.unsteady(found.functions)
    return Signature(
        kernel_name, tuple(parameters), anywhere, found.program_globals,
        found.has_local_variables, group, "parsed", outlined, unclear, unsteady,
    )  # fmt: skip


def _outline(found: bodies.Bodies, anywhere: str, facts: DeviceFacts) -> tuple[Outline | None, str]:
    """Return the outline that decides where a body touches its arguments, or why it has none."""
    if anywhere or found.program_globals:
        return None, anywhere or "it uses variables of the program"
    if facts.address_bits != 64:
        return None, f"addresses of {facts.address_bits} bits"
    from acs_cl.opencl_c.modes import outline
    from acs_cl.opencl_c.modes.reading import Unclear
    from acs_cl.opencl_c.parse.nodes import TOO_DEEP

    try:
        return outline.outline(found), ""
    except Unclear as reason:
        return None, str(reason)
    except TOO_DEEP:
        return None, "expressions nested too deeply"


def _unit(
    source: str, words: list[str], device: cl.Device | None, facts: DeviceFacts
) -> clang.Unit:
    from acs_cl.opencl_c.parse import clang

    # The kernels of one program are asked for one after the other.
    key = (source, tuple(words), facts)
    unit = _units.pop(key, None)
    if unit is None or (isinstance(unit, clang.Unit) and unit.included):
        try:
            unit = clang.parse(source, words, device)
        except CannotParse as failed:
            unit = failed
    _units[key] = unit
    if len(_units) > _UNITS_KEPT:
        _units.popitem(last=False)
    if isinstance(unit, CannotParse):
        raise unit
    return unit


def _declared(cursor: Cursor, mode: str, why: str) -> Parameter:
    from acs_cl.opencl_c.parse import nodes as n

    name, spelled = cursor.spelling, cursor.type
    canonical = spelled.get_canonical()
    text = canonical.spelling
    if n.shape_of(spelled) == n.IMAGE:
        access = "w" if "write_only" in text else "rw" if "read_write" in text else "r"
        return _opaque(name, _plain(text), "image", access)
    if text.endswith("sampler_t"):
        return _opaque(name, "sampler_t", "sampler", "")
    if re.search(r"\bpipe\b", text):
        return _opaque(name, _plain(text), "pipe", "rw")
    shape = n.shape_of(spelled)
    if shape not in (n.POINTER, n.ARRAY):
        size = max(canonical.get_size(), 0)
        names = (_plain(spelled.spelling), _plain(text))
        type_name = next(filter(scalar_bytes, names), names[0])  # behind a typedef, too
        return Parameter(name, type_name, "private", False, "", 0, size, False, "", "")
    if shape == n.ARRAY:  # shown as written, but a parameter is a pointer
        pointee = spelled.get_array_element_type()
        target = canonical.get_array_element_type()
    else:
        pointee, target = spelled.get_pointee(), canonical.get_pointee()
    if pointee._kind_id == 0:  # a typedef of a pointer
        pointee = target
    space = n.SPACES.get(target.get_address_space(), "global")
    element = _plain(pointee.spelling)
    const = space == "constant" or target.is_const_qualified()
    return Parameter(
        name, element + "*", space, True, element, max(pointee.get_size(), 0), 0, const, mode, why
    )


def _holds_pointers(canonical: Type) -> bool:
    from acs_cl.opencl_c.parse import nodes as n

    shape = n.shape_of(canonical)
    if shape == n.ARRAY:
        return _holds_pointers(canonical.get_array_element_type().get_canonical())
    if shape == n.RECORD:
        return any(_holds_pointers(field.type.get_canonical()) for field in canonical.get_fields())
    return shape == n.POINTER


# ---- as data ----


def _to_record(signature: Signature) -> cache.Record:
    record = signature._asdict()
    record["parameters"] = [list(parameter) for parameter in signature.parameters]
    return record


def _from_text(text: str) -> Signature | None:
    try:
        record = json.loads(text)
        parameters = tuple(Parameter(*fields) for fields in record["parameters"])
        group = record["group_size"]
        return Signature(
            str(record["kernel"]), parameters, str(record["anywhere"]),
            bool(record["program_globals"]), bool(record["has_local_variables"]),
            None if group is None else tuple(int(width) for width in group),
            str(record["origin"]), record["outline"], str(record["unclear"]),
            str(record["unsteady"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, RecursionError):
        return None  # written by something else: parse again
