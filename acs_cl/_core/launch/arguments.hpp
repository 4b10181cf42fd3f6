// Arguments of plain calls: arrays of the runtime, numbers in the form of `struct`, and bytes. Others are left to Python.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "driver/landing.hpp"
#include "hazards/bits.hpp"
#include "launch/sizes.hpp"
#include "python/nb.hpp"
#include "python/view.hpp"
#include "table/table.hpp"

namespace acs_cl {

// The types of elements that arrays for a parameter had, by identity. Python is asked about an array of another one.
class ElementTypes {
public:
    bool has(const PyObject *type) const {
        for (const PyObject *one : types_)
            if (one == type) return true;
        return is_any_;
    }
    // Adds one. Null: from now on it has any.
    void add(const PyObject *type) {
        const auto place = std::find(types_.begin(), types_.end(), nullptr);
        if (!type || place == types_.end()) is_any_ = true;
        else if (!has(type)) *place = type;
    }

private:
    std::array<const PyObject *, 4> types_{};  // Python holds them
    bool is_any_ = false;
};

// A parameter of a kernel. Its `code` is 'P' for memory at a pointer, 'L' for `local` memory, or that of `struct` for a
// number, and 'v' for bytes that are no number: a structure or a vector. PyOpenCL's kernels have others, too: 'M' for
// memory that is no pointer, such as an image, and 'O' for another object of the driver.
struct Parameter {
    char code;
    std::size_t at;  // the place of its bytes
    bool read, written;
    std::size_t nbytes = 8;
    bool overwritten = false;  // the program declared that each launch writes all of it, and reads nothing of it
    std::size_t alignment = 1;  // what the address of its memory is a multiple of: a power of two
    ElementTypes elements{};

