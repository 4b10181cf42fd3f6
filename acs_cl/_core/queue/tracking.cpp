// The common part of tracked commands of an `acs.Queue`: tracking.hpp says what and when.

#include "queue/tracking.hpp"

#include <algorithm>
#include <unordered_map>

namespace acs_cl {

namespace {

PyObject *event_kinds;  // kinds of events, in the order of `Tracked`
PyObject *make_call;  // makes the record of a call
PyObject *make_marker;  // makes the record of a marker
PyObject *make_watched;  // makes a record that keeps its event
PyObject *error_of;  // makes PyOpenCL's error, which a program expects, from one of ours
std::unordered_map<PyObject *, Tracker *> trackers;

}  // namespace

nb::object known_memory(Tracker *self, PyObject *object) {
    try {
        nb::object known = memory_of(object, self->store);
        if (!known.is_none() && memory_in(known)->node_in(*self->table->hazards)) return known;
    } catch (nb::python_error &) {  // the Python code says what is wrong
    }
    return {};
}

bool is_plain(const Tracker *self) {
    if (!self->table->is_plain()) return false;
    // what may have to wait on the host is looked at first, because the program should hear of its errors in its call
    if (self->table->waiting()) return false;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(self->empty); at++)
        if (PyObject_Size(PyTuple_GET_ITEM(self->empty, at))) return false;
    return true;
}

namespace {

// Adds the launch of an event of ours, and what the host can look behind once that is complete. Returns false if it is
// of another runtime.
bool take_event(const Tracker *self, PyObject *event, Upstream &to) {
    PyObject *queue = *events.slot(event, QUEUE);
    if (self->in_order && queue == self->queue && !self->profiles) return true;
    const Tracker *other = tracker_of(queue);
    if (!other || other->table != self->table) return false;
    const std::int64_t number = whole_number(*events.slot(event, NUMBER));
    if (self->table->has(number)) to.push_back(number);
    if (other != self && other->in_order) self->table->add_of_queue(other->number, -1, number - 1, true, to);
    return true;
}

}  // namespace

bool take_upstream(Tracker *self, PyObject *wait_for, Upstream &to) {
    for (Py_ssize_t at = PyList_GET_SIZE(self->behind); at-- > 0;) {
        const std::int64_t number = whole_number(PyList_GET_ITEM(self->behind, at));
        if (self->table->has(number)) to.push_back(number);
        else if (PySequence_DelItem(self->behind, at)) throw PythonError();
    }
    if (wait_for == Py_None) return true;
    const bool are_taken = all_events(wait_for, [&](PyObject *event) {
        if (reinterpret_cast<PyObject *>(Py_TYPE(event)) == events.own) return take_event(self, event, to);
        return is_of_the_driver(event) &&
               (has_come(event) || (self->bypass && self->bypass->is_under_way(handle_of(event))));
    });
    if (!are_taken) return false;
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    return true;
}

nb::handle kind_of_event(int tracked) { return PyTuple_GET_ITEM(event_kinds, tracked - KERNEL); }

nb::object new_event(Tracker *self, int tracked, PyObject *keeps) {
    static PyObject *nothing = PyTuple_New(0);
    auto *type = reinterpret_cast<PyTypeObject *>(events.own);
    nb::object event = nb::steal(type->tp_new(type, nothing, nullptr));
    if (!event.is_valid()) throw PythonError();
    *events.slot(event.ptr(), QUEUE) = Py_NewRef(self->queue);
    *events.slot(event.ptr(), KIND) = kind_of_event(tracked).inc_ref().ptr();
    *events.slot(event.ptr(), KEEPS) = Py_NewRef(keeps);
    for (int which : {TIMED, SETTLED}) *events.slot(event.ptr(), which) = Py_NewRef(Py_None);
    *events.slot(event.ptr(), ENDED) = Py_NewRef(Py_False);
    return event;
}

