"""What kernel_config.py says of a launch: every knob changes its bytes, and what asks for more than the machine has is refused."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    PtoError,
    Schedule,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    Workload,
    builtin_arch,
    capabilities,
    kernel,
    pto,
    workload,
)

F32 = DType.F32


@kernel
def twice(x: In[Tile[1, 16, F32]], y: Out[Tile[1, 16, F32]]) -> None:
    pto.store(y, x * 2)


@workload
def rows() -> None:
    X, Y = Tensor(np.ones((4, 16), np.float32), name="X"), Tensor(np.zeros((4, 16), np.float32), name="Y")
    for r in P(4):
        twice[r](X[r], Y[r])


def package(w: Workload, **options: object) -> Path:
    """Return the folder of a package, without the warning that something is recorded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        folder = w.compile(target="ascend_npu", **options).artifact_dir
    assert folder is not None
    return folder


def config(w: Workload, **options: object) -> Mapping[str, object]:
    """Return the names that kernel_config.py defines."""
    path = package(w, **options) / "kernel_config.py"
    names: dict[str, object] = {"__file__": str(path)}
    exec(path.read_text(), names)
    return names


def test_without_a_word_the_runtime_decides() -> None:
    found = config(rows())
    assert found["RUNTIME_CONFIG"] == {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0} and "LAUNCH" not in found


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("policy", "threads"), [
    (DispatchPolicy.round_robin(3), 3), (DispatchPolicy.affinity(lambda t: t.r, 2), 2), (DispatchPolicy.hash(lambda t: t.r, 5), 5),
    (DispatchPolicy.dispatch_by(lambda t: t.r, 6), 6), (DispatchPolicy.work_steal(4), 4), (DispatchPolicy.work_steal(), 0)])
def test_threads_are_those_of_the_dispatch(policy: object, threads: int) -> None:
    found = config(rows().dispatch(policy))   # type: ignore[arg-type]
    assert found["RUNTIME_CONFIG"] == {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": threads}


def test_more_threads_than_the_arch_has_are_refused() -> None:
    with pytest.raises(PtoError) as caught:
        package(rows().dispatch(DispatchPolicy.round_robin(7)))
    assert caught.value.code == "C110" and caught.value.expected == "at most 6"
    assert config(rows().dispatch(DispatchPolicy.round_robin(7)),
                  arch=builtin_arch("ascend_910b").with_aicpu(count=8))["RUNTIME_CONFIG"]["aicpu_thread_num"] == 7   # type: ignore[index]


def test_blocks_are_recorded_and_checked() -> None:
    assert config(rows(), options={"block_dim": 24})["LAUNCH"] == {"block_dim": 24}
    assert "block_dim" not in config(rows(), options={"block_dim": 24})["RUNTIME_CONFIG"]   # type: ignore[operator]
    with pytest.raises(PtoError) as caught:
        package(rows(), options={"block_dim": 25})
    assert caught.value.code == "C110" and caught.value.expected == "at most 24"
    for wrong in (0, -1, True, 2.5, "8"):
        with pytest.raises(PtoError) as caught:
            package(rows(), options={"block_dim": wrong})
        assert caught.value.code == "C104"
    for target in ("pto", "cpu_sim", "interp"):
        with pytest.raises(PtoError) as caught:
            rows().compile(target=target, options={"block_dim": 8})
        assert caught.value.code == "C104"


@pytest.mark.parametrize("unit", ["tasks", "bytes", "entries", "edges", "ready"])
def test_each_window_is_recorded(unit: str) -> None:
    window = TaskWindow(4096, unit)   # type: ignore[arg-type]
    assert config(rows().task_graph(window=window))["LAUNCH"] == {f"window_{unit}": 4096}
    assert capabilities("ascend_npu")[window.directive].value == "recorded"


def test_all_at_once() -> None:
    windows = (TaskWindow(64, "ready"), TaskWindow(1 << 20, "bytes"), TaskWindow(128))
    w = rows().dispatch(DispatchPolicy.round_robin(2)).task_graph(window=windows)
    folder = package(w, options={"block_dim": 8})
    text = (folder / "kernel_config.py").read_text()
    assert text.partition("# Recorded")[2] == """\
, not enforced: what the schedule and the options say of a launch, which drivers do not read.
LAUNCH = {
    "block_dim": 8,  # for the launch: drivers refuse it in RUNTIME_CONFIG
    "window_tasks": 128,  # the runtime sizes its task ring by itself
    "window_bytes": 1048576,  # the runtime sizes its heap by itself
    "window_ready": 64,  # the runtime sizes its queue of ready tasks by itself
}
"""
    assert '    "aicpu_thread_num": 2,  # as many as the schedule dispatches from\n' in text


def test_each_knob_changes_the_bytes_and_one_file_alone() -> None:
    plain = package(rows())
    bounded = rows().task_graph(window=TaskWindow(8), deps=Deps.hybrid())
    for w, options in [(rows().dispatch(DispatchPolicy.round_robin(2)), {}), (bounded, {}), (rows(), {"options": {"block_dim": 2}})]:
        turned = package(w, **options)
        changed = {str(path.relative_to(plain)) for path in plain.rglob("*")
                   if path.is_file() and path.read_bytes() != (turned / path.relative_to(plain)).read_bytes()}
        assert "kernel_config.py" in changed and changed <= {"kernel_config.py", "manifest.json"}


def test_a_window_that_is_no_ring_says_nothing() -> None:
    window = TaskWindow(8, "tasks", WindowMode.BENCHMARK)
    assert "LAUNCH" not in config(rows().task_graph(window=window), strict=False)
    assert Schedule.model_validate_json(rows().task_graph(window=window).schedule.model_dump_json()).windows == (window,)
