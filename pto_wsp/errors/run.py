"""Errors of a run."""

from __future__ import annotations

from pto_wsp.errors.kernel import ArgumentKindError
from pto_wsp.errors.pto_error import PtoError


class TaskFailedError(PtoError):
    code = "R101"
    cause = "A task failed while it ran."
    example = "pto.load(T, (row, 0), shape=(8, 8)) with row past the end"
    fix = "The report names the task: kernel and indices."


class BindingError(PtoError):
    code = "R102"
    cause = "A binding or argument of a run does not fit: a name is unknown or ambiguous, or a symbol or an axis does not take the value."
    example = "program.execute(n=2.5)  # n is a DenseDyn axis"
    fix = "Bind what the program names, each once: whole numbers to axes, numbers that fit its dtype to a Symbol."


class TaskNameError(ArgumentKindError):
    code = "R112"
    cause = "A question about a run names a task or an edge that the run does not have, or a name that is that of several tasks."
    example = "program.explain(\"attn[b=9]\")  # b is 0 .. 3"
    fix = "Name a task by its number, by its name with all indices, or by (kernel, indices); the error lists tasks of the run."


class ArrayBindingError(BindingError):
    code = "R113"
    cause = ("An array does not fit the tensor that it is bound to (dtype, rank, size, strides), is read-only though tasks write it, or "
             "has elements that share memory with each other or with another array.")
    example = "program.run(X=np.zeros((4, 4)))  # X is f32, the array f64"
    fix = "Bind a writable NumPy array of the declared dtype and rank, whose last dimension is contiguous: np.ascontiguousarray(a, dtype)."


class AxisDataError(BindingError):
    code = "R114"
    cause = "The arrays of a Ragged or Sparse axis describe no rows: offsets that fall or point outside, columns that do not ascend."
    example = "Sparse(batch, [0, 2, 1], [0, 1])  # the second row ends before it begins"
    fix = "Give offsets from 0 on that never fall, one a row and one behind the last, and the columns of each row in order, each once."


class ProgramStateError(PtoError):
    code = "R103"
    cause = "A program was used out of order, or asked for what its target or its run does not have."
    example = "program.execute(); program.execute()"
    fix = "Call synchronize() between two execute(); the error names the option or the target that has what is asked for."


class RecordLimitError(ProgramStateError):
    code = "R115"
    cause = "A run has more tasks than a record, a trace, a calendar or a list keeps, and the question needs them all."
    example = "program.trace()  # after a run of more tasks than a record keeps"
    fix = "Ask the question of a smaller problem."


class RunBoundsError(PtoError):
    code = "R104"
    cause = "With the values bound now, a task would reach outside its tensor or its tile."
    example = "program.execute(lens=longer_than_the_tensor)"
    fix = "Bind tensors that are large enough."


class NotFiniteError(PtoError):
    code = "R105"
    cause = "With check_finite=True: an operation made a NaN or an infinity out of finite numbers, or a task loaded a NaN."
    example = "y = pto.log(x)  # x holds -1"
    fix = "The report names the task, the operation, the element and what it was made from."


class WindowError(PtoError):
    code = "R106"
    cause = "A task found no room in the task window: it needs more than there is, or the window is one that does not wait."
    example = "TaskWindow(4, \"tasks\", WindowMode.ABORT)  # with more than 4 tasks under way"
    fix = "Give the window more room, or WindowMode.STALL."


class ThreadStartError(PtoError):
    code = "R107"
    cause = "The system starts no more threads."
    example = "w.compile(threads=1000).run()  # under a small limit of processes or of memory"
    fix = "Ask for fewer threads, or raise the limit; the next run tries again."


class DisagreementError(PtoError):
    code = "R108"
    cause = "The artifact computes something else than the workload means in NumPy."
    example = '@kernel(c_src="...")  # C that adds where the Python body multiplies'
    fix = "The report names the tensor, the element and the last task that writes it; where the two differ by rounding alone, say rtol=."


class CyclesError(PtoError):
    code = "R111"
    cause = "Cycles of simulated time add up to more than 64 bits hold."
    example = "TracePolicy.cycles(lambda t: 1 << 62)  # for more than one task"
    fix = "Give costs in a larger unit, or simulate a smaller problem."


class ContractError(PtoError):
    code = "R110"
    cause = "An array breaks the contract that its tensor was declared with: proofs of the program rely on it."
    example = "table = Injective(Tensor(np.array([3, 5, 3])))  # 3 twice"
    fix = "Bind an array that keeps the contract, or drop the contract: what needs it is then not proved."


class RunRaceError(PtoError):
    code = "R201"
    cause = "With sanitize=True: two tasks use the same elements, one of them writes, and nothing in the workload orders them."
    example = "for b in P(4):\n    k[b](x=X[b], y=Y[table[b]])  # table holds 2 twice"
    fix = "Order them (P.seq, >>, after=, a channel or event), or let each write elements of its own."


class UnwrittenError(PtoError):
    code = "R202"
    cause = "With sanitize=True: what a task gives depends on an element that nobody has written."
    example = "T = Tensor.empty((8, 64), DType.F32)\nfirst(out=T[0:4])\nsecond(x=T[0:8])"
    fix = "Write the element before it is read, or make the tensor of an array that has contents."


class StrayAccessError(PtoError):
    code = "R203"
    cause = "With sanitize=True: a task uses memory outside the regions that its arguments are bound to."
    example = '@kernel(c_src="for (int64_t c = 0; c <= x_cols; ++c) y[c] = x[c];")'
    fix = "Stay within x_rows and x_cols, and step by x_row_step and x_col_step."
