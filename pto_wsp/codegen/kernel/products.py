"""What a product of matrices needs beside its operands.

>>> pack_bytes(DType.F32, 64, 64, 64)
36864
"""

from __future__ import annotations

from pto_wsp.types.dtype import DType

# The constants of csrc/include/pto_matmul.h, at the widest vectors: two of 64 bytes side by side are a panel.
_PANEL_BYTES = 128
_PANELS = 4
_WORDS = 256
_CHUNK = 512
_PAD = 16
_NARROW = 8


def pack_bytes(dtype: DType, m: int, n: int, k: int) -> int:
    """Return the scratch that pto_matmul_<dtype> packs panels of b and rows of a in, for [m, k] @ [k, n] on any CPU."""
    word = 8 if dtype in (DType.F64, DType.I64) else 4
    words = min(k, _WORDS)
    width = _PANEL_BYTES // word

    def packed(rows: int, cols: int) -> int:
        panels = min(-(-cols // width), _PANELS) * width * words
        return (panels + min(rows, _CHUNK) * (-(-words // 16) * 16 + _PAD)) * word

    return max(packed(m, n), packed(n, m)) if n <= _NARROW and n < m else packed(m, n)
