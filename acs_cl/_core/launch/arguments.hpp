// Arguments of plain calls: arrays of the runtime, and numbers as `struct` packs them. Whatever is
// neither is left to Python.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <nanobind/nanobind.h>

#include "hazards/bits.hpp"
#include "python/view.hpp"
#include "table/table.hpp"

namespace acs_cl {

// A parameter: memory at a pointer (`code` 'P'), `local` memory ('L'), or a number as `struct` calls it.
// Kernels of PyOpenCL's have others, too: memory that is no pointer, as images ('M'), another object of the
// driver's ('O'), and bytes that are no number ('v').
struct Parameter {
    char code;
    std::size_t at;  // where its bytes go
    bool read, written;
    std::size_t nbytes = 8;

    bool is_memory() const { return code == 'P' || code == 'M'; }
    bool is_object() const { return is_memory() || code == 'L' || code == 'O'; }
};

inline std::vector<PyTypeObject *> number_types;  // NumPy's, whose conversions run no Python code
inline PyTypeObject *local_type;  // PyOpenCL's local memory
inline std::vector<PyObject *> flag_types;  // of arrays that may decide whether a launch runs

inline bool is_whole(PyObject *value) { return PyLong_CheckExact(value) || PyBool_Check(value); }

template <typename Number>
bool put(char *to, Number number) {
    std::memcpy(to, &number, sizeof(number));
    return true;
}

template <typename Number>
bool put_within(char *to, long long number) {
    return number >= std::numeric_limits<Number>::min() &&
           number <= (long long)std::numeric_limits<Number>::max() && put(to, Number(number));
}

// 0 for what is left to Python.
inline std::size_t number_bytes(char code) {
    switch (code) {
        case 'b': case 'B': return 1;
        case 'h': case 'H': return 2;
        case 'i': case 'I': case 'f': return 4;
        case 'q': case 'Q': case 'd': case 'P': return 8;
        default: return 0;
    }
}

template <typename Number>
Wide read_as(const char *from) {
    Number number;
    std::memcpy(&number, from, sizeof(number));
    return Wide(number);
}

// A whole number as `put_number` left it; 0 for what is none.
inline Wide number_of(char code, const char *from) {
    switch (code) {
        case 'b': return read_as<std::int8_t>(from);
        case 'B': return read_as<std::uint8_t>(from);
        case 'h': return read_as<std::int16_t>(from);
        case 'H': return read_as<std::uint16_t>(from);
        case 'i': return read_as<std::int32_t>(from);
        case 'I': return read_as<std::uint32_t>(from);
        case 'q': return read_as<std::int64_t>(from);
        case 'Q': return read_as<std::uint64_t>(from);
        default: return 0;
    }
}

inline bool is_number(char code) { return code != 'P' && number_bytes(code); }

// As `struct.pack` puts it; false for whatever that refuses, or converts in ways of its own.
inline bool put_number(char code, PyObject *value, char *to) {
    bool known = is_whole(value) || PyFloat_CheckExact(value);
    for (std::size_t at = 0; !known && at < number_types.size(); at++)
        known = Py_TYPE(value) == number_types[at];
    if (!known) return false;
    if (code == 'f' || code == 'd') {
        double number = PyFloat_AsDouble(value);
        if (number == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
        if (code == 'd') return put(to, number);
        float small = float(number);
        return (!std::isinf(small) || std::isinf(number)) && put(to, small);
    }
    nb::object whole;
    if (!is_whole(value)) {
        if (!PyIndex_Check(value)) return false;
        whole = nb::steal(PyNumber_Index(value));
        if (!whole.is_valid()) return PyErr_Clear(), false;
        value = whole.ptr();
    }
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return false;
    switch (code) {
        case 'b': return put_within<std::int8_t>(to, number);
        case 'B': return put_within<std::uint8_t>(to, number);
        case 'h': return put_within<std::int16_t>(to, number);
        case 'H': return put_within<std::uint16_t>(to, number);
        case 'i': return put_within<std::int32_t>(to, number);
        case 'I': return put_within<std::uint32_t>(to, number);
        case 'q': return put(to, number);
        case 'Q': return number >= 0 && put(to, number);
        default: return false;
    }
}

// Whose arrays are plain arguments.
struct Home {
    PyObject *engine;
    Hazards &hazards;
};

// Puts an argument among bytes, and notes what it touches; false where it is not plain.
inline bool take(const Parameter &parameter, PyObject *value, const Home &home, char *record,
                 Touched &touched) {
    if (parameter.code != 'P') return put_number(parameter.code, value, record + parameter.at);
    View *view = view_of(value);
    if (!view || view->home != home.engine) return false;
    Node *node = view->node_in(home.hazards);
    if (!node) return false;
    put(record + parameter.at, view->address);
    touched.add(node, parameter.read, parameter.written);
    return true;
}

// The local memory that the arguments of a task take, behind what its kernel has of its own.
struct Arena {
    std::uint64_t used, most;

    // Puts where an argument's begins; false for what is no local memory, or too much of it.
    bool take(const Parameter &parameter, PyObject *value, char *record) {
        if (Py_TYPE(value) != local_type) return false;
        nb::object size = nb::steal(PyObject_GetAttrString(value, "size"));
        std::uint64_t nbytes = size.is_valid() ? PyLong_AsUnsignedLongLong(size.ptr()) : 0;
        if (PyErr_Occurred()) return PyErr_Clear(), false;
        used = (used + LOCAL_ALIGN - 1) / LOCAL_ALIGN * LOCAL_ALIGN;
        if (nbytes > most || used > most - nbytes) return false;
        put(record + parameter.at, std::uint32_t(used));
        used += nbytes;
        return true;
    }

    static constexpr std::uint64_t LOCAL_ALIGN = 128;  // as acs_cl/scheduler/task.py
};

// Whether an array has one word that can decide, and nothing that `touched` says is written; then
// it is read.
inline bool reads_word(View *when, Hazards &hazards, Touched &touched) {
    if (when->size != 1 || touched.many >= MOST_SPANS ||
        std::find(flag_types.begin(), flag_types.end(), when->dtype) == flag_types.end())
        return false;
    Node *node = when->node_in(hazards);
    if (!node || node->span().start % 4) return false;
    for (std::uint32_t at = 0; at < touched.many; at++) {
        const Span &other = touched.nodes[at]->span();
        if (touched.writes >> at & 1 && other.base == node->span().base && overlap(other, node->span()))
            return false;
    }
    touched.add(node, true, false);
    return true;
}

// Has a launch decided by `when`, the flag of `when=`; false where that is not one word of
// this runtime, or the kernel may write it.
inline bool take_flag(PyObject *object, const Home &home, char *record, Touched &touched) {
    View *when = view_of(object);
    if (!when || when->home != home.engine || when->address % 4 ||
        !reads_word(when, home.hazards, touched))
        return false;
    std::uint32_t first;
    std::memcpy(&first, record, sizeof(first));
    put(record, first & ~PLAIN);
    put(record + 4 * WHEN, when->address);
    return true;
}

// What decides for a launch on a queue: memory as the driver takes it, where that starts if it is at
// an address, and where the word is in it.
struct Flag {
    PyObject *memory = nullptr;
    std::uint64_t address = 0, offset = 0;

    // As `Guards.guarded` gives it to a kernel; false as in `take_flag`.
    bool take(PyObject *object, const Home &home, bool by_address, Touched &touched) {
        View *when = view_of(object);
        if (!when || when->engine != home.engine || !PyTuple_Check(when->place) ||
            PyTuple_GET_SIZE(when->place) < 2 || (by_address && when->home != home.engine))
            return false;
        memory = PyTuple_GET_ITEM(when->place, 0);
        address = by_address ? when->address : 0;
        offset = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(when->place, 1));
        return reads_word(when, home.hazards, touched);
    }
};

}  // namespace acs_cl
