"""What each pass of the tensor level did is kept on demand: as values, as a difference between two passes, and as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit

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
