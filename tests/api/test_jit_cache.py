"""What jit functions keep: compiled functions on the disk, plans in a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, TilePlan, jit
from pto_wsp.errors import PlanNameError
from tests.caches import with_runtime

F32, F16 = DType.F32, DType.F16
SCRIPT = '''
import sys
import numpy as np
from pto_wsp import DType, Tensor, jit, tt
F32 = DType.F32

@jit
def kept(x: Tensor["t", 8, F32], w: Tensor[8, 4, F32]):
    return (x @ w) * FACTOR

x, w = np.ones((5, 8), np.float32), np.full((8, 4), 0.5, np.float32)
if sys.argv[1] == "again":
    with tt.no_compile():
        y = kept(x, w)
    print("pto_wsp.passes.tensor.emit" in sys.modules, "pto_wsp.c.cpu_sim" in sys.modules, kept.compiled[0].program.stats.task_count if
          kept.compiled[0].program.run(x=x, w=w, out=y, t=5) else 0)
else:
    y = kept(x, w)
np.testing.assert_array_equal(y, np.full((5, 4), 4 * FACTOR, np.float32))
'''


def run(script: str, how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, how], text=True, capture_output=True, check=False)


@pytest.mark.slow
def test_a_new_process_finds_what_another_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    script = SCRIPT.replace("FACTOR", "2.0")
    first, second = run(script, "first"), run(script, "again")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert second.stdout.split() == ["False", "False", "1"]
    other = run(SCRIPT.replace("FACTOR", "3.0"), "again")      # another constant is another function
    assert other.returncode == 1 and "C118" in other.stderr


@pytest.mark.slow
def test_a_damaged_record_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    script = SCRIPT.replace("FACTOR", "2.0")
    assert run(script, "first").returncode == 0
    of_trace, of_program = sorted((tmp_path / "records").iterdir(), key=lambda record: record.stat().st_size)[-2:]
    of_trace.write_text(of_trace.read_text()[:-9] + "AAAAAAA=\n")
    assert run(script, "again").returncode == 0      # it is traced, and its program found by what the trace gives
    of_program.write_text(of_program.read_text()[:-9] + "AAAAAAA=\n")
    again = run(script, "again")
    assert again.returncode == 1 and "C118" in again.stderr
    assert run(script, "first").returncode == 0 and run(script, "again").returncode == 0


LOOKS = '''
import numpy as np
from pto_wsp import DType, Tensor, jit, tt
F32 = DType.F32

@jit
def looked_at(x: Tensor["t", 8, F32], w: Tensor[8, 4, F32]):
    y = np.exp(x @ w)
    tt.print("y", y)
    return y / np.sum(y, axis=-1, keepdims=True)

x, w = np.ones((5, 8), np.float32), np.full((8, 4), 0.5, np.float32)
y = looked_at(x, w)
program, arrays = looked_at.compiled[0].program, {"x": x, "w": w, "out": y, "t": 5}
for what in (program.plan, program.compiled.workload, program.checks, program.manifest.model_dump_json(), program.verify(**arrays),
             program.run(**arrays).explain(), program.simulate(arch="ascend_910b"), program.compiled.unscheduled, program.trace):
    print(what)
'''


@pytest.mark.slow
def test_all_that_a_run_does_without_is_read_when_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    first, again = (subprocess.run([sys.executable, "-c", LOOKS], text=True, capture_output=True, check=True).stdout for _ in range(2))
    assert again == first and "y: Tile" in first and "T=" not in first


# -- plans in a folder -------------------------------------------------------------------------------------------------
def planned(folder: Path, dtype: DType) -> tuple[int | str, TilePlan]:
    """Return the tile of t in the plan of a call, and the plan."""
    @jit(plans=str(folder), target="interp")
    def f(x: Tensor["t", 8, dtype]):
        return x + x

    x = np.ones((5, 8), dtype.np)
    np.testing.assert_array_equal(f(x), x + x)
    plan = f.compiled[0].plan
    assert plan is not None
    entry = plan.said("tiles", "out", "t")
    assert entry is not None
    return entry.value, plan  # type: ignore[return-value]


def test_a_plan_is_found_by_function_arch_target_and_dtype(tmp_path: Path) -> None:
    _, plan = planned(tmp_path, F32)
    plan.but(tiles={"out": {"t": 2}}).save(tmp_path / "f.host.json")
    plan.but(tiles={"out": {"t": 4}}).save(tmp_path / "f.host.f16.json")
    TilePlan("g", plan.arch, plan.target).save(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("no plan")
    assert planned(tmp_path, F32)[0] == 2
    assert planned(tmp_path, F16)[0] == 4


def test_an_error_of_a_plan_that_was_found_names_its_file(tmp_path: Path) -> None:
    _, plan = planned(tmp_path, F32)
    plan.but(tiles={"out": {"t": 2}}).save(tmp_path / "f.json")
    (tmp_path / "f.json").write_text((tmp_path / "f.json").read_text().replace('"out"', '"ouch"'))
    with pytest.raises(PlanNameError) as caught:
        planned(tmp_path, F32)
    assert caught.value.notes == (f"the plan is {tmp_path / 'f.json'}",)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PtoError) as caught:
        planned(tmp_path / "none", F32)
    assert caught.value.code == "J305"
    with pytest.raises(PtoError) as caught:
        jit(plans=3)  # type: ignore[call-overload]
    assert caught.value.code == "J121"
