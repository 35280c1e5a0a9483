"""Names that users choose: those of C++, of the headers, of what is generated, and such as no table or line can hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Constexpr, DType, In, Out, P, Scalar, Tensor, Tile, Workload, kernel, pto, workload
from tests.npu.harness import check_package

F32, I32 = DType.F32, DType.I32
ROWS = Tile[8, 16, F32]
KERNELS = ("half", "new", "TADD", "Größe", "EVENT_ID0", "kernel_entry")
TENSORS = ("{7}", "x_shape", "_floats", 'a "quoted\\name" of words \\', "a|b`c*/ ??/", "task")


def _named(name: str):
    def body(args: In[ROWS], TMUL: Scalar[F32], int64_t: Scalar[I32], union: Constexpr[int], main: Out[ROWS]):
        total = args * TMUL
        state = pto.alloc((8, 16), F32, init=0)
        for _ in pto.range(int64_t):
            state += total
        pto.store(main, state * union)
    body.__name__ = body.__qualname__ = name
    return kernel(body)


def hostile() -> Workload:
    """Return a workload in which little is named as one would."""
    source = Tensor(np.zeros((2, 8, 16), np.float32), name="#1")
    out = tuple(Tensor(np.zeros((2, 2, 8, 16), np.float32), name=name) for name in TENSORS)
    kernels = tuple(_named(name) for name in KERNELS)

    @workload
    def aicpu_orchestration_entry():
        for double in P(2):
            for holds in P(2):
                for run, target in zip(kernels, out, strict=True):
                    run[double, holds](source[holds], 0.5, 3, 2, target[double, holds])

    return aicpu_orchestration_entry()


@pytest.mark.slow
@pytest.mark.parametrize(("family", "arch"), [("a2a3", "ascend_910b"), ("a5", "ascend_950")])
def test_no_name_of_a_user_meets_another(family: str, arch: str) -> None:
    package = hostile().compile(target="ascend_npu", arch=arch).artifact_dir
    outcome = check_package(package, family)
    assert len(outcome.graph.tasks) == 4 * len(KERNELS)
    assert len(outcome.tensors) == 1 + len(TENSORS)


def test_the_readme_has_a_row_for_each_tensor() -> None:
    package: Path = hostile().compile(target="ascend_npu").artifact_dir
    rows = [line for line in (package / "README.md").read_text().splitlines() if "[2, 2, 8, 16]" in line]
    assert len(rows) == len(TENSORS)
    assert len({row.count("|") for row in rows}) == 1
