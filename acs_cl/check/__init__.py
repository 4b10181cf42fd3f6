"""Checks: proof that what a program declares is what it does, at a cost, while it runs.

In: the launches of a runtime made with `check=`. Out: a `CheckError` that names launch, kernel,
argument, byte and line, or a `CheckWarning`. A file for each kind of check, `checker` puts them
together, and `memory` knows which bytes there are. Nothing here is loaded where nothing is checked.
"""
