// An array, as the core uses it: a type of Python's own kind, from which the class in Python inherits.

#pragma once

#include <cstddef>

#include "python/collector.hpp"
#include "python/spans.hpp"
#include "python/types.hpp"

namespace acs_cl {

inline PyObject *pointer_type;  // PyOpenCL's class of memory with lasting addresses

// Returns the place of some bytes in the form for the driver, a `Place`: a slice of memory that has lasting addresses.
// Null with an error. It runs no code of Python.
inline PyObject *place_in(PyObject *memory, long long start, long long nbytes) {
    static const nb::handle type = named_tuple("acs_cl.devices.driver", "Place");
    const nb::object part = nb::steal(PySequence_GetSlice(memory, Py_ssize_t(start), Py_ssize_t(start + nbytes)));
    const nb::object pointer =
        part.is_valid() ? nb::steal(PyObject_CallOneArg(pointer_type, part.ptr())) : nb::object();
    return pointer.is_valid() ? named(type, nb::make_tuple(pointer, 0, nbytes)).release().ptr() : nullptr;
}

// The memory of arrays that share it: the number of its base, its first byte, and what the driver has it in. Without
// lasting addresses that is null, and each array gets its place from Python.
struct Ground {
    long long number;
    unsigned long long address;
    PyObject *memory;
    long long offset;
};

// The part that a launch reads comes first. Most views are launched a few times and never looked at. So what only
// Python or a driver reads is made when they ask: `spans`, `place` and `argument`.
struct View {
    PyObject_HEAD
    PyObject *home;  // its runtime, while it is a simple kernel argument
    unsigned long long address;
    NodePointer node;  // of its bytes, if they are one span and a launch asked for it; or null
    bool is_one;  // its bytes are `span`
    bool is_inside;  // it would be a simple argument, but starts inside its buffer, and `address` is where
    PyObject *engine, *dtype, *base, *shape, *strides, *spans, *place, *argument;
    long long size, nbytes, offset, lead, first, length, itemsize;
    Ground ground;
    Span span;

    // Returns the bytes of an array that is one span. Null: it is not, or its bytes are all memory, or left to
    // Python.
    Node *node_in(Hazards &hazards) {
        Node *found = node && hazards.has(*node) ? node.get() : look_up(hazards);
        return found && !hazards.leaves(found->span()) ? found : nullptr;
    }

    // Returns all its spans. Null with an error.
    PyObject *all_spans() {
        if (spans) return spans;
        const collector::Paused collector;  // a finalizer might free the array, here and below
        return spans = (is_one ? nb::make_tuple(object_of(span)) : nb::tuple()).release().ptr();
    }
    // Returns its place, or None without memory. Null with an error.
    PyObject *its_place() {
        if (place) return place;
        const collector::Paused collector;
        return place = base && length ? place_in(ground.memory, ground.offset + first, length) : Py_NewRef(Py_None);
    }
    // Returns the argument for a driver, or None if it is no simple one. Null with an error.
    PyObject *driven() {
        if (!argument) {
            PyObject *const its = its_place();
            if (its) argument = Py_NewRef((home || is_inside) && PyTuple_Check(its) ? PyTuple_GET_ITEM(its, 0) : Py_None);
        }
        return argument;
    }

    // Releases the memory.
    void release() {
        for (PyObject **one : {&base, &home, &ground.memory, &spans, &place, &argument}) Py_CLEAR(*one);
        is_one = is_inside = false;
    }

    auto objects() {
        return std::array{&home, &engine, &dtype, &base, &shape, &strides, &spans, &place, &argument, &ground.memory};
    }
    void end() { keep({}); }

private:
    void keep(const NodePointer &now) {
        if (node) node->details().arrays--;
        node = now;
        if (node) node->details().arrays++;
    }

    ACS_CL_SELDOM Node *look_up(Hazards &hazards) {
        if (!is_one || span.base == EVERYTHING) return nullptr;
        keep(hazards.node(bounded(span), node.get()));
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

// Calls a function that makes an object when it is asked for.
template <PyObject *(View::*MAKE)()>
PyObject *view_made(View *self, void *) {
    return guarded([&] { return Py_XNewRef((self->*MAKE)()); });
}
inline PyObject *view_span(View *self, void *) {
    if (!self->home || !self->is_one) Py_RETURN_NONE;
    PyObject *const spans = view_made<&View::all_spans>(self, nullptr);
    if (!spans) return nullptr;
    PyObject *const span = Py_NewRef(PyTuple_GET_ITEM(spans, 0));
    Py_DECREF(spans);
    return span;
}

inline PyGetSetDef view_properties[] = {
    {"holders", getter(view_holders), nullptr, nullptr, nullptr},
    {"spans", getter(view_made<&View::all_spans>), nullptr, nullptr, nullptr},
    {"span", getter(view_span), nullptr, nullptr, nullptr},
    {"place", getter(view_made<&View::its_place>), nullptr, nullptr, nullptr},
    {"argument", getter(view_made<&View::driven>), nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
inline PyMemberDef view_members[] = {
    {"home", T_OBJECT, offsetof(View, home), READONLY, nullptr},
    {"is_inside", T_BOOL, offsetof(View, is_inside), READONLY, nullptr},
    {"address", T_ULONGLONG, offsetof(View, address), READONLY, nullptr},
    {"engine", T_OBJECT_EX, offsetof(View, engine), READONLY, nullptr},
    {"base", T_OBJECT, offsetof(View, base), READONLY, nullptr},
    {"dtype", T_OBJECT_EX, offsetof(View, dtype), READONLY, nullptr},
    {"shape", T_OBJECT_EX, offsetof(View, shape), READONLY, nullptr},
    {"strides", T_OBJECT_EX, offsetof(View, strides), READONLY, nullptr},
    {"size", T_LONGLONG, offsetof(View, size), READONLY, nullptr},
    {"nbytes", T_LONGLONG, offsetof(View, nbytes), READONLY, nullptr},
    {"offset", T_LONGLONG, offsetof(View, offset), READONLY, nullptr},
    {"lead", T_LONGLONG, offsetof(View, lead), READONLY, nullptr},
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
    for (const Fixed &one : fixed)
        if (name == one.interned)
            return PyErr_Format(PyExc_AttributeError,
                                "the %s of an array cannot be set; make a view of it, by %s", one.name, one.instead),
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

// Shapes, strides and bytes of views, and arithmetic on spans.
void add_indexing(nb::module_ &module);

}  // namespace acs_cl
