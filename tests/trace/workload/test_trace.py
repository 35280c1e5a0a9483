"""Tracing of workloads: names of loops, what stands where, and what has no meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Constexpr,
    Dense,
    DenseDyn,
    DType,
    In,
    InOut,
    Kernel,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    axis,
    combine,
    for_each,
    kernel,
    parallel_for,
    pto,
    sequential,
    workload,
)
from pto_wsp.errors import ArityError, LoopVariableError, OutsideTraceError, SymbolicControlError, WorkloadStructureError
from pto_wsp.ir import workload as wl

F32 = DType.F32
X, Y = Tensor(np.arange(96, dtype=np.float32).reshape(4, 6, 4), name="X"), Tensor(np.zeros((4, 6, 4), np.float32), name="Y")
batch, heads = Dense[4](), Dense[6]()


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def add(x: InOut[Tile[1, 4, F32]], n: Scalar[F32]) -> None:
    pto.store(x, x + n)


def text(body: Callable[[], object]) -> str:
    """Trace a body and return the workload's text without its first line."""
    return "\n".join(line[4:] for line in str(workload(body)()).splitlines()[1:])


def tasks(w: Workload) -> list[wl.Task]:
    """Return the task sites of a workload."""
    return list(wl.tasks(w.node.body))


def refused(body: Callable[[], object]) -> PtoError:
    """Trace a body that must fail."""
    with pytest.raises(PtoError) as caught:
        workload(body)()
    return caught.value


# ---- names of loop variables ----

def test_one_loop_over_two_axes_is_two_loops_by_their_names() -> None:
    def body() -> None:
        for b, h in P(batch, heads):
            copy[b, h](x=X[b, h], y=Y[b, h])
    assert text(body) == ("for b in P(batch: 4):\n    for h in P(heads: 6):\n        copy[b, h](x=X[b, h], y=Y[b, h])")


def test_an_inner_loop_shadows_an_outer_one_of_its_name() -> None:
    def body() -> None:
        for i in P(4):
            outer = i
            for i in P(6):
                copy[outer, i](x=X[outer, i], y=Y[outer, axis("i")])
    (task,) = tasks(workload(body)())
    assert len({node.id for node in task.index if hasattr(node, "id")}) == 2
    written = task.args[1]
    assert isinstance(written, wl.ViewArg) and written.view.steps[1].index == task.index[1]  # type: ignore[union-attr]


def test_names_overrides() -> None:
    def body() -> None:
        for b, h in P(4, 6, names=("row", "col")):
            copy[b, h](x=X[b, h], y=Y[b, h])
    assert "for row in P(4):" in text(body) and "copy[row, col](x=X[row, col], y=Y[row, col])" in text(body)


def test_names_takes_one_an_axis() -> None:
    def body() -> None:
        for _ in P(4, names=("a", "b")):
            pass
    assert refused(body).code == "W102"


def test_one_variable_for_two_axes_is_numbered() -> None:
    def body() -> None:
        for bh in P(4, 6):
            copy(x=X[bh[0], bh[1]], y=Y[bh[0], bh[1]])
    assert "copy(x=X[bh0, bh1], y=Y[bh0, bh1])" in text(body)


def test_functional_loops_take_the_parameters_name() -> None:
    def body() -> None:
        parallel_for(batch, lambda row: for_each(heads, lambda col: copy[row, col](X[row, col], Y[row, col])))
    assert text(body) == ("for row in P(batch: 4):\n    for col in P.seq(heads: 6):\n        copy[row, col](x=X[row, col], y=Y[row, col])")


@pytest.mark.parametrize("body", [lambda: parallel_for(4, lambda: None), lambda: for_each(4, lambda a, b: None)])
def test_the_body_of_a_functional_loop_takes_one_variable(body: Callable[[], object]) -> None:
    assert refused(body).code == "W102"


def test_ordered_loops_and_ranges_show() -> None:
    def body() -> None:
        for i in P.seq(range(1, 4, 2)):
            copy[i](x=X[i, 0], y=Y[i, 0])
    assert text(body) == "for i in P.seq(range(1, 4, 2)):\n    copy[i](x=X[i, 0], y=Y[i, 0])"


