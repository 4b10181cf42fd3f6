// Tracked commands: commands of an `acs.Queue` that the core launches, outside of bypass. Kernels go by
// the launch plan of the runtime's own kernel and its binder (kernels.cpp). Transfers of buffers and of
// shared memory are in transfers.cpp.
//
// An unusual launch, or an unusual moment, is left to Python (acs_cl/queue/commands.py). Nothing has
// changed by then, and Python makes a plan for launches like it.

#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "driver/memory.hpp"
#include "launch/caller.hpp"
#include "launch/transfers.hpp"
#include "queue/bypass.hpp"
#include "queue/kernel_arguments.hpp"
#include "queue/sample.hpp"

namespace acs_cl {

// The arguments that a PyOpenCL kernel has now, in the form of the plan of its launches.
struct SetArguments : Forgettable<SetArguments> {
    struct Object {
        nb::object object, memory;  // the second one is its `Memory`, null if it touches nothing
        char kind = 0;
        bool is_held() const {
            return kind == 'S' && memory.is_valid() && reinterpret_cast<Memory *>(memory.ptr())->is_host;
        }
    };

    std::shared_ptr<LaunchPlan *> plan;  // its place: the plan may go before the kernel does
    std::vector<ByKinds> kernels;  // the first one was used last
    bool is_first = true;          // which takes the arguments that there are now
    std::vector<Object> objects;  // by index, empty for bytes
    nb::object held;  // the program's own shared memory among them, which lives until a launch has ended; null: not made yet
    std::string bytes;  // of all others, at the places of the plan
    unsigned long long read = 0;  // the turn of the last note that is in them
    bool is_known = true;  // nothing was set that is not in them
    std::uint64_t missing = 0;  // bits of those that were not set yet

    explicit SetArguments(const LaunchPlan &of)
        : plan(of.place), objects(of.parameters.size()), bytes(of.end - HEAD_BYTES, '\0'),
          missing(objects.size() < 64 ? (std::uint64_t(1) << objects.size()) - 1 : ~std::uint64_t(0)) {}

    std::string kinds() const {
        std::string found;
        for (const Object &one : objects) found += one.kind;
        return found;
    }
    // Puts the kernel for the arguments that there are now in front. False: there is none yet.
    bool choose() {
        if (is_first) return true;
        const std::string now = kinds();
        const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const ByKinds &one) { return one.kinds == now; });
        if (found == kernels.end()) return false;
        std::rotate(kernels.begin(), found, found + 1);
        return is_first = true;
    }
    // Takes over kernels for arguments of other kinds.
    void take_kernels(const SetArguments &older) {
        for (const ByKinds &one : older.kernels)
            if (one.kinds != kernels[0].kinds && kernels.size() < ByKinds::MOST) kernels.push_back(one);
    }
};

// What tracks the commands of a queue. It is found by the queue object that commands are called with, while that lives.
struct Tracker {
    PyObject_HEAD
    PyObject *queue;  // borrowed
    PyObject *engine, *table_object, *queues_object, *store, *bypass_object, *empty;
    PyObject *behind;  // a list of launches that all later ones follow
    unsigned number;  // of the queue, in the table
    std::int64_t marked;  // the newest launch that followed all before it on this queue, or 0
    int in_order;  // as the program made it
    int chains;  // commands form a chain whatever they touch, because the runtime has one queue
    int profiles;  // the program may ask for the times of commands
    int steps;  // the engine wants to know of waits, since it times the steps of the program
    bool waits_first;  // a blocking transfer is quickest if nothing is ahead of it
    Table *table;
    Queues *queues;
    Bypass *bypass;  // null if it has none

    auto objects() {
        return std::array{&engine, &table_object, &queues_object, &store, &bypass_object, &empty, &behind};
    }
    void end();
};

// Returns the tracker of a queue, or null.
Tracker *tracker_of(PyObject *queue);

// PyOpenCL's functions that can become launches here, as in TRACKED of acs_cl/queue/calls.py.
enum Tracked {
    NEVER, KERNEL, READ, WRITE, COPY, FILL, SVM_COPY, SVM_FILL, MARKER, BARRIER,
    // PyOpenCL's functions make these, with all bytes of each memory object: calls.cpp
    READ_IMAGE, WRITE_IMAGE, COPY_IMAGE, IMAGE_TO_BUFFER, BUFFER_TO_IMAGE, FILL_IMAGE,
    READ_RECTANGLE, WRITE_RECTANGLE, COPY_RECTANGLE, MAP_BUFFER, MAP_IMAGE, UNMAP, MAP_SVM, UNMAP_SVM, FREE_SVM, ALL_TRACKED
};

// How many parameters one of these functions has, how many it needs, and where `wait_for` and `is_blocking` are.
struct Form {
    int all, needed, waits, blocks;
    int read = -1, written = -1, host = -1;  // of PyOpenCL's own: memory objects, and the program's memory
    int flags = -1;                          // which say whether `written` is only read
    int queue = 0;
    int kept = -1;  // memory that lives until the command has ended, since no driver keeps it
};
constexpr int MOST_PLACED = 11;
constexpr Form FORMS[] = {{},
                          {8, 4, 5, -1},
                          {6, 3, 4, 5},
                          {6, 3, 4, 5},
                          {7, 3, 6, -1},
                          {6, 5, 5, -1},
                          {6, 4, 4, 1},
                          {5, 3, 4, -1},
                          {2, 1, 1, -1},
                          {2, 1, 1, -1},
                          {9, 5, 7, 8, 1, -1, 4},
                          {9, 5, 7, 8, -1, 1, 4},
                          {7, 6, 6, -1, 1, 2},
                          {7, 6, 6, -1, 1, 2},
                          {7, 6, 6, -1, 1, 2},
                          {6, 5, 5, -1, -1, 1},
                          {10, 6, 8, 9, 1, -1, 2},
                          {10, 6, 8, 9, -1, 1, 2},
                          {9, 6, 8, -1, 1, 2},
                          {10, 6, 8, 9, -1, 1, -1, 2},
                          {11, 7, 9, 10, -1, 1, -1, 2},
                          {3, 2, 2, -1, -1, 0, -1, -1, 1},
                          {6, 4, 4, 1, -1, 3, -1, 2, 0, 3},
                          {3, 2, 2, -1, -1, 1, -1, -1, 0, 1},
                          {3, 2, 2, -1, -1, 0, -1, -1, 1, 0}};
