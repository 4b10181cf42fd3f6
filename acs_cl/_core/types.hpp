// Types of Python's own kind: what objects are that are made or called for every launch. One has
// `objects()`, the places of what it holds, and `end()`, what it does besides letting go of these.

#pragma once

#include <Python.h>

#include <array>
#include <cstddef>

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
    for (PyObject **one : self->objects()) Py_CLEAR(*one);
    return 0;
}

template <typename Self>
void dealloc(Self *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (PyType_IS_GC(type)) PyObject_GC_UnTrack(self);
    self->end();
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

}  // namespace acs_cl
