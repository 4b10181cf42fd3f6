// Launches that come again, for Python.

#include "several/making.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include "several/several.hpp"

namespace acs_cl {

using namespace nb::literals;

void add_making(nb::module_ &module) {
    const auto place = [](const std::pair<std::uintptr_t, std::size_t> &of) {
        return DevicePlace{reinterpret_cast<void *>(of.first), of.second};
    };
    nb::class_<Prepared>(module, "Prepared")
        .def(nb::init<PythonHazards &, nb::object, nb::handle>(), "hazards"_a, "command"_a, "access"_a,
             nb::keep_alive<1, 2>())
        .def_prop_ro("is_plain", &Prepared::is_plain)
        .def("launch", &Prepared::launch, "queues"_a);
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
        .def("read", &Crossing::read, "queues"_a, "stage"_a, "command"_a)
        .def("write", &Crossing::write, "queues"_a, "stage"_a, "command"_a, "behind"_a, "number"_a);
}

}  // namespace acs_cl
