"""Cards of tensors and views: shape, memory, values as they stand, and where a view lies in its tensor."""

from __future__ import annotations

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto_wsp import DenseDyn, DType, Monotone, P, Symbol, Tensor, workload
from pto_wsp.ir.tensor import TensorView
from pto_wsp.view.card import Card, MapsPart, RegionMap, TablePart, ValuesPart
from pto_wsp.view.html import html_of
from tests.view.test_cards import text_of

F32 = DType.F32


def facts(view: TensorView) -> dict[str, str]:
    (part,) = [part for part in view.card.parts if isinstance(part, ValuesPart)]
    return {value.label: value.value for value in part.values}


def region(view: TensorView) -> RegionMap:
    (part,) = [part for part in view.card.parts if isinstance(part, MapsPart)]
    return part.maps[0]


def first(view: TensorView) -> TablePart:
    (part,) = [part for part in view.card.parts if isinstance(part, TablePart)]
    return part


def numbered() -> Tensor:
    return Tensor(np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8), name="X")


def test_a_tensor_says_its_shape_memory_and_values() -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    data[1, 2] = np.nan
    x = Tensor(data, name="X")
    assert facts(x) == {"shape": "3 × 4", "dtype": "f32", "strides": "4, 1", "memory": "your NumPy array, 48 bytes", "values": "0 … 11",
                        "NaN": "1"}
    assert first(x).rows == (("0", "0", "1", "2", "3"), ("1", "4", "5", "nan", "7"), ("2", "8", "9", "10", "11"))
    assert x.card.title == "X" and x.card.subtitle == "Tensor"
    data[0, 0] = -5.0
    assert facts(x)["values"] == "-5 … 11"     # as it stands


@pytest.mark.parametrize(("take", "shape", "block", "corner"), [
    (lambda x: x[1, 2:4], "2 × 8", "[1, 2:4, :]", "64"),
    (lambda x: x[1].T, "8 × 6", "[1, :, :]", "48"),
    (lambda x: x[:, 0:6:2, 7], "4 × 3", "[:, 0:5, 7]", "7"),
    (lambda x: x[3].clip(4, None), "4 × 8", "[3, 0:4, :]", "144"),
    (lambda x: x.reshape(24, 8)[12:18], "6 × 8", "[2, :, :]", "96"),
])
def test_a_view_lies_in_its_tensor(take: Any, shape: str, block: str, corner: str) -> None:
    view = take(numbered())
    assert facts(view)["shape"] == shape and view.card.subtitle == "View of X"
    assert (region(view).region, region(view).use, region(view).about) == (block, "view", "[4, 6, 8] f32")
    assert first(view).rows[0][1] == corner


def test_a_view_of_an_array_with_other_strides() -> None:
    turned = Tensor(np.arange(24, dtype=np.float32).reshape(4, 6)[::-1, ::2].T, name="T")      # T[i, j] = 6 * (3 - j) + 2 * i
    assert facts(turned)["memory"].endswith("not contiguous") and facts(turned)["strides"] == "2, -6"
    view = turned[1:3, 2]
    assert region(view).region == "[1:3, 2]" and first(view).rows == (("0", "8", "10"),)


def test_views_of_tensors_without_memory_have_a_map_and_no_values() -> None:
    view = Tensor(shape=(4, 16), dtype=F32, name="D")[1:3, 4:8]
    assert region(view).region == "[1:3, 4:8]" and view.card.state == "no values yet"
    assert "values" not in facts(view) and facts(view)["memory"] == "none yet: a run binds an array by name"


def test_symbols_stay_symbols() -> None:
    n, rows = Symbol("N"), DenseDyn(5)
    open_one = Tensor(shape=(n, 8), dtype=F32, name="S")
    assert facts(open_one)["shape"] == "N × 8" and open_one.card.state == "depends on N"
    assert "(now 5)" in facts(numbered()[:, :rows.size])["shape"]

    seen: list[Card] = []

    @workload
    def looping() -> None:
        for b in P(4):
            seen.append(numbered()[b, 0:2].card)

    looping()
    assert seen[0].state == "depends on b" and not any(isinstance(part, MapsPart | TablePart) for part in seen[0].parts)


def test_intermediates_and_contracts_say_so() -> None:
    assert facts(Tensor.empty((4, 8), F32, name="tmp"))["memory"] == "its own, 128 bytes; undefined before the first write"
    assert facts(Monotone(Tensor(np.array([0, 2, 5]))))["declared"] == "monotone"


@pytest.mark.parametrize("data", [np.zeros((0, 4), np.float32), np.zeros((), np.float32), np.ones((2, 2), np.bool_), np.full(4, np.nan),
                                  np.ones(3, ml_dtypes.bfloat16), np.ones((2, 2, 2, 2), ml_dtypes.float8_e4m3fn)], ids=range(6))
def test_other_shapes_and_dtypes(data: Any) -> None:
    card = Tensor(data).card
    assert Card.model_validate_json(card.model_dump_json()) == card
    text_of(html_of(card))
    assert str(card)


@pytest.mark.parametrize("data", [np.zeros((2000, 2000), np.float32), np.zeros((2000, 2000), np.float32).T,
                                  np.broadcast_to(np.zeros((), np.float32), (1 << 14, 1 << 14))], ids=["rows", "columns", "one element"])
def test_large_tensors_are_sampled(data: Any) -> None:
    x = Tensor(data)
    begin = time.process_time()
    said = facts(x)
    assert time.process_time() - begin < 1.0      # 20 ms
    assert "in a sample of " in said["values"] and said["NaN"].startswith("none, in a sample of ")


def test_names_of_tensors_are_text() -> None:
    x = Tensor(np.zeros((2, 2), np.float32), name="<script>alert(1)</script>")
    assert "<script>alert(1)</script>" in text_of(html_of(x[0:1].card))
    assert "text/html" in x._repr_mimebundle_() and x._repr_mimebundle_()["text/plain"] == repr(x)
