// The arguments that PyOpenCL's setters gave a kernel, remembered until a launch needs them.
// acs_cl/queue/kernel_arguments.py reads what is unusual.

#pragma once

#include <array>

#include "driver/kernel.hpp"
#include "python/types.hpp"

namespace acs_cl {

// Setters of several arguments, followed by a place for each of the first single arguments.
constexpr int MULTI = 0, PACKED = 2, SETTERS = 3, PLACES = SETTERS + 16;

struct SetArguments;  // tracking.hpp
void forget(SetArguments *set);
void outdate(SetArguments *&set);

// The latest values that set a kernel's arguments, in each place, until they are read: tuples, and the objects of
// single arguments.
struct KernelArguments {
    PyObject_HEAD
    PyObject *kernel;  // borrowed: it holds this
    PyObject *last[PLACES];
    unsigned long long turns[PLACES];
    void *handle;
    long long generation;
    bool is_shared;  // other objects set arguments of the same kernel of the driver: its own are not known
    SetArguments *set;  // the arguments in the form of the plan of its launches, or null

    std::array<PyObject **, PLACES> objects() {
        std::array<PyObject **, PLACES> all;
        for (int place = 0; place < PLACES; place++) all[place] = &last[place];
        return all;
    }
    void end();
};

// Returns the arguments that a kernel was given since functions were replaced, or null without an error if they are
// not known.
KernelArguments *arguments_of(PyObject *kernel);

void add_kernel_arguments(nb::module_ &module);

}  // namespace acs_cl
