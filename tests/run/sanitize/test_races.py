"""Races of a run: found whatever the static checks know, named with both tasks, the elements and the fix; silent when there are none."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Dense,
    Deps,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    process,
    pto,
    replicate,
    send,
    workload,
)

F32 = DType.F32
ALL_DEPS = [Deps.hybrid(), Deps.infer_bytes_overlap()]


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x + 1)


@kernel
def add(x: In[Tile[1, 4, F32]], total: InOut[Tile[1, 4, F32]]) -> None:
    pto.store(total, total + x)


X = Tensor(np.arange(32, dtype=np.float32).reshape(8, 4), name="X")
Y = Tensor(np.zeros((8, 4), np.float32), name="Y")
Z = Tensor(np.zeros((8, 4), np.float32), name="Z")
ROWS = Tensor(np.array([0, 1, 2, 3, 4, 5, 6, 7], np.int32), name="rows")
rows = Dense[8]()


@pytest.fixture(autouse=True)
def _rows_apart() -> None:
    ROWS.data[:] = range(8)   # type: ignore[index]


@workload
def scattered() -> None:
    for b in P(rows):
        copy[b](X[b], Y[ROWS[b]])


@workload
def read_back() -> None:
    for b in P(rows):
        copy[b](Y[b], Z[b])


def sanitized(w: Workload, deps: Deps | None = None) -> Program:
    """Return the program with the sanitizer."""
    return (w if deps is None else w.task_graph(deps=deps)).compile(sanitize=True)


def found(w: Workload, deps: Deps | None = None) -> PtoError:
    """Return the race that a run ends with."""
    with pytest.raises(PtoError) as caught:
        sanitized(w, deps).run()
    assert caught.value.code == "R201"
    return caught.value


@pytest.mark.parametrize("deps", ALL_DEPS, ids=str)
def test_rows_of_a_table_that_differ_are_no_race(deps: Deps) -> None:
    program = sanitized(scattered() >> read_back(), deps)
    program.run()
    assert program.sanitized is not None
    assert (program.sanitized.pairs, program.sanitized.races, program.sanitized.unchecked) == (8, 0, 0)
    assert np.array_equal(Z.data, X.data + 2)   # type: ignore[operator]


@pytest.mark.parametrize("deps", ALL_DEPS, ids=str)
def test_a_row_that_a_table_names_twice_is_a_race(deps: Deps) -> None:
    ROWS.data[:] = [0, 1, 2, 3, 1, 5, 6, 7]   # type: ignore[index]
    error = found(scattered(), deps)
    assert error.message == "nothing orders the tasks copy[b=1] and copy[b=4], and they both write Y[1, 0:4]"
    assert error.found is not None and "different iterations of the loop over `b`" in error.found
    assert error.help == "loop over `b` with P.seq, or index what is written by `b`"
    assert [note.partition(" was made at ")[0] for note in error.notes[:2]] == ["copy[b=1]", "copy[b=4]"]
    assert "program.replay(0x" in error.notes[-1]
    assert str(error.span).endswith(f":{_line_of(scattered, 'copy[b]')}:9")


def test_no_task_has_run_when_there_is_a_race() -> None:
    ROWS.data[:] = 3   # type: ignore[index]
    before = Y.data.copy()   # type: ignore[union-attr]
    found(scattered())
    assert np.array_equal(before, Y.data)   # type: ignore[arg-type]


@pytest.mark.parametrize("deps", ALL_DEPS, ids=str)
def test_sides_that_should_have_been_in_order(deps: Deps) -> None:
    error = found(scattered() | read_back(), deps)
    assert error.message == ("nothing orders the tasks copy[b=0] and copy[b=0], and they use Y[0, 0:4]: "
                             "the first writes it, the second reads it")
    assert error.found == "two sides of combine, or of `|`" and error.help == "put the one after the other: `>>` or sequential(...)"
    assert "8 pairs of tasks are without an order in this run" in error.notes


@pytest.mark.parametrize("ordered", [True, False])
def test_an_accumulation_needs_its_order(ordered: bool) -> None:
    @workload
    def sums() -> None:
        for b in P(2):
            for i in (P.seq if ordered else P)(4):
                add[b, i](X[4 * b + i], Y[ROWS[b]])
    if not ordered:
        error = found(sums())
        assert error.message == "nothing orders the tasks add[b=0, i=0] and add[b=0, i=1], and they both update Y[0, 0:4]"
        assert error.help == "loop over `i` with P.seq, or index what is written by `i`"
        return
    Y.data[:] = 0   # type: ignore[index]
    program = sanitized(sums())
    program.run()
    assert np.array_equal(Y.data[:2], X.data.reshape(2, 4, 4).sum(1))   # type: ignore[index, union-attr]
    assert program.sanitized is not None and program.sanitized.pairs == 6


def test_the_outermost_loop_that_differs_is_named() -> None:
    @workload
    def w() -> None:
        for b in P(2):
            for i in P.seq(2):
                copy[b, i](X[0], Y[ROWS[i]])
    error = found(w())
    assert "copy[b=0, i=0] and copy[b=1, i=0]" in error.message
    assert error.help == "loop over `b` with P.seq, or index what is written by `b`"


@pytest.mark.slow
def test_replicas_that_share_an_element_are_named() -> None:
    numbers = Channel("numbers", 2)

    def give() -> None:
        for b in P.seq(8):
            send(numbers, b)

    def total() -> None:
        with consume(numbers) as b:
            add[b](X[b:b + 1], Y[ROWS[b]])
    ROWS.data[:] = 0     # type: ignore[index]

    source, worker = process("give").produces(numbers).body(give), process("total").consumes(numbers).body(total)
    error = found(connect([source, replicate(worker, 2)], [numbers]))
    assert error.code == "R201" and error.found == "replicas of process `total`"
    sanitized(connect([source, worker], [numbers]))


@pytest.mark.slow
def test_a_handle_orders_what_the_structure_leaves_free() -> None:
    @workload
    def w(waits: bool) -> None:
        for b in P(4):
            done = copy[b](X[b], Y[ROWS[b]])
        copy(Y[ROWS[3]], Z[0], after=[done] if waits else [])
    for waits in (True, False):
        sanitized(w(waits), Deps.infer_bytes_overlap()).run()     # the second statement comes after the loop either way


def test_every_kind_of_pair_is_reported_once() -> None:
    """What a task reads another one writes again: the pairs behind those follow from them."""
    @workload
    def w() -> None:
        for b in P(8):
            copy[b](X[b], Y[ROWS[0]])
            add[b](Y[ROWS[0]], Z[ROWS[0]])
    error = found(w())
    kinds = {other.message.rsplit(", and they", 1)[1] for other in (error, *error.others)}
    assert kinds == {" both write Y[0, 0:4]", " use Y[0, 0:4]: the first reads it, the second writes it", " both update Z[0, 0:4]"}
    assert all(other.code == "R201" and "program.replay(0x" in other.notes[-1] for other in error.others)


def test_parts_of_a_row_are_told_apart() -> None:
    def halves(width: int) -> Workload:
        @kernel
        def part(x: In[Tile[1, 1, F32]], y: Out[Tile[1, 3, F32]]) -> None:
            pto.store(y, x + pto.zeros((1, 3), F32))

        @workload
        def w() -> None:
            for b in P(2):
                part[b](X[0, 0:1], Y[ROWS[5], width * ROWS[b]:width * ROWS[b] + 3])
        return w()
    assert "both write Y[5, 1:3]" in found(halves(1)).message


def test_a_transposed_view_names_its_elements() -> None:
    @workload
    def w() -> None:
        copy(X[0], Y.T[ROWS[1], 2:6])

    @workload
    def v() -> None:
        copy(X[0], Y[ROWS[4]])
    assert "both write Y[4, 1]" in found(w() | v()).message


def test_a_race_with_a_task_that_the_record_has_dropped() -> None:
    ROWS.data[:] = [0, 1, 2, 3, 4, 5, 6, 0]   # type: ignore[index]
    program = sanitized(scattered())
    engine = program.compiled.runner
    assert engine is not None
    engine.__init__(engine.artifact, engine.plan, 1, max_tasks=2, undefined={})   # type: ignore[misc, union-attr]
    with pytest.raises(PtoError, match=r"the tasks copy\[b=0\] and copy\[b=7\], and they both write Y\[0, 0:4\]"):
        program.run()


# ---- programs that read what tasks write, and make tensors as they go ----

@kernel
def count(x: In[Tile[1, 4, DType.I32]], n: Out[Tile[1, 1, DType.I32]]) -> None:
    pto.store(n, pto.rowsum(x))


FLAGS = Tensor(np.array([[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]], np.int32), name="flags")
COUNTS = Tensor(np.zeros((3, 1), np.int32), name="counts")
CUBE = Tensor(np.zeros((3, 4, 4), np.float32), name="cube")


@workload
def counted(rows_of: int) -> None:
    for b in P(3):
        count[b](FLAGS[b:b + 1], COUNTS[b:b + 1])
        for i in P(COUNTS[b, 0]):
            t = Tensor.empty((1, 4), F32)
            copy[b, i](X[b], t)
            copy[b, i](t, CUBE[ROWS[b] if rows_of else b, i])


@pytest.mark.slow
@pytest.mark.parametrize("deps", ALL_DEPS, ids=str)
def test_reads_of_the_workload_keep_their_order(deps: Deps) -> None:
    CUBE.data[:] = 0   # type: ignore[index]
    w = counted(1).task_graph(deps=deps)
    program, plain = w.compile(sanitize=True).run(), w.compile().run()
    expected = np.zeros((3, 4, 4), np.float32)
    for b, n in enumerate((2, 1, 4)):
        expected[b, :n] = X.data[b] + 2   # type: ignore[index]
    assert np.array_equal(CUBE.data, expected)   # type: ignore[arg-type]
    assert program.sanitized is not None and (program.sanitized.races, program.sanitized.unchecked) == (0, 0)
    assert program.stats.total_cycles == plain.stats.total_cycles
    assert [(e.source, e.target) for e in program.graph.edges] == [(e.source, e.target) for e in plain.graph.edges]
    assert np.array_equal(program.replay(program.sanitized.seed).stats.total_cycles, plain.stats.total_cycles)


@pytest.mark.parametrize("deps", ALL_DEPS, ids=str)
def test_a_race_behind_a_read_of_the_workload(deps: Deps) -> None:
    ROWS.data[:3] = [0, 2, 2]   # type: ignore[index]
    error = found(counted(1), deps)
    assert error.message == "nothing orders the tasks copy[b=1, i=0] and copy[b=2, i=0], and they both write cube[2, 0, 0:4]"


# ---- seeds ----

@kernel(c_src="static int n; if (*first != 0) n = 0; *y = (float)++n;")
def stamp(first: In[Tile[1, 1, F32]], y: Out[Tile[1, 1, F32]]) -> None: ...


def order_of(seed: int) -> list[int]:
    """Return the order in which a plain program runs eight free tasks behind one that starts to count."""
    @workload
    def w() -> None:
        stamp(FIRST[0:1], STAMPS[0, 0:1])
        for b in P(8):
            stamp[b](FIRST[1:2], STAMPS[b + 1, 0:1])
    w().compile().replay(seed)
    return np.argsort(STAMPS.data.ravel()).tolist()   # type: ignore[union-attr, no-any-return]


FIRST = Tensor(np.array([1, 0], np.float32), name="first")
STAMPS = Tensor(np.zeros((9, 1), np.float32), name="stamps")


def test_a_seed_gives_an_order_and_gives_it_again() -> None:
    orders = {seed: order_of(seed) for seed in range(1, 9)}
    assert all(order_of(seed) == order for seed, order in orders.items())
    assert all(order[0] == 0 and sorted(order) == list(range(9)) for order in orders.values())
    assert len({tuple(order) for order in orders.values()}) > 4


def test_a_run_says_its_seed_once_and_replay_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    program = sanitized(scattered() >> read_back())
    program.run()
    said = capsys.readouterr()
    assert program.sanitized is not None and said.out == ""
    seed = program.sanitized.seed
    assert said.err == f"sanitize: seed {seed:#x}; repeat with program.replay({seed:#x})\n"
    assert program.replay(seed) is program and program.sanitized.seed == seed
    assert capsys.readouterr().err == ""
    program.execute()
    program.synchronize()
    assert program.sanitized.seed != seed
    assert str(program.sanitized) == f"sanitize: seed {program.sanitized.seed:#x}, pairs of tasks on the same elements: 8, races: 0"


def test_a_task_that_fails_says_the_seed_of_its_order() -> None:
    @kernel(c_src="return 7;")
    def broken(y: Out[Tile[1, 4, F32]]) -> None: ...

    @workload
    def w() -> None:
        for b in P(3):
            broken[b](Y[b])
    with pytest.raises(PtoError, match="its own C body returned 7") as caught:
        sanitized(w()).run()
    assert caught.value.code == "R101" and "program.replay(0x" in caught.value.notes[-1]
    with pytest.raises(PtoError, match="its own C body returned 7") as caught:
        w().compile().run()
    assert not any("replay" in note for note in caught.value.notes)


def test_simulated_cycles_are_those_of_the_plain_program() -> None:
    for deps in ALL_DEPS:
        w = (scattered() >> read_back()).task_graph(deps=deps)
        program, plain = w.compile(sanitize=True).run(), w.compile().run()
        assert program.stats.total_cycles == plain.stats.total_cycles
        assert [(e.source, e.target) for e in program.graph.edges] == [(e.source, e.target) for e in plain.graph.edges]


@pytest.mark.parametrize("seed", [0, -1, 1 << 64, True, "0x5", 1.0])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(PtoError, match="replay takes the seed of a run") as caught:
        scattered().compile().replay(seed)   # type: ignore[arg-type]
    assert caught.value.code == "R102"


@pytest.mark.parametrize(("target", "options", "message"), [
    ("interp", {}, "target interp has no sanitize"),
    ("ascend_npu", {}, "target ascend_npu has no sanitize"),
    ("pto", {}, "target pto has no sanitize"),
    ("cpu_sim", {"threads": 4}, "a sanitized run has one thread"),
])
def test_where_there_is_no_sanitizer_it_is_refused(target: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(PtoError) as caught:
        scattered().compile(target=target, sanitize=True, **options)
    assert caught.value.code == "C104" and caught.value.message == message


def _line_of(function: object, text: str) -> int:
    lines, start = inspect.getsourcelines(function.__wrapped__)  # type: ignore[attr-defined]
    return start + next(k for k, line in enumerate(lines) if text in line)
