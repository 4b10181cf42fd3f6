// From spans as Python has them to nodes of an index.

#pragma once

#include <Python.h>

#include <array>
#include <cstdint>
#include <vector>

#include "hazards.hpp"

namespace acs_cl {

struct PythonError {};  // an exception is set

inline std::int64_t whole_number(PyObject *value) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (number == -1 && PyErr_Occurred()) throw PythonError();
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : number;  // all there is, or more
}

inline Span span_of(PyObject *object) {
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 5) {
        PyErr_Format(PyExc_TypeError, "got %R, expected a span", object);
        throw PythonError();
    }
    auto number = [&](int index) { return whole_number(PyTuple_GET_ITEM(object, index)); };
    return {number(0), number(1), number(2), number(3), number(4)};
}

// The items of a tuple or a list; other sequences are made into one. It is held meanwhile.
class Items {
public:
    explicit Items(PyObject *sequence) : held_(PySequence_Fast(sequence, "expected spans")) {
        if (!held_) throw PythonError();
    }
    ~Items() { Py_DECREF(held_); }
    Items(const Items &) = delete;
    Items &operator=(const Items &) = delete;

    PyObject *const *begin() const { return PySequence_Fast_ITEMS(held_); }
    PyObject *const *end() const { return begin() + PySequence_Fast_GET_SIZE(held_); }

private:
    PyObject *held_;
};

// The nodes of spans that were met before, by the identity of their objects: an array gives the same
// object at each launch. Bounded, and it holds the objects, so that none is mistaken for another.
class SeenSpans {
public:
    SeenSpans() = default;
    SeenSpans(const SeenSpans &) = delete;
    SeenSpans &operator=(const SeenSpans &) = delete;
    ~SeenSpans() {
        for (Seen &seen : seen_) Py_XDECREF(seen.object);
    }

    // Null for a span of `EVERYTHING`.
    Node *node(PyObject *object, Hazards &hazards) {
        Seen &seen = seen_[(reinterpret_cast<std::uintptr_t>(object) >> 4) % seen_.size()];
        if (seen.object == object && !seen.node->gone) return seen.node.get();
        Span span = span_of(object);
        if (span.base == EVERYTHING) return nullptr;
        seen.node = hazards.node(span);
        Py_INCREF(object);
        Py_XSETREF(seen.object, object);
        return seen.node.get();
    }

private:
    struct Seen {
        PyObject *object = nullptr;
        NodePointer node;
    };

    std::array<Seen, 2048> seen_;
};

}  // namespace acs_cl
