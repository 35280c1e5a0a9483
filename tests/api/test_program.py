"""Programs: their life, what a run binds, and what they refuse."""

from __future__ import annotations

import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import (
    DenseDyn,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    Scalar,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    Workload,
    capabilities,
    kernel,
    pto,
    workload,
)
from pto_wsp.errors import BindingError, CompileOptionError, DirectiveError, ProgramStateError, RunBoundsError, UnboundSymbolError
from pto_wsp.schedule.support import Capability
from pto_wsp.source import Span

F32 = DType.F32


@kernel
def double(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def add(x: InOut[Tile[1, 4, F32]], n: Scalar[F32]) -> None:
    pto.store(x, x + n)


class Doubling:
    """Rows of X doubled into Y; `rows` may be bound."""

    def __init__(self, n: int = 3) -> None:
        self.x, self.y = np.arange(4.0 * n, dtype=np.float32).reshape(n, 4), np.zeros((n, 4), np.float32)
        X, Y = Tensor(self.x, name="X"), Tensor(self.y, name="Y")
        rows = DenseDyn(n)

        @workload
        def doubling() -> None:
            for r in P(rows):
                double[r](x=X[r], y=Y[r])
        self.workload: Workload = doubling()

    def program(self) -> Program:
        """Compile for the interpreter."""
        return self.workload.compile(target="interp")


@pytest.fixture
def doubling() -> Doubling:
    """Return a fresh workload on fresh arrays."""
    return Doubling()


# ---- the life of a run ----

def test_results_land_in_the_arrays_given(doubling: Doubling) -> None:
    doubling.program().run()
    np.testing.assert_array_equal(doubling.y, doubling.x * 2)


def test_changes_in_place_are_seen_by_the_next_run(doubling: Doubling) -> None:
    program = doubling.program().run()
    doubling.x += 1
    program.run()
    np.testing.assert_array_equal(doubling.y, doubling.x * 2)


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_an_array_that_changes_its_look_is_checked_again(target: str) -> None:
    x, y = np.ones((6, 4), np.float32), np.zeros((6, 4), np.float32)
    X, Y = Tensor(x), Tensor(y)

    @workload
    def half() -> None:
        for i in P(3):
            double[i](x=X[i], y=Y[i])

    program = half().compile(target=target)
    program.run().run()
    assert (y == np.repeat([2, 0], 3)[:, None]).all()
    y.flags.writeable = False
    with pytest.raises(BindingError, match="read-only"):
        program.run()
    y.flags.writeable = True
    y.shape = (3, 8)
    with pytest.raises(PtoError):
        program.run()
    y.shape, y[...] = (6, 4), 0
    program.run()
    assert (y == np.repeat([2, 0], 3)[:, None]).all()


def test_execute_then_synchronize_is_a_run(doubling: Doubling) -> None:
    program = doubling.program()
    program.execute()
    program.synchronize()
    assert program.is_complete() and program.stats.task_count == 3


def test_execute_twice_before_synchronize_is_refused(doubling: Doubling) -> None:
    program = doubling.program()
    program.execute()
    with pytest.raises(ProgramStateError) as caught:
        program.execute()
    assert caught.value.code == "R103"
    program.synchronize()
    program.run()


def test_synchronize_needs_a_run_and_may_be_repeated(doubling: Doubling) -> None:
    program = doubling.program()
    with pytest.raises(ProgramStateError):
        program.synchronize()
    program.run()
    program.synchronize()


@pytest.mark.parametrize("look", ["stats", "trace", "graph"])
def test_there_is_nothing_to_look_at_before_a_run(doubling: Doubling, look: str) -> None:
    with pytest.raises(ProgramStateError):
        getattr(doubling.program(), look)


def test_stats_of_a_run_that_has_ended_need_no_synchronize(doubling: Doubling) -> None:
    program = doubling.program()
    program.execute()
    while not program.is_complete():
        time.sleep(0.001)
    assert program.stats.task_count == 3


def test_execute_returns_while_the_run_goes_on() -> None:
    gate, started = threading.Event(), threading.Event()
    array = np.zeros((1, 4), np.float32)
    program = Doubling(1).program()
    original = program.compiled.runner.run

    def held(*args: object) -> None:
        started.set()
        gate.wait(300)
        original(*args)  # type: ignore[arg-type]
    program.compiled.runner.run = held  # type: ignore[method-assign, assignment]
    program.execute(Y=array)
    assert started.wait(300) and not program.is_complete()
    with pytest.raises(ProgramStateError):
        _ = program.stats
    gate.set()
    program.synchronize()
    assert program.is_complete()


def test_a_failed_run_reaches_synchronize_once_and_leaves_the_program_usable(doubling: Doubling) -> None:
    program = doubling.program()
    program.execute(rows=9)
    with pytest.raises(RunBoundsError):
        program.synchronize()
    with pytest.raises(ProgramStateError):
        _ = program.stats
    program.run()
    np.testing.assert_array_equal(doubling.y, doubling.x * 2)


def test_a_failed_binding_runs_nothing(doubling: Doubling) -> None:
    program = doubling.program()
    with pytest.raises(BindingError):
        program.execute(X=np.zeros((3, 4)))
    assert program.is_complete() and not doubling.y.any()


# ---- bindings ----

def test_a_binding_lasts_one_run(doubling: Doubling) -> None:
    program, other = doubling.program(), np.full((3, 4), 5, np.float32)
    program.run(X=other)
    assert (doubling.y == 10).all()
    program.run()
    np.testing.assert_array_equal(doubling.y, doubling.x * 2)


def test_larger_arrays_and_axes_may_be_bound(doubling: Doubling) -> None:
    x, y = np.ones((5, 4), np.float32), np.zeros((5, 4), np.float32)
    program = doubling.program().run(X=x, Y=y, rows=5)
    assert (y == 2).all() and program.stats.task_count == 5 and not doubling.y.any()


def test_a_tensor_may_be_bound(doubling: Doubling) -> None:
    y = np.zeros((3, 4), np.float32)
    doubling.program().run(Y=Tensor(y))
    np.testing.assert_array_equal(y, doubling.x * 2)


def test_outer_strides_may_change(doubling: Doubling) -> None:
    wide = np.ones((6, 9), np.float32)
    doubling.program().run(X=wide[::2, 3:7])
    assert (doubling.y == 2).all()


def test_an_unknown_name_is_refused_with_those_there_are(doubling: Doubling) -> None:
    with pytest.raises(BindingError) as caught:
        doubling.program().execute(Z=3)
    assert caught.value.expected == "one of X, Y, rows"
    span = caught.value.span
    assert isinstance(span, Span) and Path(span.file).name == "test_program.py"


def test_two_tensors_of_one_name_are_ambiguous() -> None:
    one, two = (Tensor(np.zeros((1, 4), np.float32), name="T") for _ in range(2))

    @workload
    def both() -> None:
        double(x=one, y=two)
    with pytest.raises(BindingError) as caught:
        both().compile(target="interp").execute(T=np.zeros((1, 4), np.float32))
    assert "ambiguous" in caught.value.message


def test_a_tensor_is_called_as_the_variable_that_holds_it() -> None:
    source, target = Tensor(np.zeros((1, 4), np.float32)), Tensor(np.zeros((1, 4), np.float32))

    @workload
    def unnamed() -> None:
        double(x=source, y=target)
    out = np.zeros((1, 4), np.float32)
    unnamed().compile(target="interp").run(source=np.ones((1, 4), np.float32), target=out)
    assert (out == 2).all()


def test_a_tensor_without_data_asks_for_some() -> None:
    X, Y = Tensor(shape=(1, 4), dtype=F32), Tensor(np.zeros((1, 4), np.float32))

    @workload
    def later() -> None:
        double(x=X, y=Y)
    program = later().compile(target="interp")
    with pytest.raises(BindingError) as caught:
        program.execute()
    assert caught.value.help == "give it at run time: execute(X=array)"
    program.run(X=np.ones((1, 4), np.float32))


class Adding:
    """X + n."""

    def __init__(self) -> None:
        self.x = np.zeros((1, 4), np.float32)
        X, n = Tensor(self.x), Symbol("n")

        @workload
        def adding() -> None:
            add(x=X, n=n)
        self.program: Program = adding().compile(target="interp")


def test_an_unbound_symbol_is_an_error_of_execute() -> None:
    with pytest.raises(UnboundSymbolError) as caught:
        Adding().program.execute()
    assert caught.value.code == "W101" and "`n`" in caught.value.message


def test_a_symbol_takes_the_dtype_of_its_use() -> None:
    adding = Adding()
    adding.program.run(n=1.5)
    assert (adding.x == 1.5).all()


def test_a_symbol_set_once_holds_for_all_runs() -> None:
    adding = Adding()
    adding.program.set_symbol_f32("n", 0.5)
    adding.program.run().run()
    assert (adding.x == 1).all()
    adding.program.run(n=2)
    assert (adding.x == 3).all()
    adding.program.run()
    assert (adding.x == 3.5).all()


def test_axis_sizes_set_once_hold_for_all_runs(doubling: Doubling) -> None:
    program = doubling.program()
    program.set_axis_sizes({"rows": 2})
    assert program.run().stats.task_count == 2
    program.set_symbol_u64("rows", 1)
    assert program.run().stats.task_count == 1
    assert program.run(rows=3).stats.task_count == 3


@pytest.mark.parametrize("call", [lambda p: p.set_symbol_u64("m", 1), lambda p: p.set_axis_sizes({"X": 1})])
def test_setting_an_unknown_symbol_is_refused(doubling: Doubling, call: object) -> None:
    with pytest.raises(BindingError):
        call(doubling.program())  # type: ignore[operator]


# ---- nothing to do ----

def test_a_program_without_tasks_has_stats() -> None:
    @workload
    def nothing() -> None:
        pass
    program = nothing().compile(target="interp").run()
    stats = program.stats
    assert (stats.task_count, stats.total_cycles, stats.critical_path, stats.work, stats.gap) == (0, 0, 0, 0, 0.0)
    assert len(program.trace) == 0 and len(program.graph.tasks) == 0


def test_an_axis_bound_to_zero_makes_no_tasks(doubling: Doubling) -> None:
    assert doubling.program().run(rows=0).stats.total_cycles == 0
    assert not doubling.y.any()


# ---- compile ----

@pytest.mark.parametrize("options, text", [
    ({"target": "gpu"}, "there is no target 'gpu'"),
    ({"target": "ascend_npu", "threads": 2}, "target ascend_npu has no threads"),
    ({"target": "ascend_npu", "arch": "unit"}, "arch `unit` is no machine of this target"),
    ({"target": "ascend_npu", "options": {"runtime": "mpi"}}, "compile() option `options.runtime` does not take this value"),
    ({"options": {"runtime": "host_build_graph"}}, "target interp has no options"),
    ({"target": None}, "there is no target None"),
    ({"arch": "z80"}, "there is no arch 'z80'"),
    ({"thread": 2}, "compile() has no option `thread`"),
    ({"threads": 0}, "compile() option `threads` does not take this value"),
    ({"threads": "2"}, "compile() option `threads` does not take this value"),
    ({"portable": 1}, "compile() option `portable` does not take this value"),
    ({"overheads": 1}, "compile() option `overheads` does not take this value"),
])
def test_what_compile_does_not_take_is_refused(doubling: Doubling, options: dict[str, object], text: str) -> None:
    with pytest.raises(CompileOptionError) as caught:
        doubling.workload.compile(**{"target": "interp", **options})  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.message) == ("C115" if "arch" in text else "C104", text)


