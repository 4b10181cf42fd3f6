// Bypass: commands that go to a queue of the driver as they are.

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
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
        if (bypass->member(queue)) return bypass->takes_this_thread() ? bypass : nullptr;
    return nullptr;
}

bool Bypass::is_joint_event(void *event) const {
    void *queue = nullptr;
    return joint && !driver.event_info(event, EVENT_QUEUE, sizeof(queue), &queue, nullptr) && queue == joint;
}

void Bypass::leave(std::uint32_t number) {
    const auto is_it = [number](const Member &one) { return one.number == number; };
    members.erase(std::remove_if(members.begin(), members.end(), is_it), members.end());
    if (!is_joint() || members.empty()) close(this);
    driver.flush(native);  // as the end of a driver's queue does
}

void Bypass::count(const Passing &command, PyObject *event, void *handle) {
    passed++;
    commands++;
    all++;
    if (!handle) handle = handle_of(event);
    Member *const from = member(command.queue);  // null: it is gone by now
    if (from) from->passed++;
    if (from && is_joint()) {
        if (handle) makers[handle] = from->number;
        const bool is_next = newest_queue == command.queue && (from->is_in_order || newest_holds);
        if (!command.follows && !is_next && newest && event_status(newest) > 0) apart++;
        newest_event = event;
        newest_queue = command.queue;
        newest_holds = command.holds;
    }
    // an event of a transfer holds memory of the program, and waits in its destructor
    const bool is_plain = reinterpret_cast<PyObject *>(Py_TYPE(event)) == acs_cl::events.plain;
    if (is_plain) recent.add(event);
    last = is_plain && waits_first ? nb::borrow(event) : nb::object();
    keep(newest, handle);
    if (--left > 0) return;
    left = behind;
    const bool waits = in_flight && event_status(in_flight) > 0;
    keep(in_flight, handle);
    const bool are_apart = std::exchange(apart, 0) > most_apart;
    if ((waits || are_apart) && now_s() > rests_until) close(this);
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

Bypass::Bypass(std::uintptr_t pointer, int commands_behind, int apart)
    : native(reinterpret_cast<void *>(pointer)),
      lock(nb::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject *>(lock_type())))), left(commands_behind),
      behind(commands_behind), most_apart(apart), waits_first(is_of_own_processor(native)) {
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
    using Taken = std::tuple<nb::handle, std::uint32_t, bool>;
    nb::class_<Bypass>(module, "Bypass")
        .def(nb::init<std::uintptr_t, int, int>(), "pointer"_a, "behind"_a, "most_apart"_a)
        .def("go_to", [](Bypass &self, std::uintptr_t pointer, const std::vector<Taken> &members) {
            self.native = reinterpret_cast<void *>(pointer);
            self.stand_in.reset();
            self.thread = 0;
            self.members.clear();
            for (const auto &[queue, number, is_in_order] : members)
                self.members.push_back({queue.ptr(), number, is_in_order});
        }, "pointer"_a, "members"_a)
        .def("join_in", [](Bypass &self, nb::object stand_in) {
            self.joint = self.native;
            self.stand_in = std::move(stand_in);
            self.thread = PyThread_get_thread_ident();
        }, "stand_in"_a)
        .def("leave", &Bypass::leave, "number"_a)
        .def("takes", [](Bypass &self, nb::handle queue) { return self.member(queue.ptr()) != nullptr; }, "queue"_a)
        .def("shares", [](const Bypass &self) {
            std::vector<std::uint32_t> numbers;
            for (const Member &one : self.members)
                if (one.passed) numbers.push_back(one.number);
            return numbers;
        })
        .def("maker", [](const Bypass &self, std::uintptr_t event) {
            const auto found = self.makers.find(reinterpret_cast<void *>(event));
            return found == self.makers.end() ? 0u : found->second;
        }, "event"_a)
        .def("is_under_way", [](const Bypass &self, std::uintptr_t event) {
            return self.is_under_way(reinterpret_cast<void *>(event));
        }, "event"_a)
        .def_rw("most_apart", &Bypass::most_apart)
        .def_prop_ro("is_joint", &Bypass::is_joint)
        .def_prop_ro("takes_this_thread", &Bypass::takes_this_thread)
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
