"""The text of workloads and plans reads back: `parse(str(w.ir)) == w.ir`, `parse(str(plan)) == plan`; what does not read is an error."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import (
    Dense,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Monotone,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    maximum,
    parse,
    pto,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.errors import IrTextError, OwnBodyError
from pto_wsp.ir.plan import TaskPlan
from tests.laws.generated_workloads import Bench, WorkloadRecipe, workload_recipes
from tests.laws.mutated_json import SEEDS
from tests.trace.text.mutated_text import mutated

F32, I32 = DType.F32, DType.I32


@kernel
def add(x: In[Tile[2, 8, F32]], n: Scalar[I32], y: InOut[Tile[2, 8, F32]]) -> None:
    for i in pto.range(n):
        pto.store(y, pto.load(y) + x * i)


def reads_back(made: Workload) -> None:
    text = str(made.ir)
    read = parse(text)
    assert read == made.ir and isinstance(read, Workload)
    assert str(read.ir) == text


def plan_reads_back(plan: TaskPlan) -> None:
    text = str(plan)
    read = parse(text)
    assert isinstance(read, TaskPlan) and read == plan and str(read) == text


def everything() -> Workload:
    """Return a workload with views, symbols, names that hide each other, and names that are no identifiers."""
    data = np.zeros((6, 4, 2, 8), np.float32)
    X, Y = Tensor(data, name="X"), Tensor(np.zeros((6, 2, 8), np.float32), name="X")
    odd, plain = Tensor(np.zeros((8, 2, 6), np.float32).T, name="my 'tensor'"), Tensor(np.zeros((2, 64), np.float32))
    lens = Monotone(np.array([0, 1, 3, 4], np.int64))
    n, inf = Symbol("n", dtype=DType.I64), Symbol("inf", dtype=DType.I64)

    @workload
    def many() -> None:
        for b in P(4):
            for c in P.seq(lens[b]):
                for b2 in P.seq(2):
                    add.at(b=b, c=c)(X[:, c][b2, 0:2], n, Y[b])
                add[c](X[b, 1, :, 0:8], inf, Y[b], label="a 'label'")
        first = add(odd[0], slot_u64(2), Y[1])
        slot_set_u64(2, n * 3 - 1)
        add(plain.reshape(2, 2, 32)[0, :, 8:16], maximum(n // 2, lens[2]), Y[2], after=[first])
        made = Tensor.empty((2, 8), F32)
        add(Y[2], 1, made)
        add(made, n % 3, Y[3].clip(2, 8))

    return many()


def own_body() -> Workload:
    @kernel(c_src="y[0] = N;\n")
    def own(y: Out[Tile[1, 1, F32]]) -> None:
        pto.store(y, 1)

    Y = Tensor(np.zeros((1, 1), np.float32))

    @workload
    def once() -> None:
        own(Y)

    return once()


def sparse() -> Workload:
    pointers, columns = np.array([0, 2, 3], np.int64), np.array([1, 0, 1], np.int64)
    X, Y = Tensor(np.zeros((2, 2, 8), np.float32)), Tensor(np.zeros((2, 2, 8), np.float32))
    rows = Sparse(Dense[2](), Tensor(pointers), Tensor(columns))
    lengths = Ragged(Dense[2](), Tensor(np.array([1, 2], np.int64)))

    @workload
    def walk() -> None:
        for b in P(Dense[2]()):
            for j in P.sel.seq(rows[b]):
                add(X[j], 1, Y[b])
            for i in P.seq(lengths[b]):
                add(X[i], 2, Y[b])

    return walk()


MADE = {**SEEDS, "everything": everything, "sparse": sparse}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MADE)
def test_workloads_read_back(name: str) -> None:
    reads_back(MADE[name]())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MADE)
def test_plans_read_back(name: str) -> None:
    made = MADE[name]()
    plan = made.compile("interp").plan
    plan_reads_back(plan)


@pytest.mark.parametrize("schedule", [
    lambda w: w.dispatch(DispatchPolicy.round_robin(2)), lambda w: w.streams(2).stream_by(lambda t: t.b % 2),
    lambda w: w.calendar([(0, 0), (1, 0), (0, 1), (1, 1)]), lambda w: w.dispatch(DispatchPolicy.hash(lambda t: t.b, 2)),
])
def test_plans_of_schedules_read_back(schedule: Callable[[Workload], Workload]) -> None:
    X, Y = Tensor(np.zeros((4, 2, 8), np.float32)), Tensor(np.zeros((4, 2, 8), np.float32))

    @workload
    def four() -> None:
        for b in P(4):
            add[b](X[b], 1, Y[b])

    plan_reads_back(schedule(four()).compile("interp").plan)


@given(workload_recipes(control=True))
@settings(max_examples=10, deadline=None)
@pytest.mark.slow
def test_drawn_workloads_and_their_plans_read_back(recipe: WorkloadRecipe) -> None:
    bench = Bench(recipe)
    made = bench.trace()
    reads_back(made)
    (plan,) = made.lower("interp").irs      # which looks for no races
    assert isinstance(plan, TaskPlan)
    plan_reads_back(plan)


def test_what_was_read_runs_like_what_was_traced() -> None:
    data = np.arange(64, dtype=np.float32).reshape(4, 2, 8)
    X, Y = Tensor(data, name="X"), Tensor(np.zeros((4, 2, 8), np.float32), name="Y")

    @workload
    def sums() -> None:
        for b in P(4):
            add[b](X[b], 3, Y[b])

    read = parse(str(sums().ir).replace("value=3", "value=4"))
    assert isinstance(read, Workload)
    for target in ("interp", "cpu_sim"):
        out = np.zeros((4, 2, 8), np.float32)
        read.compile(target).run(X=data, Y=out)
        assert np.array_equal(out, data * 6)
    assert read.compile("ascend_npu").artifact_dir


def test_text_is_edited_by_hand() -> None:
    made = SEEDS["sides"]()
    text = str(made.ir)
    assert parse("# a comment\n" + text.replace("handle=", "handle  =  ").replace("=[", " = [ ") + "\n\n") == made.ir
    assert parse("\n".join(line.rstrip() + "   # and more" for line in text.split("\n"))) == made.ir


@pytest.mark.parametrize(("old", "new", "message", "help"), [
    ("Loop(", "Lop(", "another value stands here", "did you mean `Loop`?"),
    ("stop=", "stp=", "Loop has no field `stp`", "did you mean `stop`?"),
    ("start=0,", "", "Loop has no `start`", None),
    ("start=0", "start=0, start=0", "Loop has `start` twice", None),
    ("ordered=False", "ordered=1", "another value stands here", None),
    ("shape=[4, 2, 8]", "shape=[4, 2, -8]", "this workload: no trace gives this", None),
    ("kernel=add", "kernel=ad", "no Kernel is called `ad`", "did you mean `add`?"),
    ("index=[b]", "index=[bb]", "nothing is called `bb` here", "did you mean `b`?"),
    ("index=[b]", "index=[b.5]", "nothing is called `b.5` here", "did you mean `b`?"),
    ("view=X[b]", "view=X[b, 0:]", "a scalar is missing", None),
    ("view=X[b]", "view=X[b, 0]", "this workload: no trace gives this", None),
    ("dtype=f32", "dtype=f33", "there is no dtype `f33`", "did you mean `f32`?"),
    ("    X = ", "    b = ", "two things are called `b`", None),
    ("    X = ", "    inf = ", "`inf` is taken", None),
    ("handle=0", "handle=99999999999999999999999", "a number is too large", None),
    ("name='four'", "name='five'", "the workload has two names", None),
    ("%2 = mul", "%2 = mull", "there is no op `mull`", "did you mean `mul`?"),
    ("store y", "store x", "kernel `add`: parameter `x` is In: it cannot be stored to", "declare it InOut, if the kernel may change it"),
])
def test_what_does_not_read_is_an_error_at_its_place(old: str, new: str, message: str, help: str | None) -> None:
    X, Y = Tensor(np.zeros((4, 2, 8), np.float32), name="X"), Tensor(np.zeros((4, 2, 8), np.float32), name="Y")

    @workload
    def four() -> None:
        for b in P(4):
            add[b](X[b], 1, Y[b])

    text = str(four().ir)
    assert old in text, text
    with pytest.raises(IrTextError) as caught:
        parse(text.replace(old, new, 1))
    assert caught.value.message == message and caught.value.help == help
    assert "--> <ir " in str(caught.value) and "^" in str(caught.value)


def test_short_forms_are_refused_with_the_way_to_the_complete_one() -> None:
    made = SEEDS["sides"]()
    for text in (str(made), made.lower("interp").text):
        with pytest.raises(IrTextError) as caught:
            parse(text)
        assert "str(w.ir) and str(program.plan) are complete" in str(caught.value)


def test_bodies_in_c_are_read_only_where_they_are_trusted() -> None:
    text = str(own_body().ir)
    assert parse(text, bodies=True) == own_body().ir
    with pytest.raises(OwnBodyError, match="parse"):
        parse(text)


def test_a_plan_keeps_to_its_own_tables() -> None:
    text = str(SEEDS["sides"]().compile("interp").plan)
    for old, new in (("slot=0", "slot=77"), ("kernel=0", "kernel=9"), ("site=0", "site=99"),
                     ("unit_inner=[True", "unit_inner=[True, True")):
        assert old in text
        with pytest.raises(IrTextError, match="no trace gives this"):
            parse(text.replace(old, new, 1))


def _mutate(texts: list[str], number: int) -> None:
    rng = random.Random(number)
    try:
        read = parse(mutated(rng.choice(texts), rng))
    except PtoError:
        return
    if isinstance(read, TaskPlan):
        assert parse(str(read)) == read
    elif isinstance(read, Workload):
        assert parse(str(read.ir)) == read.ir


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [text for make in MADE.values() for text in (str(make().ir), str(make().compile("interp").plan))]


@pytest.mark.slow
def test_mutated_text_is_refused_or_reads_back(texts: list[str]) -> None:
    for number in range(60):
        _mutate(texts, number)


@pytest.mark.slow
@given(number=st.integers(0, 1 << 30))
@settings(max_examples=350, deadline=None)
def test_much_mutated_text_is_refused_or_reads_back(texts: list[str], number: int) -> None:
    _mutate(texts, number)


def test_workloads_put_together_read_back() -> None:
    reads_back(combine(everything(), sparse()) >> SEEDS["piped"]())
