// Types of Python's own kind, for objects that are made or called for every launch. Each has `objects()`, the
// places of objects that it holds, and `end()`, which does the rest of its clean-up. The collector may call `end()`
// twice.

#pragma once

#include <Python.h>

#include <array>
#include <vector>

#include <structmember.h>

namespace acs_cl {

template <typename Function>
void *slot(Function *function) {
    return reinterpret_cast<void *>(function);
}

template <typename Function>
PyCFunction method(Function *function) {
    return reinterpret_cast<PyCFunction>(slot(function));
}

template <typename Self>
int traverse(Self *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    for (PyObject **one : self->objects()) Py_VISIT(*one);
    return 0;
}

template <typename Self>
int clear(Self *self) {
    self->end();
    for (PyObject **one : self->objects()) Py_CLEAR(*one);
    return 0;
}

template <typename Self>
void dealloc(Self *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (PyType_IS_GC(type)) PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

constexpr unsigned long BASE = Py_TPFLAGS_BASETYPE, COLLECTED = Py_TPFLAGS_HAVE_GC,
                        CALLED = Py_TPFLAGS_HAVE_VECTORCALL;

// Returns the type of `Self`, with some slots of its own. The first may be how its objects end. Null with an error.
template <typename Self>
PyObject *new_type(const char *name, unsigned long flags, std::vector<PyType_Slot> slots) {
    if (slots.empty() || slots.front().slot != Py_tp_dealloc) slots.push_back({Py_tp_dealloc, slot(dealloc<Self>)});
    if (flags & COLLECTED) {
        slots.push_back({Py_tp_traverse, slot(traverse<Self>)});
        slots.push_back({Py_tp_clear, slot(clear<Self>)});
    }
    if (flags & CALLED) slots.push_back({Py_tp_call, slot(PyVectorcall_Call)});
    slots.push_back({0, nullptr});
    PyType_Spec spec = {name, int(sizeof(Self)), 0, unsigned(Py_TPFLAGS_DEFAULT | flags),
                        slots.data()};
    return PyType_FromSpec(&spec);
}

}  // namespace acs_cl
