"""The ABI header against other shapes of the runtime's interface: what no page fixes is found by what compiles, and must then work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pto_wsp import DType, Out, P, Scalar, Symbol, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.ir import scalar as s
from pto_wsp.npu.emit.orchestration import emit_orchestration
from pto_wsp.resources import csrc_dir
from tests.npu.compiled import gxx
from tests.npu.harness import INCLUDE, WARNINGS, Target
from tests.npu.package import RUNTIMES
from tests.npu.submits import npu_plan, write_orchestration
from tests.npu.tasks import move
from tests.npu.test_orchestration import mix, ragged, reshapes, scaled, split

# What the host's interface says, and what other versions might say in its place.
SCOPE = "#define PTO2_SCOPE() if (HostScope host_scope{}; host_scope)"
VARIANTS = {
    "overloads for scalars, loops as scopes": {
        "    template <typename T>\n    void add_scalar(T value) {\n":
            "    void add_scalar(float value) { add_slot(value); }\n    void add_scalar(uint64_t value) { add_slot(value); }\n"
            "    template <typename T>\n    void add_slot(T value) {\n",
        SCOPE: "#define PTO2_SCOPE() for (bool open = (host_scope_begin(), true); open; open = (host_scope_end(), false))",
        "reshape(const uint32_t *shape, uint32_t n) const": "reshape(uint32_t n, const uint32_t *shape) const",
    },
    "no scopes, arguments and results that may change": {
        SCOPE: "",
        "rt_submit_aiv_task(int32_t func_id, const CoreTaskArgs &args)": "rt_submit_aiv_task(int32_t func_id, CoreTaskArgs &args)",
        "void set_dependencies(const PTO2TaskId *ids, uint32_t n)": "void set_dependencies(PTO2TaskId *ids, int n)",
        "    int expected_arg_count;": "    uint8_t expected_arg_count;",
        "const ChipTensor &get_ref(uint32_t i) const & {": "const ChipTensor &get_ref(uint32_t i) & {",
        "    const ChipTensor &get_ref(uint32_t i) const && = delete;\n": "",
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


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_no_page_fixes_is_found(variant: str, tmp_path: Path) -> None:
    headers = {name: (INCLUDE / name).read_text() for name in ("pto_orchestration_api.h", "tensor.h", "host_task.h", "runtime_rules.h")}
    for old, new in VARIANTS[variant].items():
        assert sum(old in text for text in headers.values()) == 1, old
        headers = {name: text.replace(old, new) for name, text in headers.items()}
    for name, text in headers.items():
        (tmp_path / name).write_text(text)
    source = write_orchestration(tmp_path / "case", npu_plan(everything())).orchestration
    flags = (*WARNINGS, "-fsyntax-only", *Target("a2a3", RUNTIMES[0]).defines, f"-I{tmp_path}")
    subprocess.run([gxx(), "-std=c++17", *flags, source], check=True)


def test_only_the_header_names_the_runtime() -> None:
    assert len(re.findall("^#define", emit_orchestration(npu_plan(everything())), re.MULTILINE)) == 6
    for case in (ragged, split, reshapes, everything):
        text = emit_orchestration(npu_plan(case()))
        assert not any(name in text for name in ("Chip", "PTO2", "rt_", "CoreTask", "TensorCreate", "MixedKernels", "DataType"))


NUMBERS = """\
#define PTO_WSP_ORCH
#define PTO_WSP_HALVES
#include "pto_wsp_abi.h"

int main() {
    char op[16];
    double a, b;
    while (scanf("%15s %la %la", op, &a, &b) == 3) {
        const int64_t i = static_cast<int64_t>(a), j = static_cast<int64_t>(b);
        const char name = op[0];
        if (op[1] == 'i') {
            printf("%lld\\n", static_cast<long long>(name == '/' ? pto_scalar_floordiv_i64(i, j) : name == '%' ? pto_scalar_mod_i64(i, j)
                   : name == '<' ? pto_scalar_min_i64(i, j) : pto_scalar_max_i64(i, j)));
        } else {
            printf("%a\\n", name == '/' ? pto_scalar_floordiv_f64(a, b) : name == '%' ? pto_scalar_mod_f64(a, b)
                   : name == '<' ? pto_scalar_min_f64(a, b) : name == '>' ? pto_scalar_max_f64(a, b)
                   : name == 'h' ? static_cast<double>(pto_wsp::round_f16(a)) : static_cast<double>(pto_wsp::round_bf16(a)));
        }
    }
}
"""


@pytest.mark.slow
def test_numbers_are_those_of_python(tmp_path: Path) -> None:
    """Floor division, remainders and rounding to halves: ties, subnormals, overflow, zeros and signs."""
    integers = [-(1 << 62), -7, -2, -1, 0, 1, 2, 7, 1 << 62]
    floats = [-np.inf, -7.5, -2.0, -0.0, 0.0, 0.3, 2.0, 7.5, np.inf, np.nan]
    rng = np.random.default_rng(0)
    edges = [65504, 65519.99, 65520, 6e-8, 2.0 ** -25, 2.0 ** -25 * 1.0001, 3 * 2.0 ** -25, 1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11,
             3.39e38, 3.4e38, 1e300]
    wide = np.concatenate([rng.standard_normal(300) * 10.0 ** rng.integers(-45, 40, 300), floats, edges])
    lines = [f"{op}i {float(a).hex()} {float(b).hex()}" for op in "/%<>" for a in integers for b in integers]
    wanted = [str({"/": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0, "<": min, ">": max}[op](a, b))
              for op in "/%<>" for a in integers for b in integers]
    with np.errstate(all="ignore"):
        for op, binary in (("/", s.Op.FLOORDIV), ("%", s.Op.MOD), ("<", s.Op.MIN), (">", s.Op.MAX)):
            for a in floats:
                for b in floats[1:-2] if op == "/" else floats:      # a quotient by infinity is cpu_sim's: NaN, not -1
                    lines.append(f"{op}f {a.hex()} {b.hex()}")
                    wanted.append(float(s.apply_binary(binary, a, b)).hex())
        for op, dtype in (("h", np.float16), ("b", ml_dtypes.bfloat16)):
            lines += [f"{op}f {float(a).hex()} 0x0p+0" for a in wide]
            wanted += [float(np.float64(a).astype(dtype)).hex() for a in wide]
    (tmp_path / "numbers.cpp").write_text(NUMBERS)
    flags = (*WARNINGS, *Target("a2a3", RUNTIMES[0]).defines, f"-I{INCLUDE}", f"-I{csrc_dir() / 'npu'}")
    subprocess.run([gxx(), "-std=c++17", *flags, tmp_path / "numbers.cpp", "-o", tmp_path / "numbers"], check=True)
    done = subprocess.run([tmp_path / "numbers"], input="\n".join(lines), capture_output=True, text=True, check=True)
    found = [text if op[1] == "i" else float.fromhex(text.replace("-nan", "nan")).hex()
             for op, text in zip(lines, done.stdout.split(), strict=True)]
    assert [(line, got, want) for line, got, want in zip(lines, found, wanted, strict=True) if got != want] == []
