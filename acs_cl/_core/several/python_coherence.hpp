// Coherence for Python.

#pragma once

#include <nanobind/nanobind.h>

namespace acs_cl {

void add_coherence(nanobind::module_ &module);

}  // namespace acs_cl
