// Kernels that an `acs.Queue` has launched by the core, outside of sections: what a kernel was given,
// read by the core, and hazards, queues and books as for kernels of the runtime's own. And blocking
// reads and writes of buffers, which cost a program more than its kernels where those are short.
//
// Whatever is not plain, of a launch or of the time when it comes, takes the way in Python
// (acs_cl/queue/commands.py), which finds everything as it was, and teaches what is like it.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launch/plans.hpp"
#include "queue/bypass.hpp"
#include "queue/sample.hpp"

namespace acs_cl {

// An argument that a kernel has now: memory or the like, or bytes.
struct Argument {
    nb::object object;
    std::string value;
    NodePointer node;  // of memory's bytes
    bool is_host = false;  // the host may look at that without another command
};

// What launches of one kernel on queues of one runtime are. `is_current`: nothing was set that is not
// in `arguments`, or noted since turn `read`.
struct Taught : Forgettable<Taught> {
    nb::object kernel_object, name;
    QueueKernel *kernel = nullptr;
    std::uint32_t index = 0;  // of the runtime's hazards
    std::uint64_t generation = 0;
    std::vector<Parameter> parameters;  // codes: 'P' memory, 'S' at an address, 'L' others, 'v' bytes
    std::vector<Argument> arguments;
    unsigned long long read = 0;
    bool is_current = false;
    Stay stay;
    BySizes<bool> sizes;  // true for those that are known
};

// What a queue needs for that. It is found by the queue object that commands are called with, while
// that lives.
struct Joining {
    PyObject_HEAD
    PyObject *queue;  // borrowed
    PyObject *engine, *table_object, *queues_object, *store, *numbers, *seen, *books_object,
        *section_object, *empty;
    int in_order;  // as the program made it
    int chains;  // one behind the other whatever they touch, where the runtime has one queue
    Table *table;
    Queues *queues;
    Lock *books;
    Passing *section;  // null where it has none

    // By the place of what tells the bytes of memory: that, and their node.
    struct Known {
        nb::object span;
        NodePointer node;
        bool is_host = false;
    };
    std::vector<Known> *known;

    auto objects() {
        return std::array{&engine, &table_object, &queues_object, &store, &numbers, &seen,
                          &books_object, &section_object, &empty};
    }
    void end();
};

// The launches of a queue, or null.
Joining *joining_of(PyObject *queue);

// Which of PyOpenCL's functions can become launches here, as JOINS in acs_cl/queue/bypass.py has them.
enum Joins { NEVER, KERNEL, READ, WRITE };

// One of these, PyOpenCL's own `original`, with all arguments. Null without an error: it is not plain.
PyObject *joined(Joining *joining, int joins, PyObject *original, PyObject *const *args);

void add_joining(nb::module_ &module);

}  // namespace acs_cl
