// An array, as the core uses it: a type of Python's own kind, from which the class in Python inherits.

#pragma once

#include <cstddef>
#include <cstdint>

#include "python/spans.hpp"
#include "python/types.hpp"

namespace acs_cl {

// The part that a launch reads comes first.
struct View {
    PyObject_HEAD
    PyObject *home;  // its runtime, while it is a simple kernel argument
    unsigned long long address;
    NodePointer node;  // of its bytes, if they are one span and a launch asked for it; or null
    PyObject *spans, *argument, *engine, *place, *dtype;
    long long size, nbytes;

    // Returns the bytes of an array that is one span. Null: it is not, or its bytes are all memory, or left to
    // Python.
    Node *node_in(Hazards &hazards) {
        Node *found = node && hazards.has(*node) ? node.get() : look_up(hazards);
        return found && !hazards.leaves(found->span()) ? found : nullptr;
    }

    auto objects() {
        return std::array{&home, &spans, &argument, &engine, &place, &dtype};
    }
    void end() { keep({}); }

private:
    void keep(const NodePointer &now) {
        if (node) node->details().arrays--;
        node = now;
        if (node) node->details().arrays++;
    }

    Node *look_up(Hazards &hazards) {
        if (!spans || !PyTuple_Check(spans) || PyTuple_GET_SIZE(spans) != 1) return nullptr;
        const Span span = span_of(PyTuple_GET_ITEM(spans, 0));
        if (span.base == EVERYTHING) return nullptr;
        keep(hazards.node(span));
        return node.get();
    }
};

inline PyTypeObject *array_type;  // the class in Python

// Returns an array, if an object is one.
inline View *view_of(PyObject *object) {
    return Py_TYPE(object) == array_type ? reinterpret_cast<View *>(object) : nullptr;
}

// Counts the holders of the node: it, the index, and launches. For tests.
inline PyObject *view_holders(View *self, void *) {
    return PyLong_FromUnsignedLong(self->node ? self->node->holders : 0);
}

inline PyGetSetDef view_properties[] = {
    {"holders", getter(view_holders), nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
inline PyMemberDef view_members[] = {
    {"home", T_OBJECT_EX, offsetof(View, home), 0, nullptr},
    {"address", T_ULONGLONG, offsetof(View, address), 0, nullptr},
    {"spans", T_OBJECT_EX, offsetof(View, spans), 0, nullptr},
    {"argument", T_OBJECT_EX, offsetof(View, argument), 0, nullptr},
    {"engine", T_OBJECT_EX, offsetof(View, engine), 0, nullptr},
    {"place", T_OBJECT_EX, offsetof(View, place), 0, nullptr},
    {"dtype", T_OBJECT_EX, offsetof(View, dtype), 0, nullptr},
    {"size", T_LONGLONG, offsetof(View, size), 0, nullptr},
    {"nbytes", T_LONGLONG, offsetof(View, nbytes), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// What says which bytes an array is, and what makes another view of them. With another value it would
// contradict the spans.
struct Fixed {
    const char *name, *instead;
    PyObject *interned;
};
inline std::array<Fixed, 5> fixed{{{"dtype", "view(dtype)", nullptr},
                                   {"shape", "reshape(shape)", nullptr},
                                   {"strides", "a slice", nullptr},
                                   {"size", "a slice", nullptr},
                                   {"nbytes", "a slice", nullptr}}};

inline int view_set(PyObject *self, PyObject *name, PyObject *value) {
    if (reinterpret_cast<View *>(self)->spans)  // which it gets behind them
        for (const Fixed &one : fixed)
            if (name == one.interned)
                return PyErr_Format(PyExc_AttributeError,
                                    "the %s of an array cannot be set; make a view of it, by %s", one.name,
                                    one.instead),
                       -1;
    return PyObject_GenericSetAttr(self, name, value);
}

inline PyObject *new_view_type() {
    for (Fixed &one : fixed) one.interned = PyUnicode_InternFromString(one.name);
    return new_type<View>("acs_cl._core.View", BASE | COLLECTED,
                          {{Py_tp_new, slot(PyType_GenericNew)},
                           {Py_tp_setattro, slot(view_set)},
                           {Py_tp_members, view_members},
                           {Py_tp_getset, view_properties}});
}

}  // namespace acs_cl
