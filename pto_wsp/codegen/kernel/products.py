"""A product of matrices in C."""

from __future__ import annotations

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.kernel.env import Env, Place
from pto_wsp.expr.kernel import Attr
from pto_wsp.plan.kernel.products.choose_products import ROWS_OF, SHORT_ROWS, TRANSPOSED, Form


def multiply(env: Env, pack: c.Expr, to: Place, lhs: Place, rhs: Place, attrs: tuple[tuple[str, Attr], ...], *, accumulate: bool) -> c.Stmt:
    """Return `to = lhs @ rhs`, or `to += lhs @ rhs`, as the attributes of the product say. `pack`: where it packs."""
    chosen = dict(attrs)
    dtype, form = lhs.type.dtype, Form(chosen["form"])
    inner = lhs.type.rows if "transpose_a" in chosen else lhs.type.cols
    m, n = to.type.shape
    flags = ["PTO_MATMUL_ACCUMULATE"] if accumulate else []
    flags += [f"PTO_MATMUL_{name.upper()}" for name in TRANSPOSED if name in chosen]
    if form is Form.FEW_ROWS:
        flags.append("PTO_MATMUL_FEW_ROWS")
        env.few_rows = True
    elif form is Form.FEW_COLUMNS:
        flags.append("PTO_MATMUL_TURN")
    env.matmuls.add(dtype)
    shown: c.Expr = c.Name(flags[0]) if flags else c.Int(0)
    for flag in flags[1:]:
        shown = c.Infix("|", shown, c.Name(flag))
    function = f"pto_matmul_{dtype}"
    height: c.Expr = env.extent(str(chosen[ROWS_OF]), 0) if ROWS_OF in chosen else c.Int(m)
    sizes: tuple[c.Expr, ...] = (height, c.Int(n), c.Int(inner))
    rows: c.Expr = height if lhs.rows is None or SHORT_ROWS not in chosen else lhs.rows
    if rows != height:
        env.short_rows = True
        function, sizes = f"pto_matmul_short_{dtype}", (rows, *sizes)
    return c.Evaluate(c.Call(function, (
        c.Name(to.pointer), to.step, c.Name(lhs.pointer), lhs.step, c.Name(rhs.pointer), rhs.step, *sizes, shown, pack)))
