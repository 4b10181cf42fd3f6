// The events that a launch is told to wait for.

#pragma once

#include <algorithm>
#include <vector>

#include "driver/kernel.hpp"

namespace acs_cl {

inline std::vector<PyTypeObject *> event_types;  // of PyOpenCL, whose status is the driver's

// Whether a launch need not wait for `wait_for=`: null, None, or events in a list or tuple, all of which have ended well.
inline bool have_ended(PyObject *given) {
    if (!given || given == Py_None) return true;
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given)) return false;
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(given); at++) {
        PyObject *const event = PySequence_Fast_GET_ITEM(given, at);
        if (std::find(event_types.begin(), event_types.end(), Py_TYPE(event)) == event_types.end()) return false;
        void *const handle = handle_of(event);
        if (!handle || event_status(handle) != EVENT_COMPLETE) return false;
    }
    return true;
}

}  // namespace acs_cl
