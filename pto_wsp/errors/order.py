"""Errors about tasks together: those without an order that touch the same memory, what is left without one, and what they take."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class RaceError(PtoError):
    code = "W201"
    cause = "Tasks without an order between them touch the same elements of a tensor, and one of them writes."
    example = "for b in P(4):\n    k[b](x=X[b], y=Y[0])"
    fix = "Order them (P.seq, sequential), or let each write a part of its own."


class WrittenContractError(PtoError):
    code = "W202"
    cause = "A task writes a tensor that was declared Injective or Monotone: what it writes cannot be checked when arrays are bound."
    example = "table = Injective(Tensor(pages))\nfor b in P(4):\n    k[b](x=X[b], out=table[b])"
    fix = "Declare contracts only on tensors that tasks read, or compute the table in a program of its own."


class UnprovedOrderError(PtoError):
    code = "W203"
    cause = "A schedule takes edges from structure, or from equal regions, alone, and it is not proved that they order all conflicts."
    example = ".task_graph(deps=Deps.explicit())  # of tasks that write Y[table[b]]"
    fix = "Let data order them too, Deps.hybrid(), or give the proof what it needs: the error says what it depends on."


class OverlappingOutputsError(PtoError):
    code = "W205"
    cause = "Two parameters that one task writes are bound to the same elements: which of the two stores lasts is not said."
    example = "k(x=X, y=B[0:4], z=B[2:6])  # y and z are both Out"
    fix = "Give each output elements of its own; an In or InOut may overlap with one output, and reads what was there before the task."


class IntermediatesError(PtoError):
    code = "W204"
    cause = "The tensors that a workload makes for results between tasks take more than the arch's global memory."
    example = "T = Tensor.empty((1 << 20, 1 << 20), DType.F32)  # compiled for an arch of 64 GiB"
    fix = "Make smaller ones, or make them in the body that uses them: each then lives as long as its tasks."
