"""Checks: they compare what launches do with what the program declares, while it runs, at a cost.

Input: the launches of a runtime made with `check=`. Output: a `CheckError` that names launch,
kernel, argument, byte and line, or a `CheckWarning`. Each kind of check has its file. `checker`
joins them, and `memory` knows which bytes there are. A program without checks loads none of these
modules.
"""
