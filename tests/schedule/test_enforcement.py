"""What schedules may not say, what the arch adds to them, and what is written down of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pto_wsp import (
    DispatchPolicy,
    P,
    Pools,
    PtoError,
    ReadyPolicy,
    StartPolicy,
    Symbol,
    TaskWindow,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    builtin_arch,
    workload,
)
from pto_wsp.artifact.manifest import Manifest, PackageManifest
from pto_wsp.errors import CyclesError, KeyRangeError, KeyTraceError, WindowError
from pto_wsp.run.native import Engine
from pto_wsp.schedule.schedule import Schedule
from tests.schedule.small_tasks import APART, Y, eight, fill, made, of_k, product, run, starts, total, units, windowed

# ---- keys that say what means nothing ----

def test_a_stream_below_zero_ends_the_run_before_anything_is_touched() -> None:
    for target in ("interp", "cpu_sim"):
        Y.data[:] = -1
        built = eight().stream_by(lambda t: t.k - Symbol("n")).compile(target=target)
        with pytest.raises(KeyRangeError, match=r"stream_by: k - n") as caught:
            built.run(n=3)
        assert "k - n = -3" in str(caught.value) and set(Y.data[:, 0]) == {-1}
        assert built.run(n=0).stats.task_count == 8


def test_a_stream_that_has_no_number_of_64_bits_is_found() -> None:
    with pytest.raises(KeyRangeError, match="stream_by") as caught:
        run(eight().stream_by(lambda t: t.k * 0 + ((1 << 63) - 1)))
    assert caught.value.expected == f"0 .. {(1 << 63) - 2}" and str((1 << 63) - 1) in (caught.value.found or "")
    assert run(eight().stream_by(lambda t: t.k * 0 + ((1 << 63) - 2))).stats.task_count == 8


def test_a_cost_below_zero_is_found_when_compiling() -> None:
    with pytest.raises(KeyRangeError, match=r"TracePolicy\.cycles: -k \+ 3") as caught:
        eight().task_graph(trace=TracePolicy.cycles(lambda t: 3 - t.k)).compile(target="interp")
    assert "where k = 7" in str(caught.value) and "-4" in str(caught.value)


@pytest.mark.parametrize("window, needs", [(TaskWindow(1, "entries"), "copy"), (TaskWindow(7, "bytes"), "fill")], ids=["entries", "bytes"])
def test_a_task_that_needs_more_than_the_window_is_found_when_compiling(window: TaskWindow, needs: str) -> None:
    with pytest.raises(WindowError, match=f"`{needs} under"):
        made().task_graph(window=window).compile(target="interp")
    assert run(made().task_graph(window=TaskWindow(window.size, window.unit, WindowMode.BENCHMARK))).stats.task_count == 8


# ---- keys that ask for the kernel ----

@pytest.mark.parametrize("given", ["product", product], ids=["by its name", "itself"])
@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
def test_a_key_asks_for_the_kernel(target: str, given: object) -> None:
    """One product, then two doubles: products take 5 and doubles 3, doubles go first, in a pool of their own or not."""
    costs = units().task_graph(trace=TracePolicy.cycles(lambda t: (t.kernel == given).where(5, 3)))
    first = costs.task_graph(ready=ReadyPolicy.priority(lambda t: t.kernel != given))
    apart = costs.task_graph(pools=Pools.custom(lambda t: t.kernel == given))
    program = costs.compile(target=target).run()
    for schedule, expected in ((costs, [0, 5, 8]), (first, [6, 0, 3]), (apart, [0, 0, 3])):
        assert program.simulate(schedule).trace.start.tolist() == expected
        assert schedule.compile(target=target).run().trace.start.tolist() == expected
    assert Schedule.model_validate_json(apart.schedule.model_dump_json()) == apart.schedule


def test_a_kernel_that_the_workload_does_not_have_is_refused() -> None:
    with pytest.raises(KeyTraceError, match="names the kernel `produkt`") as caught:
        units().task_graph(ready=ReadyPolicy.priority(lambda t: t.kernel == "produkt")).compile(target="interp")
    assert (caught.value.expected, caught.value.found) == ("product, double", "produkt")


def test_a_kernel_alone_is_no_number() -> None:
    with pytest.raises(KeyTraceError, match="names `kernel`") as caught:
        units().task_graph(ready=ReadyPolicy.priority(lambda t: t.kernel)).compile(target="interp")
    assert caught.value.expected == 't.kernel == "name" or t.kernel == the kernel: it can be compared, and is no number'


def test_a_loop_variable_may_still_be_called_kernel() -> None:
    @workload
    def loops() -> None:
        for kernel in P(8):
            fill[kernel](kernel, Y[kernel])

    assert starts(loops().streams(8).stream_by(lambda t: t.kernel // 2)) == [0, 2] * 4      # of 2 cycles


# ---- what contradicts ----

@pytest.mark.parametrize("make", [
    lambda: eight().calendar(lambda t: (0, t.k)).dispatch(APART), lambda: eight().dispatch(APART).calendar([(0, 0)]),
    lambda: eight().streams(2).calendar([(0, 0)]), lambda: eight().stream_by("k").calendar([(0, 0)]),
    lambda: eight().calendar([(0, 0)]).timing(TimingPolicy.interleaved(2)),
    lambda: eight().calendar([(0, 0)]).task_graph(ready=ReadyPolicy.priority("k")),
    lambda: eight().calendar([(0, 0)]).task_graph(ready=ReadyPolicy.work_steal()),
    lambda: eight().task_graph(pools=Pools.by_exec_unit()).calendar([(0, 0)]),
    lambda: eight().task_graph(pools=Pools.custom("k")).calendar([(0, 0)]),
    lambda: eight().timing(TimingPolicy.interleaved(2)).compile(target="interp"),
], ids=["dispatch", "dispatch before", "streams", "stream_by", "interleaved", "priority", "steal", "units", "custom", "no streams"])
def test_what_contradicts_is_refused_where_it_is_said(make: Callable[[], object]) -> None:
    with pytest.raises(PtoError) as caught:
        make()
    assert caught.value.code == "S105" and "test_enforcement.py" in str(caught.value)


def test_a_schedule_from_json_may_not_contradict_itself_either() -> None:
    schedule = Schedule.model_validate_json(eight().calendar([(0, 0)]).schedule.model_dump_json())
    both = Schedule(**{**{name: getattr(schedule, name) for name in Schedule.model_fields}, "streams": 2})
    with pytest.raises(PtoError, match="contradict"):
        both.refuse_conflicts()


# ---- what the arch adds ----

def test_what_an_aicpu_takes_for_a_task() -> None:
    slow = builtin_arch("unit").with_aicpu(submit_cycles=1, dispatch_cycles=2, retire_cycles=3)
    two = eight().task_graph(trace=TracePolicy.cycles(lambda t: 10))
    # the one AICPU dispatches for 2 cycles, the executor runs for 10, the AICPU retires for 3: 15 a task
    assert starts(two, arch=slow, overheads=True) == [2 + 15 * k for k in range(8)]
    assert (total(two, arch=slow, overheads=True), total(two, arch=slow)) == (120, 80)


def test_an_arch_that_does_not_say_what_an_aicpu_takes_is_refused() -> None:
    unknown = builtin_arch("unit").with_aicpu(dispatch_cycles=None)
    with pytest.raises(PtoError, match="dispatch a task") as caught:
        eight().compile(target="interp", arch=unknown, overheads=True)
    assert caught.value.code == "C110" and "aicpu.dispatch_cycles" in str(caught.value)
    assert total(of_k(eight()), arch=unknown) == 36


def test_tasks_that_share_a_memory_slow_down_alike() -> None:
    narrow = builtin_arch("unit").with_memory("GM", bandwidth_bytes_per_cycle=4.0)
    w = eight().task_graph(trace=TracePolicy.cycles(lambda t: 2)).dispatch(APART)     # each stores 8 bytes in 2 cycles: 32 a cycle
    assert (total(w), total(w, arch=narrow)) == (2, 16)
    alone = eight().task_graph(trace=TracePolicy.cycles(lambda t: 2))
    assert total(alone, arch=narrow) == 16     # one at a time asks for 4 a cycle, which there is
    found = w.compile(target="cpu_sim", arch=narrow).run()
    assert found.stats.total_cycles == 16


# ---- what is written down ----

@pytest.mark.slow
def test_the_manifest_says_what_the_schedule_says_and_which_unit_a_kernel_needs() -> None:
    manifest = units().streams(2).task_graph(pools=Pools.by_exec_unit(), window=TaskWindow(5)).compile(target="cpu_sim").manifest
    assert isinstance(manifest, Manifest)
    assert manifest.rules == ("2 executors", "each with 1 + 1 cores", "window 5")
    assert {entry.name: entry.unit for entry in manifest.kernels} == {"product": "cube", "double": "vector"}


def test_what_a_device_records_changes_nothing_but_the_manifest_and_the_numbers_of_the_launch(tmp_path: Path) -> None:
    plain = units().task_graph().compile(target="ascend_npu")
    with pytest.warns(UserWarning, match="recorded and not enforced"):
        said = (units().dispatch(DispatchPolicy.round_robin(3)).timing(TimingPolicy.batched(4))
                .task_graph(window=TaskWindow(5), ready=ReadyPolicy.work_steal(), start=StartPolicy.threshold(3),
                            trace=TracePolicy.cycles(lambda t: 5), pools=Pools.single())).compile(target="ascend_npu")
    files = []
    for k, program in enumerate((plain, said)):
        root = program.save(tmp_path / str(k))
        files.append({path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*"))
                      if path.is_file() and path.name != "manifest.json"})
    configs = [one.pop("kernel_config.py").decode() for one in files]
    assert files[0] == files[1]
    assert [("LAUNCH" in config, '"window_tasks": 5' in config, '"aicpu_thread_num": 3' in config) for config in configs] == [
        (False, False, False), (True, True, True)]
    assert isinstance(said.manifest, PackageManifest) and len(said.manifest.recorded_directives) == 7


# ---- cycles that 64 bits do not hold ----

def costing(cycles: int) -> Workload:
    return eight().task_graph(trace=TracePolicy.cycles(lambda t: t.k * 0 + cycles))


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_cycles_past_64_bits_are_an_error_at_the_task_that_is_too_much(target: str) -> None:
    large, most = costing(1 << 61).compile(target=target), costing((1 << 60) - 1).compile(target=target)     # eight of 2^60 are 2^63
    Y.data[:] = -1
    large.run()
    assert set(Y.data[:, 0]) == set(range(8))      # what is computed is computed
    for look in (lambda: large.stats, lambda: large.trace, lambda: large.explain(), lambda: most.run().simulate(costing(1 << 60))):
        with pytest.raises(CyclesError, match=r"do not fit 64 bits at task fill\[k=[37]\]\n  --> .*small_tasks\.py"):
            look()
    assert most.stats.total_cycles == most.stats.work == most.stats.pools[0].work == 8 * ((1 << 60) - 1)
    assert most.simulate(costing(1)).total_cycles == 8


def test_a_stream_too_long_to_keep_ends_where_its_cycles_do() -> None:
    built = costing(1 << 61).compile(target="cpu_sim")
    engine = Engine(built.compiled.runner.artifact, built.plan, 1, max_tasks=3)  # type: ignore[union-attr]
    with pytest.raises(CyclesError, match=r"do not fit 64 bits at task (3 of the stream|fill\[k=3\])"):
        engine.run(built.bind())


# ---- streams that are longer than a record, or depend on what tasks compute ----

def test_a_stream_too_long_to_keep_is_simulated_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    built = windowed(6, "tasks", WindowMode.ABORT).compile(target="cpu_sim")
    engine = Engine(built.compiled.runner.artifact, built.plan, 1, max_tasks=3)  # type: ignore[union-attr]
    Y.data[:] = -1
    with pytest.raises(WindowError, match="k=6"):
        engine.run(built.bind())
    assert set(Y.data[:, 0]) == {-1}


@workload
def reads() -> None:
    """As many tasks as the first one computes: 8."""
    fill(8, Y[7])
    for k in P(Y[7, 0]):
        fill[k](k, Y[k % 4])


def test_a_stream_that_waits_for_results_ends_after_them() -> None:
    for target in ("interp", "cpu_sim"):
        program = reads().task_graph(window=TaskWindow(3, "tasks", WindowMode.ABORT)).compile(target=target)
        with pytest.raises(WindowError, match="no room") as caught:
            program.run()
        assert "had run before" in str(caught.value)


@pytest.mark.parametrize("max_tasks", [1, 4, 8])
def test_a_long_stream_that_waits_for_results_ends_where_the_window_is_full(max_tasks: int) -> None:
    built = reads().task_graph(window=TaskWindow(3, "tasks", WindowMode.ABORT)).compile(target="cpu_sim")
    engine = Engine(built.compiled.runner.artifact, built.plan, 1, max_tasks)  # type: ignore[union-attr]
    for _ in range(2):
        with pytest.raises(WindowError, match="no room"):
            engine.run(built.bind())