def test_names_are_read_in_functions_with_more_names_than_a_byte_counts() -> None:
    many = "\n".join(f"    v{k} = 0" for k in range(300))
    scope = dict(globals())
    exec(compile(f"def body():\n{many}\n    for bb, hh in P(4, 6):\n        copy[bb, hh](x=X[bb, hh], y=Y[bb, hh])\n", "<many>",
                 "exec"), scope)
    assert "copy[bb, hh](x=X[bb, hh], y=Y[bb, hh])" in text(scope["body"])


def test_names_are_read_at_the_top_of_a_module_with_many_names() -> None:
    many = "\n".join(f"v{k} = 0" for k in range(300))
    scope = dict(globals())
    top = f"{many}\ndef body():\n    global bb\n    for bb in P(4):\n        copy[bb](x=X[bb, 0], y=Y[bb, 0])\n"
    exec(compile(top, "<many>", "exec"), scope)
    assert "for bb in P(4):" in text(scope["body"])


def test_an_inner_axis_may_depend_on_the_outer_variable() -> None:
    lens = Tensor(np.array([1, 2, 0, 6], np.int32), name="lens")
    rows = Ragged(batch, lens)

    def body() -> None:
        for b in P(batch):
            for i in P(rows[b]):
                copy[b, i](x=X[b, i], y=Y[b, i])
    assert text(body).splitlines()[1] == "    for i in P(rows: lens[b]):"


def test_axis_refers_to_a_loop_by_name() -> None:
    def body() -> None:
        for b in P(4):
            copy[b](x=X[axis("b"), 0], y=Y[b, 0])
    assert "x=X[b, 0]" in text(body)


def test_axis_of_no_loop_is_refused() -> None:
    def body() -> None:
        for b in P(4):
            copy[b](x=X[axis("c"), 0], y=Y[b, 0])
    error = refused(body)
    assert error.code == "W103" and error.expected == "one of b"


# ---- what has no meaning ----

def test_break_is_refused() -> None:
    def body() -> None:
        for b in P(4):
            copy[b](x=X[b, 0], y=Y[b, 0])
            break
    assert isinstance(refused(body), SymbolicControlError)


def test_break_of_an_inner_loop_is_refused() -> None:
    def body() -> None:
        for b in P(4):
            for h in P(6):
                copy[b](x=X[b, h], y=Y[b, h])
                break
    assert isinstance(refused(body), SymbolicControlError)


def test_return_in_a_loop_is_refused() -> None:
    def body() -> None:
        for b in P(4):
            copy[b](x=X[b, 0], y=Y[b, 0])
            return
    assert isinstance(refused(body), SymbolicControlError)


def test_continue_at_the_end_is_fine() -> None:
    def body() -> None:
        for b in P(4):
            copy[b](x=X[b, 0], y=Y[b, 0])
            continue
    assert "copy[b]" in text(body)


def test_if_on_a_loop_variable_is_refused() -> None:
    def body() -> None:
        for b in P(4):
            if b > 2:
                copy[b](x=X[b, 0], y=Y[b, 0])
    assert isinstance(refused(body), SymbolicControlError)


def test_if_on_a_python_number_is_plain_python() -> None:
    def body() -> None:
        for b in range(3):
            if b != 1:
                copy[b](x=X[b, 0], y=Y[b, 0])
    assert text(body) == "copy[0](x=X[0, 0], y=Y[0, 0])\ncopy[2](x=X[2, 0], y=Y[2, 0])"


@pytest.mark.parametrize("use", [
    lambda b: copy[b](x=X[0, 0], y=Y[0, 0]), lambda b: copy(x=X[b, 0], y=Y[0, 0]), lambda b: add(x=X[0, 0], n=b),
    lambda b: [None for _ in P(b + 1)], lambda b: copy(x=X[b:, 0][0], y=Y[0, 0]),
], ids=["bracket", "view", "scalar", "axis", "slice"])
def test_a_loop_variable_after_its_loop_is_refused(use: Callable[[object], object]) -> None:
    def body() -> None:
        for b in P(4):
            copy[b](x=X[b, 0], y=Y[b, 0])
        use(b)
    assert isinstance(refused(body), LoopVariableError)


