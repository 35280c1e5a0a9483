"""Errors of a run."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class TaskFailedError(PtoError):
    code = "R101"
    cause = "A task failed while it ran."
    example = "pto.load(T, (row, 0), shape=(8, 8)) with row past the end"
    fix = "The report names the task: kernel and indices."


class BindingError(PtoError):
    code = "R102"
    cause = "A binding does not fit the program: unknown or ambiguous name, wrong rank, dtype, size or stride."
    example = "program.execute(X=array_of_another_rank)"
    fix = "Bind arrays of the declared rank and dtype."


class ProgramStateError(PtoError):
    code = "R103"
    cause = "A program was used out of order."
    example = "program.execute(); program.execute()"
    fix = "Call synchronize() between two execute()."


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
