// Ctrl-C, and other signals that the program handles in Python, while the library is in the middle of
// something.
//
// Python runs a signal's handler between any two instructions of the main thread, and most handlers
// raise. An exception in the middle of a launch, or between taking what has ended off a queue and
// noting it, would leave launches that nobody ever ends. So signals wait while the main thread holds
// a lock of ours (lock.hpp): the system's handler notes them, and hands them to Python's as soon as
// the last lock is given back. Waits hold no lock, look for signals themselves, and are left by them.
//
// Python's handler is kept and called. Ours is put before it only where the program, or Python, has put
// it there, or where LLVM stands before it. Programs see nothing of that: `signal.getsignal` and
// `signal.signal` work as ever.

#pragma once

namespace acs_cl::signals {

inline int inside;  // locks that the main thread holds

// The thread in which Python runs handlers, by its identifier: asked for at import and after a fork.
inline unsigned long main_thread;

// The main thread has taken a lock. False: signals have come that Python has not handled yet; it has
// to be given back (`leave`), and they to be handled, before anything is begun.
bool enter();

// How many signals were handed to Python so far; and that it has handled those. Until that is said
// `enter` refuses: Python handles a signal when it runs its next instruction, which may be inside.
int handed_over();
void handled(int many);

// The same behind a wait: whatever has come may be handled inside.
inline void enter_again(int before) { inside = before; }

// The main thread has given back a lock: what waited goes to Python's handler.
void leave();

// It waits, and holds no lock meanwhile; how many it held.
int pause();

// How many have come so far.
long many();

// Have our handler before Python's, where that is not so any more: of Ctrl-C, and now and then of all
// signals. Called with the GIL.
void hook();
void hook_all();

// The calling thread is the main one from now on.
void use_main_thread(unsigned long thread);

}  // namespace acs_cl::signals