def test_a_tensor_empty_outside_the_loop_is_one_a_run() -> None:
    def body() -> None:
        tmp = Tensor.empty((4, 4), F32)
        for b in P(4):
            copy[b](x=X[b, 0], y=tmp[b])
            copy[b](x=tmp[b], y=Y[b, 0])
    Y.data[:] = 0  # type: ignore[index]
    workload(body)().compile(target="interp").run()
    np.testing.assert_array_equal(Y.data[:, 0], X.data[:, 0])  # type: ignore[index]


@pytest.mark.parametrize("call", [lambda: P(4), lambda: P.seq(4), lambda: P.sel(1), lambda: P.when(True), lambda: P.otherwise()])
def test_loops_belong_into_workloads(call: Callable[[], object]) -> None:
    with pytest.raises(OutsideTraceError) as caught:
        call()
    assert caught.value.code == "K105"


@pytest.mark.parametrize("call", [lambda: P.sel(1), lambda: P.sel.seq(batch), lambda: P()])
def test_what_is_not_there_yet_is_refused(call: Callable[[], object]) -> None:
    assert isinstance(refused(call), WorkloadStructureError)


# ---- kernel calls ----

@pytest.mark.parametrize("call", [
    lambda b: copy[b](X[b, 0], Y[b, 0]), lambda b: copy[b](X[b, 0], y=Y[b, 0]), lambda b: copy[b](y=Y[b, 0], x=X[b, 0]),
    lambda b: copy.at(b=b)(x=X[b][0], y=Y[b][0]),
])
def test_arguments_go_by_name_or_by_position(call: Callable[[object], object]) -> None:
    def body() -> None:
        for b in P(4):
            call(b)
    assert "copy[b](x=X[b, 0], y=Y[b, 0])" in text(body)


def test_brackets_may_be_left_out() -> None:
    assert text(lambda: copy(X[0, 0], Y[0, 0])) == "copy(x=X[0, 0], y=Y[0, 0])"


@pytest.mark.parametrize("call, found", [
    (lambda: copy(x=X[0, 0]), "`y` missing"), (lambda: copy(X[0, 0], Y[0, 0], Y[0, 1]), "3 positional arguments"),
    (lambda: copy(X[0, 0], Y[0, 0], x=X[0, 1]), "`x` twice"), (lambda: copy(x=X[0, 0], y=Y[0, 0], z=1), "unknown `z`"),
    (lambda: copy(), "`x`, `y` missing"),
])
def test_a_call_of_the_wrong_arity_is_refused(call: Callable[[], object], found: str) -> None:
    error = refused(call)
    assert isinstance(error, ArityError) and error.found == found
    assert error.expected == "copy(x: In[Tile[1, 4, f32]], y: Out[Tile[1, 4, f32]])"


@pytest.mark.parametrize("index", [1.5, "a", None, Symbol("f", F32)], ids=repr)
def test_bracket_indices_are_whole_numbers(index: object) -> None:
    assert refused(lambda: copy[index](x=X[0, 0], y=Y[0, 0])).code == ("T205" if isinstance(index, str | None) else "T209")


def test_constexpr_and_captured_numbers_specialise() -> None:
    factor = 2

    @kernel
    def scaled(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]], offset: Constexpr[int]) -> None:
        pto.store(y, x * factor + offset)

    def body() -> None:
        nonlocal factor
        scaled(X[0, 0], Y[0, 0], 10)
        scaled(X[0, 0], Y[0, 1], offset=20)
        factor = 3
        scaled(X[0, 0], Y[0, 2], 10)
        scaled(X[0, 0], Y[0, 3], 10)
    w = workload(body)()
    program = w.compile(target="interp").run()
    x = X.data[0, 0]  # type: ignore[index]
    np.testing.assert_array_equal(Y.data[0, :4], [x * 2 + 10, x * 2 + 20, x * 3 + 10, x * 3 + 10])  # type: ignore[index]
    assert len(program.plan.kernels) == 3


def test_a_captured_attribute_specialises() -> None:
    class Config:
        scale = 1.0

    @kernel
    def scaled(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, x * Config.scale + settings["offset"])
    settings = {"offset": 0.0}

    def body() -> None:
        for k in range(3):
            settings["offset"] = 10.0 * k
            scaled(X[0, 0], Y[0, k])
    workload(body)().compile(target="interp").run()
    x = X.data[0, 0]  # type: ignore[index]
    np.testing.assert_array_equal(Y.data[0, :3], [x, x + 10, x + 20])  # type: ignore[index]


