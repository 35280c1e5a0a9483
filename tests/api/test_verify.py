"""verify(): the artifact against the NumPy meaning, on copies of what a run would work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto_wsp.targets.cpu_sim_build as cpu_sim_build
from pto_wsp import (
    Channel,
    DenseDyn,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    consume,
    kernel,
    load,
    pto,
    send,
    slot_load_u64,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.c.cpu_sim import SourceTree
from pto_wsp.errors import BindingError, CalendarError, DisagreementError, MissingBodyError, ProgramStateError, TaskFailedError
from tests.caches import with_runtime

F32, I64 = DType.F32, DType.I64
ROW = Tile[1, 64, F32]


def noise(*shape: int) -> np.ndarray[Any, Any]:
    """Return f32 noise."""
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@kernel
def softmax(x: In[ROW], y: Out[ROW], total: Out[Tile[1, 1, F32]]) -> None:
    e = pto.exp(x - pto.rowmax(x))
    pto.store(total, pto.rowsum(e))
    pto.store(y, e / pto.rowsum(e))


@kernel
def count(by: Scalar[I64], n: InOut[Tile[1, 1, I64]]) -> None:
    pto.store(n, n + by)


@pytest.fixture(scope="module")
def rows() -> Program:
    """Return a program whose rows are softmaxed, and counted in place."""
    n = DenseDyn(6)
    X, Y = Tensor(noise(6, 64), name="X"), Tensor(np.zeros((6, 64), np.float32), name="Y")
    S = Tensor(np.zeros((6, 1), np.float32), name="S")
    N, by = Tensor(np.array([[40], [2]], np.int64), name="N"), Symbol("by")

    @workload
    def rows() -> None:
        for b in P(n):
            softmax[b](X[b], Y[b], S[b])
        for b in P.seq(n):
            count[b](by, N[0])
    return rows().compile()


def test_what_agrees_is_printed_with_errors_and_tolerances(rows: Program) -> None:
    found = rows.verify(by=3)
    assert found.n_tasks == 12
    assert [(one.name, one.shape) for one in found.tensors] == [("Y", (6, 64)), ("S", (6, 1)), ("N", (2, 1))]
    _, total, n = found.tensors
    assert all(one.worst is None or 0 < one.error <= one.allowed for one in found.tensors)
    sums = np.exp(noise(6, 64) - noise(6, 64).max(1, keepdims=True)).sum(1)
    assert total.worst is not None      # the order of a sum is another one, and this data shows it
    assert total.allowed == pytest.approx(64 * 2 ** -23 * (sums[total.worst[0]] + sums.max()), rel=1e-5)
    assert n.worst is None and str(n) == "N  i64[2, 1]  the same"
    assert str(found).splitlines()[0] == "3 tensors of 12 tasks are as NumPy has them"


def test_nothing_of_the_user_changes(rows: Program) -> None:
    y, n, x = np.full((6, 64), 7, np.float32), np.array([[1], [1]], np.int64), noise(2, 64)
    rows.run(by=1, n=2, X=x, Y=y[:2], N=n, S=np.zeros((2, 1), np.float32))
    stats, kept = rows.stats, (y.copy(), n.copy())
    found = rows.verify(by=5, X=noise(9, 64), Y=np.zeros((9, 64), np.float32), S=np.zeros((9, 1), np.float32), n=9)
    assert found.n_tasks == 18 and found.tensors[0].shape == (9, 64)
    assert np.array_equal(y, kept[0]) and np.array_equal(n, kept[1])
    assert rows.stats == stats and rows.stats.task_count == 4
    assert rows.graph.edges_into(3)[0].reasons[0] == "RAW" and "N[0" in str(rows.graph.edges_into(3))     # regions of the run's own arrays


def test_what_is_read_and_written_under_two_names_is_held_to_one_tolerance(rows: Program) -> None:
    both = noise(6, 64)
    assert rows.verify(by=1, X=both, Y=both).tensors[0].error > 0


def test_tolerances_act(rows: Program) -> None:
    assert all(one.allowed in (0, 10.0) for one in rows.verify(by=1, rtol=0, atol=10).tensors)
    with pytest.raises(DisagreementError, match="is not what NumPy has") as caught:
        rows.verify(by=1, rtol=0, atol=0)
    assert "within" not in str(caught.value.expected)


@pytest.mark.parametrize("given", [{"rtol": -1.0}, {"atol": float("nan")}, {"rtol": "much"}, {"atol": True}, {"atol": float("inf")}])
def test_a_tolerance_that_is_none(rows: Program, given: Mapping[str, Any]) -> None:
    with pytest.raises(BindingError, match=f"takes a number as {next(iter(given))}"):
        rows.verify(by=1, **given)


def test_what_does_not_fit_is_refused_as_in_a_run(rows: Program) -> None:
    with pytest.raises(BindingError, match="nothing called `Z`"):
        rows.verify(Z=1)
    assert rows.is_complete()


def test_not_while_it_runs(rows: Program) -> None:
    rows.execute(by=1)
    with pytest.raises(ProgramStateError, match="running already"):
        rows.verify(by=1)
    rows.synchronize()


@kernel(c_src="""
    for (int64_t c = 0; c < x_cols; ++c)
        y[c * y_col_step] = x[c * x_col_step] * (x[c * x_col_step] > wrong_from ? 3 : 2);
    return 0;
