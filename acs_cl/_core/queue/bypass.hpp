// The bypass of the queues of a runtime: their commands go unchanged to one queue of the driver in order, and the
// runtime sees them as one launch. Commands are replacements of PyOpenCL's functions (commands.cpp).
//
// A call that is unusual, for any reason, goes on to Python (acs_cl/queue/patch.py), which knows every case and
// every error. Nothing has changed by then.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/kernel.hpp"
#include "python/clock.hpp"
#include "python/lock.hpp"
#include "python/owned.hpp"
#include "python/types.hpp"
#include "queue/sample.hpp"

namespace acs_cl {

// PyOpenCL's two classes of events, our class of queue events with the places of its slots, and the function that
// makes an event of the first class from a handle.
enum EventSlot { QUEUE, NUMBER, KIND, KEEPS, TIMED, SETTLED, ENDED, EVENT_SLOTS };
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

// How often our queues told a program that a command is complete, and how many of these promises were kept
// (`Queue.keep_word`). A command elsewhere has to wait for the rest first, also while another thread keeps them.
inline long long words_given = 0;
inline long long words_kept = 0;

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
    std::array<PyObject *, MANY> events_{};
    std::size_t next_ = 0;
    std::uint32_t wanted_ = 0;
};

// A queue of the program whose commands a bypass takes.
struct Member {
    PyObject *queue;  // borrowed: it leaves before it is gone
    std::uint32_t number;  // in the launch table
    bool is_in_order;
    long long passed = 0;  // its commands since the bypass began
};

// A command on its way past the runtime.
struct Passing {
    struct Bypass *bypass;
    PyObject *queue;       // of the program
    bool follows = false;  // it would follow the newest command on queues of the program's own, too
    bool holds = false;    // and all after it on its queue would follow it
};

// The state of the bypass of a runtime's queues. It is found by the queue of a command.
//
// In a *joint* bypass the commands of several queues, or of one without order, go to one queue that the library made.
// That has more order than the program asked for. So no command joins that waits for something of others: it would hold
// commands that need not wait. And commands are counted that plain queues could run at the same time (`apart`).
struct Bypass : Single {
    // `commands_behind`: how far back the command is that should have ended. `apart`: see `most_apart`.
    Bypass(std::uintptr_t pointer, int commands_behind, int apart);
    ~Bypass();

    std::vector<Member> members;  // queues whose commands it takes
    PyObject *own = nullptr;      // borrowed: this, once it was open
    void *native;
    nb::object stand_in;           // PyOpenCL's queue for `native` in a joint bypass, else null
    void *joint = nullptr;         // the driver's queue of all joint bypasses, once there is one
    unsigned long thread = 0;      // the only one whose commands it takes. 0: any
    std::unordered_map<void *, std::uint32_t> makers;  // {event of `joint`: the member whose command it is of}
    nb::object lock;
    nb::object last;                        // the event of the last command, or null
    RecentEvents recent;
    Owned<Sample> sample;  // of launches outside of the bypass
    // The driver's events of some commands ago and of the last one, or null. PyOpenCL's may hold memory of the program.
    void *in_flight = nullptr, *newest = nullptr;
    long long passed = 0;
    PyObject *newest_event = nullptr, *newest_queue = nullptr;  // borrowed, to be compared with only
    bool newest_holds = false;
    int left, behind;
    int apart = 0, most_apart;  // of `behind` commands, those that would not have followed the newest in flight
    int wanted = 0, satisfied = 0;  // launches of a sample; launches until the next one begins
    double began = 0;               // when this one did
    double rests_until = 0;
    // A stretch of commands, from one wait of the host for results to the next. acs_cl/queue/trials.py compares
    // these.
    long long commands = 0, least_commands = 0;
    double stretch_began = 0;
    long long all = 0, idle_at = 0;  // commands ever, and as many when nothing was in flight last
    bool waits_first;                // a blocking transfer is quicker if nothing is in flight
    bool is_mixed = false;           // some of it was tracked, and some was in bypass

    // Opens it, or closes it.
    void open(bool opens);

    // Whether a stretch is long enough to be compared, after the host has waited for results.
    bool ends_stretch() const { return commands >= least_commands; }

    // Counts a command in bypass. If the one some commands ago has not ended, work is waiting.
    void count(const Passing &command, PyObject *event, void *handle);

    Member *member(PyObject *queue) {
        for (Member &one : members)
            if (one.queue == queue) return &one;
        return nullptr;
    }
    bool is_joint() const { return stand_in.is_valid(); }
    bool takes_this_thread() const { return !thread || thread == PyThread_get_thread_ident(); }

    // Takes no more commands of a queue.
    void leave(std::uint32_t number);

    // Whether an event of the driver is of a command in a joint bypass, now or before.
    bool is_joint_event(void *event) const;

    // Whether that command is under way. If its bypass has ended, all launches follow it: one that touches all memory
    // stands for it.
    bool is_under_way(void *event) const { return event && event_status(event) > 0 && is_joint_event(event); }
    // Whether an event of the driver is complete, or comes before the next command of this joint bypass. A command that
    // waits for any other would hold those that do not.
    bool has_passed(void *event) const {
        const std::int32_t status = event ? event_status(event) : -1;
        return status == EVENT_COMPLETE || (status > 0 && is_joint_event(event));
    }

    static void keep(void *&place, void *event) {
        if (event) driver.retain_event(event);
        if (void *const before = std::exchange(place, event)) driver.release_event(before);
    }

    void forget_events() {
        recent.clear();
        keep(in_flight, nullptr);
        keep(newest, nullptr);
        last.reset();
        newest_event = newest_queue = nullptr;
        newest_holds = false;
        apart = 0;
        all++;
        idle_at = -1;
    }

    bool is_idle() const { return idle_at == all; }

    // Whether all has ended well, as far as the last command tells.
    bool has_ended() const { return newest && !event_status(newest); }

    // Notes that nothing is in flight, unless a command came since `turn`.
    void idle_since(long long turn) {
        if (all == turn) idle_at = turn;
    }
};

// Tells Python of a stretch, after the host has waited for a read on a queue. Returns false with an error.
bool waited(const Passing &command);

// Waits until nothing is in flight on the driver's queue. Signals can end the wait. Returns false if an error is
// set, or the driver refuses.
bool wait_until_idle(Bypass *bypass);

// Returns the open bypass that takes commands of a queue from this thread, or null.
Bypass *bypass_of(PyObject *queue);

void add_bypass(nb::module_ &module);
void add_commands(nb::module_ &module);

}  // namespace acs_cl
