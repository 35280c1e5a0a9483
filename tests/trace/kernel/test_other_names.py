"""What a user of NumPy, PyTorch or JAX writes in a kernel: it works, or the error at its line says what kernels have instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, PtoError, Scalar, Tensor, Tile, kernel, pto
from pto_wsp.ops.other_names import INSTEAD, instead_of
from pto_wsp.source import Span

F32, KEPT = DType.F32, print
Made = Callable[..., Any]
A = np.arange(-16, 16, dtype=np.float32).reshape(4, 8)


def run(body: Made, out: DType = F32, shape: tuple[int, int] = (4, 8)) -> np.ndarray:  # type: ignore[type-arg]
    @kernel
    def k(x: In[Tile[4, 8, F32]], n: Scalar[DType.I64], y: Out[Tile[shape[0], shape[1], out]]) -> None:  # type: ignore[misc]
        made = body(x, n)
        if made is not None:
            pto.store(y, made)
    result = k.run(A, 3)
    assert isinstance(result, np.ndarray)
    return result


REFUSED: dict[str, tuple[Made, str]] = {
    "np.cumprod": (lambda x, n: np.cumprod(x, axis=1), "pto.cumsum"),
    "np.sum": (lambda x, n: np.sum(x, axis=1), "x.sum(axis=1, keepdims=True) gives [R, 1]"),
    "np.add.reduce": (lambda x, n: np.add.reduce(x, axis=1), "keepdims=True"),
    "np.add.outer": (lambda x, n: np.add.outer(x, x), "pto.add(x)"),
    "np.subtract.reduce": (lambda x, n: np.subtract.reduce(x, axis=1), None),
    "np.max": (lambda x, n: np.max(x), "axis=1 gives [R, 1], axis=0 [1, C]"),
    "np.mean": (lambda x, n: np.mean(x, 1), "keepdims=True"),
    "np.median": (lambda x, n: np.median(x, 1), "pto.sort"),
    "np.vstack": (lambda x, n: np.vstack([x, x]), "pto.concat"),
    "np.expm1": (lambda x, n: np.expm1(x), "pto.exp(x) - 1"),
    "np.linspace": (lambda x, n: np.linspace(0, x, 5), "pto"),
    "np.where of an array": (lambda x, n: np.where(x), None),
    "np.fft": (lambda x, n: np.fft.fft(x), "dir(pto)"),
    "a function in NumPy that asks the tile": (lambda x, n: np.iterable(x), "pto.rowsum"),
    "np.asarray": (lambda x, n: np.asarray(x), "dir(pto)"),
    "np.array of tiles": (lambda x, n: np.array([x, x]), "dir(pto)"),
    "pto.sum": (lambda x, n: pto.sum(x), "keepdims=True"),
    "pto.softplus": (lambda x, n: pto.softplus(x), "pto.log(1 + pto.exp(-pto.abs(x)))"),
    "pto.row_sum": (lambda x, n: pto.row_sum(x), "did you mean pto.rowsum? the sum of each row"),
    "pto.swich": (lambda x, n: pto.swich(x), "did you mean pto.silu?"),
    "pto.rowsom": (lambda x, n: pto.rowsom(x), "did you mean pto.rowsum?"),
    "pto.zzz": (lambda x, n: pto.zzz(x), "dir(pto)"),
    "x.sum": (lambda x, n: x.sum(axis=1), "keepdims=True"),
    "x.astype": (lambda x, n: x.astype(float), "say the width"),
    "x.to": (lambda x, n: x.to("cuda"), None),
    "x.sort": (lambda x, n: x.sort(), "pto.sort"),
    "x.max of torch": (lambda x, n: x.max(dim=1), "x.amax(dim=1, keepdim=True)"),
    "x.flip": (lambda x, n: x.flip(), "x[:, ::-1]"),
    "x.transpose": (lambda x, n: x.transpose(0, 1), None),
    "x.reshape": (lambda x, n: x.reshape(7, -1), None),
    "x.where": (lambda x, n: x.where(x > 0, 0), "pto.where(mask, x, y)"),
    "x.masked_fill": (lambda x, n: x.masked_fill(x > 0, 0), "pto.where(mask, value, x)"),
    "x.numel": (lambda x, n: x.numel(), "x.shape"),
    "x.half": (lambda x, n: x.half(), "x.astype"),
    "x.std of torch": (lambda x, n: x.std(dim=1, keepdim=True), "x.std(axis=1, ddof=1, keepdims=True)"),
    "x.var of torch": (lambda x, n: x.var(1, keepdim=True), "x.var(axis=1, ddof=1, keepdims=True)"),
    "x.std, unbiased": (lambda x, n: x.std(axis=1, unbiased=False), "ddof=1"),
    "x.split of torch": (lambda x, n: x.split(2, dim=1), None),
    "np.diff": (lambda x, n: np.diff(x), "x[:, 1:] - x[:, :-1]"),
    "a mask as an index": (lambda x, n: x[x > 0], "pto.where(mask, x, 0)"),
    "a new axis": (lambda x, n: x[:, None], "x[:, 0:1]"),
    "round to tenths": (lambda x, n: round(x, 1), None),
    "math.trunc": (lambda x, n: math.trunc(x), "pto.floor"),
    "x.ndim": (lambda x, n: x.ndim, "x.shape"),
    "x.item": (lambda x, n: x.item(), "a row and a column"),
    "a value's method": (lambda x, n: (x + 1).mean(), "keepdims=True"),
    "a buffer's method": (lambda x, n: pto.alloc((4, 8), F32, init=0).max(), "keepdims=True"),
    "str": (lambda x, n: str(x), "pto.print(x)"),
    "print of a Tensor's own": (lambda x, n: KEPT(x), "pto.print(x)"),
    "print with an option": (lambda x, n: print(x, end=""), None),
    "an f-string": (lambda x, n: f"{x}", "pto.print"),
    "if": (lambda x, n: x if x > 0 else -x, "pto.where"),
    "in": (lambda x, n: 3 in x, "pto.rowsum"),
    "for": (lambda x, n: [row for row in x], "pto.rowsum"),
    "len": (len if False else lambda x, n: len(x), "x.shape[0]"),
    "max of two": (lambda x, n: max(x, 0), "pto.where"),
    "sum of rows": (lambda x, n: sum(x), "pto.rowsum"),
    "sorted": (lambda x, n: sorted(x), "pto.rowsum"),
    "a list": (lambda x, n: [1, 2, 3][n], "Tensor"),
    "an array": (lambda x, n: np.array([1, 2, 3])[n], "Tensor"),
    "range": (lambda x, n: [x for _ in range(n)], "pto.range"),
    "int": (lambda x, n: int(x), "pto.item"),
    "a number's method": (lambda x, n: n.item(), None),
    "np.sqrt of a scalar": (lambda x, n: np.sqrt(n) * x, "on tiles"),
    "math of a scalar": (lambda x, n: x * round(n / 2), "//"),
    "where of scalars": (lambda x, n: pto.where(x > 0, n, 1), "pto.full"),
    "a choice that does not fit": (lambda x, n: pto.where(x > 0, 1 << 40, 1), None),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_error_says_what_kernels_have(what: str) -> None:
    body, help = REFUSED[what]
    with pytest.raises(PtoError) as caught:
        run(body)
    error = caught.value
    assert help is None or help in str(error.help), str(error)
    assert isinstance(error.span, Span) and Path(error.span.file).name == "test_other_names.py"


WORKS: dict[str, tuple[Made, Any, DType]] = {
    "np.where": (lambda x, n: np.where(x > 3, x, 0), np.where(A > 3, A, 0), F32),
    "np.exp": (lambda x, n: np.exp(x * 0), np.ones_like(A), F32),
    "np.minimum": (lambda x, n: np.minimum(x, n), np.minimum(A, 3), F32),
    "np.maximum, turned": (lambda x, n: np.maximum(n, x), np.maximum(A, 3), F32),
    "a number of NumPy": (lambda x, n: np.float32(2) * x, 2 * A, F32),
    "abs": (lambda x, n: abs(x) + abs(n - 5), abs(A) + 2, F32),
    "divmod of a tile": (lambda x, n: divmod(x, 3)[0] * 10 + divmod(x, 3)[1], A // 3 * 10 + A % 3, F32),
    "divmod by a tile": (lambda x, n: divmod(7, x * 0 + 2)[1], 0 * A + 1, F32),
    "round": (lambda x, n: round(x / 2), np.round(A / 2), F32),
    "math.floor and math.ceil": (lambda x, n: math.ceil(x / 2) - math.floor(x / 2), np.ceil(A / 2) - np.floor(A / 2), F32),
    "a dtype of NumPy": (lambda x, n: x if x.dtype == np.float32 else x * 0, A, F32),
    "a dtype by name": (lambda x, n: x if x.dtype == "float32" and x.dtype != "f16" else x * 0, A, F32),
    "divmod": (lambda x, n: x * divmod(n, 2)[0], A, F32),
    "np.minimum of scalars": (lambda x, n: x * np.minimum(n, 2), 2 * A, F32),
    "floats": (lambda x, n: pto.where(x > 0, 1.0, 0.0), np.where(A > 0, 1, 0), F32),
    "a float and a number": (lambda x, n: pto.where(x > 0, 1, 0.5), np.where(A > 0, 1, 0.5), F32),
    "whole numbers": (lambda x, n: pto.where(x > 0, 7, -1), np.where(A > 0, 7, -1), DType.I32),
    "truth values": (lambda x, n: pto.where(x > 0, False, True), A <= 0, DType.BOOL),
    "np.where of numbers": (lambda x, n: np.where(x > 0, np.float32(2), 0), np.where(A > 0, 2, 0), F32),
}


@pytest.mark.parametrize("what", WORKS)
def test_what_means_the_same_works(what: str) -> None:
    body, expected, dtype = WORKS[what]
    assert run(body, dtype).tolist() == np.asarray(expected).tolist()


def test_advice_names_ops_that_are_there() -> None:
    names = set(dir(pto))
    for name, text in INSTEAD.items():
        assert name not in names, name
        for said in text.split("pto.")[1:]:
            word = said.split("(")[0].split(" ")[0].rstrip(";:,.")
            assert word in names, (name, word)


def test_nothing_is_said_of_a_name_that_means_nothing() -> None:
    assert instead_of("qqqqq") is None and instead_of("rowsum") == "pto.rowsum(x)"


# ---- a Tensor parameter is no tile ----

@pytest.mark.parametrize("body", [lambda s: s + 1, lambda s: 1 - s, lambda s: s @ s, lambda s: s[0], lambda s: s.sum(), lambda s: -s, len,
                                  list, np.exp, np.asarray, lambda s: s > 0, lambda s: pto.exp(s), lambda s: s.__setitem__(0, 1)])
def test_a_tensor_parameter_is_loaded_in_pieces(body: Made) -> None:
    @kernel
    def k(s: In[Tensor], y: Out[Tile[1, 8, F32]]) -> None:
        pto.store(y, body(s))
    with pytest.raises(PtoError, match="is a Tensor, not a tile") as caught:
        k.ir_of(s=F32)
    assert "pto.load" in str(caught.value.help) or "pto.store" in str(caught.value.help)
    assert isinstance(caught.value.span, Span) and Path(caught.value.span.file).name == "test_other_names.py"


# ---- a kernel alone ----

@kernel
def piece(s: In[Tensor], y: Out[Tile[1, 8, F32]]) -> None:
    pto.store(y, pto.load(s, (0, 0), shape=(1, 8)))


@kernel
def scaled(x: In[Tile[4, 8, F32]], by: Scalar[F32], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * by)


@pytest.mark.parametrize("call, expected", [
    (lambda: piece.check("ascend_910b"), 'piece.check("ascend_910b", s=DType.F32)'),
    (lambda: piece.cost("ascend_910b"), 'piece.cost("ascend_910b", s=DType.F32)'),
    (lambda: piece.ir, "piece.ir_of(s=DType.F32)"), (lambda: piece.specialise(), "piece.specialise(s=DType.F32)"),
    (lambda: scaled.run(), "scaled.run(x, by, y)"), (lambda: scaled.run(A), "scaled.run(x, by, y)"),
    (lambda: piece.run(), "piece.run(s, y)"),
])
def test_what_a_kernel_alone_lacks_is_said_as_it_was_asked(call: Callable[[], object], expected: str) -> None:
    with pytest.raises(PtoError) as caught:
        call()
    assert (caught.value.code, caught.value.expected) == ("T101", expected)


def test_all_arguments_that_are_missing_are_named() -> None:
    with pytest.raises(PtoError) as caught:
        scaled.run()
    assert caught.value.found == "without x, by"
