// Reports to Python: launches that have ended, and other events of the table.

#pragma once

#include <cstdint>
#include <initializer_list>

#include "python/nb.hpp"

namespace acs_cl {

// A launch has ended: the driver's status, its event if somebody may ask for times, and its lane. `epoch`, if not 0:
// all launches that the core made in that epoch have ended well.
struct End {
    std::int64_t number;
    std::int32_t status;
    nb::object event;
    std::int32_t lane;
    std::uint32_t epoch = 0;

    End(std::int64_t of, std::int32_t with, nb::object by, std::int32_t on, std::uint32_t whole)
        : number(of), status(with), event(std::move(by)), lane(on), epoch(whole) {}
};

// Work of a program's queue after a command: a sample of commands is complete, the host has waited for results, or its
// lists of launches in flight have become long. `settles`, if not 0: the queue first waits for this launch, and for all
// whose results the host can see.
struct Due {
    nb::object queue;
    std::int64_t settles;
    bool is_sampled, has_waited;
};

// What the core asks of Python about launches under way. All return false with an error.

// Calls a method of a Python object. `all` begins with the object.
inline bool call_method(PyObject *name, std::initializer_list<PyObject *> all) {
    return nb::steal(PyObject_VectorcallMethod(name, all.begin(), all.size(), nullptr)).is_valid();
}

// The engine polls, and does what is due.
inline bool engine_polls(PyObject *engine) {
    static PyObject *const name = PyUnicode_InternFromString("poll");
    return call_method(name, {engine});
}

// The engine takes launches that have ended. `ended` is empty then if it has kept all of it, also with an error.
inline bool engine_hears(PyObject *engine, PyObject *ended) {
    static PyObject *const name = PyUnicode_InternFromString("hear");
    return call_method(name, {engine, ended});
}

// The engine hears that the core has waited for a command of the program's.
inline bool engine_has_read(PyObject *engine) {
    static PyObject *const name = PyUnicode_InternFromString("has_read");
    return call_method(name, {engine});
}

// The engine goes on with a launch in the table that no lane took. `continues`: it is a part of another one that has
// begun. An error may be that the driver refuses it.
inline bool engine_takes_over(PyObject *engine, std::int64_t launch, bool continues = false) {
    static PyObject *const name = PyUnicode_InternFromString("take_over");
    const nb::object number = nb::steal(PyLong_FromLongLong(launch));
    return number.is_valid() && call_method(name, {engine, number.ptr(), continues ? Py_True : Py_False});
}

// The engine adds to the exception of a signal's handler what was waited for. That exception stays, whatever comes of it.
inline void engine_was_interrupted(PyObject *engine) {
    static PyObject *const name = PyUnicode_InternFromString("was_interrupted");
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (!value || !call_method(name, {engine, value})) PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

// A queue of the program does what is due.
inline bool queue_sees_to(const Due &due) {
    static PyObject *const name = PyUnicode_InternFromString("see_to");
    return call_method(name, {due.queue.ptr(), nb::cast(due).ptr()});
}

void add_table(nb::module_ &module);

}  // namespace acs_cl
