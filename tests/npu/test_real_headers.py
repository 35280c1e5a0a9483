"""Every form of an instruction that the emulated core takes, against the instruction set's own headers where there are any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.npu.compiled import RunFault
from tests.npu.harness import FAMILIES
from tests.npu.instructions.batch import batch_text
from tests.npu.instructions.vector_cases import cases
from tests.npu.real_headers import compile_with_real_headers, isa_include


@pytest.mark.skipif("PTO_ISA_ROOT" not in os.environ, reason="PTO_ISA_ROOT does not say where the real headers are")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_form_compiles(family: str, tmp_path: Path) -> None:
    source = tmp_path / "cases.cpp"
    source.write_text(batch_text({case.name: case.source() for case in cases() if family in case.families}))
    compile_with_real_headers(source, family)


def test_a_root_without_headers_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path))
    isa_include.cache_clear()
    try:
        with pytest.raises(RunFault, match=r"pto/pto-inst.hpp is nowhere in it"):
            isa_include()
    finally:
        isa_include.cache_clear()


def test_headers_that_are_given_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a header that lacks an instruction, a kernel that uses it does not compile."""
    (tmp_path / "include" / "pto").mkdir(parents=True)
    (tmp_path / "include" / "pto" / "pto-inst.hpp").write_text("inline void TONE() {}\n")
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path))
    isa_include.cache_clear()
    try:
        good, bad = tmp_path / "good.cpp", tmp_path / "bad.cpp"
        good.write_text('#include <pto/pto-inst.hpp>\n#include "tensor.h"\nvoid run() { TONE(); }\n')
        bad.write_text('#include <pto/pto-inst.hpp>\n#include "tensor.h"\nvoid run() { TTWO(); }\n')
        compile_with_real_headers(good, "a2a3")
        with pytest.raises(RunFault, match="TTWO"):
            compile_with_real_headers(bad, "a2a3")
    finally:
        isa_include.cache_clear()
