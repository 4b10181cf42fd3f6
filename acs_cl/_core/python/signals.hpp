// Ctrl-C, and other signals that the program handles in Python, while the library works.
//
// Python runs a signal's handler between any two instructions of the main thread, and most handlers
// raise. An exception in the middle of a launch, or between taking an end off a queue and noting it,
// would leave launches that nobody ever ends. So signals wait while the main thread holds a lock of ours
// (lock.hpp): the system's handler notes them, and hands them to Python's when the last lock is
// released. They also wait while Python plans a launch. Waits hold no lock, look for signals themselves, and end
// by them.
//
// Python's handler is kept and called. Ours is put before it only if the program, or Python, has
// installed it, or if LLVM's is before it. Programs see nothing of that: `signal.getsignal` and
// `signal.signal` work as always. The latter calls `_signal.signal`, which is ours since the import,
// so that no handler of the program is ever without ours. The compilers of drivers tell nobody, so a
// lock looks now and then, too.

#pragma once

#include "hazards/single.hpp"

namespace acs_cl::signals {

inline int inside;  // locks that the main thread holds

inline int delayed;  // blocks of the main thread in which signals wait without a lock

// The thread in which Python runs handlers, by its identifier. It is found at import and after a fork.
inline unsigned long main_thread;

// Notes that the main thread has taken a lock. Returns false if signals have come that Python has not handled yet.
// Then the lock has to be released (`leave`), and they have to be handled, before anything else.
bool enter();

// Lets Python handle the signals that have come. Returns false if a handler has raised. Until then `enter` refuses:
// Python handles a signal when it runs its next instruction, which may be inside.
bool handle();

// Enters after a wait: signals that have come may be handled inside.
inline void enter_again(int before) { inside = before; }

// Notes that the main thread has released a lock. Signals that waited go to Python's handler.
void leave();

// Delays signals of the main thread without a lock, until the end of the block: where Python of ours does something
// for the first time, a handler that does the same would find it half done. Called with the GIL.
class Delayed : Single {
public:
    Delayed();
    ~Delayed() {
        if (!is_main_) return;
        delayed--;
        leave();
    }

    // Whether a handler has raised before the block.
    bool has_failed() const { return has_failed_; }

private:
    bool is_main_, has_failed_ = false;
};

// Begins a wait of the main thread, which holds no lock meanwhile. Returns how many it held.
int pause();

// A wait, until the end of the block. `is_main`: of the main thread.
class Paused : Single {
public:
    explicit Paused(bool is_main) : is_main_(is_main), before_(is_main ? pause() : 0) {}
    ~Paused() {
        if (is_main_) enter_again(before_);
    }

private:
    bool is_main_;
    int before_;
};

// Whether Ctrl-C waits, for the main thread that asks.
bool interrupt_waits();

// Whether the main thread asks, and has no lock of ours: handlers would find nothing half done.
bool may_hear();

// Runs the handlers of signals that wait, although Python of ours goes on behind them. Returns false if one has raised.
bool hear();

// Returns how many have come so far.
long many();

// Puts our handler before Python's again, if it is not: for Ctrl-C, and now and then for all signals. Called with
// the GIL.
void hook();

// Makes the calling thread the main one.
void use_main_thread(unsigned long thread);

}  // namespace acs_cl::signals
