"""GrCUDA's six workloads with their transfers: a step writes all inputs and reads its outputs back.

Input: a workload of the pipelines, and the platform of its program. Output: the same with transfers
in each step. An input is uploaded right before the first launch that takes it. Each output is read
when all is launched, as GrCUDA's programs do: one element, or all of it.

Values are either in pinned memory, where the program has put them, or in ordinary memory. Pinned
memory corresponds to the managed memory of GrCUDA's programs. Ordinary memory may be changed
directly after the call of the upload. An expert uploads on the queue of the launch, or has a queue
for all uploads.

Invariant: the program, its sizes and its reference are the workload's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.few_groups import Few, Most
from acs_cl.benchmarks.workloads.expert import Queues, Token
from acs_cl.benchmarks.workloads.workload import Results
from acs_cl.devices.driver import wait_for_pinned

FULL = 1 << 30
"""Groups of a launch that is not cut."""
ELEMENT, ALL = "element", "all"
"""The part of each output that is read."""


class Moved(Few):
    """A platform that uploads the arrays made with values in each step."""

    def __init__(self, platform: Any, most: Most, pinned: bool) -> None:
        super().__init__(platform, most)
        self._pinned = pinned
        self._wiped: list[Any] = []
        self._inputs: dict[int, tuple[Any, Any]] = {}
        self._left: dict[int, tuple[Any, Any]] = {}
        self._kept: list[Any] = []
        """PyOpenCL's objects of transfers under way: dropping one waits for it."""
        self._landings: dict[str, list[tuple[Any, Any]]] = {}
        self.is_ours = isinstance(platform, acs.Runtime)

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Make an input."""
        array = self._platform.array(values, dtype)
        host = self._host(array.shape, array.dtype)
        host[...] = values
        self._inputs[id(array)] = array, host
        self._wiped.append(array)
        return array

    def begin(self) -> None:
        """Begin a step, without any inputs."""
        self._left = dict(self._inputs)
        self._kept.clear()

    def call(self, whole: Any, global_size: Any, local_size: Any, args: tuple[Any, ...]) -> Any:
        """Launch, behind the uploads of inputs that no earlier launch took."""
        for arg in args:
            one = self._left.pop(id(arg), None)
            if one is not None:
                self._upload(*one)
        return super().call(whole, global_size, local_size, args)

    def read_back(self, outputs: Sequence[Any], reads: str) -> None:
        """Read the wanted part of each output."""
        for array, host in self.landings(outputs, reads):
            if self.is_ours:
                array.get(host, wait=False)
            else:
                queue = self._platform.queue
                self._kept.append(cl.enqueue_copy(queue, host, array.buffer, is_blocking=False))

    def wipe(self) -> None:
        """Forget the values of all inputs, for a check that a step brings them."""
        for array in self._wiped:
            array.fill(0)

    def forget(self) -> None:
        """Leave the first input out, to test that this is noticed."""
        self._inputs.pop(min(self._inputs, key=lambda one: -self._inputs[one][0].nbytes))

    def landings(self, outputs: Sequence[Any], reads: str) -> list[tuple[Any, Any]]:
        """Return the part of each output to read, and its target."""
        if reads not in self._landings:
            self._landings[reads] = found = []
            for output in outputs:
                flat = output.reshape(output.nbytes // output.dtype.itemsize)
                shape = flat.shape if reads == ALL else (1,)
                part = flat[:1] if self.is_ours and reads == ELEMENT else flat
                found.append((part, self._host(shape, flat.dtype)))
        return self._landings[reads]

    def _upload(self, array: Any, host: Any) -> None:
        if self.is_ours:
            array.set(host, copy=not self._pinned)
        else:
            queue = self._platform.queue
            how = not self._pinned
            self._kept.append(cl.enqueue_copy(queue, array.buffer, host, is_blocking=how))

    def _host(self, shape: Any, dtype: Any) -> Any:
        if not self._pinned:
            return np.empty(shape, dtype)
        if self.is_ours:
            return self._platform.pinned(shape, dtype)
        return wait_for_pinned(self._platform.queue, shape, dtype)


class MovedByHand(Moved):
    """The platform of an expert with transfers. `lanes`: queues for launches; one more is for
    uploads."""

    def __init__(self, platform: Queues, most: Most, lanes: int, apart: bool) -> None:
        super().__init__(platform, most, pinned=True)
        self._many, self._uploads_on = lanes, lanes if apart else None
        self._tokens: dict[int, Token] = {}

    def begin(self) -> None:
        """Begin a step."""
        super().begin()
        self._tokens.clear()

    def launch(
        self, kernel: Any, global_size: Any, local_size: Any, *args: Any,
        after: Sequence[Token] = (), on: int = 0,
    ) -> Token:  # fmt: skip
        """Launch, behind `after` and the uploads of all inputs that it takes."""
        on %= self._many
        for arg in args:
            one = self._left.pop(id(arg), None)
            if one is not None:
                where = on if self._uploads_on is None else self._uploads_on
                self._tokens[id(arg)] = self._platform.write(*one, on=where)
        uploads = [self._tokens[id(arg)] for arg in args if id(arg) in self._inputs]
        behind = [*after, *uploads]
        token: Token = super().launch(kernel, global_size, local_size, *args, after=behind, on=on)
        self._tokens |= {id(arg): token for arg in args if id(arg) not in self._inputs}
        return token

    def read_back(self, outputs: Sequence[Any], reads: str) -> None:
        """Read each output behind the last launch that has it."""
        for output, (array, host) in zip(outputs, self.landings(outputs, reads), strict=True):
            token = self._tokens[id(output)]
            self._kept.append(self._platform.read(array, host, after=[token], on=token.lane))


class Moving:
    """A run whose steps have transfers. `reads`: the part of each output that they read."""

    def __init__(self, platform: Moved, run: Any, reads: str = ELEMENT) -> None:
        self._platform, self._run, self._reads = platform, run, reads
        self.reset, self.results = run.reset, run.results

    def reading(self, reads: str) -> Moving:
        """Return the same run with another part to read."""
        return Moving(self._platform, self._run, reads)

    def step(self) -> None:
        """Make one step: inputs, launches, outputs."""
        self._platform.begin()
        self._run.step()
        self._platform.read_back(self._run.outputs(), self._reads)

    def checked(self) -> Results:
        """Return the results of a step that has only its uploads. Empty: it has not read all."""
        self.reset()
        self._platform.wipe()
        outputs = self._run.outputs()
        for reads in (ELEMENT, ALL):
            self.reset()
            self._platform.finish()
            self.reading(reads).step()
            self._platform.finish()
            landed = self._platform.landings(outputs, reads)
            for output, (_, host) in zip(outputs, landed, strict=True):
                if not np.array_equal(host, output.get().reshape(-1)[: host.size]):
                    return {}
        results: Results = self.results()
        return results
