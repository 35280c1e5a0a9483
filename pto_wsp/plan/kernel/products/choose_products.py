"""Choose how a product of matrices runs: which operands are read transposed where they lie, and in which form.

    %2 = load k, transpose
    %3 = matmul %1, %2               →      %2 = load k
                                            %3 = matmul %1, %2, transpose_b=True, form='blocks'

Where a product alone reads a piece on its left, `short_rows` says that rows which a binding leaves out are not filled in: they are
not multiplied one by one either, as one row of zeros gives the result of all.

A transposition is left to the product where it stands beside it; one outside of a loop is done once, for all turns of the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, transposes, uses_of, walk
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType

_FEW_ROWS = 3
_FEW_COLUMNS = 8
TRANSPOSED = ("transpose_a", "transpose_b")
SHORT_ROWS = "short_rows"
ROWS_OF = "rows_of"      # a parameter: rows behind what is bound of it are not computed


class Form(Enum):
    """What fills the vectors of a product, and whether anything is packed."""

    BLOCKS = "blocks"               # columns of b, in packed panels; blocks of rows of a
    FEW_ROWS = "few_rows"           # columns of b, wide, in place
    FEW_COLUMNS = "few_columns"     # rows of a: the product of the transposed operands


def choose_products(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with the attributes `transpose_a`, `transpose_b` (where True) and `form` at every product."""
    users: dict[int, list[k.Stmt]] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.For | k.If):
            continue
        for value in uses_of(stmt):
            users.setdefault(value.id, []).append(stmt)
    return replace(kernel, body=_chosen(kernel.body, users))


def verify_after_choose_products(kernel: k.Kernel) -> None:
    """Every product says its form."""
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.Compute | k.Accumulate) and _is_product(stmt):
            assert Form(dict(stmt.attrs)["form"]), "a product without a form"


def _is_product(stmt: k.Stmt) -> bool:
    return isinstance(stmt, k.Accumulate) or (isinstance(stmt, k.Compute) and isinstance(find(stmt.op), Matmul))


def short_rows(kernel: k.Kernel) -> frozenset[int]:
    """Return the ids of the loaded values whose rows that are left out nothing reads."""
    return frozenset(stmt.operands[0].id for stmt in walk(kernel.body)
                     if isinstance(stmt, k.Compute) and (SHORT_ROWS, True) in stmt.attrs and isinstance(stmt.operands[0], k.Value))


def _chosen(body: Body, users: Mapping[int, list[k.Stmt]]) -> Body:
    products = {id(stmt): stmt for stmt in body if _is_product(stmt)}

    def only_multiplied(value: k.Value) -> bool:
        """Tell whether products of this body take the value, and nothing else; as what one starts from it is something else."""
        return all(id(user) in products and not (isinstance(user, k.Compute) and value in user.operands[2:])
                   for user in users.get(value.id, ()))

    turned: dict[int, k.Value] = {}     # a transposed value -> the same memory as it lies
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
            case k.Compute() | k.Accumulate() if _is_product(stmt):
                stmt = _product(stmt, turned, short)
            case _:
                stmt = map_bodies(stmt, lambda inner: _chosen(inner, users))
        out.append(stmt)
    return tuple(out)


def _only_left(value: k.Value, users: Sequence[k.Stmt], products: Mapping[int, k.Stmt]) -> bool:
    """Tell whether products of the body take the value as their left operand, accumulate nothing, and nothing else takes it."""
    return all(id(user) in products and isinstance(user, k.Compute) and user.operands[0] == value and value not in user.operands[1:]
               and len(user.operands) == 2 and _form(*user.result.type.shape, value.type.dtype, False) is Form.BLOCKS for user in users)


def _product(stmt: k.Compute | k.Accumulate, turned: Mapping[int, k.Value], short: set[int]) -> k.Stmt:
    given = (stmt.lhs, stmt.rhs) if isinstance(stmt, k.Accumulate) else stmt.operands[:2]
    operands = tuple(turned.get(value.id, value) for value in given if isinstance(value, k.Value))
    transposed = [name for name, before in zip(TRANSPOSED, given, strict=True) if isinstance(before, k.Value) and before.id in turned]
    rows, cols = (stmt.buffer if isinstance(stmt, k.Accumulate) else stmt.result).type.shape
    form = _form(rows, cols, operands[0].type.dtype, bool(transposed))
    rest = form is Form.BLOCKS and operands[0].id in short and TRANSPOSED[0] not in transposed
    attrs = (*stmt.attrs, *((name, True) for name in transposed), *(((SHORT_ROWS, True),) if rest else ()), ("form", form.value))
    if isinstance(stmt, k.Accumulate):
        return replace(stmt, lhs=operands[0], rhs=operands[1], attrs=attrs)
    return replace(stmt, operands=(*operands, *stmt.operands[2:]), attrs=attrs)


def _form(rows: int, cols: int, dtype: DType, transposed: bool) -> Form:
    if rows <= _FEW_ROWS and not transposed and dtype.accumulates_in is dtype:
        return Form.FEW_ROWS
    return Form.FEW_COLUMNS if cols <= _FEW_COLUMNS and cols < rows else Form.BLOCKS
