"""The three packages written by hand, on the emulated core: each runs on both families and both runtimes, and equals its golden.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.npu.harness import FAMILIES, check_package
from tests.npu.package import RUNTIMES

PACKAGES = Path(__file__).resolve().parent / "packages"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["rmsnorm", "matmul_add", "ragged_spmd"])
def test_package_equals_its_golden(name: str, family: str, runtime: str) -> None:
    check_package(PACKAGES / name, family, runtime)
