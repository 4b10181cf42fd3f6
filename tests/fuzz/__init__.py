"""Random programs: data that NumPy and acs_cl both run, so that results can be compared bit by bit.

A program is a list of steps, each a name and a few bytes. The bytes are numbers taken modulo
whatever they index, so every program is valid and shrinks well. In the order in which a program
passes: `views` (what memory there is), `kernels` (what launches do, in both languages), `steps`
(from bytes to calls of a machine), `oracle` (NumPy, in program order), `machine` (a runtime),
`runtimes` (every configuration), `worker` (a process that runs many).
"""
