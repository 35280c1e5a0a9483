"""Run one rank's part of an artifact natively: workers run kernels while one thread moves copies over MPI, or one thread does both.

The engine (csrc/src/engine/ranks.c) hands over copies that are ready, and is told which have ended; a copy that an earlier run of the same
tasks has begun, it begins itself. Copies between two ranks are numbered
in program order, on both alike: the number is the tag, so a receive is posted when its memory is free, whatever else is under way.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import Any

import numpy as np

from pto_wsp.ir import kernel as k
from pto_wsp.run.bound import Array, Bindings
from pto_wsp.run.interpreter import memory_at
from pto_wsp.run.native import Engine, default_threads
from pto_wsp.run.peers import Patience, Transfers, mpi_error, request_functions
from pto_wsp.run.rank_runner import RankRunner
from pto_wsp.run.rank_share import RankShare, not_over_mpi
from pto_wsp.source import UNKNOWN

_LOOKED_AT = 64             # copies under way, for whom this rank waits
_MOVES = {"copy_part", "add_part", "max_part", "min_part"}


class RankEngine(Engine):
    """Runs the tasks of this process's rank. `threads`: the workers, and this thread, which is the only one if no task needs another."""

    def __init__(self, engine: Engine, part: RankShare, threads: int | None) -> None:
        """Create an engine for the artifact of another one."""
        workers = threads or (default_threads() if "PTO_WSP_THREADS" in os.environ else part.peers.threads)
        alone = workers == 1 and part.peers.may_beat_beside      # else a long task would keep this thread from saying that it takes part
        super().__init__(engine.artifact, engine.plan, 1 if alone else workers + 1, engine.max_tasks, wall_trace=engine.watches_clock)
        self.part = part
        self._whole, self._asked = engine, threads
        self._transfers = Transfers(part.peers)
        self._patience = Patience(part.peers, self._whom)
        self.sent: Array = np.zeros(part.peers.n, np.int64)       # bytes of copies to each rank, in the last run
        self._places: dict[int, tuple[int, int, int]] = {}      # of copies of this run, by node: site, source, target
        self._problem: BaseException | None = None
        self.oracle = lambda check_finite: RankRunner(part, check_finite=check_finite)
        self._set_up()

    def _set_up(self) -> None:
        ffi, plan, part = self.runtime.ffi, self.plan, self.part
        self._free = {site: free for site, task in part.sites.items() if (free := part.free_axes(task))}
        self._own_rank = ffi.new("int32_t[]", [-1] * max(1, plan.n_sites))
        for site, free in self._free.items():
            self._own_rank[site] = part.first_of_copies(free)
        self._shift = ffi.new("int64_t[]", max(1, plan.n_sites))
        self._spread_rows = ffi.new("pto_spread[]", max(1, len(part.spread)))
        self._is_move = ffi.new("uint8_t[]", [int(_is_move(use.kernel)) for use in plan.kernels] or [0])
        self._progress = ffi.callback(dict(ffi.typeof("pto_ranks_options").fields)["progress"].type, self._turn_safely)
        functions = request_functions()
        mpi = {} if functions is None else {
            "start": ffi.cast("pto_start_fn", functions.start), "test": ffi.cast("pto_test_fn", functions.test),
            "request_bytes": functions.request_bytes, "status_bytes": functions.status_bytes}
        options = ffi.new("pto_ranks_options *", {
            "rank": part.rank, "n_ranks": part.mesh.size, "is_move": self._is_move,
            "own_rank": self._own_rank if self._free else ffi.NULL, "own_shift_bytes": self._shift if self._free else ffi.NULL,
            "spread": self._spread_rows, "n_spread": len(part.spread), "progress": self._progress, "spin_ns": part.peers.spin_ns,
            "sent_bytes": ffi.cast("int64_t *", self.sent.ctypes.data), **mpi})
        self._can_keep = functions is not None
        raw = self.runtime.lib.pto_ranks_new(options)
        if raw == ffi.NULL:
            raise MemoryError("no memory for the ranks of a mesh")
        self._ranks = ffi.gc(raw, self.runtime.lib.pto_ranks_free)

    def apart(self) -> Engine:
        """Return an engine of the same part with its own record, whose runs do not affect this engine."""
        engine = RankEngine(self._whole, self.part, self._asked)
        engine.look_first = self.look_first
        return engine

    def to_look_at(self, bindings: Bindings) -> Engine:
        """Return an engine whose record has the tasks of all ranks, as graph, trace and statistics show them."""
        if not self._free or self._waits:
            return self
        self._whole.record_only(bindings)
        self._whole._wall = self._wall
        return self._whole

    # -- runs ----------------------------------------------------------------------------------------------------------

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Run this rank's tasks. On each rank: the error of one rank ends the run of all.

        Raises: M106 for a failure of another rank, M107 for ranks that differ, and the errors of a run.
        """
        if threading.current_thread() is not threading.main_thread() and not self.part.peers.may_leave_main_thread:
            raise not_over_mpi("this MPI is for the main thread alone", expected="run(), on the main thread",
                               help='execute() needs mpi4py.rc.thread_level = "multiple"')
        self.part.peers.turn = self._say_where
        for site, free in self._free.items():
            copies = bindings.arrays[self.part.sites[site].places[0].slot]
            self._shift[site] = self.part.copy_number(free) * copies.strides[0]
        for row, slot in zip(self._spread_rows, self.part.spread, strict=False):
            row.data = self.runtime.ffi.cast("char *", bindings.arrays[slot].__array_interface__["data"][0])
            row.copy_bytes = bindings.arrays[slot].strides[0]
        if self._transfers.is_new(self.recorder.generation):
            self.runtime.lib.pto_ranks_forget(self._ranks)
        self._problem = None
        with self.part.together(bindings), self.part.peers.beating(self._computes, self.cancel):
            try:
                super().run(bindings)
            except KeyboardInterrupt:
                code = self.runtime.lib.pto_ranks_error(self._ranks)
                self._problem = mpi_error(code) if code else self._problem
                self.part.peers.listen()               # what another thread has heard, and has interrupted this run for
                if self._problem is None:
                    raise
                raise self._problem from None
            finally:
                opened = self._opened(None)
                if opened or self._transfers.ranks:
                    self._transfers.take_back([transfer.key for transfer in opened], bindings.arrays)
                    self.runtime.lib.pto_ranks_forget(self._ranks)

    def _turn_safely(self, user: Any, ready: Any, n_ready: int, ended: Any, idle_ns: int) -> int:
        del user
        try:
            return self._turn(ready, n_ready, ended, idle_ns)
        except BaseException as problem:   # an exception cannot pass through C: raised after the run
            self._problem = problem
            return -1

    def _turn(self, ready: Any, n_ready: int, ended: Any, idle_ns: int) -> int:
        """Begin copies that are ready, and return how many of those begun here have ended; pass a short time if this rank is idle."""
        transfers = self._transfers
        for number in range(n_ready):
            self._begin(ready[number])
        done = transfers.ended()
        if idle_ns and not done:
            self._patience.wait(idle_ns * 1e-9)
            done = transfers.ended()
        else:
            self._patience.look()
        for number, node in enumerate(done):
            ended[number] = node
        return len(done)

    def _opened(self, most: int | None) -> list[Any]:
        """Return the oldest copies that the engine has begun and that are under way."""
        found = self.runtime.ffi.new("pto_transfer const **")
        n = self.runtime.lib.pto_ranks_under_way(self._ranks, found)
        return [found[0][at] for at in range(n if most is None else min(n, most))]

    def _whom(self) -> tuple[int, ...] | None:
        return tuple(sorted(self._transfers.ranks | {transfer.peer for transfer in self._opened(_LOOKED_AT)})) or None

    def _computes(self) -> tuple[int, str] | None:
        """Return the number of tasks that have ended, and a task that runs; None if none does."""
        site = self.runtime.lib.pto_ranks_runs(self._ranks)
        return None if site < 0 else (self.n_run(), self.part.shown_task(site))

    def _begin(self, transfer: Any) -> None:
        """Begin one copy: in place where its elements stand one behind the other, else through contiguous memory."""
        node, peer, tag, receives = transfer.node, transfer.peer, transfer.order, bool(transfer.receives)
        self.part.check_tag(tag)
        self._places[node] = (transfer.site, peer, self.part.rank) if receives else (transfer.site, self.part.rank, peer)
        if transfer.bytes:
            data = self.runtime.ffi.buffer(transfer.data, transfer.bytes)
            request = self._transfers.begin(transfer.key, node, peer, tag, data, receives=receives)
            if request is not None and self._can_keep:
                self.runtime.lib.pto_ranks_keep(self._ranks, transfer.key, self.runtime.ffi.cast("void *", request))
            return
        address = int(self.runtime.ffi.cast("intptr_t", transfer.data))
        place = memory_at(address, tuple(transfer.extent), tuple(transfer.stride), transfer.elem_bytes)
        packed = np.empty(place.shape, place.dtype) if receives else np.ascontiguousarray(place)
        data = packed.view(np.uint8).reshape(-1).data
        finish = partial(np.copyto, place, packed) if receives else None
        self._transfers.begin(None, node, peer, tag, data, receives=receives, finish=finish)

    def _say_where(self) -> None:
        """Set the copy that has been under way for the longest time as the one that this rank waits at."""
        first = self._transfers.first
        if first is not None:
            self.part.say_where(*self._places[first])
        else:
            for transfer in self._opened(1):
                ends = (transfer.peer, self.part.rank) if transfer.receives else (self.part.rank, transfer.peer)
                self.part.say_where(transfer.site, *ends)


def _is_move(kernel: k.Kernel) -> bool:
    """Tell whether a kernel is one of those that `copy` and collectives write: short, and it never fails."""
    return kernel.name in _MOVES and all(param.span == UNKNOWN for param in kernel.memory_params)
