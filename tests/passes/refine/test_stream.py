"""Which outputs go past the caches: those larger than they are, or of 16 MiB, that no task reads back."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.artifact.toolchain import cache_bytes
from pto_wsp.ir.plan_text import print_plan
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes

ROW = Tile[1, 64, DType.F32]


@kernel
def copy(x: In[ROW], y: Out[ROW]) -> None:
    pto.store(y, x)


@kernel
def add(x: In[ROW], y: InOut[ROW]) -> None:
    pto.store(y, x + y)


def tensor(name: str, rows: int) -> Tensor:
    """Return f32 rows of 256 bytes."""
    return Tensor(np.zeros((rows, 64), np.float32), name=name)


def streamed(w: Workload, cache: int | None) -> list[tuple[str, ...]]:
    """Return what each kernel streams on a machine with caches of that many bytes."""
    plan = run_passes(lower(w.node), Context(w.schedule, builtin_arch("unit"), cache), PASSES)
    assert ("streams" in print_plan(plan)) == any(use.streamed for use in plan.kernels)
    return [use.streamed for use in plan.kernels]


def copies(*pairs: tuple[Tensor, Tensor]) -> Workload:
    """Return a workload that copies the first two rows of each pair."""
    @workload
    def rows() -> None:
        for x, y in pairs:
            for i in P(2):
                copy[i](x=x[i], y=y[i])

    return rows()


@pytest.mark.parametrize("cache, expected", [(1023, ("y",)), (1024, ()), (None, ())])
def test_an_output_larger_than_the_caches_is_streamed(cache: int | None, expected: tuple[str, ...]) -> None:
    assert streamed(copies((tensor("X", 2), tensor("Y", 4))), cache) == [expected]


@pytest.mark.parametrize("rows, expected", [(1 << 16, ("y",)), ((1 << 16) - 1, ())])
def test_an_output_of_16_mib_is_streamed_past_any_cache(rows: int, expected: tuple[str, ...]) -> None:
    assert streamed(copies((tensor("X", 2), tensor("Y", rows))), 1 << 30) == [expected]


def test_what_is_read_back_stays() -> None:
    X, Y, Z = (tensor(name, 4) for name in "XYZ")
    assert streamed(copies((X, Y), (Y, Z)), 512) == [()]   # one kernel, and Y is read


def test_a_kernel_keeps_an_output_that_is_small_somewhere() -> None:
    assert streamed(copies((tensor("X", 2), tensor("Y", 4)), (tensor("X", 2), tensor("Y", 2))), 512) == [()]


def test_what_a_task_adds_to_is_not_streamed() -> None:
    X, Y = tensor("X", 4), tensor("Y", 4)

    @workload
    def adds() -> None:
        for i in P(4):
            add[i](x=X[i], y=Y[i])

    assert streamed(adds(), 0) == [()]


def test_the_machine_tells_its_caches_or_nothing() -> None:
    assert cache_bytes() is None or cache_bytes() >= 1 << 10   # type: ignore[operator]


def test_a_program_with_a_large_output_streams_it() -> None:
    cache = cache_bytes()
    if cache is None:
        pytest.skip("the caches of this machine are unknown")
    rows = min(cache, 16 << 20) // 4096 + 1
    x, y = np.ones((1, 1024), np.float32), np.zeros((rows, 1024), np.float32)
    X, Y = Tensor(x), Tensor(y)

    @kernel
    def spread(x: In[Tile[1, 1024, DType.F32]], y: Out[Tile[1, 1024, DType.F32]]) -> None:
        pto.store(y, x * 2)

    @workload
    def fill() -> None:
        for i in P(rows):
            spread[i](x=X[0], y=Y[i])

    program = fill().compile()
    assert program.artifact_dir is not None and "pto_stream(" in (program.artifact_dir / "src" / "kernels.c").read_text()
    portable = fill().compile(portable=True)
    assert portable.artifact_dir is not None and "pto_stream(" not in (portable.artifact_dir / "src" / "kernels.c").read_text()
    program.run()
    assert (y == 2).all()
