"""Say whether another library has put its own tasks in the place of Python's threads.

gevent and eventlet do, if asked to. Such tasks take turns in one thread. A wait for the device
stops all of them, and the core takes them for one caller: it would let one of them into what
another one has locked. So acs_cl starts no thread then.
"""

from __future__ import annotations

import sys

from ..errors import UsageError

LIBRARIES = (
    ("gevent.monkey", "is_module_patched", "threading", "monkey.patch_all(thread=False)"),
    ("eventlet.patcher", "is_monkey_patched", "thread", "monkey_patch(thread=False)"),
)
"""How each one is asked, and how it is told to keep Python's threads."""


class ReplacedThreadsError(UsageError, RuntimeError):
    """Says which library it was. It is handled as if no thread could be started."""


def need_threads(what: str) -> None:
    """Raise a `UsageError` if another library has replaced Python's threads."""
    for module, question, name, advice in LIBRARIES:
        library = sys.modules.get(module)
        if library is not None and getattr(library, question)(name):
            raise ReplacedThreadsError(
                f"{what}: it needs a thread, and {module.split('.')[0]} has replaced those of "
                f"Python; write {advice}"
            )
