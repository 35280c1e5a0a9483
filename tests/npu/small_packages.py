"""Packages written for tests of the host runtime: one kernel in plain C++, which needs no emulated instruction."""

from __future__ import annotations

from pathlib import Path

KERNEL = """\
// out[r, c] = in[r, c] * s, for rows of block b: r % n_blocks == b. args: in, out, s (f32)
#include <cstring>

#include "host_task.h"

extern "C" void pto_emulator_begin(const HostTask *) {}
extern "C" void pto_emulator_end() {}

extern "C" void kernel_entry(int64_t *args) {
    const ChipTensor *in = reinterpret_cast<ChipTensor *>(args[0]), *out = reinterpret_cast<ChipTensor *>(args[1]);
    float s;
    std::memcpy(&s, &args[2], sizeof s);
    const float *from = reinterpret_cast<const float *>(in->buffer.addr) + in->start_offset;
    float *to = reinterpret_cast<float *>(out->buffer.addr) + out->start_offset;
    for (int64_t r = args[kBlockIdxSlot]; r < out->shapes[0]; r += args[kBlockNumSlot]) {
        for (uint32_t c = 0; c < out->shapes[1]; ++c) to[r * out->strides[0] + c] = from[r * in->strides[0] + c] * s;
    }
}
"""

ORCHESTRATION = """\
#include "pto_orchestration_api.h"

// The launch-width setter is set_block_num on a2a3 and set_core_num on a5.
template <typename S>
static auto set_blocks(S &s, int16_t n, int) -> decltype(s.set_block_num(n)) {{
    s.set_block_num(n);
}}
template <typename S>
static auto set_blocks(S &s, int16_t n, long) -> decltype(s.set_core_num(n)) {{
    s.set_core_num(n);
}}

static inline PTO2TaskId scale(const ChipTensor &in, const ChipTensor &out, float s, int16_t n = 1) {{
    CoreTaskArgs args;
    args.add_input(in);
    args.add_output(out);
    args.add_scalar(s);
    set_blocks(args.launch_spec, n, 0);
    return rt_submit_aiv_task(0, args).task_id();
}}

extern "C" {{

__attribute__((visibility("default"))) PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &a) {{
    return PTO2OrchestrationConfig{{.expected_arg_count = a.tensor_count() + a.scalar_count()}};
}}

__attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs &a) {{
    const ChipTensor &x = a.tensor(0).ref();
    const ChipTensor &y = a.tensor(1).ref();
{body}
}}

}}
"""

CONFIG = """\
from pathlib import Path

from simpler.task_interface import ArgDirection as _D

_ROOT_DIR = Path(__file__).parent

RUNTIME_CONFIG = {{"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}}
ORCHESTRATION = {{"source": str(_ROOT_DIR / "orchestration.cpp"), "function_name": "aicpu_orchestration_entry",
                 "signature": [{signature}]}}
KERNELS = [{{"func_id": 0, "name": "scale", "source": str(_ROOT_DIR / "scale.cpp"), "core_type": "aiv",
            "signature": [_D.IN, _D.OUT]}}]
"""

GOLDEN = """\
import ctypes

import numpy as np

__outputs__ = {outputs}
RTOL = ATOL = 0


def generate_inputs(params=None):
    params = params or {{}}
    x = np.arange(32, dtype=np.float32).reshape(4, 8) + 1
    return [("x", x), ("y", np.zeros((4, 8), np.float32)), ("case", ctypes.c_int64(params.get("case", 0)))]


def compute_golden(t, params=None):
    x, y = t["x"], t["y"]
{golden}
"""


def write_package(root: Path, body: str, golden: str = "y[:] = x", signature: str = "_D.IN, _D.OUT", outputs: str = '["y"]') -> Path:
    """Write a package of tensors x and y, [4, 8] f32, whose orchestration runs `body`; return its directory."""
    root.mkdir(parents=True, exist_ok=True)
    indent = "    "
    (root / "scale.cpp").write_text(KERNEL)
    (root / "orchestration.cpp").write_text(ORCHESTRATION.format(body="\n".join(indent + line for line in body.splitlines())))
    (root / "kernel_config.py").write_text(CONFIG.format(signature=signature))
    lines = "\n".join(indent + line for line in golden.splitlines())
    (root / "golden.py").write_text(GOLDEN.format(golden=lines, outputs=outputs))
    return root
