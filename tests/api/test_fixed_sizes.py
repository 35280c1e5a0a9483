"""Extents that a body reads as numbers: they may not be bound anew, and what was not read may."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Dense, DenseDyn, DType, In, Out, P, PtoError, Symbol, Tensor, Tile, Workload, ceildiv, kernel, load, pto, workload

F32 = DType.F32
X, Y = Tensor(np.ones((8, 8), np.float32), name="X"), Tensor(np.zeros((8, 8), np.float32), name="Y")
blocks = DenseDyn(2)


@kernel
def two(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def ten(x: In[Tile[10, 8, F32]], y: Out[Tile[10, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def row(x: In[Tile[2, 8, F32]], y: Out[Tile[2, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def line(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]) -> None:
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


@pytest.mark.slow
def test_what_was_read_is_known_to_json_and_to_a_saved_program(tmp_path: Path) -> None:
    made = workload(picked)()
    again = Workload.from_json(made.to_json())
    assert again == made
    assert refused_at(again.compile(target="interp"), **sixteen_rows()) == ""
    made.compile().save(tmp_path / "saved")
    assert READ[picked] in refused_at(load(tmp_path / "saved"), **sixteen_rows())


# -- what was read outside of the body ---------------------------------------------------------------------------------
two_blocks = Dense[2]()


n_blocks = X.shape[0] // 4          # type: ignore[operator]


def by_a_number() -> None:
    for i in P(n_blocks):
        block(i)


def by_an_axis() -> None:
    for i in P(two_blocks):
        two[i](X[i * 4:].clip(4, 8), Y[i * 4:].clip(4, 8))


def nested() -> None:
    for i, j in P(2, 2):
        row[i, j](X[i * 4 + j * 2:i * 4 + j * 2 + 2], Y[i * 4 + j * 2:i * 4 + j * 2 + 2])


def flattened() -> None:
    for k in P(4):
        row[k](X[k // 2 * 4 + k % 2 * 2:][0:2], Y[k // 2 * 4 + k % 2 * 2:][0:2])


def backwards() -> None:
    for i in P(2):
        two[i](X[4 - i * 4:8 - i * 4], Y[4 - i * 4:8 - i * 4])


def picked_rows() -> None:
    for i in P(8):
        line[i](X[i], Y[i])


@pytest.mark.parametrize("body", [by_a_number, by_an_axis, nested, flattened, backwards, picked_rows])
def test_rows_that_no_task_reaches_are_pointed_out(body: Callable[[], None]) -> None:
    program = workload(body)().compile(target="interp")
    bound = sixteen_rows()
    with pytest.warns(UserWarning, match=r"tasks reach 8 of 16 positions of `[XY]` in dimension 0") as caught:
        program.run(**bound)
    assert len(caught) == 2 and Path(caught[0].filename).name == Path(__file__).name
    assert (bound["Y"][:8] == 2).all() and (bound["Y"][8:] == 0).all()
    program.run(X=np.ones((8, 8), np.float32), Y=np.zeros((8, 8), np.float32))      # filterwarnings makes another warning an error


table = Tensor(np.array([0, 1]), name="table")


def in_part() -> None:
    for i in P(1):
        block(i)


def by_a_table() -> None:
    for i in P.seq(2):
        two[i](X[table[i] * 4:table[i] * 4 + 4], Y[table[i] * 4:table[i] * 4 + 4])


def to_the_end() -> None:
    for i in P(blocks):
        block(i)


@pytest.mark.parametrize("body", [in_part, by_a_table, to_the_end])
def test_rows_are_not_pointed_out_where_a_run_decides_or_not_all_were_reached(body: Callable[[], None]) -> None:
    workload(body)().compile(target="interp").run(**sixteen_rows())


def test_a_tile_that_has_all_rows_of_an_array_reaches_what_a_run_binds() -> None:
    """A clip to more rows than a tensor has reaches all rows of a longer one: up to the clip, behind which rows are pointed out."""
    def one_tile() -> None:
        ten[0](X.clip(10, 8), Y.clip(10, 8))

    program = workload(one_tile)().compile(target="interp")
    for rows, reached in ((9, 9), (10, 10), (12, 10)):
        bound = {"X": np.ones((rows, 8), np.float32), "Y": np.zeros((rows, 8), np.float32)}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program.run(**bound)
        assert [f"tasks reach {reached} of {rows}" in str(one.message) for one in caught] == [True, True] * (reached < rows)
        assert bound["Y"].sum() == 16 * reached


def test_rows_of_an_extent_that_a_run_says_are_no_declared_rows() -> None:
    n = Symbol("n")
    rows, out = (Tensor(None, (n, 8), F32, name=name) for name in ("rows", "out"))

    def one_tile() -> None:
        ten[0](rows.clip(10, 8), out.clip(10, 8))

    bound = {"rows": np.ones((7, 8), np.float32), "out": np.zeros((7, 8), np.float32)}
    workload(one_tile)().compile(target="interp").run(**bound, n=7)      # filterwarnings makes a warning an error
    assert (bound["out"] == 2).all()


def test_an_index_that_a_symbol_bounds_freezes_no_extent() -> None:
    """Rows 0 to 3 are all that n % 4 can reach, and they are all that there are; yet a run says which, so no run warns."""
    table, out = Tensor(np.ones((4, 8), np.float32), name="table"), Tensor(np.zeros((2, 8), np.float32), name="out")
    n = Symbol("n")

    @workload
    def chosen() -> None:
        for i in P(2):
            line[i](table[n % 4:n % 4 + 1], out[i:i + 1])

    @workload
    def counted() -> None:
        for i in P.seq(8):                 # by numbers alone: the four declared rows, whatever is bound
            line[i](table[i % 4:i % 4 + 1], out[i // 4:i // 4 + 1])

    longer = np.full((9, 8), 3, np.float32)
    chosen().compile("interp").run(n=6, table=longer)
    np.testing.assert_array_equal(out.data, 6.0)
    with pytest.warns(UserWarning, match="tasks reach 4 of 9 positions of `table`"):
        counted().compile("interp").run(table=longer)


def test_a_tensor_of_a_size_that_runs_say_may_be_read_in_part() -> None:
    """The shape says that a run binds any number of rows, and the workload reads the first alone."""
    n = Symbol("n")

    @workload
    def first() -> None:
        line[0](Tensor(shape=(n, 8), dtype=F32, name="X")[0:1], Tensor(shape=(1, 8), dtype=F32, name="Y")[0:1])

    bound = {"X": np.full((9, 8), 3, np.float32), "Y": np.zeros((1, 8), np.float32)}
    first().compile("interp").run(**bound, n=9)      # filterwarnings makes a warning an error
    assert bound["Y"].sum() == 48