    // Whether memory may begin at an address. Vectors elsewhere end the process on some devices: Python refuses that.
    bool may_begin_at(std::uint64_t address) const { return !(address & (alignment - 1)); }
    bool is_memory() const { return code == 'P' || code == 'M'; }
    bool is_object() const { return is_memory() || code == 'L' || code == 'O'; }
};

inline PyTypeObject *local_type;  // local memory of PyOpenCL
// Returns the bytes of local memory. 0: it is something else, or has none, which Python refuses.
inline std::uint64_t local_bytes(PyObject *value) {
    if (Py_TYPE(value) != local_type) return 0;
    static PyObject *const name = PyUnicode_InternFromString("size");
    const nb::object size = nb::steal(PyObject_GetAttr(value, name));
    const std::uint64_t nbytes = size.is_valid() ? PyLong_AsUnsignedLongLong(size.ptr()) : 0;
    if (PyErr_Occurred()) return PyErr_Clear(), 0;
    return nbytes;
}
inline std::vector<PyTypeObject *> value_types;  // types of NumPy whose objects may be the bytes of an argument
inline std::vector<PyObject *> flag_types;  // element types of arrays that may decide whether a launch runs

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

// Returns the size of a number, or 0 if it is left to Python.
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
Number read_as(const char *from) {
    Number number;
    std::memcpy(&number, from, sizeof(number));
    return number;
}

// Returns a whole number that `put_number` has put, or 0 for a code of another kind.
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

// Returns a number of 64 bits for Python.
inline nb::object python_number(Wide value) {
    return value < 0 ? nb::int_(std::int64_t(value)) : nb::int_(std::uint64_t(value));
}

inline bool is_number(char code) { return code != 'P' && number_bytes(code); }

// Puts a number in the form of `struct.pack`. False: `struct` would refuse it, or convert it in a special way.
inline bool put_number(char code, PyObject *value, char *to) {
    if (Py_TYPE(value) == truth_type) value = PyObject_IsTrue(value) ? Py_True : Py_False;
    if (!is_whole(value) && !PyFloat_CheckExact(value) && !is_of_numpy(value)) return false;
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

// The bytes of a structure or a vector, while this lives. They run no Python code.
class ValueBytes {
public:
    // `data` stays null if the value is left to Python: it has other bytes, gaps, or those of another machine's order.
    ValueBytes(PyObject *value, std::size_t nbytes) {
        if (PyBytes_CheckExact(value)) {
            if (std::size_t(PyBytes_GET_SIZE(value)) == nbytes) data = PyBytes_AS_STRING(value);
            return;
        }
        if (std::find(value_types.begin(), value_types.end(), Py_TYPE(value)) == value_types.end()) return;
        const nb::object type = nb::steal(PyObject_GetAttrString(value, "dtype"));
        const nb::object native = nb::steal(type.is_valid() ? PyObject_GetAttrString(type.ptr(), "isnative") : nullptr);
        if (native.ptr() != Py_True || !bytes_.take(value, PyBUF_SIMPLE)) PyErr_Clear();
        else if (bytes_.nbytes() == nbytes) data = bytes_.data();
    }

    const char *data = nullptr;

private:
    Bytes bytes_;
};

// Puts a number or the bytes of another value. False: it is left to Python.
inline bool put_value(const Parameter &parameter, PyObject *value, char *to) {
    if (parameter.code != 'v') return put_number(parameter.code, value, to);
    const ValueBytes taken(value, parameter.nbytes);
    if (taken.data) std::memcpy(to, taken.data, parameter.nbytes);
    return taken.data;
}

// The runtime whose arrays are plain arguments.
struct Home {
    PyObject *engine;
    Hazards &hazards;
};

// Puts an array's address into its place in a record, and notes that it is touched. False: it is not plain.
// `may_start_inside`: an array may start inside its buffer.
inline bool take_array(const Parameter &parameter, View *view, const Home &home, char *record, Touched &touched,
                       bool may_start_inside) {
    if (!view || !parameter.may_begin_at(view->address) || !parameter.elements.has(view->dtype)) return false;
    if (view->home != home.engine && !(may_start_inside && view->is_inside && view->engine == home.engine)) return false;
    Node *node = view->node_in(home.hazards);
    if (!node) return false;
    put(record + parameter.at, view->address);
    touched.add(node, parameter.read, parameter.written);
    return true;
}

// The local memory for arguments of a task, behind that of its kernel.
struct Arena {
    std::uint64_t used, most;

    // Puts the place where an argument's memory begins. False: it is no local memory, or too much.
    bool take(const Parameter &parameter, PyObject *value, char *record) {
        const std::uint64_t nbytes = local_bytes(value);
        if (!nbytes) return false;
        used = (used + LOCAL_ALIGN - 1) / LOCAL_ALIGN * LOCAL_ALIGN;
        if (nbytes > most || used > most - nbytes) return false;
        put(record + parameter.at, std::uint32_t(used));
        used += nbytes;
        return true;
    }

    static constexpr std::uint64_t LOCAL_ALIGN = 128;  // as acs_cl/scheduler/task.py
};

// Whether an array is one word of a type that may decide.
inline bool is_flag(const View *when) {
    return when->size == 1 && std::find(flag_types.begin(), flag_types.end(), when->dtype) != flag_types.end();
}

// Whether an array can decide: it has one word, which the launch does not write. If so, the launch reads it.
inline bool reads_word(View *when, Hazards &hazards, Touched &touched) {
    if (!is_flag(when) || touched.many >= MOST_SPANS) return false;
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

// Lets the word at an address decide about a task.
inline void put_flag(std::uint64_t address, char *record) {
    std::uint32_t first;
    std::memcpy(&first, record, sizeof(first));
    put(record, first & ~PLAIN);
    put(record + 4 * WHEN, address);
}

// Lets `when=` decide about a task. False: that is not one word of this runtime, or the kernel may write it.
inline bool take_flag(PyObject *object, const Home &home, char *record, Touched &touched) {
    View *when = view_of(object);
    if (!when || when->home != home.engine || when->address % 4 ||
        !reads_word(when, home.hazards, touched))
        return false;
    put_flag(when->address, record);
    return true;
}

// The word that decides about a launch on a lane: the driver's memory, its address if it has one, and the place of the
// word in it.
struct Flag {
    PyObject *memory = nullptr;
    std::uint64_t address = 0, offset = 0;

    // Takes it in the form of `Guards.guarded`. False: as for `take_flag`.
    bool take(PyObject *object, const Home &home, bool by_address, Touched &touched) {
        View *when = view_of(object);
        if (!when || when->engine != home.engine || (by_address && when->home != home.engine)) return false;
        PyObject *const place = when->its_place();
        if (!place || !PyTuple_Check(place) || PyTuple_GET_SIZE(place) < 2) return false;
        memory = PyTuple_GET_ITEM(place, 0);
        address = by_address ? when->address : 0;
        offset = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(place, 1));
        return reads_word(when, home.hazards, touched);
    }
};

}  // namespace acs_cl
