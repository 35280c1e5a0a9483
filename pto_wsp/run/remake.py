"""Generate the stream of a plan again without running tasks: with other kinds of edges, or because it was too long to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto_wsp.artifact.build import LoadedArtifact
from pto_wsp.errors import ProgramStateError
from pto_wsp.ir.execution_rules import ExecutionRules
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.bound import Bindings
from pto_wsp.run.failures import bounds_error
from pto_wsp.run.interpreter import record_stream, stream_of
from pto_wsp.run.native import raw_bindings
from pto_wsp.run.simulator import Recorder, check_status, interruptible
from pto_wsp.source import here


def orchestrated_again(artifact: LoadedArtifact, plan: TaskPlan, bindings: Bindings, *, infer: bool, max_tasks: int,
                       rules: ExecutionRules | None = None, chunk: Callable[[Any], None] | None = None, sim: Any = None) -> Recorder:
    """Return a record written by the artifact's orchestrator; no kernel runs.

    `chunk` is called with the pto_columns of each chunk of a stream longer than `max_tasks`, and feeds `sim`, which follows `rules`; the
    returned record is then incomplete.
    Raises: R104 for a failed check, R103 for a stream that reads what tasks compute, and what `chunk` raises.
    """
    ffi, lib = artifact.runtime.ffi, artifact.runtime.lib
    kept = ExecutionRules(window=0 if rules is None else rules.task_window)
    prunes = rules is None or not rules.counts_edges
    recorder = Recorder(artifact.runtime, kept, infer=infer, prunes=prunes, max_tasks=max_tasks, written_by=artifact)
    raised: list[BaseException] = []

    def on_chunk(columns: Any, user: Any) -> int:
        del user
        try:
            if chunk is not None:
                chunk(columns)
        except BaseException as problem:   # an exception cannot pass through C: raised after the call
            raised.append(problem)
        return int(lib.PTO_E_CANCELLED if raised else lib.PTO_OK)

    callback = ffi.callback(dict(ffi.typeof("pto_run_options").fields)["on_chunk"].type, on_chunk)
    bound = raw_bindings(artifact.runtime, plan, bindings)
    options = ffi.new("pto_run_options *", {"orchestrate": artifact.table.orchestrate, "bindings": bound[0], "on_chunk": callback,
                                            "sim": ffi.NULL if sim is None else sim, "interruptible": interruptible()})
    result = ffi.new("pto_execute_result *")
    status = lib.pto_run(ffi.NULL, recorder.raw, options, result)
    if raised:
        raise raised[0]
    if status == lib.PTO_E_GUARD:
        raise bounds_error(plan, ffi, lib.pto_record_guard(recorder.raw), 0)
    if status == lib.PTO_E_UNEXECUTED:
        raise reads_results(plan)
    check_status(status, "making the stream again")
    return recorder


def enumerated_again(plan: TaskPlan, bindings: Bindings) -> Recorder:
    """Return a record written by the Python enumeration, for a plan without an artifact; no kernel runs.

    Raises: R104 for a failed check.
    """
    return record_stream(plan, bindings, stream_of(plan, bindings))


def reads_results(plan: TaskPlan) -> ProgramStateError:
    """Return the error for a stream that cannot be generated again, because it depends on what tasks compute."""
    return ProgramStateError(f"which tasks `{plan.name}` has depends on what its tasks compute", here(),
                             expected="a stream that can be made again without running it",
                             help="compile it under that schedule and run it")
