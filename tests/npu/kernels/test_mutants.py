"""Emitted kernels without one of their flags or barriers: the emulated core tells, and little is there that is not needed.

A flag is taken out whole: every set and every wait of two pipes and an event. What remains pairs up, so only an access that comes too
early can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, kernel, pto
from pto_wsp.npu.isa import tile_program as tp
from tests.npu.harness import A2A3_FAST, RunFault
from tests.npu.kernels.batch import Bound, Case, load_programs, program_of, run_case

F32, F16, I32 = DType.F32, DType.F16, DType.I32


@kernel
def softmax(x: In[Tile[16, 100, F16]], out: Out[Tile[16, 100, F16]]) -> None:
    shifted = pto.exp(x - pto.rowmax(x))
    pto.store(out, shifted / pto.rowsum(shifted))


@kernel
def running(x: In[Tensor], out: Out[Tensor], n: Scalar[I32]) -> None:
    """Stores, for every block of rows, the sum so far."""
    total = pto.alloc((8, 64), F32, init=0)
    for j in pto.range(n):
        total += pto.exp(pto.load(x, (j * 8, 0), shape=(8, 64)))
        pto.store(out, total, (j * 8, 0))


@kernel
def products(a: In[Tensor], b: In[Tensor], out: Out[Tensor], n: Scalar[I32]) -> None:
    """Stores, for every block of rows, the sum so far of products of more terms than L0 holds."""
    total = pto.alloc((32, 64), F32, init=0)
    for j in pto.range(n):
        total += pto.load(a, (0, j * 600), shape=(32, 600)) @ pto.load(b, (j * 600, 0), shape=(600, 64))
        pto.store(out, total, (j * 32, 0))


def _numbers(rows: int, cols: int, dtype: DType = F32, seed: int = 0) -> Bound:
    return Bound.plain((np.random.default_rng(seed).integers(-8, 8, (rows, cols)) / 8).astype(dtype.np))


KERNELS: dict[str, Callable[[], Case]] = {
    "softmax": lambda: Case(softmax, {"x": _numbers(16, 100, F16), "out": _numbers(16, 100, F16)}, rtol=2e-3),
    "running": lambda: Case(running, {"x": _numbers(32, 64), "out": _numbers(32, 64), "n": 4}, {"x": F32, "out": F32}, rtol=1e-6),
    "products": lambda: Case(products, {"a": _numbers(32, 1800), "b": _numbers(1800, 64, seed=1), "out": _numbers(96, 64), "n": 3},
                             {"a": F32, "b": F32, "out": F32}, rtol=1e-5),
}


def mutants(program: tp.TileProgram) -> Iterator[tuple[str, tp.TileProgram]]:
    """Yield the program without each of its barriers, and without each of its flags, and what was taken out."""
    barriers = [step for step in tp.steps(program.body) if isinstance(step, tp.Barrier)]
    for number, gone in enumerate(barriers):
        yield f"barrier {number} of {gone.pipe.value}", replace(program, body=_without(program.body, lambda step, gone=gone: step is gone))
    flags = {(step.after, step.before, str(step.event)): step for step in tp.steps(program.body) if isinstance(step, tp.SetFlag)}
    for after, before, event in flags:
        def of_flag(step: tp.Step, key: tuple[object, ...] = (after, before, event)) -> bool:
            return isinstance(step, tp.SetFlag | tp.WaitFlag) and (step.after, step.before, str(step.event)) == key

        yield f"flag {after.value} to {before.value}, {event}", replace(program, body=_without(program.body, of_flag))


def _without(body: tuple[tp.Step, ...], gone: Callable[[tp.Step], bool]) -> tuple[tp.Step, ...]:
    kept: list[tp.Step] = []
    for step in body:
        if gone(step):
            continue
        match step:
            case tp.For():
                kept.append(replace(step, body=_without(step.body, gone)))
            case tp.If():
                kept.append(replace(step, then=_without(step.then, gone), other=_without(step.other, gone)))
            case _:
                kept.append(step)
    return tuple(kept)


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_without_one_of_its_flags_or_barriers_is_caught(name: str, family: str) -> None:
    program = program_of(KERNELS[name](), family)
    made = dict(mutants(program))
    assert len(made) > 5
    loaded = load_programs([program, *made.values()], family)
    run_case(KERNELS[name](), program, loaded[0])
    spare = []
    for (what, mutant), one in zip(made.items(), loaded[1:], strict=True):
        try:
            run_case(KERNELS[name](), mutant, one)
        except RunFault:
            continue
        spare.append(what)     # and the result is right
    assert len(spare) <= 1 and all(what.startswith("barrier") for what in spare), spare
