"""Exact regions: are any two regions of a tensor that tasks write equal, or without an element in common?

`Deps.infer_tensor_map_exact()` gives edges between tasks with equal regions. Where two could overlap in part it would leave tasks without
an order, so the plan has to prove that none do, for all sizes that a run may bind. The solver is asked for two tasks, of whatever
iterations, that share an element without having the same region.

>>> # X[i * 16:(i + 1) * 16] and X[0:16] are pieces of one grid; X[8:24] is not
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from pto_wsp.errors import UnprovedOrderError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.types.view import print_view
from pto_wsp.verify.races.contests import Touched, touched_of
from pto_wsp.verify.races.decide import Apart, Open, decide
from pto_wsp.verify.races.filters import pairs_among
from pto_wsp.verify.races.question import Data, Pair, data_of
from pto_wsp.verify.races.witness import Witness
from pto_wsp.verify.verdict import Finding, Verdict

_MOST_ERRORS = 3


def check_exact(plan: TaskPlan, arrays: Mapping[int, np.ndarray] = MappingProxyType({})) -> tuple[Finding, ...]:
    """Return a finding for each tensor that tasks write: its regions are proved to be equal or apart, or an error names two of them.

    `arrays`: what tensors hold now, by the id of their TensorRef: lengths of rows are read from there for an example.
    """
    data, touched = data_of(plan, arrays), touched_of(plan)
    found: list[Finding] = []
    for number, slot in enumerate(plan.tensors):
        if slot.writes:
            found.extend(_of_tensor(slot.ref.shown, touched[number], data))
    return tuple(found)


def _of_tensor(name: str, touched: Touched, data: Data) -> Iterator[Finding]:
    check = f"exact regions of `{name}`"
    errors = 0
    contracts: dict[str, None] = {}
    for pair in pairs_among(touched.accesses, touched.depth, data):
        match decide(pair, data, in_part=True):
            case Apart(relied_on):
                contracts.update((f"{contract.value} {table.shown}", None) for table in relied_on for contract in table.contracts)
            case Witness() as witness:
                errors += 1
                yield Finding(check, Verdict.COUNTEREXAMPLE, _views(pair), _error(name, pair, _overlap(witness)))
            case Open(reason):
                errors += 1
                yield Finding(check, Verdict.NOT_PROVED, f"{_views(pair)}: {reason}",
                              _error(name, pair, f"{_views(pair)}, which are not proved to be: {reason}"))
        if errors == _MOST_ERRORS:
            break
    if not errors:
        needed = f", given {', '.join(contracts)}" if contracts else ""
        yield Finding(check, Verdict.PROVED, f"any two are equal or share no element{needed}")


def _views(pair: Pair) -> str:
    first, second = (print_view(access.view) for access in pair.accesses)
    return f"{first} and {second}" if pair.first is not pair.second else f"{first} of two tasks"


def _overlap(witness: Witness) -> str:
    """Say which two regions overlap in part, in which iterations, and in which elements."""
    sides = [f"{print_view(access.view)}{f' where {where}' if (where := witness.iteration(side)) else ''}"
             for side, access in enumerate(witness.pair.accesses)]
    given = f", for example with {', '.join(f'{key} = {value}' for key, value in witness.given.items())}" if witness.given else ""
    return f"{sides[0]} and {sides[1]} overlap in part: they share {witness.elements}{given}"


def _error(name: str, pair: Pair, found: str) -> UnprovedOrderError:
    first, second = pair.accesses
    return UnprovedOrderError(
        f"Deps.infer_tensor_map_exact() needs a proof that any two regions of `{name}` are equal or apart", first.span, found=found,
        also=() if first.span == second.span else ((f"{second.verb} here", second.span),),
        help="cut it into pieces of one size, or take Deps.infer_bytes_overlap(), which orders what overlaps in part")
