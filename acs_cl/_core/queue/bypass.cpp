// Bypass: commands that go to the driver's own queue.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "python/spans.hpp"
#include "python/waiting.hpp"
#include "queue/bypass.hpp"

namespace acs_cl {

namespace {

std::vector<Bypass *> open_bypasses;

void close(Bypass *self) {
    open_bypasses.erase(std::remove(open_bypasses.begin(), open_bypasses.end(), self), open_bypasses.end());
}

bool is_open(const Bypass *self) {
    return std::find(open_bypasses.begin(), open_bypasses.end(), self) != open_bypasses.end();
}

// Returns the commands and seconds of a stretch that has ended. None: it says nothing.
std::optional<std::pair<long long, double>> take_stretch(Bypass &self) {
    if (!self.ends_stretch()) return std::nullopt;
    const double ended = now_s(), began = std::exchange(self.stretch_began, ended);
    const long long commands = std::exchange(self.commands, 0);
    if (std::exchange(self.is_mixed, false) || !began) return std::nullopt;
    return std::pair(commands, ended - began);
}

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
    last = is_plain && waits_first ? nb::borrow(event) : nb::object();
    if (!handle) handle = handle_of(event);
    keep(newest, handle);
    if (--left > 0) return;
    left = behind;
    const bool waits = in_flight && event_status(in_flight) > 0;
    keep(in_flight, handle);
    if (waits && now_s() > rests_until) close(this);
}

bool wait_until_idle(Bypass *bypass) {
    if (bypass->is_idle()) return true;
    const nb::object lives = nb::find(bypass);
    const long long turn = bypass->all;
    void *event = bypass->last.is_valid() ? handle_of(bypass->last.ptr()) : nullptr;
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

Bypass::Bypass(nb::handle of, std::uintptr_t pointer, int commands_behind)
    : queue(of.ptr()), native(reinterpret_cast<void *>(pointer)),
      lock(nb::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject *>(lock_type())))), left(commands_behind),
      behind(commands_behind), waits_first(is_of_own_processor(native)) {
    if (!lock.is_valid()) throw nb::python_error();
}

Bypass::~Bypass() {
    close(this);
    forget_events();
}

void Bypass::open(bool opens) {
    is_mixed |= is_open(this) != opens;
    close(this);
    forget_events();
    left = behind;
    own = nb::find(this).ptr();
    if (opens) open_bypasses.push_back(this);
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
    nb::class_<Bypass>(module, "Bypass")
        .def(nb::init<nb::handle, std::uintptr_t, int>(), "queue"_a, "pointer"_a, "behind"_a)
        .def_prop_rw("takes_more", [](const Bypass &self) { return is_open(&self); }, &Bypass::open)
        .def_prop_rw("sample", [](const Bypass &self) { return self.sample.owner_or_none(); },
                     [](Bypass &self, nb::object sample) { self.sample = std::move(sample); })
        .def("wait_until_idle", [](Bypass &self) {
            const bool is_idle = wait_until_idle(&self);
            if (PyErr_Occurred()) throw PythonError();
            return is_idle;
        })
        .def("take_stretch", take_stretch)
        .def_prop_ro("has_ended", &Bypass::has_ended)
        .def_ro("lock", &Bypass::lock)
        .def_rw("passed", &Bypass::passed)
        .def_rw("commands", &Bypass::commands)
        .def_rw("least_commands", &Bypass::least_commands)
        .def_rw("wanted", &Bypass::wanted)
        .def_rw("satisfied", &Bypass::satisfied)
        .def_rw("began", &Bypass::began)
        .def_rw("rests_until", &Bypass::rests_until)
        .def_rw("is_mixed", &Bypass::is_mixed)
        .def_rw("waits_first", &Bypass::waits_first);
}

}  // namespace acs_cl
