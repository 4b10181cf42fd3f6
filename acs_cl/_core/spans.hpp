// From spans as Python has them to nodes of an index.

#pragma once

#include <Python.h>

#include <algorithm>
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
// object at each launch. It holds the objects, so that none is mistaken for another. A quarter full,
// so that few have to step aside for others, it lets go of those that nobody else has.
class SeenSpans {
public:
    SeenSpans() : seen_(1024), held_(1024) {}
    SeenSpans(const SeenSpans &) = delete;
    SeenSpans &operator=(const SeenSpans &) = delete;
    ~SeenSpans() {
        for (Seen &seen : seen_) Py_XDECREF(seen.object);
    }

    // Null for a span of `EVERYTHING`.
    Node *node(PyObject *object, Hazards &hazards) {
        const Seen &first = seen_[home(object)];
        if (first.object == object && !first.node->gone) return first.node;
        return look_up(object, hazards);
    }

private:
    struct Seen {
        PyObject *object = nullptr;
        Node *node = nullptr;
    };

    Node *look_up(PyObject *object, Hazards &hazards) {
        std::size_t at = place(object);
        if (seen_[at].object && !seen_[at].node->gone) return seen_[at].node;
        Span span = span_of(object);
        if (span.base == EVERYTHING) return nullptr;
        if (4 * used_ >= seen_.size()) {
            make_room();
            at = place(object);
        }
        held_[at] = hazards.node(span);
        seen_[at].node = held_[at].get();
        if (!seen_[at].object) {
            seen_[at].object = object;
            Py_INCREF(object);
            used_++;
        }
        return seen_[at].node;
    }

    std::size_t home(PyObject *object) const {
        std::uint64_t hash = reinterpret_cast<std::uintptr_t>(object) * 0x9E3779B97F4A7C15u;
        return hash >> 32 & (seen_.size() - 1);
    }

    // Where the object is, or where it would come.
    std::size_t place(PyObject *object) const {
        std::size_t at = home(object);
        while (seen_[at].object && seen_[at].object != object) at = (at + 1) & (seen_.size() - 1);
        return at;
    }

    void make_room() {
        auto stays = [](const Seen &one) {
            return one.object && Py_REFCNT(one.object) > 1 && !one.node->gone;
        };
        used_ = std::size_t(std::count_if(seen_.begin(), seen_.end(), stays));
        std::size_t size = seen_.size() * (8 * used_ > seen_.size() ? 2 : 1);
        std::vector<Seen> seen(size);
        std::vector<NodePointer> held(size);
        seen.swap(seen_);
        held.swap(held_);
        for (std::size_t before = 0; before < seen.size(); before++) {
            if (!stays(seen[before])) {
                Py_XDECREF(seen[before].object);
                continue;
            }
            std::size_t at = place(seen[before].object);
            seen_[at] = seen[before];
            held_[at] = std::move(held[before]);
        }
    }

    std::vector<Seen> seen_;
    std::vector<NodePointer> held_;  // keeps the nodes of `seen_`
    std::size_t used_ = 0;
};

}  // namespace acs_cl
