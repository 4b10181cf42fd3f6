// Bypass: commands that go to the driver's own queue.

#include <algorithm>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

#include "queue/bypass.hpp"

#include "python/waiting.hpp"

namespace acs_cl {

namespace {

std::vector<Passing *> open_ways;

void close_way(Passing *self) {
    open_ways.erase(std::remove(open_ways.begin(), open_ways.end(), self), open_ways.end());
}

bool is_open(const Passing *self) {
    return std::find(open_ways.begin(), open_ways.end(), self) != open_ways.end();
}

int passing_init(Passing *self, PyObject *args, PyObject *keywords) {
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

PyObject *passing_get(Passing *self, void *) { return PyBool_FromLong(is_open(self)); }

int passing_set(Passing *self, PyObject *value, void *) {
    int opens = value ? PyObject_IsTrue(value) : 0;
    if (opens < 0) return -1;
    self->is_mixed |= is_open(self) != (opens == 1);
    close_way(self);
    self->forget_events();
    self->left = self->behind;
    if (opens) open_ways.push_back(self);
    return 0;
}

PyObject *passing_wait(Passing *self, PyObject *) {
    const bool is_idle = wait_until_idle(self);
    return PyErr_Occurred() ? nullptr : PyBool_FromLong(is_idle);
}

PyObject *passing_rest(Passing *self, PyObject *seconds) {
    double rest_s = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred()) return nullptr;
    self->rests_until = now_s() + rest_s;
    Py_RETURN_NONE;
}

PyObject *passing_rests(Passing *self, void *) {
    return PyBool_FromLong(now_s() <= self->rests_until);
}

// Returns the commands and seconds of a stretch that has ended. None: it says nothing.
PyObject *passing_take_stretch(Passing *self, PyObject *) {
    if (!self->ends_stretch()) Py_RETURN_NONE;
    const double ended = now_s(), began = std::exchange(self->stretch_began, ended);
    const long long commands = std::exchange(self->commands, 0);
    if (std::exchange(self->is_mixed, false) || !began) Py_RETURN_NONE;
    return Py_BuildValue("Ld", commands, ended - began);
}

PyObject *passing_spoil(Passing *self, PyObject *) {
    self->is_mixed = true;
    Py_RETURN_NONE;
}

PyObject *passing_look(Passing *self, void *) {
    return Py_NewRef(self->look_object ? self->look_object : Py_None);
}

int passing_set_look(Passing *self, PyObject *value, void *) {
    Look *look = nullptr;
    if (!value || !nb::try_cast(nb::handle(value), look) || !look) {
        PyErr_SetString(PyExc_TypeError, "expected a look");
        return -1;
    }
    self->look = look;
    Py_XSETREF(self->look_object, Py_NewRef(value));
    return 0;
}

PyMethodDef passing_methods[] = {{"wait_until_idle", method(passing_wait), METH_NOARGS, nullptr},
                                 {"rest", method(passing_rest), METH_O, nullptr},
                                 {"take_stretch", method(passing_take_stretch), METH_NOARGS, nullptr},
                                 {"spoil_stretch", method(passing_spoil), METH_NOARGS, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};
PyMemberDef passing_members[] = {{"passed", T_LONGLONG, offsetof(Passing, passed), 0, nullptr},
                                 {"lock", T_OBJECT_EX, offsetof(Passing, lock), READONLY, nullptr},
                                 {"commands", T_LONGLONG, offsetof(Passing, commands), 0, nullptr},
                                 {"least_commands", T_LONGLONG,
                                  offsetof(Passing, least_commands), 0, nullptr},
                                 {"wanted", T_INT, offsetof(Passing, wanted), 0, nullptr},
                                 {"satisfied", T_INT, offsetof(Passing, satisfied), 0, nullptr},
                                 {"began", T_DOUBLE, offsetof(Passing, began), 0, nullptr},
                                 {"waits_first", T_BOOL, offsetof(Passing, waits_first), 0, nullptr},
                                 {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef passing_properties[] = {
    {"passing", getter(passing_get), setter(passing_set), nullptr, nullptr},
    {"rests", getter(passing_rests), nullptr, nullptr, nullptr},
    {"look", getter(passing_look), setter(passing_set_look), nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

Passing *way_of(PyObject *queue) {
    for (Passing *way : open_ways)
        if (way->queue == queue) return way;
    return nullptr;
}

void Passing::count(PyObject *event, void *handle) {
    passed++;
    commands++;
    all++;
    // an event of a transfer holds memory of the program, and waits in its destructor
    const bool is_plain = reinterpret_cast<PyObject *>(Py_TYPE(event)) == acs_cl::events.plain;
    if (is_plain) recent.add(event);
    Py_XSETREF(last, is_plain && waits_first ? Py_NewRef(event) : nullptr);
    if (--left > 0) return;
    left = behind;
    bool waits = in_flight && event_status(in_flight_handle) > 0;
    in_flight_handle = handle ? handle : handle_of(event);
    Py_XSETREF(in_flight, in_flight_handle ? Py_NewRef(event) : nullptr);
    if (waits && now_s() > rests_until) close_way(this);
}

bool wait_until_idle(Passing *way) {
    if (way->is_idle()) return true;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(way));
    const long long turn = way->all;
    void *event = way->last ? handle_of(way->last) : nullptr;
    if (event) driver.retain_event(event);
    else if (driver.marker(way->native, 0, nullptr, &event)) return false;
    bool has_ended = event_status(event) <= 0;
    if (!has_ended) {
        driver.flush(way->native);
        has_ended = wait_for_event(event) == Wait::ENDED;
    }
    driver.release_event(event);
    if (has_ended) way->idle_since(turn);
    return has_ended;
}

void Passing::end() {
    close_way(this);
    forget_events();
}

void add_way(nb::module_ &module) {
    nb::class_<Look>(module, "Look")
        .def(nb::init<>())
        .def("note",
             [](Look &self, std::int64_t number, const std::vector<std::int64_t> &upstream,
                nb::object live) {
                 self.note(number, upstream, [&](std::int64_t one) {
                     nb::int_ key(one);
                     int found = PySequence_Contains(live.ptr(), key.ptr());
                     if (found < 0) throw nb::python_error();
                     return found == 1;
                 });
             },
             nb::arg("number"), nb::arg("upstream"), nb::arg("live"))
        .def_ro("many", &Look::many)
        .def_ro("steps", &Look::steps)
        .def_prop_ro("overlap", &Look::overlap);
    module.attr("Passing") = nb::steal(new_type<Passing>("acs_cl._core.Passing", BASE,
                                                       {{Py_tp_init, slot(passing_init)},
                                                        {Py_tp_new, slot(PyType_GenericNew)},
                                                        {Py_tp_methods, passing_methods},
                                                        {Py_tp_members, passing_members},
                                                        {Py_tp_getset, passing_properties}}));
}

}  // namespace acs_cl
