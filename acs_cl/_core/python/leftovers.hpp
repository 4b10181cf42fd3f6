// Objects of the program that the core lets go of in the middle of its work.
//
// A record of a launch, or an argument of a kernel, may be the last reference to an object. Then it takes code of the
// program along: `__del__`, or the callback of a weak reference. A launch of such code would find another one half
// made, and one that waits could wait for ever. So a thread that has a lock of ours, or makes a launch without one,
// keeps what it lets go of, and drops it at the end. Only the outermost lock counts.
//
// Python's own variables need no care: as long as the lock is held, what the core let go of is kept here. What Python
// code of ours takes out of its own containers under the lock goes through `let_go`.

#pragma once

#include <Python.h>

#include <new>
#include <utility>
#include <vector>

#include "hazards/single.hpp"
#include "python/nb.hpp"

namespace acs_cl::leftovers {

inline thread_local long inside;  // locks that the thread holds, launches that it makes without one, and its checks
inline thread_local std::vector<PyObject *> *kept;

// Drops them. The GIL is held, and an error may be set.
inline void let_go() {
    const nb::error_scope set;
    while (kept && !inside) {
        std::vector<PyObject *> *some = std::exchange(kept, nullptr);
        for (PyObject *one : *some) Py_DECREF(one);
        delete some;
    }
}

inline void enter() { inside++; }
inline void leave() {
    if (!--inside && kept) let_go();
}

// Takes a reference, and drops it once the thread is outside.
inline void drop(PyObject *object) {
    if (inside && object && !PyUnicode_CheckExact(object)) {
        if (!kept) kept = new (std::nothrow) std::vector<PyObject *>;
        if (kept) return kept->push_back(object);
    }
    Py_XDECREF(object);
}

// Counts as inside until the end of the block.
struct Kept : Single {
    Kept() { enter(); }
    ~Kept() { leave(); }
};

}  // namespace acs_cl::leftovers
