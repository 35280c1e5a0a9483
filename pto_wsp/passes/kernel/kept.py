"""Find the rows and columns of each value that stores, prints and branches depend on: the rest of a tile is nobody's.

    %1 = div %0, %0
    store y, %1             →      {("value", 1): (rows of y, columns of y)}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel_walk import Body, bodies_of, uses_of
from pto_wsp.ops.entries.matmul import matmul
from pto_wsp.ops.entries.movement import concat, slice_
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Movement

Extents: TypeAlias = frozenset[s.Scalar] | None       # the largest of these; None for the whole of a dimension
Part: TypeAlias = tuple[Extents, Extents]
Key: TypeAlias = tuple[str, int]                      # "value" or "buffer", and the id

_NOTHING: Part = (frozenset(), frozenset())
_WHOLE: Part = (None, None)


def kept_parts(kernel: k.Kernel) -> Mapping[Key, Part]:
    """Return the kept rows and columns of values and buffers; of what nothing depends on there is no entry."""
    found = _KeptParts(kernel)
    while found.grew:
        found.grew = False
        found.body(kernel.body)
    return found.parts


class _KeptParts:
    def __init__(self, kernel: k.Kernel) -> None:
        self.parts: dict[Key, Part] = {}
        self.grew = True
        self._tiles = frozenset(param.name for param in kernel.params if isinstance(param, k.TileParam))

    def body(self, body: Body) -> None:
        for stmt in reversed(body):
            for inner in reversed(bodies_of(stmt)):
                self.body(inner)
            self._statement(stmt)

    def _statement(self, stmt: k.Stmt) -> None:
        match stmt:
            case k.For() | k.If():
                pass
            case k.Store(param, value, row, col, rows, cols):
                self._keep(value, (self._stored(param, 0, row, rows), self._stored(param, 1, col, cols)))
            case k.Read(result, buffer):
                self._join(("buffer", buffer.id), self._of(("value", result.id)))
            case k.Write(buffer, value):
                self._keep(value, self._of(("buffer", buffer.id)))
            case k.Accumulate(buffer, lhs, rhs, attrs):
                self._operands(matmul.name, (lhs, rhs), buffer.type.shape, self._of(("buffer", buffer.id)), dict(attrs))
            case k.Compute(result, op, operands, attrs):
                self._operands(op, operands, result.type.shape, self._of(("value", result.id)), dict(attrs))
            case _:
                for value in uses_of(stmt):
                    self._keep(value, _WHOLE)

    def _stored(self, param: str, dim: int, start: s.Scalar, valid: s.Scalar | None) -> Extents:
        if valid is not None:
            return frozenset((valid,))
        return frozenset((s.sub(s.ParamExtent(param, dim), start),)) if param in self._tiles else None

    def _operands(self, op: str, operands: tuple[k.Operand, ...], shape: tuple[int, int], part: Part, attrs: dict[str, k.Attr]) -> None:
        """Keep what a part of a result is made of."""
        rows, cols = part
        entry = find(op)
        for number, value in enumerate(operands):
            if not isinstance(value, k.Value):
                continue
            kept: Part
            match entry:
                case Matmul() if number < 2:
                    kept = (rows, None) if number == 0 else (None, cols)
                    kept = kept[::-1] if f"transpose_{'ab'[number]}" in attrs else kept
                case Movement() if entry.transposes:
                    kept = (cols, rows)
                case Elementwise() | Convert() | Expand() | Matmul():
                    kept = self._aligned(value, shape, part)
                case Movement() if entry is concat or (entry is slice_ and not _turns(attrs)):
                    kept = self._aligned(value, shape, part)
                case RowReduce():
                    kept = (rows, None)
                case ColReduce():
                    kept = (None, cols)
                case _:
                    kept = _WHOLE
            self._keep(value, kept)

    def _aligned(self, value: k.Value, shape: tuple[int, int], part: Part) -> Part:
        """Return the kept part of an operand whose dimensions of the result's extent have the result's places."""
        rows, cols = (kept if own == whole else None for kept, own, whole in zip(part, value.type.shape, shape, strict=True))
        return rows, cols

    def _of(self, key: Key) -> Part:
        return self.parts.get(key, _NOTHING)

    def _keep(self, value: k.Value, part: Part) -> None:
        self._join(("value", value.id), part)

    def _join(self, key: Key, part: Part) -> None:
        before = self._of(key)
        rows, cols = (None if one is None or other is None else one | other for one, other in zip(before, part, strict=True))
        if (rows, cols) != before:
            self.parts[key] = rows, cols
            self.grew = True


def _turns(attrs: Mapping[str, k.Attr]) -> bool:
    """Tell whether a slice takes rows or columns from the last to the first."""
    return any(isinstance(picked, tuple) and isinstance(picked[-1], int) and picked[-1] < 0 for picked in attrs.values())
