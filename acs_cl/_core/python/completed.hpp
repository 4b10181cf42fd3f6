// Launches that were seen to end, on their way to Python: told once, whatever comes between. They are
// off the queues already, so that a list that is dropped would leave launches that nobody ever ends.

#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <optional>

#include "python/spans.hpp"

namespace acs_cl {

namespace nb = nanobind;

// Called with the runtime's lock, where Ctrl-C can come before the first line of what is called, and
// nowhere later: then it is called again, and Ctrl-C raises afterwards.
inline void tell_completed(PyObject *runtime, PyObject *ended) {
    static PyObject *const name = PyUnicode_InternFromString("_completed");
    std::optional<nb::python_error> interrupted;
    while (!nb::steal(PyObject_CallMethodOneArg(runtime, name, ended)).is_valid()) {
        if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw PythonError();
        interrupted.emplace();  // which clears it
    }
    if (!interrupted) return;
    interrupted->restore();
    throw PythonError();
}

}  // namespace acs_cl
