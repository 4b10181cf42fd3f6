// Spans for Python.

#pragma once

#include <Python.h>

#include <cstdint>
#include <exception>
#include <new>

#include "hazards/hazards.hpp"
#include "python/nb.hpp"

namespace acs_cl {

struct PythonError {};  // an exception is set

// Calls a function for Python, which takes no exceptions of C++. If one comes, an error is set, and nothing is returned:
// null, or false.
template <typename Call>
auto guarded(Call &&call) -> decltype(call()) {
    try {
        return call();
    } catch (const PythonError &) {  // it is set
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return {};
}

inline std::int64_t whole_number(PyObject *value) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (number == -1 && PyErr_Occurred()) throw PythonError();
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : number;  // everything, or more
}

inline Span span_of(PyObject *object) {
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 5) {
        PyErr_Format(PyExc_TypeError, "got %R, expected a span", object);
        throw PythonError();
    }
    auto number = [&](int index) { return whole_number(PyTuple_GET_ITEM(object, index)); };
    const Span span{number(0), number(1), number(2), number(3), number(4)};
    if (!is_valid(span)) {
        PyErr_Format(PyExc_ValueError,
                     "got %R, expected rows, a width, and a pitch above 0 for several rows", object);
        throw PythonError();
    }
    return bounded(span);
}

// A class of named tuples, which is kept until the process ends.
inline nb::handle named_tuple(const char *module, const char *name) {
    return nb::object(nb::module_::import_(module).attr(name)).release();
}

// Makes a named tuple without the code that its class has for that.
inline nb::object named(nb::handle type, const nb::tuple &fields) {
    const nb::object given = nb::make_tuple(fields);
    nb::object made = nb::steal(
        PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject *>(type.ptr()), given.ptr(), nullptr));
    if (!made.is_valid()) throw nb::python_error();
    return made;
}

// Makes a `records.Span` for Python.
inline nb::object object_of(const Span &span) {
    static nb::handle type = named_tuple("acs_cl.records", "Span");
    return named(type, nb::make_tuple(span.base, span.start, span.pitch, span.rows, span.width));
}

// Makes a list for Python.
template <typename All>
nb::list listed(const All &all) {
    nb::list made;
    for (const auto &one : all) made.append(object_of(one));
    return made;
}

// The items of a tuple or a list. Other sequences are made into one. It is held meanwhile.
class Items : Single {
public:
    explicit Items(PyObject *sequence) : held_(PySequence_Fast(sequence, "expected spans")) {
        if (!held_) throw PythonError();
    }
    ~Items() { Py_DECREF(held_); }

    PyObject *const *begin() const { return PySequence_Fast_ITEMS(held_); }
    PyObject *const *end() const { return begin() + PySequence_Fast_GET_SIZE(held_); }

private:
    PyObject *held_;
};

}  // namespace acs_cl
