"""What a product of matrices needs beside its operands.

>>> pack_bytes(DType.F32, 64, 64, 64)
36864
"""

from __future__ import annotations

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import uses_of
from pto_wsp.plan.kernel.products.choose_products import Form
from pto_wsp.types.dtype import DType

# The constants of csrc/include/pto_matmul.h, at the widest vectors: two of 64 bytes side by side are a panel.
_PANEL_BYTES = 128
_PANELS = 4
_WORDS = 256
_CHUNK = 512
_PAD = 16


def product_bytes(stmt: k.Compute | k.Accumulate) -> int:
    """Return the scratch that a product packs in, as its attributes say."""
    chosen, lhs = dict(stmt.attrs), uses_of(stmt)[0]
    inner = lhs.type.rows if "transpose_a" in chosen else lhs.type.cols
    m, n = (stmt.buffer if isinstance(stmt, k.Accumulate) else stmt.result).type.shape
    turned = Form(chosen["form"]) is Form.FEW_COLUMNS
    return pack_bytes(lhs.type.dtype, *((n, m) if turned else (m, n)), inner)


def pack_bytes(dtype: DType, m: int, n: int, inner: int) -> int:
    """Return the scratch that pto_matmul_<dtype> packs panels of b and rows of a in, for [m, inner] @ [inner, n] on any CPU."""
    word = max(4, dtype.nbytes)
    words = min(inner, _WORDS)
    width = _PANEL_BYTES // word
    panels = min(-(-n // width), _PANELS) * width * words
    return (panels + min(m, _CHUNK) * (-(-words // 16) * 16 + _PAD)) * word
