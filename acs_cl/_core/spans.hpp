// From spans as Python has them to nodes of an index.

#pragma once

#include <Python.h>

#include <cstdint>
#include <utility>
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
// object at each launch. Each object has one place, and another one may take it: there are four times
// as many places as nodes. It holds the objects, so that none is mistaken for another.
class SeenSpans {
public:
    SeenSpans() : seen_(256), held_(256) {}
    SeenSpans(const SeenSpans &) = delete;
    SeenSpans &operator=(const SeenSpans &) = delete;
    ~SeenSpans() {
        for (Seen &seen : seen_) Py_XDECREF(seen.object);
    }

    // Null for a span of `EVERYTHING`.
    Node *node(PyObject *object, Hazards &hazards) {
        std::size_t at = place(object);
        if (seen_[at].object == object && !seen_[at].node->gone) return seen_[at].node;
        Span span = span_of(object);
        if (span.base == EVERYTHING) return nullptr;
        if (4 * hazards.spans() > seen_.size()) {
            grow();
            at = place(object);
        }
        held_[at] = hazards.node(span);
        seen_[at].node = held_[at].get();
        Py_INCREF(object);
        Py_XSETREF(seen_[at].object, object);
        return held_[at].get();
    }

private:
    struct Seen {
        PyObject *object = nullptr;
        Node *node = nullptr;
    };

    std::size_t place(PyObject *object) const {
        std::uint64_t hash = reinterpret_cast<std::uintptr_t>(object) * 0x9E3779B97F4A7C15u;
        return hash >> 32 & (seen_.size() - 1);
    }

    void grow() {
        auto seen = std::exchange(seen_, std::vector<Seen>(4 * seen_.size()));
        auto held = std::exchange(held_, std::vector<NodePointer>(seen_.size()));
        for (std::size_t before = 0; before < seen.size(); before++) {
            if (!seen[before].object) continue;
            std::size_t at = place(seen[before].object);
            Py_XDECREF(seen_[at].object);
            seen_[at] = seen[before];
            held_[at] = std::move(held[before]);
        }
    }

    std::vector<Seen> seen_;
    std::vector<NodePointer> held_;  // keeps the nodes of `seen_`
};

}  // namespace acs_cl