def test_the_nearest_option_is_named(doubling: Doubling) -> None:
    with pytest.raises(CompileOptionError) as caught:
        doubling.workload.compile(target="interp", thread=2)
    assert caught.value.help == "did you mean threads=...?"


def refused_twice(w: Workload) -> Workload:
    """Ask for two directives that the device does not enforce."""
    return w.streams(2).task_graph(window=TaskWindow(4, "tasks", WindowMode.ABORT))


def test_all_refused_directives_are_reported_together(doubling: Doubling) -> None:
    with pytest.raises(DirectiveError) as caught:
        refused_twice(doubling.workload).compile(target="ascend_npu")
    assert str(caught.value).count("error[S101]") == 2


def test_without_strict_they_are_reported_once_and_the_program_runs(doubling: Doubling) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        doubling.workload.spatial_map((2, 2)).named("mapped").compile(target="ascend_npu", strict=False)
    assert len(caught) == 1
    assert "spatial_map" in str(caught[0].message)


def test_enforced_directives_warn_of_nothing(doubling: Doubling) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doubling.workload.dispatch(DispatchPolicy.round_robin(2)).task_graph(window=TaskWindow(4)).compile(target="interp", strict=False)


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_capabilities_tell_what_a_target_enforces(target: str) -> None:
    found = capabilities(target)
    assert found["dispatch.round_robin"] is Capability.ENFORCED
    assert found["spatial_map"] is Capability.ENFORCED
    assert capabilities("ascend_npu")["spatial_map"] is Capability.REFUSED


def test_capabilities_of_an_unknown_target_are_refused() -> None:
    with pytest.raises(PtoError):
        capabilities("gpu")


def test_checks_give_a_verdict_a_view(doubling: Doubling) -> None:
    found = [line.split(" (")[0] for line in doubling.program().checks]
    assert found == ["proved: extent rows", "proved: index X[r]", "proved: tile X[r]", "proved: index Y[r]", "proved: tile Y[r]",
                     "proved: races on `Y`"]


def test_repr_names_the_workload_and_the_target(doubling: Doubling) -> None:
    assert repr(doubling.program()) == "Program(doubling, interp)"
