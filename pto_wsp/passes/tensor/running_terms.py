"""Find the state of a function that values are added to, so that each rank of a mesh may hold a term of the state.

    acc = zeros; for e: acc[:] = acc + x[e] @ w[e]      acc is updated by a sum
    acc[:] = acc * fade + k.T @ v                       a term of the new value is computed from the old one by a factor and a sum
"""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.ir import flow
from pto_wsp.ir.tensor_function import Apply, ArrayView, Make, Put, TensorFunction
from pto_wsp.ir.tensor_layout import Reduction
from pto_wsp.ops.entries import elementwise
from pto_wsp.values import dataclass

ADDS = (elementwise.add.name, elementwise.sub.name)
SCALES = (elementwise.mul.name, elementwise.div.name)
NEGATION = elementwise.neg.name
EXTREMES: Mapping[str, Reduction] = {elementwise.maximum.name: "max", elementwise.minimum.name: "min"}
COMBINES: Mapping[str, Reduction] = {**dict.fromkeys(ADDS, "sum"), **EXTREMES}


@dataclass(frozen=True, slots=True)
class RunningTerms:
    """What is added to state.

    `updates`: by the id of a value that is stored to a view of state: the position of the operand that is that view, and the reduction
    that combines the other operand with it. `states`: by the id of a value, state that it is computed from by sums, factors or extremes,
    if such a value is stored to the state; the state itself, too.
    """

    updates: Mapping[int, tuple[int, Reduction]]
    states: Mapping[int, int]


def running_terms(function: TensorFunction) -> RunningTerms:
    """Return what a function adds to its state."""
    made: dict[int, Apply] = {}
    origin: dict[int, int] = {}
    updates: dict[int, tuple[int, Reduction]] = {}
    added: set[int] = set()
    for leaf in flow.leaves(function.body):
        if isinstance(leaf, Make):
            origin[leaf.array.id] = leaf.array.id
        elif isinstance(leaf, Apply):
            made |= {array.id: leaf for array in leaf.results}
            if leaf.op in COMBINES or leaf.op in SCALES or leaf.op == NEGATION:
                states = [origin[one.array.id] for one in leaf.operands if isinstance(one, ArrayView) and one.array.id in origin]
                origin.update((leaf.results[0].id, one) for one in states[:1])
        elif isinstance(leaf, Put) and isinstance(leaf.value, ArrayView):
            value, state = leaf.value, leaf.target.array.id
            if origin.get(value.array.id) == state:
                added.add(state)
            maker = made.get(value.array.id)
            if maker is not None and maker.op in COMBINES and not value.steps and leaf.table is None and not leaf.add:
                places = [k for k, one in enumerate(maker.operands) if one == leaf.target and (k == 0 or maker.op != ADDS[1])]
                updates.update((value.array.id, (k, COMBINES[maker.op])) for k in places[:1])
    return RunningTerms(updates, {value: state for value, state in origin.items() if state in added})
