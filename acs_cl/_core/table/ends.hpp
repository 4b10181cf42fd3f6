// What Python is told of launches that ended, and what the table has for it.

#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

namespace acs_cl {

namespace nb = nanobind;

// A launch has ended, with the driver's status, its event where somebody may ask for times, and its lane.
// `epoch`, if not 0: the launches of the core's own in it have, all of them well.
struct End {
    std::int64_t number;
    std::int32_t status;
    nb::object event;
    std::int32_t lane;
    std::uint32_t epoch = 0;

    End(std::int64_t of, std::int32_t with, nb::object by, std::int32_t on, std::uint32_t whole)
        : number(of), status(with), event(std::move(by)), lane(on), epoch(whole) {}
};

// What a queue of the program's has to see to behind its commands: a sample of them is complete, the host has waited
// for results, or only that the lists of what is in flight have become long. `settles`, if not 0: a launch that
// has to be waited for first, with all that the host can look behind.
struct Due {
    nb::object queue;
    std::int64_t settles;
    bool is_sampled, has_waited;
};

// Has Python's engine see to what is under way: `ended` are launches that were seen to end; null: it is
// time to look. `launched`, if not 0, is the launch that the call under way has put into the table, since no
// lane took it: it goes on from there. `due`, if not null, is all that it is about. `goes_on`: that launch is a part of
// one that has begun. False with an error, as when the driver refuses that launch; then `ended` is empty if Python has
// kept all of it.
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
