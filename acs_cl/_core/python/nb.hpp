// nanobind, by the names that it has here.

#pragma once

#include <nanobind/nanobind.h>

namespace acs_cl {

namespace nb = nanobind;
using namespace nb::literals;

}  // namespace acs_cl
