// Sizes of launches, from Python to the form for the driver.

#pragma once

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace acs_cl {

// Global and local size, and the global offset. Each begins with its number of dimensions, or 0 if there is none.
using Sizes = std::array<std::size_t, 12>;

// Whether two are the same. One by one, as they were just written: to read several together makes a processor wait.
inline bool are_alike(const Sizes &one, const Sizes &other) {
    for (std::size_t at = 0; at < one.size(); at++)
        if (one[at] != other[at]) return false;
    return true;
}

inline std::vector<PyTypeObject *> number_types;  // types of NumPy whose conversions run no Python code

inline bool is_of_numpy(PyObject *number) {
    return std::find(number_types.begin(), number_types.end(), Py_TYPE(number)) != number_types.end();
}

inline PyTypeObject *truth_type;  // of NumPy's True and False, which are whole numbers for a kernel and no sizes

inline PyTypeObject *size_type;  // of `acs_cl.size`: the device decides about the first global size

// Returns the `acs_cl.size` that a global size is or begins with. Null: it has none.
inline PyObject *size_in(PyObject *global) {
    if (Py_TYPE(global) == size_type) return global;
    if (!PyTuple_CheckExact(global) || !PyTuple_GET_SIZE(global)) return nullptr;
    PyObject *const first = PyTuple_GET_ITEM(global, 0);
    return Py_TYPE(first) == size_type ? first : nullptr;
}

// Takes a whole number of Python or NumPy. False: it is another object, such as a bool.
inline bool take_whole(PyObject *number, std::size_t &to) {
    if (!PyLong_CheckExact(number)) {
        if (!PyIndex_Check(number) || !is_of_numpy(number)) return false;
        PyObject *whole = PyNumber_Index(number);
        const bool is_taken = whole && PyLong_CheckExact(whole) && take_whole(whole, to);
        Py_XDECREF(whole);
        if (PyErr_Occurred()) PyErr_Clear();
        return is_taken;
    }
    to = PyLong_AsSize_t(number);
    return to != SIZE_MAX || !PyErr_Occurred() || (PyErr_Clear(), false);
}

// Takes one to three numbers in a tuple or a list. False: there are others, or one is below `least`.
inline bool take_size(PyObject *size, std::size_t *to, std::size_t least = 1) {
    if (!PyTuple_CheckExact(size) && !PyList_CheckExact(size)) return false;
    to[0] = std::size_t(PySequence_Fast_GET_SIZE(size));
    if (to[0] < 1 || to[0] > 3) return false;
    for (std::size_t at = 0; at < to[0]; at++) {
        PyObject *one = PySequence_Fast_GET_ITEM(size, Py_ssize_t(at));
        if (!take_whole(one, to[at + 1]) || to[at + 1] < least) return false;
    }
    return true;
}

// Takes both sizes, where the first global one has the bound of an `acs_cl.size`. False: as below.
inline bool take_counted_sizes(PyObject *global, PyObject *upto, PyObject *local, Sizes &sizes) {
    sizes.fill(0);
    const bool is_alone = !PyTuple_CheckExact(global);
    sizes[0] = is_alone ? 1 : std::size_t(PyTuple_GET_SIZE(global));
    if (sizes[0] > 3 || !take_whole(upto, sizes[1]) || !sizes[1]) return false;
    for (std::size_t at = 1; at < sizes[0]; at++)
        if (!take_whole(PyTuple_GET_ITEM(global, Py_ssize_t(at)), sizes[at + 1]) || !sizes[at + 1]) return false;
    return local == Py_None || (take_size(local, &sizes[4]) && sizes[4] == sizes[0]);
}

// Takes both sizes, without an offset. False: one is no size, or they differ in the number of dimensions.
inline bool take_sizes(PyObject *global, PyObject *local, Sizes &sizes) {
    sizes.fill(0);
    return take_size(global, &sizes[0]) &&
           (local == Py_None || (take_size(local, &sizes[4]) && sizes[4] == sizes[0]));
}

// Takes a global offset. None: there is none. False: it is left to Python, as is one beyond the last work-item.
inline bool take_offset(PyObject *offset, Sizes &sizes) {
    if (offset == Py_None) return true;
    if (!take_size(offset, &sizes[8], 0) || sizes[8] > sizes[0]) return false;
    for (std::size_t axis = 1; axis <= sizes[8]; axis++)
        if (sizes[axis + 8] > SIZE_MAX - sizes[axis]) return false;
    return true;
}

}  // namespace acs_cl
