"""Extents that a body reads as numbers: they may not be bound anew, and what was not read may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DenseDyn, DType, In, Out, P, PtoError, Tensor, Tile, Workload, ceildiv, kernel, load, pto, workload

F32 = DType.F32
X, Y = Tensor(np.ones((8, 8), np.float32), name="X"), Tensor(np.zeros((8, 8), np.float32), name="Y")
blocks = DenseDyn(2)


@kernel
def two(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


def block(i: object, cols: int = 8) -> None:
    two[i](X[i * 4:i * 4 + 4, 0:cols], Y[i * 4:i * 4 + 4])     # type: ignore[operator]


def rows_of(tensor: Tensor) -> int:
    rows: int = tensor[0:].shape[0]     # type: ignore[assignment]
    return rows


def picked() -> None:
    for i in P(ceildiv(X.shape[0], 4)):
        block(i)


def unpacked() -> None:
    rows, cols = X.shape
    for i in P(rows // 4):      # type: ignore[operator]
        block(i, cols)          # type: ignore[arg-type]


def unrolled() -> None:
    for i in range(X.shape[0] // 4):     # type: ignore[operator]
        block(i)


def in_a_view() -> None:
    for i in P(rows_of(X) // 4):
        block(i)


def compared() -> None:
    if X.shape[0] > 4:           # type: ignore[operator]
        for i in P(blocks):
            block(i)


def by_its_length() -> None:
    for i in P(len(X) // 4):
        block(i)


def called() -> None:
    for _ in P.seq(1):
        workload(unpacked)()


def last_alone() -> None:
    for i in P(blocks):
        block(i, X.shape[1])     # type: ignore[arg-type]


def unpacked_for_the_last() -> None:
    _rows, cols = X.shape
    for i in P(blocks):
        block(i, cols)           # type: ignore[arg-type]


def of_a_piece() -> None:
    for i in P(blocks):
        block(i, X[0:4, 0:8].shape[1])     # type: ignore[arg-type]


def shown() -> None:
    assert "8" in f"{X.shape}" and X.rank == 2
    for i in P(blocks):
        block(i)


READ = {picked: "ceildiv(X.shape[0], 4)", unpacked: "P(rows // 4)", unrolled: "range(X.shape[0] // 4)", in_a_view: "tensor[0:].shape[0]",
        compared: "if X.shape[0] > 4", by_its_length: "len(X) // 4", called: "P(rows // 4)"}
NOT_READ = [last_alone, unpacked_for_the_last, of_a_piece, shown]


def sixteen_rows() -> dict[str, np.ndarray]:
    return {"X": np.ones((16, 8), np.float32), "Y": np.zeros((16, 8), np.float32)}


def refused_at(program: object, **bindings: object) -> str:
    """Return the line that the refusal names; a workload of JSON knows none."""
    with pytest.raises(PtoError) as caught:
        program.run(**bindings)     # type: ignore[attr-defined]
    assert caught.value.code == "R113" and caught.value.found == "16: an array of shape [16, 8]"
    if not caught.value.also:
        return ""
    (what, place), = caught.value.also
    assert what == "`X.shape[0]` was read as a number here"
    assert Path(place.file).name == Path(__file__).name
    return Path(__file__).read_text().splitlines()[place.line - 1]


@pytest.mark.parametrize("body", READ)
def test_an_extent_that_was_read_is_bound_as_declared(body: Callable[[], None]) -> None:
    program = workload(body)().compile(target="interp")
    program.run()
    assert READ[body] in refused_at(program, **sixteen_rows())
    program.run(X=np.full((8, 8), 3, np.float32), Y=(y := np.zeros((8, 8), np.float32)))
    assert (y == 6).all()


@pytest.mark.parametrize("body", NOT_READ)
def test_other_extents_are_bound_anew(body: Callable[[], None]) -> None:
    bound = sixteen_rows()
    workload(body)().compile(target="interp").run(blocks=4, **bound)
    assert (bound["Y"] == 2).all()


def test_what_was_read_is_known_to_json_and_to_a_saved_program(tmp_path: Path) -> None:
    made = workload(picked)()
    again = Workload.from_json(made.to_json())
    assert again == made
    assert refused_at(again.compile(target="interp"), **sixteen_rows()) == ""
    made.compile().save(tmp_path / "saved")
    assert READ[picked] in refused_at(load(tmp_path / "saved"), **sixteen_rows())


def test_reading_outside_of_a_body_says_nothing() -> None:
    n = X.shape[0] // 4          # type: ignore[operator]

    @workload
    def plain() -> None:
        for i in P(n):
            block(i)

    plain().compile(target="interp").run(**sixteen_rows())     # the first two blocks, as it says
