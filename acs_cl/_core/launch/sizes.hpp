// Sizes of launches, from Python to the form for the driver.

#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace acs_cl {

// Global and local size. Each begins with its number of dimensions, or 0 if there is none.
using Sizes = std::array<std::size_t, 8>;

// Takes one to three numbers of Python. False: there are others, or one is below `least`.
inline bool take_size(PyObject *size, std::size_t *to, std::size_t least = 1) {
    if (!PyTuple_CheckExact(size) || PyTuple_GET_SIZE(size) < 1 || PyTuple_GET_SIZE(size) > 3)
        return false;
    to[0] = std::size_t(PyTuple_GET_SIZE(size));
    for (std::size_t at = 0; at < to[0]; at++) {
        PyObject *one = PyTuple_GET_ITEM(size, Py_ssize_t(at));
        if (!PyLong_CheckExact(one)) return false;
        std::size_t number = to[at + 1] = PyLong_AsSize_t(one);
        if (number == SIZE_MAX && PyErr_Occurred()) return PyErr_Clear(), false;
        if (number < least) return false;
    }
    return true;
}

// Takes both sizes. False: one is no size, or they differ in the number of dimensions.
inline bool take_sizes(PyObject *global, PyObject *local, Sizes &sizes) {
    sizes.fill(0);
    return take_size(global, &sizes[0]) &&
           (local == Py_None || (take_size(local, &sizes[4]) && sizes[4] == sizes[0]));
}

}  // namespace acs_cl
