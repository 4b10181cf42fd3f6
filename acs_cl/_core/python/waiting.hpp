// Waits for the device that a signal can end.
//
// A driver's wait cannot be left, and Python runs handlers in its main thread only. So another thread
// waits for the event in the driver, and the main one for that thread, in slices between which signals
// are handled. Any other thread waits in the driver itself.
//
// To hand an event over to a thread and back costs some microseconds, which a short wait would feel. So
// an event is asked for its status a while first. On a CPU that may take the processor from the kernels
// that are waited for. So it is not asked for long there, and others have the processor in between.

#pragma once

#include <Python.h>

namespace acs_cl {

// How long a wait goes without a look at signals.
constexpr double SLICE_S = 0.05;

// How long an event of a GPU, and of a CPU, is asked first.
constexpr double ASKED_S = 0.0002, ASKED_ON_CPU_S = 0.00002;

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
