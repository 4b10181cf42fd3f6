#include "python/collector.hpp"

#include "python/nb.hpp"
#include "python/types.hpp"

namespace acs_cl::collector {

namespace {

PyObject *freeze, *unfreeze;  // of Python's module `gc`
bool skips;                   // whether the collection that is under way finds nothing

// Python calls this before and behind each collection.
PyObject *around(PyObject *, PyObject *const *args, Py_ssize_t many) {
    if (many < 1 || !PyUnicode_Check(args[0])) Py_RETURN_NONE;
    PyObject *call = nullptr;
    if (!PyUnicode_CompareWithASCIIString(args[0], "start")) {
        if (!leftovers::inside) Py_RETURN_NONE;
        if (inside && PyGC_IsEnabled()) {  // somebody has turned it on since
            PyGC_Disable();
            was_on = true;
        }
        skips = true;
        call = freeze;
    } else if (skips) {
        skips = false;
        call = unfreeze;
    }
    if (!call) Py_RETURN_NONE;
    return PyObject_CallNoArgs(call);
}

PyMethodDef method_around = {"acs_cl", method(around), METH_FASTCALL, "Skip a collection inside of acs_cl."};

}  // namespace

bool watch() {
    const nb::object gc = nb::steal(PyImport_ImportModule("gc")),
                     function = nb::steal(PyCFunction_New(&method_around, nullptr));
    if (!gc.is_valid() || !function.is_valid()) return false;
    freeze = PyObject_GetAttrString(gc.ptr(), "freeze");
    unfreeze = PyObject_GetAttrString(gc.ptr(), "unfreeze");
    const nb::object callbacks = nb::steal(PyObject_GetAttrString(gc.ptr(), "callbacks"));
    return freeze && unfreeze && callbacks.is_valid() && !PyList_Append(callbacks.ptr(), function.ptr());
}

}  // namespace acs_cl::collector