def test_kernels_made_one_after_the_other_are_told_apart() -> None:
    def times(n: int) -> Kernel:
        scope: dict[str, object] = dict(globals())
        exec(f"def times(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]): pto.store(y, x * {n})", scope)
        return kernel(scope["times"])  # type: ignore[no-any-return]

    def body() -> None:
        for k in range(6):
            times(k + 1)(X[0, 0], Y[0, k])
    workload(body)().compile(target="interp").run()
    x = X.data[0, 0]  # type: ignore[index]
    np.testing.assert_array_equal(Y.data[0], [x * (k + 1) for k in range(6)])  # type: ignore[index]


def test_a_constexpr_of_another_type_is_refused() -> None:
    @kernel
    def shifted(x: InOut[Tile[1, 4, F32]], by: Constexpr[int]) -> None:
        pto.store(x, x + by)
    assert refused(lambda: shifted(X[0, 0], 1.5)).code == "T205"


@pytest.mark.parametrize("value, expected", [(2, 2.0), (np.float32(0.5), 0.5), (True, 1.0)])
def test_scalar_parameters_take_numbers(value: object, expected: float) -> None:
    array = np.zeros((1, 4), np.float32)
    T = Tensor(array)
    workload(lambda: add(T, value))().compile(target="interp").run()
    assert (array == expected).all()


def test_scalar_parameters_take_elements_and_loop_variables() -> None:
    array, table = np.zeros((4, 4), np.float32), Tensor(np.array([5, 6, 7, 8], np.int32))
    T = Tensor(array)

    def body() -> None:
        for i in P(4):
            add[i](T[i], table[i] * 10 + i)
    workload(body)().compile(target="interp").run()
    assert array[:, 0].tolist() == [50, 61, 72, 83]


# ---- handles ----

def test_a_handle_of_another_workload_is_refused() -> None:
    kept = []

    def one() -> None:
        kept.append(copy(X[0, 0], Y[0, 0]))
    workload(one)()
    assert isinstance(refused(lambda: copy(X[0, 0], Y[0, 1], after=kept)), LoopVariableError)


@pytest.mark.parametrize("after", [3, "ab", [None], [[1]]], ids=repr)
def test_after_takes_handles(after: object) -> None:
    assert isinstance(refused(lambda: copy(X[0, 0], Y[0, 1], after=after)), WorkloadStructureError)


def test_after_takes_one_handle_or_several_and_each_once() -> None:
    def body() -> None:
        a, b = copy(X[0, 0], Y[0, 0]), copy(X[0, 0], Y[0, 1])
        copy(X[0, 0], Y[0, 2], after=a)
        copy(X[0, 0], Y[0, 3], after=(a, b, a))
    assert [task.after for task in tasks(workload(body)())] == [(), (), (0,), (0, 1)]
    assert text(body).splitlines()[3] == "copy(x=X[0, 0], y=Y[0, 3], after=[task0, task1])"


# ---- workloads in workloads ----

@workload
def first(b: object = 0) -> None:
    copy[b](x=X[b, 0], y=Y[b, 0])


@workload
def second(b: object = 0) -> None:
    copy[b](x=X[b, 1], y=Y[b, 1])


FIRST, SECOND = "copy[0](x=X[0, 0], y=Y[0, 0])", "copy[0](x=X[0, 1], y=Y[0, 1])"


def test_a_call_puts_the_tasks_where_it_stands() -> None:
    def body() -> None:
        for b in P(4):
            second(b)
            first(b)
    assert text(body) == "for b in P(4):\n    copy[b](x=X[b, 1], y=Y[b, 1])\n    copy[b](x=X[b, 0], y=Y[b, 0])"


TOGETHER: dict[str, Callable[[], Workload]] = {
    "sequential": lambda: sequential(first(), second()),
    ">>": lambda: first() >> second(),
    "nested": lambda: sequential(sequential(first()), second()),
    "scheduled": lambda: first().named("s") >> second().named("s"),
}


@pytest.mark.parametrize("how", TOGETHER)
def test_workloads_in_order_have_each_task_once(how: str) -> None:
    assert text(TOGETHER[how]) == f"{FIRST}\n{SECOND}"
    assert str(TOGETHER[how]()).splitlines()[1:] == [f"    {FIRST}", f"    {SECOND}"]


