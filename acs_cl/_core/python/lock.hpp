// The lock of a runtime: re-entrant, as `threading.RLock`, which takes its place in Python. While the
// main thread holds one, signals wait (signals.hpp).
//
// The core's own launches for the scheduler do not take it. They hold the GIL from their first look
// at the runtime to their last change of it, and run no Python in between: all they ask is that
// nobody is inside. Who waits here has not looked at anything yet.

#pragma once

#include <Python.h>

#include <array>

#include "python/signals.hpp"

namespace acs_cl {

struct Moved;  // who waits to be told that something has moved

// A type of Python's own kind: an interpreter that ends while a thread waits for the GIL unwinds its
// stack, and what catches C++ exceptions on the way takes that for one.
struct Lock {
    PyObject_HEAD
    PyThread_type_lock lock;
    Moved *moved;
    unsigned long owner;
    long depth;  // changes only while the lock and the GIL are held
    void (*first)(void *);  // what whoever takes it does first, if anything, and for what
    void *first_of;

    bool is_held() const { return depth != 0; }
    bool is_owned() const { return depth && owner == PyThread_get_thread_ident(); }

    // Without waiting, where nobody has it and no signal is to be handled first. `quietly`: without
    // what whoever takes it does first.
    bool try_take(bool quietly = false) {
        if (depth || !PyThread_acquire_lock(lock, NOWAIT_LOCK)) return false;
        return has_taken(1, quietly);
    }

    // Waits for whoever has it. False with an error, and nothing taken.
    bool take();

    void give_back() {
        if (--depth) return;
        PyThread_release_lock(lock);
        if (owner == signals::main_thread) signals::leave();
    }

    // False: it was given back, since there is a signal.
    bool has_taken(long many, bool quietly = false) {
        owner = PyThread_get_thread_ident();
        depth = many;
        if (owner == signals::main_thread && !signals::enter()) {
            depth = 1;
            give_back();
            return false;
        }
        if (first && !quietly) first(first_of);
        return true;
    }

    std::array<PyObject **, 0> objects() { return {}; }
    void end();
};

// A lock that was taken, until the end of the block or until somebody else has to give it back.
struct Taken {
    explicit Taken(Lock *lock) : lock_(lock) {}
    ~Taken() {
        if (lock_) lock_->give_back();
    }
    Taken(const Taken &) = delete;
    Taken &operator=(const Taken &) = delete;

    void leave() { lock_ = nullptr; }

private:
    Lock *lock_;
};

PyTypeObject *lock_type();

}  // namespace acs_cl
