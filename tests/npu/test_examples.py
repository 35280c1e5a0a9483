"""Every example as a package: built by the host compiler, run in several orders, compared with its golden.py."""

from __future__ import annotations

import pytest

from tests.npu.harness import FAMILIES, check_package
from tests.npu.workloads import WORKLOADS

ARCHES = dict(zip(FAMILIES, ("ascend_910b", "ascend_950"), strict=True))


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_example_runs_and_gives_what_its_golden_says(name: str, family: str) -> None:
    program = WORKLOADS[name]().compile(target="ascend_npu", arch=ARCHES[family])
    assert program.artifact_dir is not None
    check_package(program.artifact_dir, family)