namespace {

// Samples whether the program's launches overlap, for `Bypass.wants`. Launches that have ended are told.
void sample(Tracker *self, std::int64_t number, const std::vector<std::int64_t> &upstream,
          Launched &launched) {
    Bypass *bypass = self->bypass;
    if (bypass->satisfied > 0) {
        bypass->satisfied--;
        return;
    }
    Table &table = *self->table;
    const Owned<Sample> sample = bypass->sample;  // another thread may begin a new one
    if (!sample->many) bypass->began = now_s();
    bool is_well = true;
    if (table.in_epochs() || table.has_watched()) {
        is_well = engine_polls(self->engine);
    } else {
        nb::list ended = self->queues->poll(64);
        if (nb::len(ended) || table.has_ready()) is_well = engine_hears(self->engine, ended.ptr());
    }
    if (!is_well) throw PythonError();
    sample->note(number, upstream, [&](std::int64_t one) { return table.has(one); });
    launched.sampled = sample->many >= bypass->wanted;
}

// Takes a launch on from the table if no lane took it. Returns false with an error.
bool go_on(Tracker *self, std::int64_t number) {
    if (engine_takes_over(self->engine, number)) return true;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    const nb::object all[] = {nb::steal(type), nb::steal(value), nb::steal(trace)};
    const nb::object told = nb::steal(PyObject_CallOneArg(error_of, value));
    if (told.is_valid()) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(told.ptr())), told.ptr());
    return false;
}

}  // namespace

nb::handle watch(const Tracker *self) { return self->profiles ? make_watched : nullptr; }

bool note(Tracker *self, bool is_on_lane, bool is_seen, Launched &launched, void *event) {
    const std::int64_t number = launched.number = self->table->number;
    if (self->profiles) {
        if (event) launched.timed = self->queues->made(event);
        else launched.timed = is_on_lane ? self->queues->event(number) : self->queues->watched().attr("known");
    }
    launched.number_object = nb::steal(PyLong_FromLongLong(number));
    std::vector<std::int64_t> upstream;
    if (self->bypass && self->bypass->satisfied <= 0)
        for (const Edge &edge : self->queues->edges()) upstream.push_back(edge.upstream);
    if (self->chains) upstream.assign(1, number - 1);
    self->table->assign(number, self->number, is_seen);
    if (self->bypass) self->bypass->commands++;
    if (!is_on_lane) return go_on(self, number);
    if (self->bypass) sample(self, number, upstream, launched);
    return true;
}

bool after(Tracker *self, const Launched &launched) {
    if (self->table->should_poll() && !engine_polls(self->engine)) return false;
    if (launched.ends_step && !engine_has_read(self->engine)) return false;
    if (!launched.settles && !launched.sampled && !launched.waited) return true;
    const Due due{nb::borrow(self->queue), launched.settles ? launched.number : 0, launched.sampled, launched.waited};
    return queue_sees_to(due);
}

nb::object record_of(int tracked, nb::handle name, PyObject *original, PyObject *const *args, int host_at,
                     const nb::object &host) {
    nb::list all;
    for (int at = 0; at < FORMS[tracked].all; at++) all.append(args[at] ? nb::borrow(args[at]) : nb::none());
    if (host.is_valid()) all[std::size_t(host_at)] = host;
    return nb::borrow(make_call)(name, nb::handle(original), nb::tuple(all));
}

void wait_here(Tracker *self, Launched &launched, UnderWay &under_way, PyObject *kept) {
    const bool is_well =
        under_way.has_ended ||
        (under_way.event && wait_for(*self->queues, self->engine, launched.number, under_way.take(), kept));
    launched.settles = !is_well || self->table->shows(self->number, launched.number);
    launched.waited = self->bypass && self->bypass->ends_stretch();
    launched.ends_step = self->steps && !launched.settles;
}

bool pretend(Tracker *self, const nb::object &number) {
    static PyObject *const told_name = PyUnicode_InternFromString("told"),
                    *const complete_name = PyUnicode_InternFromString("complete"),
                    *const shared_name = PyUnicode_InternFromString("is_shared"),
                    *const keep_name = PyUnicode_InternFromString("keep_word");
    if (!self->in_order) return true;
    const nb::object told = nb::steal(PyObject_GetAttr(self->queue, told_name));
    if (!told.is_valid()) return false;
    const nb::object known = nb::steal(PyObject_GetAttr(told.ptr(), complete_name));
    if (!known.is_valid()) return false;
    if (whole_number(known.ptr()) >= whole_number(number.ptr())) return true;
    words_given++;
    if (PyObject_SetAttr(told.ptr(), complete_name, number.ptr())) return false;
    const nb::object is_shared = nb::steal(PyObject_GetAttr(told.ptr(), shared_name));
    if (!is_shared.is_valid()) return false;
    if (is_shared.ptr() == Py_False) return true;
    return nb::steal(PyObject_CallMethodNoArgs(self->queue, keep_name)).is_valid();
}

PyObject *told(nb::object event, Launched &launched) {
    *events.slot(event.ptr(), NUMBER) = launched.number_object.release().ptr();
    if (launched.timed.is_valid()) Py_SETREF(*events.slot(event.ptr(), TIMED), launched.timed.release().ptr());
    return event.release().ptr();
}

