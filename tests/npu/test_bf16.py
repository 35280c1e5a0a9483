"""Where the compiler has no bfloat16_t of its own, the name is another one of half: kernels on bf16 do not compile there, others do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from tests.npu.compiled import SHARED, WARNINGS, RunFault, compiled
from tests.npu.emulator import core
from tests.npu.harness import FAMILIES, INCLUDE, Target

ALIAS = "-U__STDCPP_BFLOAT16_T__"


def doubled(dtype: DType) -> Workload:
    """Return a workload of one kernel on a dtype."""
    @kernel
    def twice(x: In[Tile[4, 32, dtype]], y: Out[Tile[4, 32, dtype]]) -> None:   # type: ignore[valid-type]
        pto.store(y, x + x)

    x, y = (Tensor(np.zeros((4, 32), dtype.np), name=name) for name in "xy")

    @workload
    def once() -> None:
        for _ in P(1):
            twice[0](x=x, y=y)

    return once()


def _compile(source: Path, family: str, *more: str) -> None:
    flags = (*WARNINGS, *SHARED, "-O0", Target(family, "host_build_graph").defines[0], f"-I{INCLUDE}", *more)
    compiled((source, core()), flags, source.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("dtype", "refused"), [(DType.BF16, True), (DType.F16, False)])
def test_a_kernel_on_bf16_wants_the_type(dtype: DType, refused: bool, family: str) -> None:
    package = doubled(dtype).compile(target="ascend_npu", arch={"a2a3": "ascend_910b", "a5": "ascend_950"}[family]).artifact_dir
    (source,) = (package / "kernels/aiv").iterdir()
    _compile(source, family)
    assert ("__STDCPP_BFLOAT16_T__" in (package / "README.md").read_text()) is refused
    if refused:
        with pytest.raises(RunFault, match="bfloat16_t is another name of half"):
            _compile(source, family, ALIAS)
    else:
        _compile(source, family, ALIAS)
