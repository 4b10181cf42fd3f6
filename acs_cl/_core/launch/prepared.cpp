// Launches that come again, for Python.

#include "launch/prepared.hpp"

#include <nanobind/stl/vector.h>

#include "launch/caller.hpp"

namespace acs_cl {

void add_prepared(nb::module_ &module) {
    nb::class_<Prepared>(module, "Prepared")
        .def(nb::init<PythonHazards &, nb::object, nb::handle>(), "hazards"_a, "command"_a, "access"_a,
             nb::keep_alive<1, 2>())
        .def_prop_ro("is_plain", &Prepared::is_plain)
        .def("launch", &Prepared::launch, "queues"_a);
    nb::class_<Series>(module, "Series")
        .def("__init__", [](Series *self, nb::tuple launches) {
            std::vector<const Prepared *> found;
            for (nb::handle one : launches) found.push_back(nb::cast<const Prepared *>(one));
            new (self) Series(std::move(found));
        }, "launches"_a, nb::keep_alive<1, 2>())
        .def("launch", &Series::launch, "first"_a, "most"_a, "queues"_a);
}

}  // namespace acs_cl
