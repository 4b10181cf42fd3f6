// Several devices, for Python: where bytes are valid, and launches that come again.

#pragma once

#include <nanobind/nanobind.h>

namespace acs_cl {

void add_coherence(nanobind::module_ &module);
void add_making(nanobind::module_ &module);

}  // namespace acs_cl
