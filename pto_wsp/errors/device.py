"""Errors of the NPU targets: limits of the runtime, what a core does not do, and what the emitter found in its own work."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class DeviceLimitError(PtoError):
    code = "N101"
    cause = "A plan asks for more than the NPU's runtime has (tensors or scalars of a task, kernels, scopes, elements), or a view is empty."
    example = "k[b](x0=X0[b], ..., x39=X39[b])  # compiled for ascend_npu"
    fix = "The report names the limit; pack arguments into one tensor, or split the kernel."


class MixedKernelError(PtoError):
    code = "N102"
    cause = "A kernel mixes products and vector work in a way that no order of tasks on one core each can give."
    example = "for t in pto.range(n):\n    state[:] = pto.tanh(state @ w)"
    fix = "Give the loop constant bounds, so that it becomes a chain of tasks; or loop in the workload, with P.seq, the state in a tensor."


class NpuOpError(PtoError):
    code = "N103"
    cause = "A kernel for the NPU holds an op, or an op on a dtype, that the arch has no instructions for."
    example = 'y = x * 2  # x: Tile[16, 16, DType.F64], compiled for ascend_910b'
    fix = "The report names op, dtype and arch: cast to a dtype that the arch computes on, or give the kernel a body of its own (cpp_src)."


class CubeError(PtoError):
    code = "N104"
    cause = "A kernel asks the cube core for what it cannot do: it multiplies loaded tiles, adds products up, and stores the sums."
    example = "acc = pto.alloc((64, 64), DType.F32, init=1)\nacc += a @ b"
    fix = "The report says what the cube core does instead."


class DialectError(PtoError):
    code = "N105"
    cause = "A kernel for target=\"pto\" holds what the text format has no form for."
    example = "pto.gather(table, rows)  # compiled with target=\"pto\""
    fix = "Compile for ascend_npu, which emits C++; the report names the form."


class FormError(PtoError):
    """`form`: the name of the form."""

    code = "N106"
    form: str = ""
    cause = "A workload has a form that the target's runtime has no way to run."
    example = "with P.pipe(): ...  # a process that makes a Tensor.empty and sends behind it, compiled for ascend_npu"
    fix = "The report says what the runtime lacks; workload_forms(target) lists what each target takes. cpu_sim takes every form."


class FlagError(PtoError):
    code = "N201"
    cause = "In a tile program a flag is set that nothing awaits, or awaited where it is not set: pipes would hang, or run apart."
    example = "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);  // in one side of a branch, its wait behind the branch"
    fix = "Kernels of tile operations get their flags from the compiler: please report the program. In a body of one's own, pair them."


class PipeHazardError(PtoError):
    code = "N202"
    cause = "In a tile program a pipe uses memory that another one may not have done with."
    example = "TLOAD(x, gm); TADD(y, x, x);  // without a flag from PIPE_MTE2 to PIPE_V"
    fix = "Kernels of tile operations get their flags from the compiler: please report the program. In a body of one's own, add the flag."


class TilePlaceError(PtoError):
    code = "N203"
    cause = "A tile lies across the end of its buffer or memory, off the alignment that its core moves, or on another one that still lives."
    example = "TASSIGN(x, 0x10); TASSIGN(y, 0x20);  // x takes 512 bytes"
    fix = "Kernels of tile operations get their addresses from the compiler: please report the program."


class TileFormError(PtoError):
    code = "N204"
    cause = "A tile, or what an instruction is given, has a shape, dtype or layout that the core does not take."
    example = "Tile<TileType::Vec, float, 16, 7, BLayout::RowMajor>  // rows of 28 bytes"
    fix = "Pad the columns to 32 bytes; the report names the rule."
