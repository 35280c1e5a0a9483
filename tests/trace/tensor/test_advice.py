"""What the error for a function of NumPy without an op advises: the advice gives what NumPy's function gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
RNG = np.random.default_rng(3)
VALUES: dict[str, Any] = {
    "x": RNG.random((4, 4), np.float32) + 1, "a": RNG.random((4, 4), np.float32), "b": RNG.random((4, 4), np.float32) + 1,
    "c": RNG.random((4, 4), np.float32), "w": RNG.random((4, 4), np.float32), "row": np.sort(RNG.random(4, np.float32)) + 1}
HOLES = np.where(RNG.random((4, 4)) < .3, np.nan, VALUES["x"]).astype(np.float32)
CALLS = [      # of NumPy, and the names of the advice by those of the call
    "np.count_nonzero(x)", "np.array_equal(a, b)", "np.allclose(a, b)", "np.isclose(a, b)", "np.expm1(x)", "np.log1p(x)", "np.log10(x)",
    "np.tan(x)", "np.sinh(x)", "np.cosh(x)", "np.deg2rad(x)", "np.degrees(x)", "np.trunc(x)", "np.logaddexp(a, b)", "np.hypot(a, b)",
    "np.vecdot(a, b)", "np.vdot(a, b)", "np.ptp(x, axis)", "np.trace(x)", "np.diagonal(x)", "np.linalg.vector_norm(x, axis=-1)",
    "np.linalg.multi_dot([a, b, c])", "np.rot90(x)", "np.hsplit(x, n)", "np.column_stack(parts)", "np.dstack(parts)",
    "np.append(a, b, axis)", "np.nansum(x, axis)", "np.nanmax(x, axis)", "np.nanmin(x, axis)", "np.nanmean(x, axis)", "np.cumprod(x, axis)",
    "np.searchsorted(table, x)", "np.digitize(x, edges)", "np.isin(x, values)", "np.resize(x, shape)"]


def traced(text: str, values: dict[str, Any]) -> Any:
    """Return what a text of a body gives for the values, by the meaning of ops."""
    def body(x, a, b, c, w, row):
        known = {"x": x, "a": a, "b": b, "c": c, "w": w, "parts": (a, b), "axis": 1, "n": 4, "tolerance": 1e-5, "shape": (2, 8),
                 "table": row, "edges": row, "values": row}
        return eval(text, {"np": np, "math": math, "tt": tt, "DType": DType}, known)
    for name, value in values.items():
        body.__annotations__[name] = Tensor[(*value.shape, F32)]
    return jit(body).using(target="interp")(**values)


@pytest.mark.parametrize("call", CALLS)
def test_what_is_advised_in_place_of_a_function_of_numpy_gives_what_it_gives(call: str) -> None:
    values = {**VALUES, "x": HOLES} if "np.nan" in call else VALUES
    with pytest.raises(PtoError) as refused:
        traced(call, values)
    assert refused.value.code == "J108"
    advice = str(refused.value.help).partition(" of positive")[0]
    row = values["row"]
    wanted = eval(call, {"np": np}, {**values, "parts": (values["a"], values["b"]), "axis": 1, "n": 4, "shape": (2, 8), "table": row,
                                     "edges": row, "values": row})
    found = traced(advice, values)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5)
