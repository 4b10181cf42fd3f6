// What PyOpenCL's functions and setters are replaced by while there is an `acs.Queue`, where that is
// called often: commands that go to the driver's own queue as they are, and what a kernel was given.
// Types of Python's own kind, as for launches.
//
// A call that is not plain, for whatever reason, goes on to its twin in Python (acs_cl/passing.py and
// acs_cl/interception.py), which knows every case and every error, and finds everything as it was.

#pragma once

#include <nanobind/nanobind.h>

namespace acs_cl {

void add_passing(nanobind::module_ &module);

}  // namespace acs_cl
