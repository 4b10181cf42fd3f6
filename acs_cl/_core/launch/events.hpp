// The events that a launch is told to wait for.

#pragma once

#include <algorithm>
#include <vector>

#include "driver/kernel.hpp"

namespace acs_cl {

// Calls `visit(event)` for the events in a list or tuple until it returns false. Returns whether it never did. Another
// object is none.
template <typename Visit>
bool all_events(PyObject *given, Visit &&visit) {
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given)) return false;
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(given); at++)
        if (!visit(PySequence_Fast_GET_ITEM(given, at))) return false;
    return true;
}

// Whether an event of PyOpenCL is known to be complete.
inline bool has_come(PyObject *event) {
    void *const handle = handle_of(event);
    return handle && event_status(handle) == EVENT_COMPLETE;
}

inline std::vector<PyTypeObject *> event_types;  // of PyOpenCL, whose status is the driver's

// Whether a launch need not wait for `wait_for=`: null, None, or events in a list or tuple, all of which have ended well.
inline bool have_ended(PyObject *given) {
    if (!given || given == Py_None) return true;
    return all_events(given, [](PyObject *event) {
        return std::find(event_types.begin(), event_types.end(), Py_TYPE(event)) != event_types.end() && has_come(event);
    });
}

}  // namespace acs_cl
