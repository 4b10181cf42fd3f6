"""A step of a rigid body on the only OpenCL device there is: for Oclgrind, which counts.

`python count_steps.py WORKLOAD`
"""

from __future__ import annotations

import sys

from acs_cl import devices
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.benchmarks.workloads.bare import InOrder

workload = catalogue()[sys.argv[1]]
platform = InOrder(devices.choose())
assert workload.host_decided is not None
run = workload.host_decided(platform, workload.presets["tiny"], 0)
run.reset()
run.step()
platform.finish()
