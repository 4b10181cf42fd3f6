// The end of a `with` block, part of which happens whatever signals come.
//
// Python handles a signal when a method begins, and then its first line is never reached. Here it is: what a signal's
// handler raises comes after that part.

#include "python/signals.hpp"
#include "python/types.hpp"

namespace acs_cl {

namespace {

struct Leaving {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *first, *then;

    std::array<PyObject **, 2> objects() { return {&first, &then}; }
    void end() {}
};

// What a handler raises, of several the last.
struct Raised {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;

    void keep() {
        for (PyObject *one : {type, value, trace}) Py_XDECREF(one);
        PyErr_Fetch(&type, &value, &trace);
    }
};

PyObject *call(PyObject *object, PyObject *const *args, std::size_t nargs, PyObject *keywords) {
    auto *self = reinterpret_cast<Leaving *>(object);
    const Py_ssize_t many = PyVectorcall_NARGS(nargs);
    if (!many) return PyErr_SetString(PyExc_TypeError, "expected an object"), nullptr;
    Raised raised;
    if (PyErr_CheckSignals()) raised.keep();
    for (bool is_over = false; !is_over;) {
        const signals::Delayed delayed;
        is_over = !delayed.has_failed();
        PyObject *done = is_over ? PyObject_CallOneArg(self->first, args[0]) : nullptr;
        if (!done) raised.keep();
        Py_XDECREF(done);
    }
    if (!raised.type) return PyObject_Vectorcall(self->then, args, many, keywords);
    PyErr_Restore(raised.type, raised.value, raised.trace);
    return nullptr;
}

PyObject *bind(PyObject *self, PyObject *object, PyObject *) {
    return object ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *first, *then;
    if (!PyArg_ParseTuple(args, "OO", &first, &then)) return nullptr;
    auto *self = reinterpret_cast<Leaving *>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->vectorcall = call;
    self->first = Py_NewRef(first);
    self->then = Py_NewRef(then);
    return reinterpret_cast<PyObject *>(self);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Leaving, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

}  // namespace

// Returns the type, which lives as long as the process. Null with an error.
PyTypeObject *leaving_type() {
    static PyObject *type =
        new_type<Leaving>("acs_cl._core.Leaving", COLLECTED | CALLED,
                          {{Py_tp_new, slot(make)}, {Py_tp_descr_get, slot(bind)}, {Py_tp_members, members}});
    return reinterpret_cast<PyTypeObject *>(type);
}

}  // namespace acs_cl
