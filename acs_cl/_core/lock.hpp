// The lock of a runtime: re-entrant, as `threading.RLock`, which takes its place in Python.
//
// The core's own launches for the scheduler do not take it. They hold the GIL from their first look
// at the runtime to their last change of it, and run no Python in between: all they ask is that
// nobody is inside. Who waits here has not looked at anything yet.

#pragma once

#include <Python.h>

#include <array>

namespace acs_cl {

// A type of Python's own kind: an interpreter that ends while a thread waits for the GIL unwinds its
// stack, and what catches C++ exceptions on the way takes that for one.
struct Lock {
    PyObject_HEAD
    PyThread_type_lock lock;
    unsigned long owner;
    long depth;  // changes only while the lock and the GIL are held

    bool is_held() const { return depth != 0; }
    bool is_owned() const { return depth && owner == PyThread_get_thread_ident(); }

    // Without waiting, where nobody has it.
    bool try_take() {
        if (depth || !PyThread_acquire_lock(lock, NOWAIT_LOCK)) return false;
        owner = PyThread_get_thread_ident();
        depth = 1;
        return true;
    }

    void give_back() {
        if (!--depth) PyThread_release_lock(lock);
    }

    std::array<PyObject **, 0> objects() { return {}; }
    void end() {
        if (lock) PyThread_free_lock(lock);
    }
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
