"""Which part of a product has terms: that of its operands' valid parts. The rest is zero, and the cube core makes no zeros.

    %0 = load a                   a.shape[0] rows are valid
    %2 = matmul %0, %1            its first a.shape[0] rows have terms
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import result_of, uses_of, walk
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.ops.entries.movement import transpose
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.plan.npu.known.facts import FALSE, Facts, negated
from pto_wsp.plan.npu.known.fresh import Change, Conditions, fresh_before
from pto_wsp.types import scalar as s

Part: TypeAlias = tuple[s.Scalar, s.Scalar]     # rows and columns


class Given:
    """The parts of a kernel's products, and of the buffers that they are added up in, that have terms.

    `part` and `covers` raise N104 at a loop that adds the first product in a turn that is not its first.
    """

    def __init__(self, kernel: k.Kernel, access: Mapping[str, ParamAccess]) -> None:
        self._facts = Facts(kernel, access, leaves=False)
        self._makers = {result.id: stmt for stmt in walk(kernel.body) if (result := result_of(stmt)) is not None}
        self._sums: dict[int, list[k.Accumulate]] = {}
        for stmt in walk(kernel.body):
            if isinstance(stmt, k.Accumulate):
                self._sums.setdefault(stmt.buffer.id, []).append(stmt)
        self._kernel = kernel

    @cached_property
    def _fresh(self) -> Mapping[int, Conditions]:
        return fresh_before(self._kernel.body, self._facts, self._change)

    def part(self, value: k.Value) -> Part | None:
        """Return rows and columns of a product or sum that have terms, where it is made; None where all of it has."""
        found = self._part(self._makers[value.id])
        return None if found == _whole(value) else found

    def covers(self, stmt: k.Store) -> bool:
        """Tell whether all that is stored of a product has terms."""
        given = self.part(stmt.value)
        wanted = self._facts.valid(stmt)
        return given is None or all(self._facts.settle(s.minimum(*pair)) == pair[0] for pair in zip(wanted, given, strict=True))

    def _part(self, maker: k.Stmt) -> Part:
        match maker:
            case k.Compute(_, op) if isinstance(find(op), Matmul):
                return _where_not(negated(self.terms(maker)), self.product(maker))
            case k.Read(result, buffer) if buffer.id in self._sums:
                parts = {self.product(one) for one in self._sums[buffer.id]}
                return _where_not(self._fresh[id(maker)].get(buffer.id, FALSE), parts.pop() if len(parts) == 1 else _whole(result))
            case _:
                made = result_of(maker)
                assert made is not None
                return _whole(made)

    def product(self, stmt: k.Compute | k.Accumulate) -> Part:
        """Return rows and columns that have terms where any has."""
        lhs, rhs = uses_of(stmt)[:2]
        return self._valid(lhs)[0], self._valid(rhs)[1]

    def terms(self, stmt: k.Compute | k.Accumulate) -> s.Scalar:
        """Return the condition that a product has terms."""
        lhs, rhs = uses_of(stmt)[:2]
        return self._facts.at_least_one(self._facts.settle(s.minimum(self._valid(lhs)[1], self._valid(rhs)[0])))

    def _valid(self, value: k.Value) -> Part:
        """Return the part of an operand outside of which it is zero."""
        match self._makers[value.id]:
            case k.Load() as stmt if stmt.fill == 0:
                rows, cols = self._facts.valid(stmt)
                return (cols, rows) if stmt.transpose else (rows, cols)
            case k.Compute(_, transpose.name, (k.Value() as source,)):
                rows, cols = self._valid(source)
                return cols, rows
            case k.Compute(_, op) as stmt if isinstance(find(op), Matmul):
                return self._part(stmt)
            case k.Read() as stmt:
                return self._part(stmt)
            case _:
                return _whole(value)

    def _change(self, stmt: k.Stmt) -> Change | None:
        match stmt:
            case k.Alloc(buffer) if buffer.id in self._sums:
                return Change(buffer.id, buffer.name, clears=True)
            case k.Accumulate(buffer):
                return Change(buffer.id, buffer.name, clears=False, terms=self.terms(stmt))
            case _:
                return None


def _whole(value: k.Value) -> Part:
    return s.Const(value.type.rows), s.Const(value.type.cols)


def _where_not(empty: s.Scalar, part: Part) -> Part:
    """Return a part that has no rows where `empty` holds."""
    return s.select(empty, s.Const(0), part[0]), part[1]
