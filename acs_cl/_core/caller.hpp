// What a kernel inherits from, so that a plain launch of it is made here, and what a handle does:
// types of Python's own kind, since they are called and made more often than all others.
//
// A call that is not plain, for whatever reason, goes on to `_call` in Python, which knows every
// case and every error, and finds everything as it was.

#pragma once

#include <nanobind/nanobind.h>

namespace acs_cl {

void add_caller(nanobind::module_ &module);

}  // namespace acs_cl
