"""The ABI header against other shapes of the runtime's interface: what no page fixes is found by what compiles, and must then work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, Out, P, Scalar, Symbol, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.codegen.npu.orchestration.emit import emit_orchestration
from tests.npu.harness import INCLUDE, WARNINGS, Target
from tests.npu.package import RUNTIMES
from tests.npu.submits import npu_plan, write_orchestration
from tests.npu.test_orchestration import mix, move, ragged, reshapes, scaled, split

# What the host's interface says, and what other versions might say in its place.
SCOPE = "#define PTO2_SCOPE() if (HostScope host_scope{}; host_scope)"
DEPENDENCIES = "void set_dependencies(const PTO2TaskId *ids, uint32_t n)"
VARIANTS = {
    "fields, counts first, loops as scopes": {
        "PTO2TaskId task_id() const { return id_; }": "PTO2TaskId task_id;",
        ": id_(id), tensors_": ": task_id(id), tensors_",
        "    PTO2TaskId id_;\n": "",
        DEPENDENCIES: "void set_dependencies(uint32_t n, const PTO2TaskId *ids)",
        "    template <typename T>\n    void add_scalar(T value) {\n":
            "    void add_scalar(float value) { add_slot(value); }\n    void add_scalar(uint64_t value) { add_slot(value); }\n"
            "    template <typename T>\n    void add_slot(T value) {\n",
        SCOPE: "#define PTO2_SCOPE() for (bool open = (host_scope_begin(), true); open; open = (host_scope_end(), false))",
        "T get_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t *index)":
            "T get_tensor_data(const ChipTensor &tensor, const uint32_t *index, uint32_t ndims)",
        "reshape(const uint32_t *shape, uint32_t n) const": "reshape(uint32_t n, const uint32_t *shape) const",
    },
    "other names, no scopes, arguments that may change": {
        "PTO2TaskId task_id() const": "PTO2TaskId id() const",
        DEPENDENCIES: "void set_dependencies(PTO2TaskId *ids, int n)",
        SCOPE: "",
        "rt_submit_aiv_task(int32_t func_id, const CoreTaskArgs &args)": "rt_submit_aiv_task(int32_t func_id, CoreTaskArgs &args)",
        "const ChipTensor &get_ref(uint32_t i) const": "const ChipTensor &get_ref(uint32_t i)",
    },
}


def everything() -> Workload:
    """Every part of the header: ids, readers, new tensors, other shapes, elements, halves."""
    X, Y, A = Tensor(np.ones((8, 4, 8), np.float32), name="X"), Tensor(np.ones((8, 4, 8), np.float32), name="Y"), Tensor(
        np.ones((4, 16, 16), np.float32), name="A")
    lens, scale = Tensor(np.ones(8, np.int64), name="lens"), Symbol("scale")

    @kernel
    def half(f: Scalar[DType.F16], y: Out[Tile[4, 8, DType.F32]]) -> None:
        """Use a scalar of a half."""
        pto.store(y, pto.full((4, 8), 1.0, DType.F32) * pto.cast(pto.full((1, 1), f, DType.F16), DType.F32))

    @workload
    def case() -> None:
        for b in P(4):
            for t in P.seq(lens[b]):
                made = move[b, t](X.reshape(64, 4)[b * 8:(b + 1) * 8].reshape(4, 8), Y[b])
            scaled[b](Y[b], scale, lens[b], X[b], after=made)
            half[b](scale, Y[b])
            mix[b](A[b], A[1], A[2])
    return case()


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_no_page_fixes_is_found(variant: str, tmp_path: Path) -> None:
    headers = {name: (INCLUDE / name).read_text() for name in ("pto_orchestration_api.h", "tensor.h", "host_task.h")}
    for old, new in VARIANTS[variant].items():
        assert sum(old in text for text in headers.values()) == 1, old
        headers = {name: text.replace(old, new) for name, text in headers.items()}
    for name, text in headers.items():
        (tmp_path / name).write_text(text)
    source = write_orchestration(tmp_path / "case", npu_plan(everything())).orchestration
    flags = (*WARNINGS, "-fsyntax-only", *Target("a2a3", RUNTIMES[0]).defines, f"-I{tmp_path}")
    subprocess.run(["g++", "-std=c++17", *flags, source], check=True)


def test_only_the_header_names_the_runtime() -> None:
    assert len(re.findall("^#define", emit_orchestration(npu_plan(everything())), re.MULTILINE)) == 6
    for case in (ragged, split, reshapes, everything):
        text = emit_orchestration(npu_plan(case()))
        assert not any(name in text for name in ("Chip", "PTO2", "rt_", "CoreTask", "TensorCreate", "MixedKernels", "DataType"))
