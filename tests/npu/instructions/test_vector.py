"""Every vector instruction on small tiles against NumPy, on both families; what a family lacks is refused."""

from __future__ import annotations

import pytest

from tests.npu.emulator import LoadedKernel
from tests.npu.harness import FAMILIES, RunFault
from tests.npu.instructions.batch import load_batch
from tests.npu.instructions.case import Case
from tests.npu.instructions.vector_cases import cases
from tests.selected import selected

CASES = {case.name: case for case in cases()}


@pytest.fixture(scope="module", params=FAMILIES)
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, LoadedKernel]]:
    """Return the cases of this run as kernels of one family, compiled together."""
    sources = {params["case"].name: params["case"].source() for params in selected(request) if params["kernels"] == request.param}
    return request.param, load_batch(tmp_path_factory.mktemp("cases"), sources, request.param)


@pytest.mark.sampled(60)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_instruction(kernels: tuple[str, dict[str, LoadedKernel]], case: Case) -> None:
    family, loaded = kernels
    if family in case.families:
        case.check(loaded[case.name])
    else:
        with pytest.raises(RunFault, match=f"on {family}(: it takes|$)"):
            case.check(loaded[case.name])