""")
def doubled(x: In[ROW], wrong_from: Scalar[F32], y: Out[ROW]) -> None:
    pto.store(y, x * 2)


@kernel
def shifted(x: In[ROW], y: Out[ROW]) -> None:
    pto.store(y, x + 1)


@pytest.fixture(scope="module")
def chained() -> Program:
    """Return a program with a C body that is wrong for numbers above `limit`, on whose results other tasks go on."""
    X, A = (Tensor(shape=(4, 64), dtype=F32, name=name) for name in "XA")
    T, limit = Tensor.empty((4, 64), F32, name="T"), Symbol("limit", F32)

    @workload
    def chained() -> None:
        for b in P(4):
            doubled[b](X[b], limit, T[b])
        for b in P(4):
            shifted[b](T[b], A[b])
    return chained().compile()


def test_a_wrong_body_is_named_with_task_and_element(chained: Program) -> None:
    x, a = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    x[2, 9] = x[3, 1] = 8
    assert chained.verify(X=x, A=a, limit=9.0).n_tasks == 8
    with pytest.raises(DisagreementError) as caught:
        chained.verify(X=x, A=a, limit=5.0)
    error = caught.value
    # not A, which follows from it
    assert error.message == "`T[2, 9]` is not what NumPy has: task 2 `doubled[b=2]` is the last to write it"
    assert error.expected is not None and error.expected.startswith("16.0, within ")
    assert error.found == "24.0"
    assert error.notes == ("2 of 256 elements of `T` are off, the worst by 8 at [2, 9]", "`A` differs as well, in 2 of 256 elements")
    assert error.span is not None and "doubled[b](X[b], limit, T[b])" in str(error) and "its own C body" in str(error)
    assert not a.any()


def test_a_loaded_program_verifies_too(chained: Program, tmp_path: Path) -> None:
    chained.save(tmp_path / "away")
    loaded = load(tmp_path / "away")
    x, a = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    assert str(loaded.verify(X=x, A=a, limit=1.0)).splitlines() == [
        "2 tensors of 8 tasks are as NumPy has them", "T  f32[4, 64]  the same", "A  f32[4, 64]  the same"]
    with pytest.raises(DisagreementError, match=r"`T\[0, 0\]`"):
        loaded.verify(X=x, A=a, limit=0.0)


def test_arrays_that_share_memory_still_do(chained: Program) -> None:
    x = np.ones((4, 64), np.float32)
    found = chained.verify(X=x, A=x, T=x, limit=5.0)      # in place: ((1 · 2) + 1), and none of it in the user's array
    assert [one.worst for one in found.tensors] == [None, None] and (x == 1).all()
    with pytest.raises(DisagreementError, match=r"\[0, 0\]` is not what NumPy has: task 4 `shifted\[b=0\]` is the last to write it"):
        chained.verify(X=x, A=x, T=x, limit=0.0)          # by the name of A, whichever tensor is looked at
    backwards = noise(8, 64)[::-2]
    assert chained.verify(X=backwards, A=backwards[::-1], limit=50.0).n_tasks == 8


def test_generated_code_that_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, Y = Tensor(noise(3, 64), name="X"), Tensor(np.zeros((3, 64), np.float32), name="Y")

    @workload
    def one_more() -> None:
        for b in P(3):
            shifted[b](X[b], Y[b])

    def wrong(*args: Any) -> SourceTree:
        tree = emit(*args)
        changed = {name: text.replace("1.0f", "1.0001f") for name, text in tree.files.items()}
        assert changed != tree.files
        return replace(tree, files=changed)

    emit = cpu_sim_build.emit_cpu_sim
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    monkeypatch.setattr(cpu_sim_build, "emit_cpu_sim", wrong)
    program = one_more().compile()
    with pytest.raises(DisagreementError, match=r"`Y\[0, 0\]` is not what NumPy has: task 0 `shifted\[b=0\]`") as caught:
        program.verify()
    assert "192 of 192" in caught.value.notes[0] and caught.value.help is not None and "sanitize" in caught.value.help
    assert program.verify(atol=1e-3).tensors[0].error == pytest.approx(1e-4, rel=0.01)


@kernel(c_src="((float *)x)[0] = 5; y[0] = 1; return 0;")
def reaching(x: In[ROW], y: Out[Tile[1, 1, F32]]) -> None:
    pto.store(y, pto.full((1, 1), 1, F32))


@kernel(c_src="y[0] = 1; return x[0] > 0 ? 7 : 0;")
def failing(x: In[ROW], y: Out[Tile[1, 1, F32]]) -> None:
    pto.store(y, pto.full((1, 1), 1, F32))


@kernel(c_src="y[0] = 1; return 0;")
def without(x: In[ROW], y: Out[Tile[1, 1, F32]]) -> None: ...


def of_one(call: Any, x: np.ndarray[Any, Any] | None = None, **options: Any) -> Program:
    """Return a program of one task."""
    X, Y = Tensor(noise(1, 64) if x is None else x, name="X"), Tensor(np.zeros((1, 1), np.float32), name="Y")

    @workload
    def one() -> None:
        call(x=X, y=Y)
    return one().compile(**options)


def test_an_input_that_is_written() -> None:
    with pytest.raises(DisagreementError, match=r"`X\[0, 0\]` is not what NumPy has: no task writes it") as caught:
        of_one(reaching).verify(rtol=1, atol=100)     # inputs have to be the same whatever is allowed
    assert caught.value.found == "5.0"


def test_one_of_them_ends_with_an_error() -> None:
    with pytest.raises(DisagreementError, match="`one` fails in the artifact and comes to its end in NumPy") as caught:
        of_one(failing, np.ones((1, 64), np.float32)).verify()
    assert [type(other) for other in caught.value.others] == [TaskFailedError] and "returned 7" in str(caught.value)
    assert of_one(failing, np.zeros((1, 64), np.float32)).verify().n_tasks == 1


def test_both_end_with_an_error() -> None:
    @kernel
    def row(table: In[Tensor], y: Out[Tile[1, 1, F32]]) -> None:
        pto.store(y, pto.load(table, (9, 0), shape=(1, 1)))
    with pytest.raises(TaskFailedError, match="outside"):
        of_one(lambda x, y: row(x, y)).verify()


def test_a_kernel_without_a_meaning_in_numpy() -> None:
    with pytest.raises(MissingBodyError, match="`without` has no body for target interp"):
        of_one(without).verify()


def test_the_interpreter_has_nothing_to_be_compared_with() -> None:
    with pytest.raises(ProgramStateError, match="is the NumPy meaning itself"):
        of_one(reaching, target="interp").verify()


@pytest.mark.slow
def test_pipelines_and_calendars() -> None:
    X, Y, T = Tensor(noise(6, 64), name="X"), Tensor(np.zeros((6, 64), np.float32), name="Y"), Tensor.empty((6, 64), F32, name="T")
    rows = Channel("rows", 2)

    @workload
    def piped() -> None:
        with P.pipe():
            for b in P.seq(6):
                send(rows, doubled[b](X[b], np.inf, T[b]))
            with consume(rows) as b:
                shifted[b](T[b], Y[b])
    assert piped().compile().verify().n_tasks == 12

    @workload
    def chain() -> None:
        shifted(X[0], T[0])
        shifted(T[0], Y[0])
    assert chain().calendar([(1, 0), (0, 0)]).compile().verify().n_tasks == 2
    with pytest.raises(CalendarError, match="before task 0"):       # what both refuse is said as a run says it
        chain().calendar([(0, 1), (0, 0)]).compile().verify()
    assert not Y.data.any()  # type: ignore[union-attr]


@pytest.mark.slow
def test_slots_computed_bounds_scratch_and_the_sanitizer() -> None:
    X, N = Tensor(noise(6, 64), name="X"), Tensor(np.zeros((2, 1), np.int64), name="N")
    OUT = Tensor(np.zeros((6, 64), np.float32), name="OUT")

    @workload
    def mixed() -> None:
        count(4, N[0])                                   # how many rows there are is computed
        slot_set_u64(1, 2)
        for b in P(N[0, 0]):
            tmp = Tensor.empty((1, 64), F32)
            shifted[b](X[b], tmp)
            shifted[b](tmp, OUT[b])
        count(slot_u64(1), N[1])
        slot_load_u64(2, N, row=1, col=0)
        with P.when(slot_u64(2) == 2):
            shifted(X[5], OUT[5])
    found = mixed().compile().verify()
    assert found.n_tasks == 11 and [one.worst for one in found.tensors] == [None, None]
    assert not OUT.data.any() and not N.data.any()  # type: ignore[union-attr]
    assert mixed().compile(sanitize=True, check_finite=True).verify().n_tasks == 11
