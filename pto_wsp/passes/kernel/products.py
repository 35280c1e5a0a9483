"""Optimise matrix products: fuse additions into them, accumulate in place, and choose how each product runs.

`product_bytes` and `pack_bytes` give the scratch that a product needs.

>>> pack_bytes(DType.F32, 64, 64)
28672
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import Body, map_bodies, result_of, touches_buffer, uses_of, walk
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entry import Operator
from pto_wsp.ops.guards import transposes
from pto_wsp.ops.spec import Elementwise, Matmul
from pto_wsp.ops.table import computes, find
from pto_wsp.passes.kernel.context import KernelContext


# -- additions ---------------------------------------------------------------------------------------------------------
def fuse_products(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with each sum of a tile and a product, whose product has no other use, as one product with an initial value.

        %2 = matmul %0, %1
        %4 = add %2, %3          →      %4 = matmul %0, %1, %3
    """
    return replace(kernel, body=_fuse_in_body(kernel.body))


def _fuse_in_body(body: Body) -> Body:
    counts = Counter(value.id for stmt in body for value in uses_of(stmt))
    products = {s.result.id: s for s in body if computes(s, Matmul)
                and len(s.operands) == 2 and counts[s.result.id] == 1}
    out: list[k.Stmt] = []
    gone: set[int] = set()
    for stmt in body:
        stmt = map_bodies(stmt, _fuse_in_body)
        if isinstance(stmt, k.Compute) and _is_addition(stmt):
            for product, other in (stmt.operands, stmt.operands[::-1]):
                if (isinstance(product, k.Value) and product.id in products and isinstance(other, k.Value)
                        and other.type == product.type):
                    matmul = products[product.id]
                    gone.add(product.id)
                    stmt = k.Compute(stmt.result, matmul.op, (*matmul.operands, other), matmul.attrs, stmt.span)
                    break
        out.append(stmt)
    return tuple(s for s in out if not (isinstance(s, k.Compute) and s.result.id in gone))


def _is_addition(stmt: k.Compute) -> bool:
    entry = find(stmt.op)
    return isinstance(entry, Elementwise) and entry.c == Operator("+")


# -- accumulation ------------------------------------------------------------------------------------------------------
def accumulate_in_place(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with products whose only use is a buffer write accumulated into that buffer.

        %3 = read acc
        %4 = matmul %1, %2, %3
        acc[:] = %4              →      acc += %1 @ %2

    If the product's initial value is not the buffer's content, that value is written to the buffer first.
    """
    return replace(kernel, body=_accumulate_in_body(kernel.body))


def _accumulate_in_body(body: Body) -> Body:
    out = [map_bodies(stmt, _accumulate_in_body) for stmt in body]
    for write in [s for s in out if isinstance(s, k.Write)]:
        write_at = next(n for n, s in enumerate(out) if s is write)
        made = next(((n, s) for n, s in enumerate(out) if computes(s, Matmul) and s.result.id == write.value.id), None)
        if made is None:
            continue
        product_at, product = made
        used = [value.id for stmt in out for value in uses_of(stmt)].count(product.result.id)
        if len(product.operands) != 3 or used != 1:
            continue
        lhs, rhs, start = product.operands
        if not (isinstance(lhs, k.Value) and isinstance(rhs, k.Value) and isinstance(start, k.Value)):
            continue
        ready = next((n + 1 for n, s in enumerate(out) if (r := result_of(s)) is not None and r.id == start.id), 0)
        if any(touches_buffer(stmt, write.buffer) for stmt in out[ready:write_at]):
            continue
        out[write_at] = k.Accumulate(write.buffer, lhs, rhs, product.attrs, write.span)
        del out[product_at]
        source = out[ready - 1] if ready else None
        if not (isinstance(source, k.Read) and source.buffer.id == write.buffer.id):
            out.insert(ready, k.Write(write.buffer, start, write.span))
    return tuple(out)


# -- forms -------------------------------------------------------------------------------------------------------------
_FEW_ROWS = 3
_FEW_COLUMNS = 8
TRANSPOSED = ("transpose_a", "transpose_b")
SHORT_ROWS = "short_rows"
ROWS_OF = "rows_of"      # names a parameter: rows beyond its bound extent are not computed


class Packing(Enum):
    """Which operand fills the vectors of a product, and whether operands are packed."""

    BLOCKS = "blocks"               # columns of b, in packed panels; blocks of rows of a
    FEW_ROWS = "few_rows"           # columns of b, wide, in place
    FEW_COLUMNS = "few_columns"     # rows of a: the product of the transposed operands


def choose_products(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with the attributes `transpose_a`, `transpose_b` (if True) and `form` at every product.

        %2 = load k, transpose
        %3 = matmul %1, %2               →      %2 = load k
                                                %3 = matmul %1, %2, transpose_b=True, form='blocks'

    `short_rows` is set if products alone read the left operand: rows that a binding leaves out are not filled, and not multiplied one by
    one, because one row of zeros gives the result of all of them. A transposition is merged into a product in the same body only; one
    outside a loop runs once for all iterations.
    """
    users: dict[int, list[k.Stmt]] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.For | k.If):
            continue
        for value in uses_of(stmt):
            users.setdefault(value.id, []).append(stmt)
    return replace(kernel, body=_choose_in_body(kernel.body, users))


def verify_after_choose_products(kernel: k.Kernel) -> None:
    """Every product says its form."""
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.Compute | k.Accumulate) and is_product(stmt):
            assert Packing(dict(stmt.attrs)["form"]), "a product without a form"


