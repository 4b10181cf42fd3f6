// The bypass of an `acs.Queue`: its commands go unchanged to the driver's own queue, and the runtime sees them
// as one launch. Commands are replacements of PyOpenCL's functions (commands.cpp). They are types of Python's
// own kind, as for launches.
//
// A call that is unusual, for any reason, goes on to Python (acs_cl/queue/patch.py), which knows every case and
// every error. Nothing has changed by then.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "driver/kernel.hpp"
#include "python/clock.hpp"
#include "python/lock.hpp"
#include "python/types.hpp"
#include "queue/sample.hpp"

namespace acs_cl {

// PyOpenCL's two classes of events, our class of queue events with the places of its slots, and the function that
// makes an event of the first class from a handle.
enum EventSlot { QUEUE, NUMBER, KIND, KEEPS, TIMED, SETTLED, EVENT_SLOTS };
struct Events {
    PyObject *plain, *nanny, *own, *of_handle;
    Py_ssize_t slots[EVENT_SLOTS];

    PyObject **slot(PyObject *event, int which) const {
        return reinterpret_cast<PyObject **>(reinterpret_cast<char *>(event) + slots[which]);
    }
};
inline Events events;

// Whether an event is of PyOpenCL, and of a command.
inline bool is_of_the_driver(PyObject *event) {
    auto *type = reinterpret_cast<PyObject *>(Py_TYPE(event));
    return type == events.plain || type == events.nanny;
}

// Whether one of our queues told a program that a command is complete since such promises were last kept
// (`Queue.keep_word`). A command elsewhere has to wait for it first.
inline bool word_given = false;

// Whether a wait list names no event.
inline bool is_empty(PyObject *wait_for) {
    return wait_for == Py_None || (PyList_CheckExact(wait_for) && !PyList_GET_SIZE(wait_for)) ||
           (PyTuple_CheckExact(wait_for) && !PyTuple_GET_SIZE(wait_for));
}

// Events of the latest commands in bypass, for a program that gives wait lists. They live on here, so that no other
// event can have the address of one. Other programs keep none: what lives on is freed by the program's thread, not by
// the driver's.
class RecentEvents {
public:
    // Notes a wait list, and so that events are worth keeping for some time.
    void note_use() { wanted_ = MOST_UNUSED; }
    bool has(PyObject *event) const {
        for (std::size_t back = 1; back <= MANY; back++)  // wait lists are about the latest ones
            if (events_[(next_ - back) % MANY] == event) return true;
        return false;
    }
    void add(PyObject *event) {
        if (!wanted_) return;
        if (!--wanted_) return clear();
        Py_INCREF(event);
        PyObject *&oldest = events_[next_++ % MANY];  // the macro names its place twice before Python 3.12
        Py_XSETREF(oldest, event);
    }
    void clear() {
        for (PyObject *&event : events_) Py_CLEAR(event);
    }

private:
    static constexpr std::size_t MANY = 64;
    static constexpr std::uint32_t MOST_UNUSED = 32;  // commands without a wait list
    std::array<PyObject *, MANY> events_;
    std::size_t next_;
    std::uint32_t wanted_;
};

// The state of a queue's bypass. It is found by the queue object, which lives as long as commands may bypass the
// runtime.
struct Bypass {
    PyObject_HEAD
    PyObject *queue, *engine;  // borrowed: the queue has both
    PyObject *lock;
    PyObject *sample_object;  // samples launches outside of the bypass
    PyObject *last;  // the event of the last command, or null
    RecentEvents recent;
    Sample *sample;
    void *native;
    void *in_flight;  // the driver's event of some commands ago, or null; PyOpenCL's may hold memory of the program
    long long passed;
    int left, behind;
    int wanted, satisfied;  // launches of a sample; launches until the next one begins
    double began;  // when this one did
    double rests_until;
    // A stretch of commands, from one wait of the host for results to the next. acs_cl/queue/trials.py compares
    // these.
    long long commands, least_commands;
    double stretch_began;
    long long all, idle_at;  // commands ever, and as many when nothing was in flight last
    bool waits_first;  // a blocking transfer is quicker if nothing is in flight
    bool is_mixed;  // some of it was tracked, and some was in bypass

    auto objects() { return std::array{&lock, &sample_object, &last}; }
    void end();

    // Whether a stretch is long enough to be compared, after the host has waited for results.
    bool ends_stretch() const { return commands >= least_commands; }

    // Counts a command in bypass. If the one some commands ago has not ended, work is waiting.
    void count(PyObject *event, void *handle);

    void keep_in_flight(void *event) {
        if (event) driver.retain_event(event);
        if (void *const before = std::exchange(in_flight, event)) driver.release_event(before);
    }

    void forget_events() {
        recent.clear();
        keep_in_flight(nullptr);
        Py_CLEAR(last);
        all++;
        idle_at = -1;
    }

    bool is_idle() const { return idle_at == all; }

    // Notes that nothing is in flight, unless a command came since `turn`.
    void idle_since(long long turn) {
        if (all == turn) idle_at = turn;
    }
};

// Tells Python of a stretch, after the host has waited for a read. Returns false with an error.
bool waited(Bypass *bypass);

// Waits until nothing is in flight on the driver's queue. Signals can end the wait. Returns false if an error is
// set, or the driver refuses.
bool wait_until_idle(Bypass *bypass);

// Returns the open bypass of a queue, or null.
Bypass *bypass_of(PyObject *queue);

void add_bypass(nb::module_ &module);
void add_commands(nb::module_ &module);

}  // namespace acs_cl