static_assert(std::size(FORMS) == ALL_TRACKED);

// Calls one of these, PyOpenCL's own `original`, with all arguments. Null: an argument was left out. `parameters`: their
// names. Returns null without an error for an unusual call.
PyObject *track(Tracker *tracker, int tracked, PyObject *original, PyObject *const *args, PyObject *parameters);
PyObject *track_kernel(Tracker *tracker, PyObject *const *args);
PyObject *track_transfer(Tracker *tracker, int tracked, PyObject *original, PyObject *const *args);
PyObject *track_marker(Tracker *tracker, int tracked, PyObject *const *args);
PyObject *track_call(Tracker *tracker, int tracked, PyObject *original, PyObject *const *args, PyObject *parameters);

// Takes any whole number, also NumPy's. `otherwise`: it was left out. Returns false if it is none, or below 0.
inline bool take_number(PyObject *object, std::int64_t otherwise, std::int64_t &to) {
    if (!object || object == Py_None) return to = otherwise, true;
    const nb::object number = nb::steal(PyNumber_Index(object));
    to = number.is_valid() ? PyLong_AsLongLong(number.ptr()) : -1;
    if (!PyErr_Occurred()) return to >= 0;
    return PyErr_Clear(), to = INT64_MIN, false;
}
inline bool take_truth(PyObject *object, bool &to) {
    const int truth = PyObject_IsTrue(object);
    if (truth < 0) PyErr_Clear();
    to = truth > 0;
    return truth >= 0;
}

// ---- the common part of all commands ----------------------------------------------------------

struct Launched {
    std::int64_t number = 0;
    nb::object number_object;
    bool sampled = false;
    bool settles = false;  // the program waits in Python for it, and for launches that the host can look behind
    bool waited = false;   // a stretch of commands has ended with a wait
    bool ends_step = false;  // the engine has to hear of a wait of the core's
    nb::object timed;      // the driver's event, or what returns it later, of a command whose times the program may ask for
};

// Returns a `Memory` with a node. Null: the bytes are unknown, or all memory.
nb::object known_memory(Tracker *self, PyObject *object);
inline Memory *memory_in(const nb::object &known) { return reinterpret_cast<Memory *>(known.ptr()); }
// Whether nothing is unusual now, about a queue or the runtime.
bool is_plain(const Tracker *self);
// Launches that a command follows whatever bytes it touches. The order of a queue in order needs none.
using Upstream = std::vector<std::int64_t>;
// Adds those of a wait list, and a barrier that holds all that comes. Returns false if it waits for something of others.
bool take_upstream(Tracker *self, PyObject *wait_for, Upstream &to);
nb::handle kind_of_event(int tracked);
nb::object new_event(Tracker *self, int tracked, PyObject *keeps = Py_None);
// What keeps the event of a launch that no lane takes, if the program may ask for its times: as in `Queues::follow`.
nb::handle watch(const Tracker *self);
// Notes a launch for its queue. One that no lane took goes on from the table. The lock is taken. `event`: the driver's,
// if the launch has ended. Returns false with an error.
bool note(Tracker *self, bool is_on_lane, bool is_seen, Launched &launched, void *event = nullptr);
// Does what is due after a launch. Returns false with an error.
bool after(Tracker *self, const Launched &launched);
// Returns the event of a launch, for the program.
PyObject *told(nb::object event, Launched &launched);

// Returns the record of a call of `original`, which the driver gets later. `args`: all of them, null for one that was
// left out. `host`: what takes the place of the argument at `host_at`, or null.
nb::object record_of(int tracked, nb::handle name, PyObject *original, PyObject *const *args, int host_at = -1,
                     const nb::object &host = {});
// Waits for the upstream of a command that blocks, so that nothing is ahead of the driver's own blocking call. Signals
// can end the wait.
void wait_ahead(Tracker *self, const Touched &touched);
// Waits for a command that blocks. The program waits in Python, too, if that says what failed, or if commands before it
// have not ended that the host can look behind.
void wait_here(Tracker *self, Launched &launched, UnderWay &under_way, PyObject *kept);
// Lets the program believe that everything up to this launch is complete: `Queue.pretend`. Returns false with an error.
bool pretend(Tracker *self, const nb::object &number);
// Returns what a map gives the program, of what PyOpenCL's function `returned`. Null with an error.
inline bool is_map(int tracked) { return tracked == MAP_BUFFER || tracked == MAP_IMAGE; }
nb::object mapped_by(PyObject *queue, const nb::object &returned, const nb::object &event, const nb::object &memory);
// Takes Python's parts of a map: what makes the array for the program, what waits for a map before that, and what unmaps
// memory that the program does not get.
void use_maps(nb::object made, nb::object awaited, nb::object given_up);
void add_transfers(nb::module_ &module);
void add_calls(nb::module_ &module);
void add_tracker(nb::module_ &module);
void add_kernels(nb::module_ &module);

}  // namespace acs_cl
