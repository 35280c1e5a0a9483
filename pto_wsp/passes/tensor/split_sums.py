"""Split sums into pieces that tasks compute side by side, where the plan's `split` says so.

    out = x @ w                                    before, with split={"out": 4} and 4096 terms

    parts = empty((4, t, 384))                     after
    for out_piece in each(4):
        parts[out_piece] = x[:, out_piece * 1024 :+ 1024] @ w[out_piece * 1024 :+ 1024]
    out = parts[0] + parts[1] + parts[2] + parts[3]

The pieces are added in order, so the bits depend on their number alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pto_wsp.errors import PlanConflictError, PlanFitError
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Scalar, Var, add, ceil_div, minimum, mul
from pto_wsp.ir.tensor_function import Apply, Array, ArrayStep, ArrayView, Body, Item, Make, Operand, Put, TileCut, nested_loops
from pto_wsp.ir.view import Cut, Pick
from pto_wsp.ops.entries import cast, elementwise
from pto_wsp.ops.entry import Finish
from pto_wsp.ops.spec import ColReduce, Matmul, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.carried import carried_ops
from pto_wsp.passes.tensor.effects import fresh_ids
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.schedule.tiling import TilePlan


def split_sums(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function with the sums that the plan splits in pieces."""
    if not any(entry.key == "split" for entry in planned.plan.entries):
        return planned
    work = _Splitting(planned.plan, fresh_ids(planned.function))
    return replace(planned, function=replace(planned.function, body=work.body(planned.function.body)))


class _Splitting:
    def __init__(self, plan: TilePlan, ids: Iterator[int]) -> None:
        self._plan = plan
        self._ids = ids

    def _array(self, name: str, shape: tuple[Scalar, ...], dtype: DType) -> Array:
        return Array(next(self._ids), name, shape, dtype)

    def body(self, body: Body) -> Body:
        """Return a body with the sums in pieces."""
        return replace(body, items=tuple(one for item in body.items for one in self._items(item)))

    def _items(self, item: Item) -> list[Item]:
        if not isinstance(item, flow.Do):
            return [flow.with_bodies(item, self.body)]
        if not isinstance(item.leaf, Apply):
            return [item]
        statement = item.leaf
        said = self._plan.said("split", statement.results[0].name)
        if said is None or not isinstance(said.first, int) or said.first == 1:
            return [item]
        entry = TABLE.get(statement.op)
        if not isinstance(entry, Matmul | RowReduce | ColReduce):
            raise PlanConflictError(f"`{statement.results[0].name}` is no sum: it has no pieces", statement.span, expected="a product or a "
                                    "reduction", found=str(said))
        return self._pieces(statement, entry, said.first)

    def _pieces(self, statement: Apply, entry: Matmul | RowReduce | ColReduce, pieces: int) -> list[Item]:
        result = statement.results[0]
        views = [operand for operand in statement.operands if isinstance(operand, ArrayView)]
        dims = [(views[0], len(views[0].shape) - (2 if isinstance(entry, ColReduce) else 1))]
        if isinstance(entry, Matmul):
            dims.append((views[1], len(views[1].shape) - 2))
        length = dims[0][0].shape[dims[0][1]]
        if isinstance(length, Const) and int(length.value) < pieces:
            raise PlanFitError(f"a sum of {int(length.value)} terms has no {pieces} pieces", statement.span,
                               expected=f"split={{{result.name!r}: n}}, n at most {int(length.value)}", found=str(pieces))
        wide = DType.F32 if result.dtype.is_half else result.dtype
        op, join, _ = (statement.op, elementwise.add.name, 0) if isinstance(entry, Matmul) else carried_ops(entry, wide)
        var = Var(f"{result.name.replace('.', '_').replace('#', '_')}_piece", next(self._ids))

        def cut(view: ArrayView, dim: int) -> ArrayView:
            size = ceil_div(length, Const(pieces))
            first = mul(var, size)
            step: ArrayStep
            if isinstance(size, Const):
                exact = isinstance(length, Const) and int(length.value) % pieces == 0
                step = Cut(dim, first, add(first, size)) if exact else TileCut(dim, minimum(first, length), int(size.value))
            else:
                start = minimum(first, length)
                step = Cut(dim, start, minimum(add(first, size), length))
            return view.then(step)

        made: list[Item] = []
        operands: list[Operand] = [cut(view, dim) for view, dim in dims]
        if isinstance(operands[0], ArrayView) and operands[0].dtype is not wide and not isinstance(entry, Matmul):
            widened = self._array(f"{result.name}.wide", operands[0].shape, wide)
            made.append(flow.Do(Apply(cast.cast.name, (operands[0],), (widened,), (("dtype", wide),), statement.group, statement.span)))
            operands[0] = ArrayView(widened)
        parts = self._array(f"{result.name}.parts", (Const(pieces), *result.shape), wide)
        piece = self._array(f"{result.name}.piece", result.shape, wide)
        made.append(flow.Do(Apply(op, tuple(operands), (piece,), (), statement.group, statement.span)))
        made.append(flow.Do(Put(ArrayView(parts, (Pick(0, var),)), ArrayView(piece), group=statement.group, span=statement.span)))
        iteration: Body = flow.Sequence(tuple(made))
        items: list[Item] = [flow.Do(Make(parts, None, statement.span)),
                             *nested_loops([(var, Const(pieces))], iteration, statement.span).items]
        total: Operand = ArrayView(parts, (Pick(0, Const(0)),))
        mean = not isinstance(entry, Matmul) and entry.finish is Finish.DIVIDE_BY_COUNT
        plain = not mean and wide is result.dtype
        for number in range(1, pieces):
            last = plain and number == pieces - 1
            joined = result if last else self._array(f"{result.name}.total", result.shape, wide)
            items.append(flow.Do(Apply(join, (total, ArrayView(parts, (Pick(0, Const(number)),))), (joined,), (), statement.group,
                                       statement.span)))
            total = ArrayView(joined)
        if mean:
            value = result if wide is result.dtype else self._array(f"{result.name}.mean", result.shape, wide)
            items.append(flow.Do(Apply(elementwise.div.name, (total, length), (value,), (), statement.group, statement.span)))
            total = ArrayView(value)
        if wide is not result.dtype:
            items.append(flow.Do(Apply(cast.cast.name, (total,), (result,), (("dtype", result.dtype),), statement.group, statement.span)))
        return items
