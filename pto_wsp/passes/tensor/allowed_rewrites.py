"""Apply the rewrites that the plan's `allow` names: they change the order of floating-point operations, and so happen only when asked for.

`row_scale`: a factor of each row moves behind a product.

    normed = x * scale                     before
    out = normed @ w

    product = x @ w                        after
    out = product * scale

`online_softmax`: a softmax that is multiplied goes over its axis once, in blocks, and never holds a whole row.

    top = rowmax(score)                    before
    grown = exp(score - top)
    out = (grown / rowsum(grown)) @ v

    for j in loop(0, n, 128):              after
        block = score[:, j:j + 128], and all that the scores are computed from, cut alike
        peak = maximum(top, rowmax(block)); weight, fade = exp(block - peak), exp(top - peak)
        acc = acc * fade + weight @ v[j:j + 128]; seen = seen * fade + rowsum(weight); top = peak
    out = acc / seen

An entry of `allow` that finds nothing to rewrite is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from pto_wsp.errors import PlanNameError
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Scalar, Var, minimum, sub
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayView,
    Body,
    BodyNote,
    Insert,
    Item,
    Make,
    Operand,
    Put,
    Statement,
    TensorFunction,
    TileCut,
)
from pto_wsp.ir.view import Permute
from pto_wsp.ops.entries import cast, elementwise, functions, reduce
from pto_wsp.ops.entries.matmul import matmul
from pto_wsp.ops.spec import Convert, Elementwise, Matmul
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.effects import fresh_ids
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext

BLOCK = 128      # positions of the axis that an iteration of an online softmax takes


def allowed_rewrites(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function with the rewrites that the plan allows.

    Raises: J302 for a rewrite that changes nothing.
    """
    function = planned.function
    for entry in planned.plan.entries:
        if entry.key != "allow":
            continue
        names = entry.first if isinstance(entry.first, tuple) else (entry.first,)
        for name in names:
            changed = replace(function, body=_REWRITES[str(name)](function))
            if changed.body == function.body:
                raise PlanNameError(f"`{name}` is allowed, and there is nothing to rewrite", function.span,
                                    expected=_PATTERNS[str(name)], found=f"no such statements in `{function.name}`")
            function = changed
    return replace(planned, function=function)


class _Definitions:
    """What a body defines, and how often each array is used in the function."""

    def __init__(self, function: TensorFunction) -> None:
        self.uses: Counter[int] = Counter(view.array.id for view in function.results)
        self.ids = fresh_ids(function)
        for statement in flow.leaves(function.body):
            self.uses.update(view.array.id for view in statement.reads)
            if isinstance(statement, Put):
                self.uses[statement.target.array.id] += 1
        self.made: dict[int, Apply] = {}

    def enter(self, body: Body) -> None:
        """Note the operations of a body."""
        for item in body.items:
            if isinstance(item, flow.Do) and isinstance(item.leaf, Apply):
                self.made.update((array.id, item.leaf) for array in item.leaf.results)

    def of(self, operand: Operand, once: bool = False) -> Apply | None:
        """Return the operation that defines an operand, if it is the whole of a value (and, with `once`, nothing else reads the value)."""
        if not isinstance(operand, ArrayView) or operand.steps or (once and self.uses[operand.array.id] != 1):
            return None
        return self.made.get(operand.array.id)

    def array(self, name: str, shape: tuple[Scalar, ...], dtype: DType) -> Array:
        """Return a new array."""
        return Array(next(self.ids), name, shape, dtype)


# -- row_scale ---------------------------------------------------------------------------------------------------------
def _row_scale(function: TensorFunction) -> Body:
    known = _Definitions(function)

    def inside(body: Body) -> Body:
        known.enter(body)
        items: list[Item] = []
        dropped: set[int] = set()
        for item in body.items:
            moved = _scaled_behind(item.leaf, known) if isinstance(item, flow.Do) else None
            if moved is None:
                items.append(item if isinstance(item, flow.Do) else flow.with_bodies(item, inside))
                continue
            scaled, statements = moved
            dropped.add(id(scaled))
            items.extend(flow.Do(statement) for statement in statements)
        return replace(body, items=tuple(item for item in items if not (isinstance(item, flow.Do) and id(item.leaf) in dropped)))

    return inside(function.body)


