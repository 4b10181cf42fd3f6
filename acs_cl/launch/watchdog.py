"""The watchdog: if nothing ends, it says what runs and what launches wait for.

Input: the books of a runtime, and how long nothing has to end. Output: a report on stderr, once for
each stall, and `StalledError` with the same text in every call that waits.

Only a runtime that asks for one has a watchdog. Its thread looks at counters. It takes the lock
only after nothing has ended for long enough, to poll.

Invariant: anything that ends, or moves on the device, is no stall, so a report is true when it is
made. Time in which the program had no processor does not count, up to a bound. Neither does time in
which its looks did not come, as that of a program that was stopped and goes on. Launches that wait
for events which the program itself will set are a stall only if the program waits for them.
"""

from __future__ import annotations

import weakref
from time import perf_counter

import pyopencl as cl

from ..devices import driver
from ..errors import StalledError
from ..host.output import say
from ..host.starved import starved_s, waited_s
from ..host.threads import Clock
from ..records import Launch
from .books import Books, promised
from .ends import pump
from .foreign_events import all_held
from .waits import NAMED, named

LOOKS = 8
"""How often it looks in the time after which it reports."""

MOST = 10
"""How many times longer it waits at most, if other processes use all the processors."""

STATES = {
    3: "is with the driver",
    2: "is with the device, and runs if that has begun it",
    1: "runs",
}
"""By the status of its event. NVIDIA's driver tells of no kernel that it runs."""


class Watchdog:
    """Watches one runtime. `seconds`: how long nothing may end."""

    def __init__(self, books: Books, seconds: float) -> None:
        self.seconds = seconds
        self.starved_s, self.most = starved_s, MOST
        """How long a thread had no processor, and the bound. Tests set them."""
        self.text = ""
        """The report, while nothing ends."""
        self._books = weakref.ref(books)
        self._reported = 0.0
        self._since = self._asked = self._looked = perf_counter()
        self._ended = -1
        """How many had ended at the last look."""
        self._waited: dict[str, float] | None = None
        """How long threads had waited for a processor when the quiet began."""
        self._inside: bytes | None = None
        """The words of the oldest epoch in the middle of the time. None: not read yet."""
        self._clock = Clock("acs_cl watchdog", seconds / LOOKS, self.look)

    def start(self) -> None:
        """Watch from now on."""
        self._clock.start()

    def stop(self) -> None:
        """Watch no longer: the runtime is closed. Its thread ends at once."""
        self._clock.close()

    def look(self) -> bool:
        """Report if nothing has ended for too long. False: the runtime is gone."""
        books = self._books()
        if books is None or books.state:
            return False
        if not len(books.table) or books.table.ended != self._ended:
            self._moved(books)
            return True
        self._leave_out_a_stop()
        quiet_s = perf_counter() - self._since
        if self._waited is None:
            self._waited = waited_s()
        if quiet_s >= self.seconds and not self.text:
            left = self.most * self.seconds - quiet_s
            if left <= 0 or quiet_s - self.starved_s(self._waited) >= self.seconds:
                self._look_closely(books)
        elif quiet_s >= self.seconds / 2 and self._inside is None:
            with books.lock:
                found = books.backend.snapshot()
            self._inside = found.words if found is not None else b""
        return True

    def _leave_out_a_stop(self) -> None:
        """Leave out the time since the last look, if this one comes much too late: the program was
        stopped (Ctrl-Z, a debugger), and so was what it runs on its processor."""
        now = perf_counter()
        late = now - self._looked - self.seconds / LOOKS
        if late > self.seconds / 2:
            self._since = min(self._since + late, now)
        self._looked = now

    def _moved(self, books: Books) -> None:
        self._ended, self._since = books.table.ended, perf_counter()
        self._looked = self._since
        self._inside, self._waited, self.text = None, None, ""

    def _look_closely(self, books: Books) -> None:
        """Poll, and report if the oldest epoch has not moved either."""
        with books.lock:
            pump(books)
            if perf_counter() - self._asked > self.seconds / 2 and all_held(books, promised()):
                return  # the program does something else and does not wait
            found = books.backend.snapshot()
            inside = found.words if found is not None else b""
            if not len(books.table) or books.table.ended != self._ended or inside != self._inside:
                self._moved(books)
                return
            text = report(books, self.seconds, found.lines if found is not None else ())
        say(text)
        self._reported, self.text = perf_counter(), text

    def bark(self, began: float) -> None:
        """Raise the report in a call that waits since `began`. The report was made since then, or
        the call has waited as long itself."""
        self._asked = perf_counter()
        if self.text and (self._reported >= began or perf_counter() - began >= self.seconds):
            raise StalledError(self.text)

    def wait(self, books: Books, event: cl.Event, seconds: float) -> None:
        """Wait as `Lock.wait` does, and raise the report if there is one."""
        began = perf_counter()
        while driver.status(event) > 0:
            self.bark(began)
            left = self.seconds / LOOKS
            if seconds >= 0:
                left = min(left, seconds - (perf_counter() - began))
            if left <= 0:
                return
            books.lock.wait(event.int_ptr, left)


def report(books: Books, seconds: float, inside: tuple[str, ...]) -> str:
    """Describe what a runtime does at the moment. `inside`: lines about epochs of the scheduler.
    Called under the lock."""
    launches = books.table.later(0)
    lines = [
        f"acs_cl: nothing has ended for {seconds:g} s; launches in flight: {len(launches)} "
        f"({books!r})"
    ]
    shown = 0
    for launch in launches:
        if books.table.epoch(launch.number):
            continue
        if shown == NAMED:
            lines.append("  and others")
            break
        lines.append(f"  {named(launch)} {_does(books, launch)}")
        shown += 1
    lines += inside
    return "\n".join(lines)


def _does(books: Books, launch: Launch) -> str:
    """Say what a launch does or waits for."""
    table, number = books.table, launch.number
    if events := books.foreign.get(number):
        return f"waits for events given by wait_for= that have not come: {len(events)}"
    above = [table.launch(one) for one in table.blockers(number)]
    if not above:
        above = [found for one in launch.upstream if (found := table.launch(one)) is not None]
    waits = ", ".join(map(named, above[:NAMED]))
    if table.state(number) != "executing":
        return f"waits for {waits}" if waits else "waits for room in the window"
    if launch.command.on_host:
        return "runs on a thread of the host"
    event = books.backend.event(number)
    state = STATES.get(driver.status(event), "has ended") if event is not None else ""
    if state == "runs" or not waits:
        return state or STATES[2]
    return f"waits for {waits}"
