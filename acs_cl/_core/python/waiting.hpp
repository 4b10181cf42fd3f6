// Waits for the device that a signal can end.
//
// A driver's wait cannot be left, and Python runs handlers in its main thread only. So the main thread
// waits to be told, in slices between which signals are handled. With PoCL the driver tells it, by a
// callback from the thread that has run the command. Elsewhere a thread of ours waits in the driver. A
// callback of a GPU's driver comes late. In Intel's driver for CPUs the thread that waits is one of those
// that run commands. Any other thread waits in the driver itself, unless its wait is bounded.
//
// A wait may be left before its event has ended: it is bounded, or the handler of a signal raises. What would tell it
// goes on until the event ends. The next wait for the same event takes that over, so that no two threads wait for it.
//
// To hand an event over to a thread and back costs some microseconds, which a short wait would feel. So
// first the status of a GPU's event is asked for a while. On a CPU that would take the processor from the
// kernels that are waited for. Beside other work the main thread would not get it back soon.

#pragma once

#include <Python.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace acs_cl {

// How long a wait goes without a check for signals.
constexpr double SLICE_S = 0.05;

// How long a GPU's event is asked first.
constexpr double ASKED_S = 0.002;

// Whether this thread runs host tasks. It must not wait for launches, which may wait for it.
inline thread_local bool runs_host_task = false;

enum class Wait { ENDED, LATE, RAISED };  // the last one with a Python error

// Tells threads that something has come. A thread that waits may have left by then.
struct Notice {
    void come() {
        std::lock_guard held(mutex_);
        many_++;
        changed_.notify_all();
    }
    // How often it has come.
    unsigned long count() {
        std::lock_guard held(mutex_);
        return many_;
    }
    // Whether it comes within that many seconds, or has come since it had `before` times.
    bool wait(double seconds, unsigned long before) {
        std::unique_lock held(mutex_);
        return changed_.wait_for(held, std::chrono::duration<double>(seconds), [&] { return many_ != before; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    unsigned long many_ = 0;
};

// Waits until it has come again since it had `before` times, in slices between which signals are handled. It does so for
// that many seconds from `began` on at most, unless that is below 0. Called with the GIL, which is released.
Wait wait_in_slices(Notice &notice, unsigned long before, std::chrono::steady_clock::time_point began, double seconds);

// Waits until the driver's event has ended, for that many seconds at most, unless that is below 0. The queue of the event was flushed. Called with the GIL, which is released.
Wait wait_for_event(void *event, double seconds = -1);

// Whether another processor than the host's works on the commands of the driver's queue.
bool is_of_own_processor(void *queue);

// Bridges two contexts, since an event of one cannot be waited for in another one: a thread waits for `event`, and then lets
// the user event of the other context end with its status. What `event` waits for are earlier bridges only, and these are
// seen to in order: so the oldest one can always end.
void bridge(void *event, void *user);

// Forgets threads of before a fork, which are not in this process.
void forget_waiters();

}  // namespace acs_cl
