"""What each pass of the tensor level did is kept on demand: as values, as a difference between two passes, and as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit
from tests.caches import with_runtime

F32 = DType.F32


@jit
def rmsnorm_linear(x: Tensor["t", 64, F32], g: Tensor[64, F32], w: Tensor[64, 96, F32]):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g
    return normed @ w


def test_a_dump_has_a_file_for_each_pass_and_each_level(tmp_path: Path) -> None:
    plan = rmsnorm_linear.plan(arch="ascend_910b")
    workload = rmsnorm_linear.lower(plan, dump=True)
    root = workload.dump(tmp_path)
    tensor = sorted(path.name for path in (root / "0_tensor").glob("[0-9]*"))
    assert tensor == ["00_trace.txt", *(f"{k:02}_{step.name}.txt" for k, step in enumerate(workload.steps, 1))]
    assert (root / "0_tensor" / "00_trace.txt").read_text().strip() == str(rmsnorm_linear.trace()).strip()
    for step in workload.steps:
        behind = rmsnorm_linear.plan(arch="ascend_910b", until=step.name).function
        number = [one.name for one in workload.steps].index(step.name) + 1
        assert (root / "0_tensor" / f"{number:02}_{step.name}.txt").read_text().strip() == str(behind).strip()
    assert {path.name for path in (root / "1_tile").iterdir()} == {f"{name}.txt" for name in plan.group_names}
    assert (root / "2_block" / "module.py").read_text() == workload.source()
    assert "plan rmsnorm_linear" in (root / "3_execution" / "tasks.txt").read_text()
    assert all(step.seconds > 0 for step in workload.steps)


def test_changes_are_those_between_two_passes() -> None:
    workload = rmsnorm_linear.lower(rmsnorm_linear.plan(arch="ascend_910b"), dump=True)
    assert workload.changes("trace", "trace") == ""
    text = workload.changes("partition", "cut_tiles")
    assert "\n-    out[t, 96] f32 = normed @ w" in text and "\n+    for t_i in each(" in text
    with pytest.raises(PtoError, match="did you mean cut_tiles") as caught:
        workload.changes("partition", "cut_tile")
    assert caught.value.code == "C114"


def test_without_dump_nothing_is_kept(tmp_path: Path) -> None:
    workload = rmsnorm_linear.lower()
    assert workload.steps == ()
    with pytest.raises(PtoError, match="no passes were kept"):
        workload.dump(tmp_path)


@pytest.mark.slow
def test_compile_with_dump_writes_the_tensor_level_beside_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    plan = rmsnorm_linear.plan()
    workload = rmsnorm_linear.lower(plan)
    plain = workload.compile()
    program = workload.compile(dump=True)
    level = program.artifact_dir / "ir" / "0_tensor"
    kept = rmsnorm_linear.lower(plan, dump=True)
    assert not (plain.artifact_dir / "ir" / "0_tensor").exists()
    assert (level / "plan.txt").read_text() == f"{plan}\n"
    for number, name in enumerate(("trace", *(step.name for step in kept.steps))):
        wanted = kept.changes("trace", name)
        found = (level / f"{number:02}_{name}.txt").read_text()
        assert (found == (level / "00_trace.txt").read_text()) == (wanted == ""), name
    assert (level / "00_trace.txt").read_text().strip() == str(rmsnorm_linear.trace()).strip()
    assert [*(program.artifact_dir / "ir").glob("00_before_*.wsp")]


@pytest.mark.slow
def test_calls_with_dump_write_the_tensor_level(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    dumping = rmsnorm_linear.using(dump=True)
    x, g, w = np.ones((3, 64), np.float32), np.ones(64, np.float32), np.ones((64, 96), np.float32)
    dumping(x, g, w)
    (call,) = dumping.compiled
    level = call.program.artifact_dir / "ir" / "0_tensor"
    assert (level / "plan.txt").read_text() == f"{call.plan}\n"
    assert "out[t, 96] f32 = undefined" in (level / "08_cut_tiles.txt").read_text()


@pytest.mark.slow
def test_artifacts_with_other_plans_of_the_tensor_level_are_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    plan = rmsnorm_linear.plan(arch="ascend_910b")
    by_hand = plan.but(tiles={"out": {"t": next(entry.first for entry in plan.entries if entry.place == ("tiles", "out", "t"))}})
    assert by_hand == plan and str(by_hand) != str(plan)       # the same tasks, for another reason
    folders = {rmsnorm_linear.lower(one).compile(dump=True).artifact_dir for one in (plan, by_hand)}
    assert len(folders) == 2
