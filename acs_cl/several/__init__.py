"""Several devices: one program order, one hazard index, and arrays that can be on each of them.

Input: launches that name arrays. Output: launches on one of the devices, behind copies of the bytes
that are missing there. A runtime with one device uses nothing of this package. `team` chooses the
devices and opens them, with what `links` knows of the cost of copies between them.

A launch passes through these modules:

1. `engine` takes it under the lock. All that follows happens for it, one launch after another.
2. `known_launches` finds what was found out when the same launch came before. A new one is cut by
   `device_parts`, if it might run in parts on all devices.
3. `step_plans` says where it runs, if it is of a step that the program repeats: on a device, in
   parts, or whole on each device. `steps` recognises such a step and times ways to run it.
4. `placer` else chooses a device by one of the `policies`. It asks the `model` where bytes are and
   when they are ready, and `kernel_times` how long the kernel takes.
5. `device_commands` makes the command of that device, with its own kernel and `memory`.
6. `copies` brings what the device lacks: `copies_at_once` while the program waits, or
   `copies_launched` in two launches.
7. `backend` sends it to the lanes of its device, and `arrays` notes who has what it writes.

A replay of a graph has most of this behind it: `placed_runs` keeps launches with their devices and
the copies between them.
"""
