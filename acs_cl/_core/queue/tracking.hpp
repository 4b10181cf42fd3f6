// Commands that an `acs.Queue` has launched by the core, outside of sections: kernels, by the launch plan of
// the runtime's own and its binder (kernels.cpp), and transfers of buffers and of shared memory (transfers.cpp).
//
// Whatever is not plain, of a launch or of the time when it comes, takes the way in Python
// (acs_cl/queue/commands.py), which finds everything as it was, and makes a plan for what is like it.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "driver/memory.hpp"
#include "launch/caller.hpp"
#include "queue/bypass.hpp"
#include "queue/sample.hpp"

namespace acs_cl {

// The arguments that a kernel of PyOpenCL's has now, as the plan of its launches takes them.
struct SetArguments : Forgettable<SetArguments> {
    struct Object {
        nb::object object, memory;  // the second one is its `Memory`, null where it touches nothing
        char kind = 0;
    };

    std::shared_ptr<LaunchPlan *> plan;  // its place: the plan may go before the kernel does
    nb::object kernel_object;  // what queues take for such arguments
    QueueKernel *kernel = nullptr;
    std::vector<Object> objects;  // by index, nothing for bytes
    std::string bytes;  // of all others, at the places of the plan
    unsigned long long read = 0;  // the turn of the last note that is in them
    bool is_known = true;  // nothing was set that is not in them
};

// What a queue needs for that. It is found by the queue object that commands are called with, while
// that lives.
struct Joining {
    PyObject_HEAD
    PyObject *queue;  // borrowed
    PyObject *engine, *table_object, *queues_object, *store, *section_object, *empty;
    unsigned number;  // of the queue, in the table
    int in_order;  // as the program made it
    int chains;  // one behind the other whatever they touch, where the runtime has one queue
    bool waits_first;  // a transfer that the program waits for is quickest where nothing is ahead of it
    Table *table;
    Queues *queues;
    Passing *section;  // null where it has none

    auto objects() {
        return std::array{&engine, &table_object, &queues_object, &store, &section_object, &empty};
    }
    void end();
};

// The launches of a queue, or null.
Joining *joining_of(PyObject *queue);

// Which of PyOpenCL's functions can become launches here, as JOINS in acs_cl/queue/bypass.py has them.
enum Joins { NEVER, KERNEL, READ, WRITE, COPY, FILL, SVM_COPY, SVM_FILL };

// How many parameters one of these has, how many of them it needs, and where `wait_for` and
// `is_blocking` are.
struct Form {
    int all, needed, waits, blocks;
};
constexpr int MOST_PLACED = 8;
constexpr Form FORMS[] = {{},           {8, 4, 5, -1}, {6, 3, 4, 5}, {6, 3, 4, 5},
                          {7, 3, 6, -1}, {6, 5, 5, -1}, {6, 4, 4, 1}, {5, 3, 4, -1}};

// One of these, PyOpenCL's own `original`, with all arguments; null for those that were left out. Null
// without an error: it is not plain.
PyObject *joined(Joining *joining, int joins, PyObject *original, PyObject *const *args);
PyObject *join_kernel(Joining *joining, PyObject *const *args);
PyObject *join_transfer(Joining *joining, int joins, PyObject *original, PyObject *const *args);

// ---- what kernels and transfers have in common ---------------------------------------------------------

struct Launched {
    std::int64_t number = 0;
    nb::object number_object;
    bool looked = false;
    bool settles = false;  // the program waits for it, and for what the host can look behind, in Python
    bool waited = false;   // a stretch of commands has ended with a wait
};

// A `Memory` with a node, or null where nobody knows the bytes, or they are all memory.
nb::object known_memory(Joining *self, PyObject *object);
inline Memory *memory_in(const nb::object &known) { return reinterpret_cast<Memory *>(known.ptr()); }
// Whether nothing is unusual about a queue now.
bool is_plain(const Joining *self);
// Whether nothing in a wait list says more than the order of the queue does.
bool waits_for_nothing(const Joining *self, PyObject *wait_for);
nb::handle kind_of_event(int joins);
nb::object new_event(Joining *self, int joins, PyObject *keeps = Py_None);
// What a queue has to know of a launch; one that no lane took goes on from the table. The lock is taken. False with an
// error.
bool note(Joining *self, bool is_on_lane, bool is_seen, Launched &launched);
// What is due after a launch; false with an error.
bool after(Joining *self, const Launched &launched);
// The event of a launch, for the program.
PyObject *told(nb::object event, Launched &launched);

// `call` makes the record of a transfer.
void use_transfers(nb::object call);
void add_transfers(nb::module_ &module);
void add_joining(nb::module_ &module);
void add_kernels(nb::module_ &module);

}  // namespace acs_cl
