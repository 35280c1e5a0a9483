"""Errors of tensors, workloads and schedules."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class TensorDataError(PtoError):
    code = "D101"
    cause = "An array's dtype or shape is not what the Tensor says."
    example = "Tensor(data=a_f64, shape=(4, 4), dtype=DType.F32)"
    fix = "Give the array's own shape and dtype, or convert the array."


class DTypeNameError(PtoError):
    code = "D102"
    cause = "A value names no dtype."
    example = "DType.from_numpy('complex64')"
    fix = "Use a member of DType."


class UnboundSymbolError(PtoError):
    code = "W101"
    cause = "A Symbol has no value when the program runs."
    example = "program.execute()  # n was never given"
    fix = "Pass it by name: program.execute(n=4)."


class WorkloadStructureError(PtoError):
    code = "W102"
    cause = "A workload is put together in a way that has no meaning."
    example = "P(3.5)"
    fix = "The error says what stands there instead."


class LoopVariableError(PtoError):
    code = "W103"
    cause = "A loop variable or task handle is used where it does not exist."
    example = "for b in P(4): ...\nk[b](x=X[b])"
    fix = "Move the use into the loop."


class DataDependentError(PtoError):
    code = "W104"
    cause = "A scalar is read from an array that shares memory with one which tasks write under another name, so nothing waits for them."
    example = "k[b](x=X[b], out=Y); P(lens[0])  # run(lens=a, Y=a)"
    fix = "Bind arrays that do not overlap, or read the scalar from the tensor that the tasks write: it is waited for then."


class SlotOrderError(PtoError):
    code = "W107"
    cause = "A slot is read where its value would depend on the order of iterations, sides or processes that have none."
    example = "for b in P(4): slot_set_u64(0, b)\nk(n=slot_u64(0))"
    fix = "Set the slot in the same body before it is read, or loop with P.seq."


class PipelineError(PtoError):
    code = "W110"
    cause = "The processes of a pipeline, their channels and events do not fit together."
    example = "process('a').produces(ch).body(one_that_sends_nothing)"
    fix = "The error names the statements that disagree."


class DeadlockError(PtoError):
    code = "W111"
    cause = "Processes wait for each other and none can go on."
    example = "two processes that each receive before they send"
    fix = "The report shows who waits for whom; give the channels the depths that it names, or let one process send first."


class TokenError(PtoError):
    code = "W112"
    cause = "A process takes a token that never comes, or a token is sent that no process takes."
    example = "receive(ch) once more than the other process sends"
    fix = "Send as many tokens as are received; consume(ch) takes all that come."


class DirectiveError(PtoError):
    code = "S101"
    cause = "A schedule directive that this version or this target does not enforce."
    example = ".streams(4)"
    fix = "Use a directive that the target enforces; pass strict=False to record it instead."


class PolicyValueError(PtoError):
    code = "S102"
    cause = "A value that a schedule policy does not take."
    example = "DispatchPolicy.round_robin(0)"
    fix = "The error says which values are taken."


class KeyTraceError(PtoError):
    code = "S103"
    cause = "A key function cannot be traced, or names a loop that the workload does not have."
    example = "DispatchPolicy.dispatch_by(lambda t: lookup[t.b])"
    fix = "Use arithmetic on t.<loop variable>, t.params and Symbols."


class KeyRangeError(PtoError):
    code = "S104"
    cause = "A key of a schedule gives a number that means nothing there: a stream, a pool, an executor or a cost below 0."
    example = ".stream_by(lambda t: t.b - 1)"
    fix = "Give a key that is >= 0 for every task: (key).max(0), or key % n."


class ScheduleConflictError(PtoError):
    code = "S105"
    cause = "Directives of a schedule contradict each other, or one means nothing without another."
    example = ".dispatch(DispatchPolicy.round_robin(2)).calendar(lambda t: (0, t.b))"
    fix = "Leave one of them out; docs/schedules.md says which go together."


class CalendarError(PtoError):
    code = "S106"
    cause = "A calendar does not fit the tasks of the run: a task stands before one that it waits for, or there are other tasks than rows."
    example = ".calendar([(0, 1), (0, 0)])  # and the second task reads what the first writes"
    fix = "The report names the two tasks and why one waits for the other; give them positions in that order."
