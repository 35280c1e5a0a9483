"""Every example as a package: built by the host compiler, run in several orders, compared with its golden.py."""

from __future__ import annotations

import pytest

from tests.npu.harness import FAMILIES, check_package
from tests.npu.workloads import WORKLOADS

ARCHES = dict(zip(FAMILIES, ("ascend_910b", "ascend_950"), strict=True))


# One example in four is built in the fast tests, half of these for each family.
@pytest.mark.parametrize(("name", "family"), [
    pytest.param(name, family, marks=() if (number + 4 * at) % 8 == 0 else pytest.mark.slow)
    for number, name in enumerate(WORKLOADS) for at, family in enumerate(FAMILIES)])
def test_an_example_runs_and_gives_what_its_golden_says(name: str, family: str) -> None:
    program = WORKLOADS[name]().compile(target="ascend_npu", arch=ARCHES[family])
    assert program.artifact_dir is not None
    check_package(program.artifact_dir, family)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "family"), [(name, FAMILIES[number % 2]) for number, name in enumerate(WORKLOADS)])
def test_an_example_runs_on_the_other_runtime(name: str, family: str) -> None:
    """It reads no element that a task computes: the lengths and tables of the examples are given."""
    program = WORKLOADS[name]().compile(target="ascend_npu", arch=ARCHES[family], options={"runtime": "host_build_graph"})
    assert program.artifact_dir is not None
    check_package(program.artifact_dir, family)
