// Python's collector of cycles, while the library works.
//
// The collector runs finalizers of the program: where an object is made, or from Python 3.12 on between any two
// instructions. A finalizer that launches, or frees an array, would find a launch half made. The lock does not keep it
// out, since it runs on the thread that has it. So the collector waits while a thread holds a lock of ours (lock.hpp),
// makes a launch without one, or checks one, whose memory is put back.
//
// Python has one switch for all threads. If the program turns the collector off while another thread is inside, it is
// on again afterwards. If the program turns it on, or Python 3.12 begins a collection that was due before, it runs on a
// thread that is inside after all. Such a collection finds nothing: all objects are frozen until it is over. What the
// program has frozen is thawed then. Python tells of each collection by `gc.callbacks`, so this costs launches nothing.

#pragma once

#include <Python.h>

#include "python/leftovers.hpp"

namespace acs_cl::collector {

inline long inside;  // locks that are held, launches that are made without one, and checks
inline bool was_on;  // as the first of them found it

// The GIL is held.
inline void pause() {
    if (!inside++) was_on = PyGC_Disable();
}
inline void go_on() {
    if (inside && !--inside && was_on) PyGC_Enable();  // after a fork nobody may be inside
}

// Skips collections on threads that are inside, from now on. Returns false with an error.
bool watch();

// Ends what threads did that a fork has left behind.
inline void go_on_alone() {
    if (inside && was_on) PyGC_Enable();
    inside = 0;
}

// Pauses it until the end of the block, where the core keeps the GIL and holds no lock. From Python 3.12 on none runs
// there anyway. What the core lets go of is dropped behind the block.
class Paused : Single {
public:
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
