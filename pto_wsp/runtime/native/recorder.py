"""`Recorder`: a record of the task stream, in the runtime library's memory."""

from __future__ import annotations

from typing import Any

from pto_wsp.artifact.build import LoadedArtifact, Runtime
from pto_wsp.plan.rules import ExecutionRules
from pto_wsp.plan.waits.channel_state import Stuck, Wait
from pto_wsp.runtime.native.simulator import SimResult, feed_columns, finish_sim, new_sim
from pto_wsp.runtime.record.columns import RecordColumns, RecordedArg, read_columns

MAX_RECORDED_TASKS = 1 << 20


class Recorder:
    """A record of the task stream, in the runtime library's memory."""

    def __init__(self, runtime: Runtime, rules: ExecutionRules, *, infer: bool, prunes: bool = True, max_tasks: int = MAX_RECORDED_TASKS,
                 poison: bool = False, written_by: LoadedArtifact | None = None) -> None:
        """`prunes`: conflicts with tasks that have left the window, in a record that drops tasks, are forgotten; `written_by`: whose
        orchestrator writes it, which stays open as long as the record."""
        self.runtime = runtime
        self.written_by = written_by
        ffi = runtime.ffi
        options = ffi.new("pto_record_options *", {
            **rules.record_options(max_tasks), "forgets_nothing": int(not prunes), "infer": int(infer), "poison": int(poison)})
        raw = runtime.lib.pto_record_new(options)
        if raw == ffi.NULL:
            raise MemoryError("no memory for the record of the task stream")
        self.raw = ffi.gc(raw, runtime.lib.pto_record_free)
        self.generation = 0     # of what it holds: the streams recorded so far

    def args_of(self, task: int) -> tuple[RecordedArg, ...]:
        """Return what the memory parameters of the task at position `task` are bound to."""
        ffi, raw = self.runtime.ffi, self.raw_columns()
        return tuple(RecordedArg(int(arg.buffer), int(ffi.cast("intptr_t", arg.data)), (arg.extent[0], arg.extent[1]),
                                 (arg.stride[0], arg.stride[1]), arg.elem_bytes)
                     for arg in (raw.args[k] for k in range(raw.arg_begin[task], raw.arg_begin[task + 1])))

    def columns(self) -> RecordColumns:
        """Return the record's columns, copied."""
        return read_columns(self.runtime, self.raw)

    def raw_columns(self) -> Any:
        """Return the record's pto_columns: they point into its memory, until it changes."""
        raw = self.runtime.ffi.new("pto_columns *")
        self.runtime.lib.pto_record_columns(self.raw, raw)
        return raw

    def memory(self) -> int:
        """Return the most bytes that tensors made in bodies took at a time since the stream began."""
        out = self.runtime.ffi.new("pto_memory *")
        self.runtime.lib.pto_record_memory(self.raw, out)
        return int(out.peak_bytes)

    def stuck(self) -> tuple[Stuck, ...]:
        """Return what the streams of a pipeline stand at that cannot go on."""
        found = self.runtime.ffi.new("const pto_stuck **")
        n = self.runtime.lib.pto_record_stuck(self.raw, found)
        return tuple(Stuck(row.stream, row.site, Wait(row.waits_for), row.channel, row.position, None if row.peer < 0 else row.peer)
                     for row in found[0][0:n])

    def simulate(self, rules: ExecutionRules, *, keep_trace: bool) -> SimResult:
        """Replay the record in virtual time.

        Raises: SimulationStuck, SimulationEnded.
        """
        sim = new_sim(self.runtime, rules, keep_trace=keep_trace)
        feed_columns(self.runtime, sim, self.raw_columns())
        return finish_sim(self.runtime, sim)
