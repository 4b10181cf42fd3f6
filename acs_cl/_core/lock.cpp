#include "lock.hpp"

#include "types.hpp"

namespace acs_cl {

namespace {

void take(Lock *self, long depth) {
    if (self->is_owned()) {
        self->depth += depth;
        return;
    }
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        PyThreadState *saved = PyEval_SaveThread();
        PyThread_acquire_lock(self->lock, WAIT_LOCK);
        PyEval_RestoreThread(saved);
    }
    self->owner = PyThread_get_thread_ident();
    self->depth = depth;
}

// False, with an error set, where it is somebody else's.
bool give_back(Lock *self, long depth) {
    if (!self->is_owned()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return false;
    }
    self->depth -= depth;
    if (!self->depth) PyThread_release_lock(self->lock);
    return true;
}

PyObject *acquire(Lock *self, PyObject *) {
    take(self, 1);
    Py_RETURN_TRUE;
}

PyObject *release(Lock *self, PyObject *) {
    if (!give_back(self, 1)) return nullptr;
    Py_RETURN_NONE;
}

PyObject *leave(Lock *self, PyObject *const *, Py_ssize_t) { return release(self, nullptr); }

PyObject *is_owned(Lock *self, PyObject *) { return PyBool_FromLong(self->is_owned()); }

// The two that `threading.Condition` asks for.
PyObject *release_save(Lock *self, PyObject *) {
    long depth = self->depth;
    return give_back(self, depth) ? PyLong_FromLong(depth) : nullptr;
}

PyObject *acquire_restore(Lock *self, PyObject *depth) {
    long before = PyLong_AsLong(depth);
    if (before == -1 && PyErr_Occurred()) return nullptr;
    take(self, before);
    Py_RETURN_NONE;
}

PyObject *make(PyTypeObject *type, PyObject *, PyObject *) {
    auto *self = reinterpret_cast<Lock *>(type->tp_alloc(type, 0));
    if (self && !(self->lock = PyThread_allocate_lock())) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return reinterpret_cast<PyObject *>(self);
}

PyMethodDef methods[] = {{"acquire", method(acquire), METH_NOARGS, nullptr},
                         {"release", method(release), METH_NOARGS, nullptr},
                         {"__enter__", method(acquire), METH_NOARGS, nullptr},
                         {"__exit__", method(leave), METH_FASTCALL, nullptr},
                         {"_is_owned", method(is_owned), METH_NOARGS, nullptr},
                         {"_release_save", method(release_save), METH_NOARGS, nullptr},
                         {"_acquire_restore", method(acquire_restore), METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

// For as long as the process lives; null with an error.
PyTypeObject *lock_type() {
    static PyObject *type = new_type<Lock>("acs_cl._core.Lock", 0,
                                           {{Py_tp_new, slot(make)}, {Py_tp_methods, methods}});
    return reinterpret_cast<PyTypeObject *>(type);
}

}  // namespace acs_cl
