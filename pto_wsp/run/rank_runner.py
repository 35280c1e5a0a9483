"""Run one rank's part of a plan in NumPy, with the copies of other ranks over MPI.

Tasks run one after another in program order. A send never waits, so ranks cannot wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pto_wsp.run.bound import Array, Bindings
from pto_wsp.run.interpreter import Interpreter, placed_array
from pto_wsp.run.orchestrator import TaskInstance
from pto_wsp.run.rank_share import RankShare


class RankRunner(Interpreter):
    """Runs the tasks of this process's rank."""

    def __init__(self, part: RankShare, *, check_finite: bool = False) -> None:
        super().__init__(part.plan, check_finite=check_finite)
        self.part, self.peers = part, part.peers
        self.sent = np.zeros(part.peers.n, np.int64)       # bytes of copies to each rank, in the last run
        self._done, self._runs = 0, -1                     # tasks that have ended, the site of the one that runs
        self._free = {site: free for site, task in part.sites.items() if (free := part.free_axes(task))}
        part.check_tag(part.plan.n_sites - 1)

    def apart(self) -> Interpreter:
        """Return a runner of the same part, whose runs do not affect this one."""
        runner = RankRunner(self.part, check_finite=self._check_finite)
        runner.look_first = self.look_first
        return runner

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Run this rank's tasks. On each rank: the error of one rank ends the run of all.

        Raises: M106 for a failure of another rank, M107 for ranks that differ, and the errors of a run.
        """
        self.sent[:] = 0
        self._done = 0
        self.peers.turn = self._tick
        with self.part.together(bindings), self.peers.beating(self._computes):
            super().run(bindings, order_seed)

    def run_task(self, number: int, task: TaskInstance, bindings: Bindings, memory: Mapping[int, Array]) -> None:
        """Run one task, or this rank's side of a copy; nothing for a task of other ranks.

        Raises: R101 for a failed guard, M106 where a message does not come.
        """
        part, rank = self.part, self.part.rank
        free = self._free.get(task.submit.site)
        if free is not None:
            if task.rank == part.first_of_copies(free):
                self._run_own(number, self._own_copy(task, free, bindings), bindings, memory)
        elif task.source in (-1, task.rank):
            if task.rank == rank:
                self._run_own(number, task, bindings, memory)
                self._spread(task, bindings)
        elif task.source == rank:
            given = self._region(task, 0, bindings, memory)
            if given.size:
                self.sent[task.rank] += given.nbytes
                self.peers.send(task.rank, task.submit.site, given.tobytes())
        elif task.rank == rank:
            room = self._region(task, 1, bindings, memory)
            if room.size:
                part.say_where(task.submit.site, task.source, task.rank)
                data = self.peers.receive(task.source, task.submit.site, room.nbytes)
                room[...] = np.frombuffer(data, room.dtype).reshape(room.shape)
                self._spread(task, bindings)

    def _computes(self) -> tuple[int, str] | None:
        return None if self._runs < 0 else (self._done, self.part.shown_task(self._runs))

    def _run_own(self, number: int, task: TaskInstance, bindings: Bindings, memory: Mapping[int, Array]) -> None:
        self._runs = task.submit.site
        try:
            super().run_task(number, task, bindings, memory)
        finally:
            self._done, self._runs = self._done + 1, -1

    def _region(self, task: TaskInstance, which: int, bindings: Bindings, memory: Mapping[int, Array]) -> Array:
        """Return the source (0) or the target (1) of a copy, as many elements as both have."""
        view = task.views[which]
        rows, cols = (min(one) for one in zip(task.views[0].extent, task.views[1].extent, strict=True))
        base = bindings.arrays[view.slot] if view.fresh is None else memory[view.fresh]
        return placed_array(base, replace(view, extent=(rows, cols)))

    def _own_copy(self, task: TaskInstance, free: tuple[int, ...], bindings: Bindings) -> TaskInstance:
        """Return the task that copies the first rank's copy to the array, with this rank's own copy."""
        source, target = task.views
        copies = bindings.arrays[source.slot]
        step = self.part.copy_number(free) * (copies.strides[0] // copies.itemsize)
        return replace(task, views=(replace(source, offset=source.offset + step), target))

    def _spread(self, task: TaskInstance, bindings: Bindings) -> None:
        """Give all copies of what control reads this rank's contents: it reads any rank's."""
        for slot in {view.slot for view in task.views}.intersection(self.part.spread):
            copies = bindings.arrays[slot]
            copies[...] = copies[self.part.rank]
