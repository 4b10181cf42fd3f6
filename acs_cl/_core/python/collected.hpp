// Types of Python's own kind whose objects hold others, so that Python's collector of cycles sees and clears them.

#pragma once

#include "python/nb.hpp"

namespace acs_cl {

template <typename T>
int visit_all(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    int found = 0;
    nb::inst_ptr<T>(self)->each_object([&](PyObject *one) {
        found = visit(one, arg);
        return !found;
    });
    return found;
}

template <typename T>
int clear_all(PyObject *self) {
    if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->clear_objects();
    return 0;
}

// `T` has `each_object(visit)` and `clear_objects()`.
template <typename T>
inline PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void *>(visit_all<T>)},
                                  {Py_tp_clear, reinterpret_cast<void *>(clear_all<T>)},
                                  {0, nullptr}};

}  // namespace acs_cl
