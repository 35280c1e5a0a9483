"""Memory of a sanitized run: elements that nobody wrote, own bodies that leave their regions, scratch; and what is no fault."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, InOut, Out, P, Program, PtoError, Scalar, Tensor, Tile, Workload, kernel, pto, workload

F32, I32 = DType.F32, DType.I32

A = Tensor(np.arange(1, 25, dtype=np.float32).reshape(6, 4), name="A")
B = Tensor(np.zeros((6, 4), np.float32), name="B")
IDS = Tensor(np.array([[0], [2], [1], [0]], np.int32), name="ids")


def run(w: Workload, **bindings: object) -> Program:
    """Run a workload sanitized."""
    return w.compile(sanitize=True).run(**bindings)


def error_of(w: Workload) -> PtoError:
    """Return what a sanitized run ends with."""
    with pytest.raises(PtoError) as caught:
        run(w)
    assert "program.replay(0x" in caught.value.notes[-1]
    return caught.value


# ---- elements that nobody wrote ----

@kernel
def double(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def upper(x: In[Tile[2, 4, F32]], y: Out[Tensor]) -> None:
    pto.store(y, x[0:1, :], (0, 0))


def staged(rows: int) -> Workload:
    """A into T, the first `rows` blocks of it; T into B."""
    T = Tensor.empty((6, 4), F32, name="T")

    @workload
    def w() -> None:
        for b in P(rows):
            double[b](A[2 * b:2 * b + 2], T[2 * b:2 * b + 2])
        for b in P(3):
            double[b](T[2 * b:2 * b + 2], B[2 * b:2 * b + 2])
    return w()


def test_what_is_written_before_it_is_read_is_no_fault() -> None:
    run(staged(3))
    assert np.array_equal(B.data, A.data * 4)   # type: ignore[operator]


def test_a_block_that_nobody_wrote() -> None:
    error = error_of(staged(2))
    assert error.code == "R202"
    assert error.message == ("task double[b=2]: what it gives depends on row 0, column 0 of `x`, an element of `T` that nobody has written")
    assert error.found == "8 elements of `x` that nobody has written"


def test_the_same_program_runs_twice() -> None:
    program = staged(2).compile(sanitize=True)
    for _ in range(2):
        with pytest.raises(PtoError, match="nobody has written"):
            program.run()
    good = staged(3).compile(sanitize=True)
    for _ in range(2):
        good.run()


def test_rows_that_a_kernel_does_not_store() -> None:
    T = Tensor.empty((6, 4), F32, name="T")

    @workload
    def w() -> None:
        upper(A[0:2], T[0:2])
        double(T[0:2], B[0:2])
    error = error_of(w())
    assert "depends on row 1, column 0 of `x`, an element of `T`" in error.message
    assert error.found == "4 elements of `x` that nobody has written"


def test_what_a_kernel_does_not_use_it_may_be_given() -> None:
    T = Tensor.empty((6, 4), F32, name="T")

    @kernel
    def first_row(x: In[Tile[2, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, x[0:1, :] + 1)

    @kernel
    def kept(x: In[Tile[2, 4, F32]], row: Scalar[I32], y: Out[Tile[2, 4, F32]]) -> None:
        pto.store(y, pto.where(row > pto.iota((1, 2), I32).T, x, 0))

    @workload
    def w() -> None:
        upper(A[0:2], T[0:2])
        first_row(T[0:2], B[0])
        kept(T[0:2], 1, B[2:4])
    run(w())
    assert np.array_equal(B.data[0], A.data[0] + 1)   # type: ignore[index]
    assert np.array_equal(B.data[2:4], [A.data[0], [0, 0, 0, 0]])   # type: ignore[index]


@pytest.mark.slow
def test_pieces_of_a_region_are_looked_at_not_the_region() -> None:
    T = Tensor.empty((6, 4), F32, name="T")

    @kernel
    def piece(x: In[Tensor], row: Scalar[I32], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, pto.load(x, (row, 0), shape=(1, 4)))

    @workload
    def w(row: int) -> None:
        upper(A[0:2], T[3:5])
        piece(T, row, B[0])
    run(w(3))
    assert np.array_equal(B.data[0], A.data[0])   # type: ignore[index]
    assert "depends on row 4, column 0 of `x`" in error_of(w(4)).message


def test_an_index_that_nobody_wrote_is_named_before_its_guard() -> None:
    T = Tensor.empty((4, 1), I32, name="T")

    @kernel
    def number(y: Out[Tile[2, 1, I32]]) -> None:
        pto.store(y, pto.iota((1, 2), I32).T)

    @kernel
    def picked(x: In[Tensor], at: In[Tile[4, 1, I32]], y: Out[Tile[4, 4, F32]]) -> None:
        pto.store(y, pto.gather(x, at, cols=4))

    @workload
    def w() -> None:
        number(T[0:2])
        picked(A, T, B[0:4])
    error = error_of(w())
    assert error.code == "R202" and "depends on row 3, column 0 of `at`" in error.message


@pytest.mark.sampled(2)
@pytest.mark.parametrize("value", [-1, 0x3a3a3a3a, 0x33333333, 0])
def test_a_value_that_looks_like_a_pattern_counts_as_written(value: int) -> None:
    T = Tensor.empty((1, 4), I32, name="T")
    OUT = Tensor(np.zeros((1, 4), np.int32), name="OUT")

    @kernel
    def put(y: Out[Tile[1, 4, I32]]) -> None:
        pto.store(y, pto.full((1, 4), value, I32))

    @kernel
    def add(x: In[Tile[1, 4, I32]], y: Out[Tile[1, 4, I32]]) -> None:
        pto.store(y, x + 1)

    @workload
    def w() -> None:
        put(T)
        add(T, OUT)
    run(w())
    assert (OUT.data == value + 1).all()   # type: ignore[union-attr]


@pytest.mark.slow
def test_an_accumulator_needs_a_first_value() -> None:
    T = Tensor.empty((2, 4), F32, name="T")

    @kernel
    def accumulate(x: In[Tile[2, 4, F32]], total: InOut[Tile[2, 4, F32]]) -> None:
        pto.store(total, total + x)

    @workload
    def w(starts: bool) -> None:
        if starts:
            double(A[0:2], T)
        for b in P.seq(3):
            accumulate[b](A[2 * b:2 * b + 2], T)
        double(T, B[0:2])
    run(w(True))
    expected = (A.data[0:2] * 2 + A.data.reshape(3, 2, 4).sum(0)) * 2   # type: ignore[index, union-attr]
    assert np.array_equal(B.data[0:2], expected)   # type: ignore[index]
    assert "task accumulate[b=0]: what it gives depends on row 0, column 0 of `total`" in error_of(w(False)).message


def test_an_array_that_is_bound_has_contents() -> None:
    T = Tensor.empty((2, 4), F32, name="T")

    @workload
    def w() -> None:
        double(T, B[0:2])
    run(w(), T=np.ones((2, 4), np.float32))
    assert (B.data[0:2] == 2).all()   # type: ignore[index, union-attr]


def test_what_values_from_nowhere_look_like() -> None:
    T = Tensor.empty((4, 4), F32, name="T")
    T.data[:] = 3   # type: ignore[index]

    @workload
    def w() -> None:
        double(A[0:2], T[0:2])
    run(w())
    assert np.array_equal(T.data[0:2], A.data[0:2] * 2) and np.isnan(T.data[2:4]).all()   # type: ignore[index, call-overload]


@pytest.mark.parametrize("deps", [Deps.hybrid(), Deps.infer_bytes_overlap()], ids=str)
def test_values_printed_are_printed_once(deps: Deps, capsys: pytest.CaptureFixture[str]) -> None:
    T = Tensor.empty((2, 4), F32, name="T")

    @kernel
    def shown(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
        pto.print("first", pto.rowsum(x[0:1, :]))
        pto.store(y, x)

    @workload
    def w() -> None:
        shown(A[0:2], T)
        upper(T, B)
    run(w().task_graph(deps=deps))
    assert capsys.readouterr().out.count("first") == 1


# ---- own bodies ----

def body(text: str, *, scratch_bytes: int = 0) -> Workload:
    """A task on the middle columns of rows 1 and 2, with this body."""
    @kernel(c_src=text, scratch_bytes=scratch_bytes) if scratch_bytes else kernel(c_src=text)
    def own(x: In[Tile[2, 2, F32]], y: Out[Tile[2, 2, F32]]) -> None: ...

    @workload
    def w() -> None:
        own(A[1:3, 1:3], B[1:3, 1:3])
    return w()


LOOP = "for (int64_t r = {0}; r < x_rows{1}; r++) for (int64_t c = {2}; c < x_cols{3}; c++) "
STORE = "y[r * y_row_step + c * y_col_step] = x[r * x_row_step + c * x_col_step];"


def test_a_body_that_stays_in_its_regions_is_no_fault() -> None:
    B.data[:] = -1   # type: ignore[index]
    program = run(body(LOOP.format(0, "", 0, "") + STORE))
    assert np.array_equal(B.data[1:3, 1:3], A.data[1:3, 1:3])   # type: ignore[index]
    assert (B.data == -1).sum() == 20   # type: ignore[union-attr]
    assert program.sanitized is not None and program.sanitized.unwatched == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("bounds", "at"), [
    ((0, "", 0, " + 1"), "row 0, column 2"),          # into the gap between two rows
    ((0, " + 1", 0, ""), "row 1, column 4"),          # below
    ((-1, "", 0, ""), "row 0, column -4"),            # above
    ((0, "", -1, ""), "row 0, column -1"),
])
def test_a_body_that_writes_outside(bounds: tuple[object, ...], at: str) -> None:
    before = B.data.copy()   # type: ignore[union-attr]
    error = error_of(body(LOOP.format(*bounds) + "y[r * y_row_step + c * y_col_step] = 1;"))
    assert error.code == "R203"
    assert error.message == f"task own: its own C body writes outside its regions, at {at} of `y`"
    assert np.array_equal(before, B.data)   # type: ignore[arg-type]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("far", [1, 2, 64, 300])
def test_a_body_that_copies_the_outside_to_the_outside(far: int) -> None:
    error = error_of(body(f"y[0] = x[0]; y[1 + {far}] = x[1 + {far}];"))
    assert error.code == "R203" and "writes outside its regions" in error.message


def test_a_body_that_writes_what_it_reads() -> None:
    error = error_of(body("((float *)x)[0] = 1; y[0] = 0;"))
    assert error.code == "R203" and "at row 0, column 0 of `x`" in error.message


def test_a_body_that_reads_outside() -> None:
    error = error_of(body(LOOP.format(0, "", 0, "") + "y[r * y_row_step + c] = x[r * x_row_step + c + 1];"))
    assert error.code == "R203"
    assert error.message == "task own: what its own C body gives depends on memory outside the region of `x`"


def test_a_body_that_reads_its_out() -> None:
    error = error_of(body("y[0] += 1;"))
    assert error.code == "R202"
    assert error.message == "task own: what it gives depends on what `y` holds before it, and it is an Out"


def test_what_a_body_does_not_store_stays() -> None:
    B.data[:] = -7   # type: ignore[index]
    run(body("y[y_row_step] = x[0];"))
    assert B.data[2, 1] == A.data[1, 1] and (B.data == -7).sum() == 23   # type: ignore[index, union-attr]


def test_a_body_that_leaves_its_scratch() -> None:
    fine = "for (int i = 0; i < 64; i++) scratch[i] = 0; y[0] = scratch[63];"
    run(body(fine, scratch_bytes=64))
    error = error_of(body(fine.replace("64", "200").replace("63", "0"), scratch_bytes=64))   # what stages `x` lies behind the 64
    assert error.code == "R203" and error.message == "task own: its own C body writes outside its scratch memory"


def test_a_body_with_a_state_is_run_and_counted() -> None:
    program = run(body("static int n; *y = (float)++n;"))
    assert program.sanitized is not None and program.sanitized.unwatched == 1
    assert B.data[1, 1] == 1   # type: ignore[index]


def test_an_inout_of_a_body_is_read_and_written() -> None:
    @kernel(c_src="for (int64_t c = 0; c < y_cols; c++) y[c * y_col_step] += 1;")
    def bump(y: InOut[Tile[1, 4, F32]]) -> None: ...

    @workload
    def w() -> None:
        for b in P.seq(3):
            bump[b](B[0])
    B.data[:] = 1   # type: ignore[index]
    run(w())
    assert (B.data[0] == 4).all() and (B.data[1:] == 1).all()   # type: ignore[index, union-attr]


def test_a_body_in_place_sees_what_was_there() -> None:
    @kernel(c_src="for (int64_t c = 0; c < 4; c++) y[c] = x[3 - c];")
    def turn(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None: ...

    @workload
    def w() -> None:
        turn(B[0], B[0])
    B.data[0] = [1, 2, 3, 4]   # type: ignore[index]
    run(w())
    assert B.data[0].tolist() == [4, 3, 2, 1]   # type: ignore[index]


def test_a_body_writes_an_intermediate_and_a_part_of_it_is_missing() -> None:
    T = Tensor.empty((2, 4), F32, name="T")

    @kernel(c_src="for (int64_t c = 0; c < 4; c++) y[c] = x[c];")
    def one_row(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None: ...

    @workload
    def w() -> None:
        one_row(A[0:2], T)
        double(T, B[0:2])
    assert "depends on row 1, column 0 of `x`, an element of `T`" in error_of(w()).message


# ---- indices of gather and scatter ----

@pytest.mark.parametrize("bad", [-1, 6])
def test_an_index_outside_ends_the_task(bad: int) -> None:
    @kernel
    def picked(x: In[Tensor], at: In[Tile[4, 1, I32]], y: Out[Tile[4, 4, F32]]) -> None:
        pto.store(y, pto.gather(x, at, cols=4))

    @workload
    def w() -> None:
        picked(A, IDS, B[0:4])
    IDS.data[2, 0] = 1   # type: ignore[index]
    run(w())
    IDS.data[2, 0] = bad   # type: ignore[index]
    error = error_of(w())
    assert error.code == "R101" and str(bad) in str(error)