def is_product(stmt: k.Stmt) -> bool:
    """Return whether a statement is a matrix product, added to a buffer or not."""
    return isinstance(stmt, k.Accumulate) or computes(stmt, Matmul)


def short_rows(kernel: k.Kernel) -> frozenset[int]:
    """Return the ids of loaded values whose left-out rows are never read."""
    return frozenset(stmt.operands[0].id for stmt in walk(kernel.body)
                     if isinstance(stmt, k.Compute) and (SHORT_ROWS, True) in stmt.attrs and isinstance(stmt.operands[0], k.Value))


def _choose_in_body(body: Body, users: Mapping[int, list[k.Stmt]]) -> Body:
    products = {id(stmt): stmt for stmt in body if is_product(stmt)}

    def only_multiplied(value: k.Value) -> bool:
        """Tell whether the value's only users are products of this body, and none as the initial value."""
        return all(id(user) in products and not (isinstance(user, k.Compute) and value in user.operands[2:])
                   for user in users.get(value.id, ()))

    turned: dict[int, k.Value] = {}     # id of a transposed value -> the untransposed value
    short = {stmt.result.id for stmt in body if isinstance(stmt, k.Load) and stmt.fill == 0 and not stmt.transpose
             and _only_left(stmt.result, users.get(stmt.result.id, ()), products)}
    out: list[k.Stmt] = []
    for stmt in body:
        match stmt:
            case k.Compute(result, _, (k.Value() as source,)) if transposes(stmt):
                turned[result.id] = source
                if only_multiplied(result):
                    continue
            case k.Load(result) if stmt.transpose and only_multiplied(result):
                lying = replace(result, type=TileType(result.type.cols, result.type.rows, result.type.dtype))
                turned[result.id] = lying
                stmt = replace(stmt, result=lying, transpose=False)
            case k.Compute() | k.Accumulate() if is_product(stmt):
                stmt = _product(stmt, turned, short)
            case _:
                stmt = map_bodies(stmt, lambda inner: _choose_in_body(inner, users))
        out.append(stmt)
    return tuple(out)


def _only_left(value: k.Value, users: Sequence[k.Stmt], products: Mapping[int, k.Stmt]) -> bool:
    """Tell whether the value's only users are products of this body with the value as left operand and no initial value."""
    return all(id(user) in products and isinstance(user, k.Compute) and user.operands[0] == value and value not in user.operands[1:]
               and len(user.operands) == 2 and _form(*user.result.type.shape, value.type.dtype, False) is Packing.BLOCKS for user in users)


def _product(stmt: k.Compute | k.Accumulate, turned: Mapping[int, k.Value], short: set[int]) -> k.Stmt:
    inputs = (stmt.lhs, stmt.rhs) if isinstance(stmt, k.Accumulate) else stmt.operands[:2]
    operands = tuple(turned.get(value.id, value) for value in inputs if isinstance(value, k.Value))
    transposed = [name for name, before in zip(TRANSPOSED, inputs, strict=True) if isinstance(before, k.Value) and before.id in turned]
    rows, cols = (stmt.buffer if isinstance(stmt, k.Accumulate) else stmt.result).type.shape
    form = _form(rows, cols, operands[0].type.dtype, bool(transposed))
    rest = form is Packing.BLOCKS and operands[0].id in short and TRANSPOSED[0] not in transposed
    attrs = (*stmt.attrs, *((name, True) for name in transposed), *(((SHORT_ROWS, True),) if rest else ()), ("form", form.value))
    if isinstance(stmt, k.Accumulate):
        return replace(stmt, lhs=operands[0], rhs=operands[1], attrs=attrs)
    return replace(stmt, operands=(*operands, *stmt.operands[2:]), attrs=attrs)


def _form(rows: int, cols: int, dtype: DType, transposed: bool) -> Packing:
    if rows <= _FEW_ROWS and not transposed and dtype.accumulates_in is dtype:
        return Packing.FEW_ROWS
    return Packing.FEW_COLUMNS if cols <= _FEW_COLUMNS and cols < rows else Packing.BLOCKS


# -- scratch -----------------------------------------------------------------------------------------------------------
# The constants of csrc/include/pto_matmul.h at the widest vectors: the rows of a panel are two adjacent vectors of 64 bytes.
_PANEL_BYTES = 128
_WORDS = 256
_CHUNK = 512
_PAD = 16


def product_bytes(stmt: k.Compute | k.Accumulate) -> int:
    """Return the scratch bytes in which a product packs its operands, from its attributes."""
    chosen, lhs = dict(stmt.attrs), uses_of(stmt)[0]
    inner = lhs.type.rows if "transpose_a" in chosen else lhs.type.cols
    m, n = (stmt.buffer if isinstance(stmt, k.Accumulate) else stmt.result).type.shape
    turned = Packing(chosen["form"]) is Packing.FEW_COLUMNS
    return pack_bytes(lhs.type.dtype, n if turned else m, inner)


def pack_bytes(dtype: DType, m: int, inner: int) -> int:
    """Return the scratch bytes in which pto_matmul_<dtype> packs a panel of b and rows of a, for [m, inner] @ [inner, any] on any CPU."""
    word = max(4, dtype.nbytes)
    words = min(inner, _WORDS)
    width = _PANEL_BYTES // word
    buffers = 2 if inner > _WORDS or m > _CHUNK else 1      # rows of this step, and of the next
    return (width * words + buffers * min(m, _CHUNK) * (-(-words // 16) * 16 + _PAD)) * word
