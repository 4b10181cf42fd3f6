// Bypass: commands that go to the driver's own queue.

#include <algorithm>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

#include "queue/bypass.hpp"

#include "python/waiting.hpp"

namespace acs_cl {

namespace {

std::vector<Bypass *> open_bypasses;

void close(Bypass *self) {
    open_bypasses.erase(std::remove(open_bypasses.begin(), open_bypasses.end(), self), open_bypasses.end());
}

bool is_open(const Bypass *self) {
    return std::find(open_bypasses.begin(), open_bypasses.end(), self) != open_bypasses.end();
}

int bypass_init(Bypass *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"queue", "engine", "pointer", "behind", nullptr};
    PyObject *queue, *engine, *pointer;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOOi", const_cast<char **>(names), &queue,
                                     &engine, &pointer, &self->behind))
        return -1;
    self->native = PyLong_AsVoidPtr(pointer);
    if (PyErr_Occurred()) return -1;
    PyObject *lock = PyObject_CallNoArgs(reinterpret_cast<PyObject *>(lock_type()));
    if (!lock) return -1;
    Py_XSETREF(self->lock, lock);
    self->queue = queue;
    self->engine = engine;
    self->left = self->behind;
    self->waits_first = is_of_own_processor(self->native);
    return 0;
}

PyObject *bypass_get(Bypass *self, void *) { return PyBool_FromLong(is_open(self)); }

int bypass_set(Bypass *self, PyObject *value, void *) {
    int opens = value ? PyObject_IsTrue(value) : 0;
    if (opens < 0) return -1;
    self->is_mixed |= is_open(self) != (opens == 1);
    close(self);
    self->forget_events();
    self->left = self->behind;
    if (opens) open_bypasses.push_back(self);
    return 0;
}

PyObject *bypass_wait(Bypass *self, PyObject *) {
    const bool is_idle = wait_until_idle(self);
    return PyErr_Occurred() ? nullptr : PyBool_FromLong(is_idle);
}

// Returns the commands and seconds of a stretch that has ended. None: it says nothing.
PyObject *bypass_take_stretch(Bypass *self, PyObject *) {
    if (!self->ends_stretch()) Py_RETURN_NONE;
    const double ended = now_s(), began = std::exchange(self->stretch_began, ended);
    const long long commands = std::exchange(self->commands, 0);
    if (std::exchange(self->is_mixed, false) || !began) Py_RETURN_NONE;
    return Py_BuildValue("Ld", commands, ended - began);
}

PyObject *bypass_sample(Bypass *self, void *) {
    return Py_NewRef(self->sample_object ? self->sample_object : Py_None);
}

int bypass_set_sample(Bypass *self, PyObject *value, void *) {
    Sample *sample = nullptr;
    if (!value || !nb::try_cast(nb::handle(value), sample) || !sample) {
        PyErr_SetString(PyExc_TypeError, "expected a sample");
        return -1;
    }
    self->sample = sample;
    Py_XSETREF(self->sample_object, Py_NewRef(value));
    return 0;
}

PyMethodDef bypass_methods[] = {{"wait_until_idle", method(bypass_wait), METH_NOARGS, nullptr},
                                 {"take_stretch", method(bypass_take_stretch), METH_NOARGS, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};
PyMemberDef bypass_members[] = {{"passed", T_LONGLONG, offsetof(Bypass, passed), 0, nullptr},
                                 {"lock", T_OBJECT_EX, offsetof(Bypass, lock), READONLY, nullptr},
                                 {"commands", T_LONGLONG, offsetof(Bypass, commands), 0, nullptr},
                                 {"least_commands", T_LONGLONG,
                                  offsetof(Bypass, least_commands), 0, nullptr},
                                 {"wanted", T_INT, offsetof(Bypass, wanted), 0, nullptr},
                                 {"satisfied", T_INT, offsetof(Bypass, satisfied), 0, nullptr},
                                 {"began", T_DOUBLE, offsetof(Bypass, began), 0, nullptr},
                                 {"rests_until", T_DOUBLE, offsetof(Bypass, rests_until), 0, nullptr},
                                 {"is_mixed", T_BOOL, offsetof(Bypass, is_mixed), 0, nullptr},
                                 {"waits_first", T_BOOL, offsetof(Bypass, waits_first), 0, nullptr},
                                 {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef bypass_properties[] = {
    {"takes_more", getter(bypass_get), setter(bypass_set), nullptr, nullptr},
    {"sample", getter(bypass_sample), setter(bypass_set_sample), nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

Bypass *bypass_of(PyObject *queue) {
    for (Bypass *bypass : open_bypasses)
        if (bypass->queue == queue) return bypass;
    return nullptr;
}

void Bypass::count(PyObject *event, void *handle) {
    passed++;
    commands++;
    all++;
    // an event of a transfer holds memory of the program, and waits in its destructor
    const bool is_plain = reinterpret_cast<PyObject *>(Py_TYPE(event)) == acs_cl::events.plain;
    if (is_plain) recent.add(event);
    Py_XSETREF(last, is_plain && waits_first ? Py_NewRef(event) : nullptr);
    if (--left > 0) return;
    left = behind;
    const bool waits = in_flight && event_status(in_flight) > 0;
    keep_in_flight(handle ? handle : handle_of(event));
    if (waits && now_s() > rests_until) close(this);
}

bool wait_until_idle(Bypass *bypass) {
    if (bypass->is_idle()) return true;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(bypass));
    const long long turn = bypass->all;
    void *event = bypass->last ? handle_of(bypass->last) : nullptr;
    if (event) driver.retain_event(event);
    else if (driver.marker(bypass->native, 0, nullptr, &event)) return false;
    bool has_ended = event_status(event) <= 0;
    if (!has_ended) {
        driver.flush(bypass->native);
        has_ended = wait_for_event(event) == Wait::ENDED;
    }
    driver.release_event(event);
    if (has_ended) bypass->idle_since(turn);
    return has_ended;
}

void Bypass::end() {
    close(this);
    forget_events();
}

void add_bypass(nb::module_ &module) {
    nb::class_<Sample>(module, "Sample")
        .def(nb::init<>())
        .def("note",
             [](Sample &self, std::int64_t number, const std::vector<std::int64_t> &upstream,
                nb::object live) {
                 self.note(number, upstream, [&](std::int64_t one) {
                     nb::int_ key(one);
                     int found = PySequence_Contains(live.ptr(), key.ptr());
                     if (found < 0) throw nb::python_error();
                     return found == 1;
                 });
             },
             "number"_a, "upstream"_a, "live"_a)
        .def_ro("many", &Sample::many)
        .def_ro("steps", &Sample::steps)
        .def_prop_ro("overlap", &Sample::overlap);
    module.attr("Bypass") = nb::steal(new_type<Bypass>("acs_cl._core.Bypass", BASE,
                                                       {{Py_tp_init, slot(bypass_init)},
                                                        {Py_tp_new, slot(PyType_GenericNew)},
                                                        {Py_tp_methods, bypass_methods},
                                                        {Py_tp_members, bypass_members},
                                                        {Py_tp_getset, bypass_properties}}));
}

}  // namespace acs_cl
