"""A product of matrices in C: the call, and what it needs beside its operands.

>>> pack_bytes(DType.F32, 64, 64, 64)
36864
"""

from __future__ import annotations

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.kernel.env import Env, Place
from pto_wsp.expr.kernel import Attr
from pto_wsp.plan.kernel.choose_products import TRANSPOSED, Form
from pto_wsp.types.dtype import DType

# The constants of csrc/include/pto_matmul.h, at the widest vectors: two of 64 bytes side by side are a panel.
_PANEL_BYTES = 128
_PANELS = 4
_WORDS = 256
_CHUNK = 512
_PAD = 16


def multiply(env: Env, to: Place, lhs: Place, rhs: Place, attrs: tuple[tuple[str, Attr], ...], *, accumulate: bool) -> c.Stmt:
    """Return `to = lhs @ rhs`, or `to += lhs @ rhs`, as the attributes of the product say."""
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
    pack = env.pack(pack_bytes(dtype, n, m, inner) if form is Form.FEW_COLUMNS else pack_bytes(dtype, m, n, inner))
    shown: c.Expr = c.Name(flags[0]) if flags else c.Int(0)
    for flag in flags[1:]:
        shown = c.Infix("|", shown, c.Name(flag))
    return c.Evaluate(c.Call(f"pto_matmul_{dtype}", (
        c.Name(to.pointer), to.step, c.Name(lhs.pointer), lhs.step, c.Name(rhs.pointer), rhs.step, c.Int(m), c.Int(n), c.Int(inner),
        shown, pack)))


def pack_bytes(dtype: DType, m: int, n: int, k: int) -> int:
    """Return the scratch that pto_matmul_<dtype> packs panels of b and rows of a in, for [m, k] @ [k, n] on any CPU."""
    word = 8 if dtype in (DType.F64, DType.I64) else 4
    words = min(k, _WORDS)
    width = _PANEL_BYTES // word
    panels = min(-(-n // width), _PANELS) * width * words
    return (panels + min(m, _CHUNK) * (-(-words // 16) * 16 + _PAD)) * word