def _scaled_behind(statement: Statement, known: _Definitions) -> tuple[Apply, tuple[Apply, Apply]] | None:
    """Return the multiplication that goes, and the product and the multiplication that stand in place of a product."""
    if not isinstance(statement, Apply) or not isinstance(TABLE.get(statement.op), Matmul) or len(statement.operands) != 2:
        return None
    scaled = known.of(statement.operands[0], once=True)
    if scaled is None or scaled.op not in (elementwise.mul.name, elementwise.div.name):
        return None
    pairs = (scaled.operands, scaled.operands[::-1])[:1 if scaled.op == elementwise.div.name else 2]
    result = statement.results[0]
    for source, scale in pairs:
        if not isinstance(source, ArrayView) or not isinstance(scale, ArrayView) or source.shape != scaled.results[0].shape:
            continue
        if source.dtype is not result.dtype or not scale.shape or scale.shape[-1] != Const(1):
            continue
        product = known.array(f"{result.name}.product", result.shape, result.dtype)
        return scaled, (replace(statement, operands=(source, statement.operands[1]), results=(product,)),
                        Apply(scaled.op, (ArrayView(product), scale), (result,), (), statement.group, statement.span))
    return None


# -- online_softmax ----------------------------------------------------------------------------------------------------
def _online_softmax(function: TensorFunction) -> Body:
    known = _Definitions(function)

    def inside(body: Body) -> Body:
        known.enter(body)
        items: list[Item] = []
        for item in body.items:
            changed = _in_blocks(item.leaf, known) if isinstance(item, flow.Do) else None
            if changed is not None:
                items.extend(changed)
            else:
                items.append(item if isinstance(item, flow.Do) else flow.with_bodies(item, inside))
        return replace(body, items=tuple(items))

    return inside(function.body)


def _in_blocks(statement: Statement, known: _Definitions) -> list[Item] | None:
    """Return a softmax times a matrix as a loop over blocks; None for any other statement."""
    if not isinstance(statement, Apply) or not isinstance(TABLE.get(statement.op), Matmul) or len(statement.operands) != 2:
        return None
    share, values = statement.operands
    divided = known.of(share)
    if divided is None or divided.op != elementwise.div.name or not isinstance(values, ArrayView):
        return None
    grown, total = (known.of(one) for one in divided.operands)
    if grown is None or total is None or grown.op != functions.exp.name or total.op != reduce.rowsum.name:
        return None
    lowered, summed = known.of(grown.operands[0]), known.of(total.operands[0])
    if lowered is None or summed is not grown or lowered.op != elementwise.sub.name:
        return None
    score, top = lowered.operands
    largest = known.of(top)
    if largest is None or largest.op != reduce.rowmax.name or largest.operands[0] != score or not isinstance(score, ArrayView):
        return None
    return _loop(statement, score, values, known)


