"""A witness: two iterations with numbers for everything, held against the plan's own expressions before anybody is told.

The solver works on rows that were made from the plan. Here the plan itself is evaluated: both tasks are there, their views lie inside
the tensor, and they have elements in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np

from pto_wsp.plan.model import Loop, inner_vars
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.view import Clip, Cut, Permute, Pick, Reshape, View, as_declared, bounds_of
from pto_wsp.values import dataclass
from pto_wsp.verify.affine.linear import Key
from pto_wsp.verify.races.accesses import Access, Taken
from pto_wsp.verify.races.question import Pair, Question
from pto_wsp.verify.races.regions import Line, Region, region_of

_MOST_ELEMENTS = 1 << 22        # of a tensor whose views are reshaped: they are compared element by element

Values: TypeAlias = tuple[tuple[str, int], ...]     # by the names of variables, of which two may be the same
Shared: TypeAlias = tuple[range, ...]       # in each dimension of the tensor


class NoWitness(Exception):
    """What the solver found is not so: a mistake of ours, which must not become an error of the user's."""


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """The values of the variables on both sides, outermost first, those of symbols, sizes and elements, and what is shared.

    `outer`: the values of loop variables around both, by their ids.
    """

    pair: Pair
    sides: tuple[Values, Values]
    given: Mapping[str, int]
    shared: Shared
    outer: Mapping[int, int] = field(default_factory=dict)

    def iteration(self, side: int) -> str:
        """Return one iteration, as b = 0, t = 1."""
        return ", ".join(f"{name} = {value}" for name, value in self.sides[side])

    @property
    def elements(self) -> str:
        """The range of elements that both touch, as X[0:4, 7]."""
        inner = ", ".join(str(one.start) if len(one) == 1 else f"{one.start}:{one[-1] + 1}" + (f":{one.step}" if one.step != 1 else "")
                          for one in self.shared)
        name = self.pair.first.view.tensor.shown
        return f"{name}[{inner}]" if inner else name


def witness_of(pair: Pair, question: Question, point: Mapping[Key, int]) -> Witness:
    """Return the witness of a point that the solver found.

    Raises: NoWitness where the plan does not agree.
    """
    numbers = _Numbers(question, point)
    for side, access in enumerate(pair.accesses):
        numbers.check(access, side)
    if pair.loop is not None and not numbers.value(pair.loop.var, 0) < numbers.value(pair.loop.var, 1):
        raise NoWitness("the iterations are not apart")
    if question.in_part and numbers.are_same(pair):
        raise NoWitness("the regions are the same")
    sides = tuple(tuple((var.name, numbers.value(var, side)) for var in access.variables) for side, access in enumerate(pair.accesses))
    outer = {var.id: numbers.value(var, 0) for level in pair.first.levels[:pair.depth] if isinstance(level, Loop)
             for var in inner_vars(level)}
    shared = numbers.shared(pair)
    return Witness(pair, (sides[0], sides[1]), numbers.given(), shared, outer)


