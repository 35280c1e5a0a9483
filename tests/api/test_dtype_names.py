"""Where a dtype is expected, its name stands for it, and so does a dtype of NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import DType, In, Out, PtoError, Scalar, Symbol, Tensor, Tile, kernel, pto


def test_a_name_stands_wherever_a_dtype_does() -> None:
    given, count, result = Tile[2, 4, "float32"], Scalar["int32"], Tile[2, 4, np.float16]

    @kernel
    def cast_and_scale(x: In[given], n: count, y: Out[result]) -> None:  # type: ignore[valid-type]
        held = pto.alloc((2, 4), "float32", init=1)
        held += x * n + pto.full((2, 4), 1, np.float32)
        pto.store(y, held.astype("float16"))

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    found = cast_and_scale.run(x, 3)
    assert isinstance(found, np.ndarray) and found.dtype == np.float16 and (found == 3 * x + 2).all()
    assert Tensor(shape=(2, 4), dtype="bfloat16").dtype is DType.BF16 and Tensor.empty((2, 4), np.int8).dtype is DType.I8
    assert repr(Symbol("n", dtype="int64")) == repr(Symbol("n", dtype=DType.I64))


@pytest.mark.parametrize("make", [lambda: Tile[2, 4, "f31"], lambda: Scalar["float8"], lambda: Tensor(shape=(2,), dtype="float"),
                                  lambda: Tensor.empty((2,), "f31"), lambda: Symbol("n", dtype="f31")])
def test_another_name_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(PtoError, match="dtype"):
        make()
