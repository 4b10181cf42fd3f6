// Waits for the device that a signal can end.
//
// A driver's wait cannot be left, and Python runs handlers in its main thread only. So the main one waits
// for somebody to tell it, in slices between which signals are handled. With PoCL that is the driver, by a
// callback: its thread that has run the command calls it. Elsewhere a thread of ours waits in the driver: a
// callback of a GPU's driver comes late, and in Intel's for CPUs the thread that waits is one of those that run
// commands. Any other thread waits in the driver itself.
//
// To hand an event over to a thread and back costs some microseconds, which a short wait would feel. So
// an event of a GPU is asked for its status a while first. On a CPU that would take the processor from the
// kernels that are waited for, and beside other work the main thread would not get it back soon.

#pragma once

#include <Python.h>

namespace acs_cl {

// How long a wait goes without a look at signals.
constexpr double SLICE_S = 0.05;

// How long an event of a GPU is asked first.
constexpr double ASKED_S = 0.0002;

// Whether this thread runs host tasks: it must not wait for launches, which may wait for it.
inline thread_local bool runs_host_task = false;

enum class Wait { ENDED, LATE, RAISED };  // the last one with an error of Python's

// Until the driver's event has ended; in the main thread for so many seconds at most, where that is not
// below 0. What it belongs to was flushed. Called with the GIL, which is let go.
Wait wait_for_event(void *event, double seconds = -1);

// Whether another processor than the host's works on the commands of the driver's queue.
bool is_of_own_processor(void *queue);

// The threads of before are not in this process.
void forget_waiters();

}  // namespace acs_cl
