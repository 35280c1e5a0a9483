"""The three packages written by hand, on the emulated core: each runs on both families and both runtimes, and equals its golden.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.npu.harness import FAMILIES, check_package
from tests.npu.package import RUNTIMES

PACKAGES = Path(__file__).resolve().parent / "packages"


# In the fast tests one family has one of the runtimes, the other the other.
@pytest.mark.parametrize(("family", "runtime"), [
    pytest.param(family, runtime, marks=() if number == at else pytest.mark.slow)
    for number, family in enumerate(FAMILIES) for at, runtime in enumerate(RUNTIMES)])
@pytest.mark.parametrize("name", ["rmsnorm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("matmul_add", "ragged_spmd"))])
def test_package_equals_its_golden(name: str, family: str, runtime: str) -> None:
    check_package(PACKAGES / name, family, runtime)


MUTANTS = [
    ("rmsnorm", "orchestration/rmsnorm_orch.cpp", "{i, 0, 0}", "{0, 0, 0}", "output `out`"),
    ("rmsnorm", "orchestration/rmsnorm_orch.cpp", "a.add_output(out_i)", "a.add_input(out_i)", "TSTORE|IN"),
    ("rmsnorm", "orchestration/rmsnorm_orch.cpp", "1e-6f", "1e-2f", "output `out`"),
    ("rmsnorm", "kernel_config.py", '"signature": [_D.IN, _D.IN, _D.OUT]}', '"signature": [_D.IN, _D.IN, _D.INOUT]}',
     r"declares \[IN, IN, INOUT\], is given \[IN, IN, OUT\]"),
    ("matmul_add", "orchestration/matmul_add_orch.cpp", "t1.add_input(acc);", "const ChipTensor copy = acc;\n    t1.add_output(copy);",
     r"kernel `add_bias` declares \[IN, IN, OUT\], is given \[OUT, IN, OUT\]"),
    ("matmul_add", "orchestration/matmul_add_orch.cpp", "t1.add_input(bias);", "(void)bias;\n    t1.add_input(acc);", "output `out`"),
    ("matmul_add", "kernel_config.py", '"core_type": "aic"', '"core_type": "aiv"', "own_core"),
    ("matmul_add", "golden.py", 'bias", f(32, 64)), ("out"', 'bias", f(32, 64)), ("more", f(1)), ("out"', "golden.py makes 5 tensors"),
    ("ragged_spmd", "orchestration/ragged_orch.cpp", "(rows + 15) / 16", "rows / 16", "output `y`"),
    ("ragged_spmd", "orchestration/ragged_orch.cpp", "c0 += half", "c0 += half / 2 * 3", "view: dimension 1"),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name, file, before, after, problem", MUTANTS, ids=range(len(MUTANTS)))
def test_a_changed_package_is_caught(name: str, file: str, before: str, after: str, problem: str, tmp_path: Path) -> None:
    """A dropped offset, a wrong direction, another scalar, a core of the other kind, fewer blocks, ..."""
    root = tmp_path / name
    shutil.copytree(PACKAGES / name, root)
    text = (root / file).read_text()
    assert before in text
    (root / file).write_text(text.replace(before, after))
    with pytest.raises(AssertionError, match=problem):
        check_package(root, "a5")
