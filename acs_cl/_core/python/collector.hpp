// Python's collector of cycles, while the library works.
//
// The collector runs finalizers of the program: where an object is made, or from Python 3.12 on between any two
// instructions. A finalizer that launches, or frees an array, would find a launch half made. The lock does not keep it
// out, since it runs on the thread that has it. So the collector waits while a thread holds a lock of ours (lock.hpp),
// or makes a launch without one.
//
// Python has one switch for all threads. If the program turns the collector off while another thread is inside, it is
// on again afterwards.

#pragma once

#include <Python.h>

#include "python/leftovers.hpp"

namespace acs_cl::collector {

inline long inside;  // locks that are held, and launches that are made without one
inline bool was_on;  // as the first of them found it

// The GIL is held.
inline void pause() {
    if (!inside++) was_on = PyGC_Disable();
}
inline void go_on() {
    if (inside && !--inside && was_on) PyGC_Enable();  // after a fork nobody may be inside
}

// Ends what threads did that a fork has left behind.
inline void go_on_alone() {
    if (inside && was_on) PyGC_Enable();
    inside = 0;
}

// Pauses it until the end of the block, where the core keeps the GIL and holds no lock. From Python 3.12 on none runs
// there anyway. What the core lets go of is dropped behind the block.
class Paused {
public:
    Paused(const Paused &) = delete;
    Paused &operator=(const Paused &) = delete;
#if PY_VERSION_HEX < 0x030C0000
    Paused() {
        pause();
        leftovers::enter();
    }
    ~Paused() {
        go_on();
        leftovers::leave();
    }
#else
    Paused() { leftovers::enter(); }
    ~Paused() { leftovers::leave(); }
#endif
};

}  // namespace acs_cl::collector
