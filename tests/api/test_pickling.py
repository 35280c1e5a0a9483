"""What goes to another process: functions by name, values and figures as they are; programs and live results say what to send instead."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, P, Program, Tensor, Tile, jit, kernel, pto, workload
from pto_wsp.errors import ProgramStateError
from pto_wsp.timing.stats import Stats

F32 = DType.F32
X, Y = (Tensor(np.ones((8, 8), np.float32), name=name) for name in "XY")


@kernel
def double(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, pto.load(x) * 2)


@workload
def doubled() -> None:
    for i in P.seq(2):
        double(X[4 * i:4 * i + 4], Y[4 * i:4 * i + 4])


@jit
def scaled(x: Tensor[3, 8, F32]) -> Tensor:
    return x * 3


@pytest.fixture(scope="module")
def program() -> Program:
    return doubled().compile().run()


@pytest.mark.parametrize("function", [double, doubled, scaled], ids=["kernel", "workload", "jit"])
@pytest.mark.parametrize("way", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_a_decorated_function_is_itself(function: object, way: Callable[[object], object]) -> None:
    assert way(function) is function


def test_a_kernel_of_ir_is_pickled_with_its_ir() -> None:
    ir = double.ir
    again = pickle.loads(pickle.dumps(Kernel.from_ir(ir)))
    assert again.ir == ir and again.__name__ == "double"


def test_a_function_of_a_function_is_refused_as_pythons_are() -> None:
    @jit
    def inner(x: Tensor[3, 8, F32]) -> Tensor:
        return x

    with pytest.raises((pickle.PicklingError, AttributeError), match=r"inner"):
        pickle.dumps(inner)
    assert copy.deepcopy(inner) is inner


@pytest.mark.parametrize("of", [lambda p: p.stats, lambda p: p.simulate().stats], ids=["run", "simulation"])
def test_figures_keep_what_they_compute_on_demand(program: Program, of: Callable[[Program], Stats]) -> None:
    stats = of(program)
    again = pickle.loads(pickle.dumps(stats))
    assert again == stats and again.verdict == stats.verdict and again.causes() == stats.causes() and str(again) == str(stats)
    assert list(again.kernels) == list(stats.kernels) and "double" in str(again.kernels)
    assert pickle.loads(pickle.dumps(again)) == stats


def test_a_trace_keeps_its_columns_and_its_verdict(program: Program) -> None:
    again = pickle.loads(pickle.dumps(program.trace))
    assert list(again.start) == list(program.trace.start) and list(again.names) == list(program.trace.names)
    assert again.stats is not None and again.stats() == program.stats


@pytest.mark.parametrize("value", [lambda p: p, lambda p: p.simulate(), lambda p: p.explain(), lambda p: p.graph],
                         ids=["Program", "Simulation", "Explanation", "RunGraph"])
@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_live_value_says_what_to_send(program: Program, value: Callable[[Program], object], way: Callable[[object], object]) -> None:
    live = value(program)
    with pytest.raises(ProgramStateError, match=rf"R103.*{type(live).__name__} is neither pickled nor copied") as refused:
        way(live)
    assert "send" in str(refused.value) and "test_pickling.py:" in str(refused.value)


SCRIPT = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import numpy as np
from pto_wsp import DType, Tensor, jit

@jit
def scaled(x: Tensor[3, 8, DType.F32]):
    return x * 3

def stats():
    x = np.ones((3, 8), np.float32)
    return scaled.lower(scaled.plan(x)).compile().run(x=x, out=np.empty_like(x)).stats

if __name__ == "__main__":
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert (pool.submit(scaled, x).result() == 3 * x).all()
        print(pool.submit(stats).result().task_count)
"""


@pytest.mark.slow
def test_processes_that_start_anew_call_what_they_are_sent(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
    assert int(done.stdout) > 0
