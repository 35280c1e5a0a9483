"""Exact regions: does each tensor that tasks write lie in pieces, so that any two regions of it are equal or share nothing?

`Deps.infer_tensor_map_exact()` gives edges between tasks with equal regions. Where two could overlap in part it would leave tasks without
an order, so the plan has to prove that none do. Regions lie on a grid where along each dimension they have the same extent, and start at
multiples of it behind the same first element.

>>> # X[i * 16:(i + 1) * 16] and X[0:16] are pieces of one grid; X[8:24] is not
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from pto_wsp.errors import UnprovedOrderError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.types import scalar as s
from pto_wsp.types.view import print_view
from pto_wsp.values import dataclass
from pto_wsp.verify.races.accesses import Access
from pto_wsp.verify.races.contests import accesses_of
from pto_wsp.verify.races.regions import region_of
from pto_wsp.verify.verdict import Finding, Verdict

_MOST_ERRORS = 3


@dataclass(frozen=True, slots=True)
class Stretch:
    """The positions start .. start + extent - 1 of a dimension; `limit`: extent is at most that, where it is no number."""

    start: s.Scalar
    extent: s.Scalar
    limit: int

    @property
    def known(self) -> tuple[int, int] | None:
        """First position and the one behind the last, where both are numbers."""
        match self.start, self.extent:
            case s.Const(start), s.Const(extent):
                return int(start), int(start) + int(extent)
            case _:
                return None


def check_exact(plan: TaskPlan) -> tuple[Finding, ...]:
    """Return a finding for each tensor that tasks write: its regions are proved to be equal or apart, or an error names two of them."""
    by_slot: dict[int, list[Access]] = {}
    for accesses in accesses_of(plan).values():
        for access in accesses:
            by_slot.setdefault(access.slot, []).append(access)
    found: list[Finding] = []
    for number, slot in enumerate(plan.tensors):
        if slot.writes:
            found.extend(_of_tensor(slot.ref.shown, by_slot.get(number, [])))
    return tuple(found)


def _of_tensor(name: str, accesses: list[Access]) -> Iterator[Finding]:
    check = f"exact regions of `{name}`"
    stretches = [_stretches(access) for access in accesses]
    errors = 0
    for one, other in combinations_with_replacement(range(len(accesses)), 2):
        first, second = accesses[one], accesses[other]
        if not (first.role.writes or second.role.writes) or errors == _MOST_ERRORS:
            continue
        reason = _doubt(stretches[one], stretches[other])
        if reason:
            errors += 1
            views = f"{print_view(first.view)} and {print_view(second.view)}" if one != other else f"{print_view(first.view)} of two tasks"
            yield Finding(check, Verdict.NOT_PROVED, f"{views} {reason}", _error(name, first, second, f"{views} {reason}"))
    if not errors:
        yield Finding(check, Verdict.PROVED, "any two are equal or share no element")


def _error(name: str, first: Access, second: Access, found: str) -> UnprovedOrderError:
    return UnprovedOrderError(
        f"Deps.infer_tensor_map_exact() needs a proof that any two regions of `{name}` are equal or apart", first.span, found=found,
        also=() if first.span == second.span else ((f"{second.verb} here", second.span),),
        help="cut it into pieces of one size, or take Deps.infer_bytes_overlap(), which orders what overlaps in part")


def _stretches(access: Access) -> tuple[Stretch, ...] | None:
    """Return the part of each dimension that an access reaches; None where it is no box without gaps."""
    region = region_of(access.view)
    if not region.is_box:
        return None
    found: list[Stretch] = []
    for line in region.dims:
        match line.terms:
            case ():
                found.append(Stretch(line.start, s.Const(1), 1))
            case ((position, 1),):
                extent = region.extents[position]
                limit = extent.rhs if isinstance(extent, s.Binary) and extent.op is s.Op.MIN else extent
                found.append(Stretch(line.start, extent, int(limit.value) if isinstance(limit, s.Const) else 0))
            case _:
                return None
    return tuple(found)


def _doubt(first: tuple[Stretch, ...] | None, second: tuple[Stretch, ...] | None) -> str:
    """Say what is not right about two regions; nothing where they are equal or apart in all iterations."""
    if first is None or second is None:
        return "are no boxes without gaps: not proved"
    pairs = tuple(zip(first, second, strict=True))
    for one, other in pairs:
        if one.known and other.known and (one.known[1] <= other.known[0] or other.known[1] <= one.known[0]):
            return ""
    if all(_on_one_grid(one, other) for one, other in pairs):
        return ""
    settled = all((one.known and other.known) or _is_same(one, other) for one, other in pairs)
    return "overlap in part" if settled else "are not proved to be equal or apart"


def _is_same(one: Stretch, other: Stretch) -> bool:
    """Tell whether two stretches are the same in every iteration: a whole dimension, for example."""
    return isinstance(one.start, s.Const) and one == other and not _variables(one.extent)


def _on_one_grid(one: Stretch, other: Stretch) -> bool:
    if _is_same(one, other):
        return True
    if one.limit != other.limit or one.limit < 1 or _rest(one.start, one.limit) is None:
        return False
    if _rest(one.start, one.limit) != _rest(other.start, other.limit):
        return False
    if isinstance(one.extent, s.Const) and isinstance(other.extent, s.Const):
        return True
    # cut short at an end: equal starts have equal extents, where both follow from one variable in the same way
    return _of_one_variable(one) is not None and _of_one_variable(one) == _of_one_variable(other)


def _rest(node: s.Scalar, step: int) -> int | None:
    """Return node mod step where it is the same number in every iteration, None where nobody knows."""
    if step == 1:
        return 0
    match node:
        case s.Const(value):
            return int(value) % step
        case s.Binary(s.Op.MUL, lhs, rhs):
            left, right = _rest(lhs, step), _rest(rhs, step)
            if 0 in (left, right):
                return 0
            return None if left is None or right is None else left * right % step
        case s.Binary(s.Op.ADD | s.Op.SUB as op, lhs, rhs):
            left, right = _rest(lhs, step), _rest(rhs, step)
            if left is None or right is None:
                return None
            return (left + right if op is s.Op.ADD else left - right) % step
        case _:
            return None


def _of_one_variable(stretch: Stretch) -> tuple[s.Scalar, s.Scalar] | None:
    """Return start and extent with their one variable unnamed, where different values of it give different starts."""
    names = _variables(stretch.start)
    if len(names) != 1 or not _variables(stretch.extent) <= names:
        return None
    one = next(iter(names))
    match stretch.start:
        case s.Binary(s.Op.MUL, s.Var(), s.Const(factor)) if factor != 0:
            pass
        case s.Var():
            pass
        case _:
            return None
    start, extent = (s.substitute(node, lambda leaf: s.Var("", -1) if leaf == one else None) for node in (stretch.start, stretch.extent))
    return start, extent


def _variables(node: s.Scalar) -> frozenset[s.Scalar]:
    """What differs from task to task: variables, and elements and slots, which nothing is known of."""
    return frozenset(leaf for leaf in s.leaves(node) if isinstance(leaf, s.Var | s.Element | s.SlotValue | s.ReplicaIndex | s.TaskIndex))
