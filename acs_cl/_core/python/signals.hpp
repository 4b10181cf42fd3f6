// Ctrl-C, and other signals that the program handles in Python, while the library works.
//
// Python runs a signal's handler between any two instructions of the main thread, and most handlers
// raise. An exception in the middle of a launch, or between taking an end off a queue and noting it,
// would leave launches that nobody ever ends. So signals wait while the main thread holds a lock of ours
// (lock.hpp): the system's handler notes them, and hands them to Python's when the last lock is
// released. Waits hold no lock, look for signals themselves, and end by them.
//
// Python's handler is kept and called. Ours is put before it only if the program, or Python, has
// installed it, or if LLVM's is before it. Programs see nothing of that: `signal.getsignal` and
// `signal.signal` work as always.

#pragma once

namespace acs_cl::signals {

inline int inside;  // locks that the main thread holds

// The thread in which Python runs handlers, by its identifier. It is found at import and after a fork.
inline unsigned long main_thread;

// Notes that the main thread has taken a lock. Returns false if signals have come that Python has not handled yet.
// Then the lock has to be released (`leave`), and they have to be handled, before anything else.
bool enter();

// Returns how many signals were handed to Python so far, or notes that it has handled those. Until that is noted
// `enter` refuses: Python handles a signal when it runs its next instruction, which may be inside.
int handed_over();
void handled(int many);

// Does the same after a wait: signals that have come may be handled inside.
inline void enter_again(int before) { inside = before; }

// Notes that the main thread has released a lock. Signals that waited go to Python's handler.
void leave();

// Begins a wait of the main thread, which holds no lock meanwhile. Returns how many it held.
int pause();

// Returns how many have come so far.
long many();

// Puts our handler before Python's again, if it is not: for Ctrl-C, and now and then for all signals. Called with
// the GIL.
void hook();
void hook_all();

// Makes the calling thread the main one.
void use_main_thread(unsigned long thread);

}  // namespace acs_cl::signals
