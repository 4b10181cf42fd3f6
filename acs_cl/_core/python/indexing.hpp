// Shapes, strides and bytes of views, and arithmetic on spans.

#pragma once

#include "python/spans.hpp"

namespace acs_cl {

void add_indexing(nb::module_ &module);

}  // namespace acs_cl
