// Releasing the GIL for a while.

#pragma once

#include <Python.h>

#include <chrono>
#include <thread>

#include "hazards/single.hpp"

namespace acs_cl {

// Takes the GIL again. When the interpreter ends, Python (before 3.14) ends each other thread there. glibc unwinds
// its stack then, as an exception would. nanobind catches that, takes it for one, and crashes. So the thread stays
// here. Nothing else is thrown. glibc's exception is no object, so that no reference can be bound to it.
inline void take_gil(PyThreadState *saved) {
    try {
        PyEval_RestoreThread(saved);
    } catch (...) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

// Runs without the GIL as long as it lives.
struct WithoutGil : Single {
    ~WithoutGil() { take_gil(saved_); }

private:
    PyThreadState *saved_ = PyEval_SaveThread();
};

}  // namespace acs_cl
