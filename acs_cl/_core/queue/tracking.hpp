// Tracked commands: commands of an `acs.Queue` that the core launches, outside of bypass. Kernels go by
// the launch plan of the runtime's own kernel and its binder (kernels.cpp). Transfers of buffers and of
// shared memory are in transfers.cpp.
//
// An unusual launch, or an unusual moment, is left to Python (acs_cl/queue/commands.py). Nothing has
// changed by then, and Python makes a plan for launches like it.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "driver/memory.hpp"
#include "launch/caller.hpp"
#include "queue/bypass.hpp"
#include "queue/kernel_arguments.hpp"
#include "queue/sample.hpp"

namespace acs_cl {

// The arguments that a PyOpenCL kernel has now, in the form of the plan of its launches.
struct SetArguments : Forgettable<SetArguments> {
    struct Object {
        nb::object object, memory;  // the second one is its `Memory`, null if it touches nothing
        char kind = 0;
    };

    std::shared_ptr<LaunchPlan *> plan;  // its place: the plan may go before the kernel does
    nb::object kernel_object;  // the kernel object for queues with such arguments
    QueueKernel *kernel = nullptr;
    std::vector<Object> objects;  // by index, empty for bytes
    std::string bytes;  // of all others, at the places of the plan
    unsigned long long read = 0;  // the turn of the last note that is in them
    bool is_known = true;  // nothing was set that is not in them
};

// What tracks the commands of a queue. It is found by the queue object that commands are called with, while that lives.
struct Tracker {
    PyObject_HEAD
    PyObject *queue;  // borrowed
    PyObject *engine, *table_object, *queues_object, *store, *bypass_object, *empty;
    unsigned number;  // of the queue, in the table
    int in_order;  // as the program made it
    int chains;  // commands form a chain whatever they touch, because the runtime has one queue
    bool waits_first;  // a blocking transfer is quickest if nothing is ahead of it
    Table *table;
    Queues *queues;
    Bypass *bypass;  // null if it has none

    auto objects() {
        return std::array{&engine, &table_object, &queues_object, &store, &bypass_object, &empty};
    }
    void end();
};

// Returns the tracker of a queue, or null.
Tracker *tracker_of(PyObject *queue);

// PyOpenCL's functions that can become launches here, as in TRACKED of acs_cl/queue/calls.py.
enum Tracked { NEVER, KERNEL, READ, WRITE, COPY, FILL, SVM_COPY, SVM_FILL };

// How many parameters one of these functions has, how many it needs, and where `wait_for` and `is_blocking` are.
struct Form {
    int all, needed, waits, blocks;
};
constexpr int MOST_PLACED = 8;
constexpr Form FORMS[] = {{},           {8, 4, 5, -1}, {6, 3, 4, 5}, {6, 3, 4, 5},
                          {7, 3, 6, -1}, {6, 5, 5, -1}, {6, 4, 4, 1}, {5, 3, 4, -1}};

// Calls one of these, PyOpenCL's own `original`, with all arguments. Null: an argument was left out. Returns null
// without an error for an unusual call.
PyObject *track(Tracker *tracker, int tracked, PyObject *original, PyObject *const *args);
PyObject *track_kernel(Tracker *tracker, PyObject *const *args);
PyObject *track_transfer(Tracker *tracker, int tracked, PyObject *original, PyObject *const *args);

// ---- the common part of kernels and transfers ----------------------------------------------------------

struct Launched {
    std::int64_t number = 0;
    nb::object number_object;
    bool sampled = false;
    bool settles = false;  // the program waits in Python for it, and for launches that the host can look behind
    bool waited = false;   // a stretch of commands has ended with a wait
};

// Returns a `Memory` with a node. Null: the bytes are unknown, or all memory.
nb::object known_memory(Tracker *self, PyObject *object);
inline Memory *memory_in(const nb::object &known) { return reinterpret_cast<Memory *>(known.ptr()); }
// Whether nothing is unusual about a queue now.
bool is_plain(const Tracker *self);
// Whether a wait list says no more than the order of the queue does.
bool waits_for_nothing(const Tracker *self, PyObject *wait_for);
nb::handle kind_of_event(int tracked);
nb::object new_event(Tracker *self, int tracked, PyObject *keeps = Py_None);
// Notes a launch for its queue. One that no lane took goes on from the table. The lock is taken. Returns false with
// an error.
bool note(Tracker *self, bool is_on_lane, bool is_seen, Launched &launched);
// Does what is due after a launch. Returns false with an error.
bool after(Tracker *self, const Launched &launched);
// Returns the event of a launch, for the program.
PyObject *told(nb::object event, Launched &launched);

// `call` makes the record of a transfer.
void use_transfers(nb::object call);
void add_transfers(nb::module_ &module);
void add_tracker(nb::module_ &module);
void add_kernels(nb::module_ &module);

}  // namespace acs_cl
