#include "python/lock.hpp"

#include <chrono>
#include <new>

#include "python/collector.hpp"
#include "python/gil.hpp"
#include "python/nb.hpp"
#include "python/turns.hpp"
#include "python/types.hpp"
#include "python/waiting.hpp"

namespace acs_cl {

void Lock::end() {
    if (lock) PyThread_free_lock(lock);
    delete moved;
}

namespace {

bool is_main_thread() { return PyThread_get_thread_ident() == signals::main_thread; }

// Returns false with an error: a signal came while another thread had it.
bool take_in_slices(Lock *self) {
    while (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        PyThreadState *saved = PyEval_SaveThread();
        auto slice_us = static_cast<PY_TIMEOUT_T>(SLICE_S * 1e6);
        bool has_taken =
            PyThread_acquire_lock_timed(self->lock, slice_us, 0) == PY_LOCK_ACQUIRED;
        take_gil(saved);
        if (has_taken) break;
        if (PyErr_CheckSignals()) return false;
    }
    return true;
}

}  // namespace

bool Lock::take() {
    if (is_owned()) return depth++, true;
    if (is_main_thread() && !signals::inside) signals::hook();
    if (turns::wanted && !collector::inside) turns::give();
    while (take_in_slices(this)) {
        if (has_taken()) return true;
        if (!signals::handle()) return false;
    }
    return false;
}

namespace {

PyObject *acquire(Lock *self, PyObject *) {
    if (!self->take()) return nullptr;
    Py_RETURN_TRUE;
}

PyObject *release(Lock *self, PyObject *) {
    if (!self->is_owned()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return nullptr;
    }
    self->give_back();
    Py_RETURN_NONE;
}

PyObject *leave(Lock *self, PyObject *const *, Py_ssize_t) { return release(self, nullptr); }

PyObject *is_owned(Lock *self, PyObject *) { return PyBool_FromLong(self->is_owned()); }

PyObject *notify(Lock *self, PyObject *) {
    self->moved->come();
    Py_RETURN_NONE;
}

void take_again(Lock *self, long depth) {
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        PyThreadState *saved = PyEval_SaveThread();
        PyThread_acquire_lock(self->lock, WAIT_LOCK);
        take_gil(saved);
    }
    self->owner = PyThread_get_thread_ident();
    self->depth = depth;
    collector::pause();
    leftovers::enter();
    if (self->first) self->first(self->first_of);
}

// Waits until a driver's event has ended, or without one until `notify`, for that many seconds at most. It releases
// the lock, however often it was taken, and takes it again whatever happens. Nothing can come between, as it could
// in Python.
PyObject *wait(Lock *self, PyObject *args) {
    unsigned long long event = 0;
    double seconds = -1;
    if (!PyArg_ParseTuple(args, "|Kd", &event, &seconds)) return nullptr;
    if (!self->is_owned()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot wait with an un-acquired lock");
        return nullptr;
    }
    const long depth = self->depth;
    const unsigned long turn = self->moved->count();
    self->depth = 0;
    PyThread_release_lock(self->lock);
    collector::go_on();
    leftovers::leave();
    const int before = is_main_thread() ? signals::pause() : 0;
    Wait found = event ? wait_for_event(reinterpret_cast<void *>(event), seconds)
                       : wait_in_slices(*self->moved, turn, std::chrono::steady_clock::now(), seconds);
    take_again(self, depth);
    if (is_main_thread()) signals::enter_again(before);
    if (found != Wait::RAISED)
        return PyErr_CheckSignals() ? nullptr : PyBool_FromLong(found == Wait::ENDED);
    const nb::error_scope raised;
    if (PyErr_CheckSignals()) PyErr_Clear();  // another signal may have come
    return nullptr;
}

PyObject *make(PyTypeObject *type, PyObject *, PyObject *) {
    auto *self = reinterpret_cast<Lock *>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->lock = PyThread_allocate_lock();
    self->moved = new (std::nothrow) Notice;
    if (!self->lock || !self->moved) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return reinterpret_cast<PyObject *>(self);
}

PyMethodDef methods[] = {{"acquire", method(acquire), METH_NOARGS, nullptr},
                         {"release", method(release), METH_NOARGS, nullptr},
                         {"__enter__", method(acquire), METH_NOARGS, nullptr},
                         {"__exit__", method(leave), METH_FASTCALL, nullptr},
                         {"is_owned", method(is_owned), METH_NOARGS, nullptr},
                         {"wait", method(wait), METH_VARARGS, nullptr},
                         {"notify", method(notify), METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

// Returns the type, which lives as long as the process. Null with an error.
PyTypeObject *lock_type() {
    static PyObject *type = new_type<Lock>("acs_cl._core.Lock", 0,
                                           {{Py_tp_new, slot(make)}, {Py_tp_methods, methods}});
    return reinterpret_cast<PyTypeObject *>(type);
}

}  // namespace acs_cl