@pytest.mark.parametrize("make", [lambda: combine(first(), second()), lambda: first() | second()])
def test_workloads_side_by_side_have_each_task_once(make: Callable[[], Workload]) -> None:
    sides = f"combine:\n  side:\n    {FIRST}\n  side:\n    {SECOND}"
    assert text(make) == sides
    assert [line[4:] for line in str(make()).splitlines()[1:]] == sides.splitlines()


def test_a_workload_made_outside_may_be_used_inside() -> None:
    outside = first()
    assert text(lambda: outside >> second()) == f"{FIRST}\n{SECOND}"


def test_a_workload_used_twice_is_there_twice() -> None:
    outside = first()
    assert str(outside >> outside).splitlines()[1:] == [f"    {FIRST}", f"    {FIRST}"]


def test_a_workload_may_be_a_parameter() -> None:
    @workload
    def twice(inner: Callable[[int], Workload]) -> None:
        inner(0)
        inner(1)
    assert len(tasks(twice(first))) == 2


def test_a_workload_of_a_loop_does_not_leave_it() -> None:
    def body() -> None:
        for b in P(4):
            inner = first(b)
        sequential(inner)
    assert refused(body).code in ("W105", "W103")


@pytest.mark.parametrize("parts", [(), (first,), (3,)], ids=["none", "function", "number"])
def test_sequential_takes_workloads(parts: tuple[object, ...]) -> None:
    with pytest.raises(PtoError):
        sequential(*parts)  # type: ignore[arg-type]


def test_different_schedules_do_not_mix() -> None:
    with pytest.raises(WorkloadStructureError):
        _ = first().named("a") >> second().named("b")


def test_parts_with_one_schedule_keep_it() -> None:
    assert (first().named("a") >> second()).schedule.name == "a"


def test_handles_of_parts_do_not_mix() -> None:
    @workload
    def pair(row: int) -> None:
        done = copy(X[row, 0], Y[row, 0])
        copy(X[row, 1], Y[row, 1], after=done)
    made = tasks(pair(0) >> pair(1))
    assert [(task.handle, task.after) for task in made] == [(0, ()), (1, (0,)), (2, ()), (3, (2,))]


def test_a_failed_trace_leaves_no_trace_running() -> None:
    refused(lambda: copy(X[0, 0]))
    with pytest.raises(OutsideTraceError):
        P(4)


# ---- without source text ----

def test_code_without_source_text_works_and_its_errors_render() -> None:
    scope = dict(globals())
    exec(compile("@kernel\ndef k(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):\n    pto.store(y, x + 1)\n", "<stdin>", "single"),
         scope)
    exec(compile("@workload\ndef w(rows):\n    for b in P(4):\n        k[b](x=X[b, 0], y=Y[rows, 0])\n", "<stdin>", "single"), scope)
    exec(compile("made = w(0)\n", "<stdin>", "single"), scope)
    assert str(scope["made"]).splitlines()[2].strip() == "k[b](x=X[b, 0], y=Y[0, 0])"
    with pytest.raises(PtoError) as caught:
        exec(compile("w(7)\n", "<stdin>", "single"), scope)
    assert str(caught.value).splitlines()[:2] == ["error[T301]: index 7 is outside dimension 0 of `Y`", "  --> <stdin>:4:27"]


def test_annotations_as_text_work_inside_a_function() -> None:
    rows, tile = 1, Tile[1, 4, F32]

    @kernel
    def local(x: In[Tile[rows, 4, F32]], y: Out[tile]) -> None:  # type: ignore[valid-type]
        pto.store(y, x * 3)

    def body() -> None:
        for b in P(4):
            local[b](x=X[b, 0], y=Y[b, 0])
    workload(body)().compile(target="interp").run()
    np.testing.assert_array_equal(Y.data[:, 0], X.data[:, 0] * 3)  # type: ignore[index]


def test_dense_dyn_without_a_variable_has_a_name_of_its_own() -> None:
    def body() -> None:
        for _ in P.seq(DenseDyn(3)):
            copy(X[0, 0], Y[0, 0])
    assert [s.name for s in workload(body)().compile(target="interp").plan.symbols] == ["axis0"]