namespace {

int tracker_init(Tracker *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"queue", "engine", "table", "queues", "store", "number",
                                  "bypass", "empty", "behind", "in_order", "chains", "profiles", "steps", nullptr};
    PyObject *queue;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOOOOIOO!O!pppp", const_cast<char **>(names),
                                     &queue, &self->engine, &self->table_object,
                                     &self->queues_object, &self->store, &self->number,
                                     &self->bypass_object, &PyTuple_Type, &self->empty,
                                     &PyList_Type, &self->behind, &self->in_order, &self->chains,
                                     &self->profiles, &self->steps)) {
        for (PyObject **one : self->objects()) *one = nullptr;
        return -1;
    }
    for (PyObject **one : self->objects()) Py_INCREF(*one);
    if (!nb::try_cast(nb::handle(self->table_object), self->table) || !self->table || !self->table->lock ||
        !nb::try_cast(nb::handle(self->queues_object), self->queues) || !self->queues ||
        !nb::try_cast(nb::handle(self->bypass_object), self->bypass)) {
        PyErr_SetString(PyExc_TypeError, "expected a table that has a lock, queues, and a bypass or none");
        return -1;
    }
    self->waits_first = self->queues->on_own_processor();
    self->queue = queue;
    trackers[queue] = self;
    return 0;
}

}  // namespace

void Tracker::end() {
    if (auto found = trackers.find(queue); found != trackers.end() && found->second == this)
        trackers.erase(found);
}

Tracker *tracker_of(PyObject *queue) {
    auto found = trackers.find(queue);
    return found == trackers.end() ? nullptr : found->second;
}

PyObject *track_marker(Tracker *self, int tracked, PyObject *const *args) {
    static PyObject *const name = PyUnicode_InternFromString("marker");
    Table &table = *self->table;
    Upstream upstream;
    if (!is_plain(self) || !take_upstream(self, args[FORMS[tracked].waits], upstream)) return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    nb::object event = new_event(self, tracked);
    const bool is_behind_all = self->in_order || is_empty(args[FORMS[tracked].waits]);
    const bool holds = tracked == BARRIER && !(self->in_order && upstream.empty());
    Launched launched;
    {
        // again, because code may have run that made the event
        if (!is_plain(self) || !table.lock->try_take()) return nullptr;
        Taken taken(table.lock);
        if (is_behind_all) {
            const std::int64_t first = self->marked && table.has(self->marked) ? self->marked - 1 : -1;
            table.add_of_queue(self->number, first, table.newest_of(self->number), false, upstream);
        }
        self->queues->follow(upstream, watch(self));
        const bool is_on_lane = self->queues->launch_marker(name, [] {
            return nb::steal(PyObject_CallNoArgs(make_marker));
        });
        if (is_behind_all) self->marked = table.number;
        if (!note(self, is_on_lane, false, launched)) return nullptr;
        if (holds && PyList_SetSlice(self->behind, 0, PyList_GET_SIZE(self->behind), nullptr)) return nullptr;
        if (holds && PyList_Append(self->behind, launched.number_object.ptr())) return nullptr;
    }
    return after(self, launched) ? told(std::move(event), launched) : nullptr;
}

PyObject *track(Tracker *tracker, int tracked, PyObject *original, PyObject *const *args, PyObject *parameters) {
    return guarded([&] {
        if (tracked == KERNEL) return track_kernel(tracker, args);
        if (tracked == MARKER || tracked == BARRIER) return track_marker(tracker, tracked, args);
        if (tracked > BARRIER) return track_call(tracker, tracked, original, args, parameters);
        return track_transfer(tracker, tracked, original, args);
    });
}

void add_tracker(nb::module_ &module) {
    module.attr("Tracker") = nb::steal(
        new_type<Tracker>("acs_cl._core.Tracker", COLLECTED,
                          {{Py_tp_init, slot(tracker_init)}, {Py_tp_new, slot(PyType_GenericNew)}}));
    module.def("use_kinds",
               [](nb::tuple kinds, nb::object native_error, nb::object call, nb::object marker, nb::object watched,
                  nb::tuple maps) {
                   Py_XSETREF(event_kinds, kinds.release().ptr());
                   Py_XSETREF(error_of, native_error.release().ptr());
                   Py_XSETREF(make_marker, marker.release().ptr());
                   Py_XSETREF(make_call, call.release().ptr());
                   Py_XSETREF(make_watched, watched.release().ptr());
                   use_maps(maps[0], maps[1], maps[2]);
               });
    add_transfers(module);
    add_calls(module);
    add_kernels(module);
}

}  // namespace acs_cl
