// What PyOpenCL's functions and setters are replaced by while there is an `acs.Queue`, where that is
// called often: commands that go to the driver's own queue as they are, and what a kernel was given.
// Types of Python's own kind, as for launches.
//
// A call that is not plain, for whatever reason, goes on to Python (acs_cl/queue/bypass.py and
// acs_cl/queue/patch.py), which knows every case and every error, and finds everything as it was.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "driver/kernel.hpp"
#include "python/lock.hpp"
#include "python/types.hpp"
#include "queue/sample.hpp"

namespace acs_cl {

inline double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// PyOpenCL's two classes of events, that of queues of ours with the places of its slots, and what
// makes one of the first from a handle.
enum EventSlot { QUEUE, NUMBER, KIND, KEEPS, TIMED, SETTLED, EVENT_SLOTS };
struct Events {
    PyObject *plain, *nanny, *own, *of_handle;
    Py_ssize_t slots[EVENT_SLOTS];

    PyObject **slot(PyObject *event, int which) const {
        return reinterpret_cast<PyObject **>(reinterpret_cast<char *>(event) + slots[which]);
    }
};
inline Events events;

// Whether a program was told by a queue of ours that something is complete since such words were kept last
// (`Queue.keep_word`): a command elsewhere has to wait for it first.
inline bool word_given = false;

// What a section needs while commands pass. It is found by the queue object that they are called
// with, which lives as long as commands may pass.
struct Passing {
    PyObject_HEAD
    PyObject *queue, *engine;  // borrowed: the queue has both
    PyObject *lock;
    PyObject *in_flight;  // an event of some commands ago, or null
    PyObject *look_object;  // at launches outside of the section
    PyObject *last;  // the event of the last command, or null
    Look *look;
    void *native, *in_flight_handle;
    long long passed;
    int left, behind;
    int wanted, satisfied;  // launches of a look; launches until the next one begins
    double began;  // when this one did
    double rests_until;
    // A stretch of commands, from one wait of the host for results to the next; as
    // acs_cl/queue/trials.py compares them.
    long long commands, least_commands;
    double stretch_began;
    long long all, idle_at;  // commands ever, and as many when nothing was in flight last
    bool waits_first;  // a blocking transfer is quicker where nothing is in flight
    bool is_mixed;  // some of it was tracked, and some passed

    auto objects() { return std::array{&lock, &in_flight, &look_object, &last}; }
    void end();

    // The host has waited for results: whether a stretch is long enough to be looked at.
    bool ends_stretch() const { return commands >= least_commands; }

    // A command has passed. Where the one some commands ago has not ended, work is waiting.
    void count(PyObject *event, void *handle);

    void forget_events() {
        Py_CLEAR(in_flight);
        Py_CLEAR(last);
        all++;
        idle_at = -1;
    }

    bool is_idle() const { return idle_at == all; }

    // Nothing is in flight, if nobody came since there were so many commands.
    void idle_since(long long turn) {
        if (all == turn) idle_at = turn;
    }
};

// The host has waited for a read: Python is told of a stretch. False with an error.
bool waited(Passing *way);

// Waits until nothing is in flight on the driver's queue, which signals can end. False: an error is
// set, or the driver refuses.
bool wait_until_idle(Passing *way);

// The open way of a queue, or null.
Passing *way_of(PyObject *queue);

// Setters of several arguments, and then of one each, of the first some.
constexpr int MULTI = 0, PACKED = 2, SETTERS = 3, PLACES = SETTERS + 16;

struct SetArguments;  // tracking.hpp
void forget(SetArguments *set);

// What a kernel's arguments were set from, in each place the last, until somebody asks: tuples, and
// of single arguments the objects.
struct Given {
    PyObject_HEAD
    PyObject *kernel;  // borrowed: it holds this
    PyObject *last[PLACES];
    unsigned long long turns[PLACES];
    void *handle;
    long long generation;
    SetArguments *set;  // what these were, as the plan of its launches takes them, or null

    std::array<PyObject **, PLACES> objects() {
        std::array<PyObject **, PLACES> all;
        for (int place = 0; place < PLACES; place++) all[place] = &last[place];
        return all;
    }
    void end();
};

// What a kernel was given since functions were replaced, or null, without an error.
Given *given_of(PyObject *kernel);

void add_way(nb::module_ &module);
void add_given(nb::module_ &module);
void add_commands(nb::module_ &module);

}  // namespace acs_cl