class _Numbers:
    def __init__(self, question: Question, point: Mapping[Key, int]) -> None:
        self.question, self.point = question, point
        self.elements = {(tensor.id, tuple(i.value(point) for i in one.index)): one.value.value(point)
                         for tensor, found in question.translator.applications.items() for one in found}
        self.names: dict[str, int] = {}

    def value(self, node: s.Scalar, side: int) -> int:
        return int(s.evaluate(as_declared(node), lambda leaf: self._leaf(leaf, side)))

    def _leaf(self, node: s.Scalar, side: int) -> s.Number:
        match node:
            case s.Var():
                return self.question.number(node, side).value(self.point)
            case s.SymbolRef(name):
                self.names[name] = self.question.number(node, side).value(self.point)
                return self.names[name]
            case s.Element(tensor, index):
                found = tuple(self.value(i, side) for i in index)
                if (tensor.id, found) not in self.elements:
                    raise NoWitness(f"{print_scalar(node)} has no value")
                self.names[f"{tensor.shown}[{', '.join(map(str, found))}]"] = self.elements[tensor.id, found]
                return self.elements[tensor.id, found]
            case _:
                raise NoWitness(f"{print_scalar(node)} has no value")

    def given(self) -> Mapping[str, int]:
        """Return the symbols and elements that were asked for."""
        return self.names

    def check(self, access: Access, side: int) -> None:
        """Hold the levels and the guards of an access against the values."""
        for level in access.levels:
            match level:
                case Loop(var=var, start=start, stop=stop, step=step, through=through):
                    walk = range(self.value(start, side), self.value(stop, side), max(1, self.value(step, side)))
                    self._demand(self.value(var, side) in walk, var.name)
                    if through is not None:
                        self._demand(self.value(through.var, side) == self.value(through.value, side), through.var.name)
                case Taken():
                    for branch in level.refused:
                        self._demand(not self.value(branch.condition, side), print_scalar(branch.condition))
                    if level.held is not None:
                        self._demand(bool(self.value(level.held, side)), print_scalar(level.held))
                case _:
                    pass
        guards = [(bound.lower, bound.value, bound.upper) for bound in bounds_of(access.view)]
        guards += [(check.lower, check.value, check.upper) for check in access.checks]
        for lower, value, upper in guards:
            self._demand(self.value(lower, side) <= self.value(value, side) <= self.value(upper, side), print_scalar(value))

    def _demand(self, holds: bool, what: str) -> None:
        if not holds:
            raise NoWitness(what)

    def shared(self, pair: Pair) -> Shared:
        """Return the elements that both touch, in each dimension from the first to the last."""
        regions = tuple(region_of(access.view) for access in pair.accesses)
        if all(region.is_box for region in regions):
            found = tuple(common_range(self._range(regions[0], a, 0), self._range(regions[1], b, 1))
                          for a, b in zip(regions[0].dims, regions[1].dims, strict=True))
        else:
            found = self._compared(pair)
        self._demand(all(found), "nothing is shared")
        return found

    def are_same(self, pair: Pair) -> bool:
        """Tell whether both have the same elements."""
        regions = tuple(region_of(access.view) for access in pair.accesses)
        if all(region.is_box for region in regions):
            here, there = ([self._range(region, line, side) for line in region.dims] for side, region in enumerate(regions))
            return here == there
        return np.array_equal(*self._offsets(pair))

    def _range(self, region: Region, line: Line, side: int) -> range:
        start = self.value(line.start, side)
        if not line.terms:
            return range(start, start + 1)
        (number, factor), = line.terms
        return range(start, start + factor * self.value(region.extents[number], side), factor)

    def _compared(self, pair: Pair) -> Shared:
        both = np.intersect1d(*self._offsets(pair))
        shape = self._shape(pair)
        places = np.unravel_index(both, shape) if both.size else tuple(both for _ in shape)
        return tuple(range(int(place.min()), int(place.max()) + 1) if place.size else range(0) for place in places)

    def _shape(self, pair: Pair) -> tuple[int, ...]:
        tensor = pair.first.view.tensor
        return tuple(self.value(s.DimOf(tensor, k), 0) for k in range(tensor.rank))

    def _offsets(self, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
        """Return which elements of the tensor each of the two has, in order."""
        shape = self._shape(pair)
        if int(np.prod(shape)) > _MOST_ELEMENTS:
            raise NoWitness("the tensor is large, and its views are reshaped")
        whole = np.arange(int(np.prod(shape))).reshape(shape)
        ours, theirs = (np.unique(self._viewed(access.view, whole, side)) for side, access in enumerate(pair.accesses))
        return ours, theirs

    def _viewed(self, view: View, whole: np.ndarray, side: int) -> np.ndarray:
        part = whole
        for step in view.steps:
            match step:
                case Pick(dim, index):
                    part = np.take(part, self.value(index, side), axis=dim)
                case Cut(dim, start, stop, by):
                    cut: list[slice] = [slice(None)] * part.ndim
                    cut[dim] = slice(self.value(start, side), self.value(stop, side), by)
                    part = part[tuple(cut)]
                case Clip(limits):
                    part = part[tuple(slice(0, limit) for limit in limits)]
                case Permute(order):
                    part = part.transpose(order)
                case Reshape(shape):
                    part = part.reshape(shape)
        return part


def common_range(ours: range, theirs: range) -> range:
    """Return what two ranges have in common, as a range."""
    if not ours or not theirs:
        return range(0)
    if len(ours) > len(theirs):
        ours, theirs = theirs, ours
    if ours.step == theirs.step == 1:
        return range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
    both: Sequence[int] = [k for k in ours if k in theirs]
    if not both:
        return range(0)
    step = both[1] - both[0] if len(both) > 1 else 1
    return range(both[0], both[-1] + 1, step)
