// Reports to Python: launches that have ended, and other events of the table.

#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

namespace acs_cl {

namespace nb = nanobind;

// A launch has ended: the driver's status, its event if somebody may ask for times, and its lane. `epoch`, if not 0:
// all launches that the core made in that epoch have ended well.
struct End {
    std::int64_t number;
    std::int32_t status;
    nb::object event;
    std::int32_t lane;
    std::uint32_t epoch = 0;

    End(std::int64_t of, std::int32_t with, nb::object by, std::int32_t on, std::uint32_t whole)
        : number(of), status(with), event(std::move(by)), lane(on), epoch(whole) {}
};

// Work of a program's queue after a command: a sample of commands is complete, the host has waited for results, or its
// lists of launches in flight have become long. `settles`, if not 0: the queue first waits for this launch, and for all
// whose results the host can see.
struct Due {
    nb::object queue;
    std::int64_t settles;
    bool is_sampled, has_waited;
};

// Has the Python engine handle what is under way. `ended`: launches that have ended; null: it only looks. `launched`,
// if not 0: a launch in the table that no lane took, and that the engine goes on with. `due`, if not null, is the only
// thing to handle. `goes_on`: the launch is a part of another one that has begun. False with an error, for instance
// when the driver refuses the launch. `ended` is empty then if Python has kept all of it.
inline bool completed(PyObject *engine, PyObject *ended, std::int64_t launched = 0, const Due *due = nullptr,
                      bool goes_on = false) {
    static PyObject *const name = PyUnicode_InternFromString("completed");
    const nb::object number = nb::steal(PyLong_FromLongLong(launched));
    if (!number.is_valid()) return false;
    const nb::object what = due ? nb::cast(*due) : nb::none();
    PyObject *all[] = {engine, ended ? ended : Py_None, number.ptr(), what.ptr(), Py_True};
    return nb::steal(PyObject_VectorcallMethod(name, all, goes_on ? 5 : 4, nullptr)).is_valid();
}

void add_table(nb::module_ &module);

}  // namespace acs_cl
