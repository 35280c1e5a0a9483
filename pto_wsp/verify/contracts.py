"""Contracts on tensors that tasks write: no array that is bound shows whether they are kept, so they are refused."""

from __future__ import annotations

from pto_wsp.errors import WrittenContractError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.walk import submits
from pto_wsp.source import argument_span


def contract_errors(plan: TaskPlan) -> tuple[WrittenContractError, ...]:
    """Return an error for each access that writes a tensor with a contract of the user's; axes promise for themselves."""
    of_axes = {slot for axis in plan.axes for slot in axis.slots}
    errors: dict[int, WrittenContractError] = {}
    for task in submits(plan):
        for param, place in zip(plan.kernels[task.kernel].kernel.memory_params, task.places, strict=True):
            ref = plan.tensors[place.slot].ref
            if place.role.writes and ref.contracts and place.slot not in of_axes and place.slot not in errors:
                names = " and ".join(contract.value.capitalize() for contract in ref.contracts)
                errors[place.slot] = WrittenContractError(
                    f"`{ref.shown}` is declared {names}, and a task writes it", argument_span(task.span, param.name),
                    help="a contract is checked when an array is bound, before any task runs: declare it on what tasks only read")
    return tuple(errors.values())
