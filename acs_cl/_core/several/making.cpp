// Launches that come again, for Python.

#include "several/making.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "several/objects.hpp"

namespace acs_cl {

namespace {

// The spans of memory that has a number.
std::vector<Span> numbered(nb::handle spans) {
    std::vector<Span> found;
    each_span(spans, [&](const Span &span) { found.push_back(span); });
    return found;
}

std::vector<Together::One> launches_of(nb::handle launches) {
    std::vector<Together::One> found;
    for (PyObject *one : Items(launches.ptr())) {
        const auto [launch, device, needs, writes] = nb::cast<std::tuple<nb::object, int, nb::object, nb::object>>(nb::handle(one));
        found.push_back({launch, nb::cast<const Prepared &>(launch), device, numbered(needs), numbered(writes)});
    }
    if (found.empty()) throw std::invalid_argument("expected launches");
    return found;
}

void add_clock(nb::module_ &module) {
    nb::class_<Clock>(module, "Clock")
        .def(nb::init<std::size_t>(), "devices"_a)
        .def("runs", [](Clock &self, nb::handle writes, int device, double start_us, double took_us,
                        std::int64_t number) {
            self.runs(numbered(writes), device, start_us, took_us, number);
        }, "writes"_a, "device"_a, "start_us"_a, "took_us"_a, "number"_a = 0)
        .def("ended_us", [](const Clock &self, nb::handle numbers) {
            double ended = 0.0;
            for (PyObject *one : Items(numbers.ptr())) ended = std::max(ended, self.ended_us(whole_number(one)));
            return ended;
        }, "numbers"_a)
        .def("ready_us", [](const Clock &self, nb::handle spans) {
            std::vector<double> ready(self.all_free_us().size(), 0.0);
            each_span(spans, [&](const Span &span) {
                for (std::size_t device = 0; device < ready.size(); device++)
                    ready[device] = std::max(ready[device], self.ready_us(span.base, int(device)));
            });
            return nb::tuple(nb::cast(ready));
        }, "spans"_a)
        .def_prop_ro("free_us", &Clock::all_free_us)
        .def("forget", &Clock::forget, "base"_a, "device"_a);
}

}  // namespace

void add_making(nb::module_ &module) {
    add_clock(module);
    const auto place = [](const std::pair<std::uintptr_t, std::size_t> &of) {
        return DevicePlace{reinterpret_cast<void *>(of.first), of.second};
    };
    nb::class_<Together>(module, "Together")
        .def("__init__", [](Together *self, nb::handle launches) {
            new (self) Together(launches_of(launches));
        }, "launches"_a)
        .def("bring", [](const Together &self, Coherence &coherence, nb::handle links, std::int64_t prefetch) {
            if (self.has_all(coherence)) return nb::list();  // links are only read if something is missing
            return listed(self.bring(coherence, links_of(links), prefetch));
        }, "coherence"_a, "links"_a, "prefetch"_a)
        .def("launch", [](const Together &self, std::size_t first, Coherence &coherence, Clock &clock,
                          nb::handle lanes, double now_us, const std::vector<double> &took_us) {
            std::vector<Queues *> queues;
            for (PyObject *one : Items(lanes.ptr())) queues.push_back(nb::cast<Queues *>(nb::handle(one)));
            return self.launch(first, coherence, clock, queues, now_us, took_us);
        }, "first"_a, "coherence"_a, "clock"_a, "lanes"_a, "now_us"_a, "took_us"_a);
    nb::class_<Stage>(module, "Stage")
        .def(nb::init<PythonHazards &, std::uintptr_t, nb::handle>(), "hazards"_a, "start"_a, "span"_a,
             nb::keep_alive<1, 2>());
    nb::class_<Crossing>(module, "Crossing")
        .def("__init__", [place](Crossing *self, PythonHazards &hazards, bool is_svm,
                                 const std::pair<std::uintptr_t, std::size_t> &source,
                                 const std::pair<std::uintptr_t, std::size_t> &target, std::size_t nbytes,
                                 nb::handle read, nb::handle written) {
            new (self) Crossing(hazards, is_svm, place(source), place(target), nbytes, read, written);
        }, "hazards"_a, "is_svm"_a, "source"_a, "target"_a, "nbytes"_a, "read"_a, "written"_a, nb::keep_alive<1, 2>())
        .def("is_used", &Crossing::is_used)
        .def("launch", &Crossing::launch, "there"_a, "here"_a, "stage"_a, "read"_a, "write"_a)
        .def("write", &Crossing::write, "queues"_a, "stage"_a, "command"_a, "behind"_a, "number"_a);
}

}  // namespace acs_cl
