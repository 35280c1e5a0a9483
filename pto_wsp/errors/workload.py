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
    cause = "A workload is put together in a way that has no meaning: a body is no function, no when stands before otherwise, no such slot."
    example = "slot_set_u64(64, 1)  # slots are 0 .. 63"
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


class ValueScopeError(WorkloadStructureError):
    code = "W105"
    cause = ("A tensor, a workload or a scalar is used where it has no meaning: behind the body that makes it, in a workload though it is "
             "a kernel's own, or after nothing holds it any more; or after= is given something that is no task.")
    example = "for b in P(4):\n    tmp = Tensor.empty((8,), DType.F32)\nk(x=tmp, y=Y)"
    fix = "Use the value in the body that makes it, or make it in front of the body; keep a Tensor that is read in a variable."


class AxisError(WorkloadStructureError):
    code = "W106"
    cause = "An axis is made of what describes none, or a loop walks something that is no axis."
    example = "P(3.5)"
    fix = "Loop over Dense[N](), DenseDyn(n), a row of a Ragged or Sparse, a range or a whole number."


class SlotOrderError(PtoError):
    code = "W107"
    cause = "A slot is read where its value would depend on the order of iterations, sides or processes that have none."
    example = "for b in P(4): slot_set_u64(0, b)\nk(n=slot_u64(0))"
    fix = "Set the slot in the same body before it is read, or loop with P.seq."


class ProcessError(WorkloadStructureError):
    code = "W108"
    cause = "A process of a pipeline is made wrongly: without a name, without a body that is a workload, or connected to nothing."
    example = "process(\"load\").body(3)"
    fix = "Give process(name).body(...) a workload or a function that makes one, and hand all processes to connect()."


class ChannelError(WorkloadStructureError):
    code = "W109"
    cause = "A channel or an event of a pipeline is made or used wrongly: as a loop, with a negative depth, with what is no token of it."
    example = "Channel(\"tiles\", depth=-1)"
    fix = "Make it with Channel(name, depth) or Event(name); send tasks or whole numbers, and take them with receive or consume."


class RingError(ChannelError):
    code = "W115"
    cause = "A ring is made or filled wrongly: with no buffers, under a condition, or in a loop whose length differs between iterations."
    example = "with P.when(i > 2), produce(ring) as tile: ..."
    fix = "Fill it in P.seq loops of the process or in the body of consume(ring), by at least one task, in every iteration."


class PipelineError(PtoError):
    code = "W110"
    cause = "The processes of a pipeline, their channels and events do not fit together."
    example = "process('a').produces(ch).body(one_that_sends_nothing)"
    fix = "The error names the statements that disagree."


class DeadlockError(PtoError):
    code = "W111"
    cause = "Processes, or copies over several links of a mesh, wait for each other and none can go on."
    example = "two processes that each receive before they send"
    fix = ("The report shows who waits for whom; give the channels the depths, or the links the buffers, that it names, or let one process "
           "send first.")


class TokenError(PtoError):
    code = "W112"
    cause = "A process takes a token that never comes, or a token is sent that no process takes."
    example = "receive(ch) once more than the other process sends"
    fix = "Send as many tokens as are received; consume(ch) takes all that come."


class DataFormatError(WorkloadStructureError):
    code = "W113"
    cause = "JSON or text is no workload, kernel or plan: it does not parse, has unknown kinds or fields, or says what no trace gives."
    example = "Workload.from_json(\"{}\")"
    fix = "Load text that to_json() of the same version wrote; the error names the part that does not fit."


class WorkloadDepthError(WorkloadStructureError):
    code = "W114"
    cause = "A workload goes too deep: a function that calls itself without end, or too many loops, branches and bodies in each other."
    example = "@workload\ndef endless(): endless()"
    fix = "The body is traced once: end a recursion by a Python number, and give several axes to one P(...)."


class IrTextError(DataFormatError):
    code = "W116"
    cause = "IR text does not read back: it is not written as IR is printed, names what there is not, or says what no trace gives."
    example = "pto_wsp.parse(str(k.ir).replace('mul', 'mull'))"
    fix = "The error shows the place in the text; docs/ir_text.md has the grammar. Text of the forms that compiling makes is only printed."


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
