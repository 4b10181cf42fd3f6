// The lock of a runtime: re-entrant like `threading.RLock`, which it replaces in Python. While the main
// thread holds one, signals wait (signals.hpp). While any thread does, the collector of cycles waits (collector.hpp).
// What the core lets go of meanwhile is dropped behind it (leftovers.hpp).
//
// Launches of the core for the scheduler do not take it. They hold the GIL from their first check of
// the runtime to their last change of it, and run no Python in between. They only need that no thread
// is inside. A thread that waits here has not checked anything yet.

#pragma once

#include <Python.h>

#include <array>

#include "python/collector.hpp"
#include "python/leftovers.hpp"
#include "python/signals.hpp"

namespace acs_cl {

struct Notice;  // waiting.hpp

// A type of Python's own kind: an interpreter that ends while a thread waits for the GIL unwinds its stack. Code on
// the way that catches C++ exceptions takes that for one.
struct Lock {
    PyObject_HEAD
    PyThread_type_lock lock;
    Notice *moved;  // tells threads of progress
    unsigned long owner;
    long depth;  // changes only while the lock and the GIL are held
    void (*first)(void *);  // what the next owner does first, if anything, and for what
    void *first_of;

    bool is_held() const { return depth != 0; }
    bool is_owned() const { return depth && owner == PyThread_get_thread_ident(); }

    // Takes it without waiting, if it is free and no signal is to be handled first. `quietly`: without what the
    // next owner does first.
    bool try_take(bool quietly = false) {
        if (depth || !PyThread_acquire_lock(lock, NOWAIT_LOCK)) return false;
        return has_taken(quietly);
    }

    // Waits for its owner. Returns false with an error, and nothing taken.
    bool take();

    void give_back() {
        if (--depth) return;
        const bool is_main = owner == signals::main_thread;
        PyThread_release_lock(lock);
        collector::go_on();
        if (is_main) signals::leave();
        leftovers::leave();  // last, since it may run any code
    }

    // Returns false if it was released again, because of a signal.
    bool has_taken(bool quietly = false) {
        owner = PyThread_get_thread_ident();
        depth = 1;
        collector::pause();
        leftovers::enter();
        if (owner == signals::main_thread && !signals::enter()) {
            give_back();
            return false;
        }
        if (first && !quietly) first(first_of);
        return true;
    }

    std::array<PyObject **, 0> objects() { return {}; }
    void end();
};

// A lock that was taken, until the end of the block or until other code has to release it.
struct Taken : Single {
    explicit Taken(Lock *lock) : lock_(lock) {}
    ~Taken() {
        if (lock_) lock_->give_back();
    }

    void leave() { lock_ = nullptr; }

private:
    Lock *lock_;
};

PyTypeObject *lock_type();

// Of `with` blocks: leaving.cpp.
PyTypeObject *leaving_type();

}  // namespace acs_cl