def _loop(statement: Apply, score: ArrayView, values: ArrayView, known: _Definitions) -> list[Item]:
    result, span = statement.results[0], statement.span
    rank, n, wide = len(score.shape), score.shape[-1], score.dtype
    j = Var(f"{result.name.replace('.', '_').replace('#', '_')}_block", next(known.ids))
    start = j
    items: list[Item] = []
    iteration: list[Item] = []

    def emit(op: str, name: str, shape: tuple[Scalar, ...], *operands: Operand, dtype: DType = wide,
             attrs: tuple[tuple[str, object], ...] = ()) -> ArrayView:
        made = known.array(f"{result.name}.{name}", shape, dtype)
        iteration.append(flow.Do(Apply(op, operands, (made,), attrs, statement.group, span)))
        return ArrayView(made)

    rows = (*score.shape[:-1], Const(1))
    state = {name: known.array(f"{result.name}.{name}", shape, dtype)
             for name, shape, dtype in (("acc", result.shape, result.dtype), ("seen", rows, wide), ("top", rows, wide))}
    for name, fill in (("acc", 0.0), ("seen", 0.0), ("top", -math.inf)):
        items.append(flow.Do(Make(state[name], fill, span)))
    acc, seen, top = (ArrayView(state[name]) for name in ("acc", "seen", "top"))
    block = _cut(score, rank - 1, start, known, iteration)
    size = (*score.shape[:-1], minimum(Const(BLOCK), sub(n, start)))
    peak = emit(elementwise.maximum.name, "peak", rows, top, emit(reduce.rowmax.name, "block_top", rows, block))
    weight = emit(functions.exp.name, "weight", size, emit(elementwise.sub.name, "lowered", size, block, peak))
    fade = emit(functions.exp.name, "fade", rows, emit(elementwise.sub.name, "change", rows, top, peak))
    faded = emit(cast.cast.name, "fade_wide", rows, fade, dtype=result.dtype, attrs=(("dtype", result.dtype),)) \
        if result.dtype is not wide else fade
    part = values.then(TileCut(len(values.shape) - 2, start, BLOCK))
    turned = values.array.id in known.made and not values.steps
    part = _cut(values, len(values.shape) - 2, start, known, iteration) if turned else part
    product = emit(matmul.name, "part", result.shape, weight, part, dtype=result.dtype)
    iteration.append(flow.Do(Put(acc, emit(elementwise.add.name, "sum", result.shape,
                                      emit(elementwise.mul.name, "faded", result.shape, acc, faded, dtype=result.dtype), product,
                                      dtype=result.dtype), group=statement.group, span=span)))
    before, now = emit(elementwise.mul.name, "seen_before", rows, seen, fade), emit(reduce.rowsum.name, "seen_now", rows, weight)
    iteration.append(flow.Do(Put(seen, emit(elementwise.add.name, "count", rows, before, now),
                                 group=statement.group, span=span)))
    iteration.append(flow.Do(Put(top, peak, group=statement.group, span=span)))
    body: Body = flow.Sequence(tuple(iteration))
    items.append(flow.Loop(j, Const(0), n, Const(BLOCK), True, body, BodyNote(), None, span))
    divisor: Operand = seen
    if result.dtype is not wide:
        widened = known.array(f"{result.name}.seen_wide", rows, result.dtype)
        items.append(flow.Do(Apply(cast.cast.name, (seen,), (widened,), (("dtype", result.dtype),), statement.group, span)))
        divisor = ArrayView(widened)
    items.append(flow.Do(Apply(elementwise.div.name, (acc, divisor), (result,), (), statement.group, span)))
    return items


def _cut(view: ArrayView, dim: int, start: Scalar, known: _Definitions, into: list[Item]) -> ArrayView:
    """Return a block of a view along a dimension: computed from blocks of its operands where the operation is free along it."""
    made = known.made.get(view.array.id)
    inner: int | None = dim
    for step in reversed(view.steps):
        match step:
            case Permute(order) if inner is not None:
                inner = order[inner]
            case Insert(at) if inner is not None and inner != at:
                inner -= inner > at
            case _:
                inner = None
    entry = None if made is None else TABLE.get(made.op)
    if made is None or inner is None:
        return view.then(TileCut(dim, start, BLOCK))
    rank = view.array.rank
    operands: list[Operand] = []
    for place, operand in enumerate(made.operands):
        if not isinstance(operand, ArrayView):
            operands.append(operand)
            continue
        at = len(operand.shape) - (rank - inner)
        if isinstance(entry, Matmul) and place < 2 and inner >= rank - 2:
            if place != inner - (rank - 2):
                operands.append(operand)
                continue
        elif not isinstance(entry, Elementwise | Convert | Matmul):
            return view.then(TileCut(dim, start, BLOCK))
        operands.append(operand if at < 0 or operand.shape[at] == Const(1) else _cut(operand, at, start, known, into))
    shape = list(view.array.shape)
    shape[inner] = minimum(Const(BLOCK), sub(shape[inner], start))
    block = known.array(f"{view.array.name}.block", tuple(shape), view.array.dtype)
    into.append(flow.Do(replace(made, operands=tuple(operands), results=(block,))))
    return ArrayView(block, view.steps)


_REWRITES: dict[str, Callable[[TensorFunction], Body]] = {"row_scale": _row_scale, "online_softmax": _online_softmax}
_PATTERNS = {"row_scale": "(x * s) @ w, with one factor s for each row of x, and x * s read by the product alone",
             "online_softmax": "a softmax along the last axis that is multiplied: softmax(score) @ v"}
