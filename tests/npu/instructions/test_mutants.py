"""Kernels that a device would run wrong: each is one edit of a right one, and the emulated core says what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.npu.emulator import Array, Given, LoadedKernel, f32_bits
from tests.npu.harness import FAMILIES, RunFault
from tests.npu.instructions.batch import load_batch
from tests.selected import selected

PACKAGES = Path(__file__).resolve().parents[1] / "packages"
RMSNORM = (PACKAGES / "rmsnorm/kernels/aiv/rmsnorm_tile.cpp").read_text()
MATMUL = (PACKAGES / "matmul_add/kernels/aic/matmul_k2.cpp").read_text()
RAGGED = (PACKAGES / "ragged_spmd/kernels/aiv/scale_relu_rows.cpp").read_text()

# Loads of a turn go where the vector unit still reads the last turn's, unless a flag says that it is done.
LOOP = """\
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    using namespace pto;
    using Gm = GlobalTensor<float, Shape<1, 1, 1, 4, 8>, Stride<1, 1, 1, 8, 1>>;
    using Vec = Tile<TileType::Vec, float, 4, 8>;
    float *x = reinterpret_cast<float *>(reinterpret_cast<ChipTensor *>(args[0])->buffer.addr);
    float *y = reinterpret_cast<float *>(reinterpret_cast<ChipTensor *>(args[1])->buffer.addr);
    Vec a, s;
    TASSIGN(a, 0x0);
    TASSIGN(s, 0x100);
    TEXPANDS(s, 0.0f);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    for (int i = 0; i < 3; ++i) {
        Gm g(x + i * 32);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
        TLOAD(a, g);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        pipe_barrier(PIPE_V);
        TADD(s, s, a);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    }
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    Gm g(y);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(g, s);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    TLOAD(a, g);
    set_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
    wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID7);
}
"""


def without(text: str, *lines: str) -> str:
    """Return a text without the first of each of some lines."""
    for line in lines:
        assert line in text
        text = text.replace(line, "", 1)
    return text


def changed(text: str, old: str, new: str) -> str:
    """Return a text with the first `old` replaced."""
    assert old in text, old
    return text.replace(old, new, 1)


def flag(after: str, before: str, event: int) -> tuple[str, str]:
    """Return both halves of a flag."""
    words = f"_flag(PIPE_{after}, PIPE_{before}, EVENT_ID{event});"
    return f"set{words}", f"wait{words}"


def without_barrier(number: int) -> str:
    """Return rmsnorm without one of its barriers."""
    parts = RMSNORM.split("    pipe_barrier(PIPE_V);\n")
    return "    pipe_barrier(PIPE_V);\n".join(parts[:number]) + "".join(parts[number:number + 1]) \
        + "".join(f"    pipe_barrier(PIPE_V);\n{part}" for part in parts[number + 1:])


LOADED, STORED, DRAINED = flag("MTE2", "V", 0), flag("V", "MTE3", 0), flag("MTE3", "S", 7)
NO_BARRIER = r"PIPE_V, without pipe_barrier\(PIPE_V\) between"

# Name: the kernel, and what is found.
VECTOR: dict[str, tuple[str, str]] = {
    "no_load_flag": (without(RMSNORM, *LOADED), r"TMUL: reads UB at 0x0, which \S+: TLOAD wrote on PIPE_MTE2, without a flag"),
    "no_store_flag": (without(RMSNORM, *STORED),
                      r"TSTORE: reads UB at 0x6240, which \S+: TCOLEXPANDMUL wrote on PIPE_V, without a flag from"),
    "no_drain": (without(RMSNORM, *DRAINED), r"the kernel ends before its stores: no flag from PIPE_MTE3 to PIPE_S"),
    "no_set": (without(RMSNORM, LOADED[0]), r"wait_flag: flag PIPE_MTE2 to PIPE_V, EVENT_ID0, is not set: the core waits forever"),
    "no_wait": (without(RMSNORM, DRAINED[1]), r"set_flag: flag PIPE_MTE3 to PIPE_S, EVENT_ID7, is set, and nothing waits for it"),
    "other_event": (changed(RMSNORM, LOADED[1], LOADED[1].replace("ID0", "ID1")), r"EVENT_ID1, is not set"),
    "other_pipes": (changed(changed(RMSNORM, LOADED[0], LOADED[0].replace("MTE2", "MTE3")), LOADED[1], LOADED[1].replace("MTE2", "MTE3")),
                    r"TMUL: reads UB at 0x0, which \S+: TLOAD wrote"),
    "pipe_of_the_cube": (changed(RMSNORM, "pipe_barrier(PIPE_V)", "pipe_barrier(PIPE_M)"), r"PIPE_M is no pipe of a vector core"),
    "set_twice": (changed(RMSNORM, LOADED[0], LOADED[0] * 2),
                  r"set_flag: flag PIPE_MTE2 to PIPE_V, EVENT_ID0, is set already, by \S+ set_flag"),
    "one_set_too_many": (changed(RMSNORM, STORED[0], STORED[0] + "set_flag(PIPE_V, PIPE_MTE2, EVENT_ID3);"), r"nothing waits for it"),
    "event_taken_too_early": (changed(RMSNORM, "    TMUL(sq, x, x);", f"    {''.join(LOADED)}\n    TMUL(sq, x, x);"),
                              r"may be set before PIPE_V has taken the last one"),
    "unaligned": (changed(RMSNORM, "kUbStat = 0x6200", "kUbStat = 0x6204"), r"TASSIGN: operand 1 lies at 25092, no multiple of 32"),
    "beyond_the_end": (changed(RMSNORM, "kUbOut = 0x6240", "kUbOut = 0x3f000"), r"TASSIGN: operand 1 ends at byte 266240 of UB, which has"),
    "overlapping": (changed(RMSNORM, "kUbSq = 0x2000", "kUbSq = 0x1000"), r"TMUL: operand 2 overlaps the destination"),
    "scratch_over_data": (changed(RMSNORM, "kUbTmp = 0x4000", "kUbTmp = 0x3000"), r"TROWSUM: operand 3 is scratch, and overlaps operand 2"),
    "room_taken_twice": (changed(RMSNORM, "kUbGamma = 0x6000", "kUbGamma = 0x4000"), r"TCOLEXPANDMUL: .*|stores element .* scratch"),
    "no_address": (without(RMSNORM, "TASSIGN(gamma, kUbGamma);"), r"TLOAD: operand 1 has no address"),
    "tile_of_another_dtype": (changed(RMSNORM, "VecTile = Tile<TileType::Vec, float", "VecTile = Tile<TileType::Vec, int32_t"),
                              r"TLOAD: the tile is i32, the tensor f32"),
    "tensor_of_another_dtype": (changed(changed(changed(RMSNORM, "GmRow = GlobalTensor<float", "GmRow = GlobalTensor<half"),
                                                "gm_ptr<float>(args, 1)", "gm_ptr<half>(args, 1)"), "VecRow = Tile<TileType::Vec, float",
                                        "VecRow = Tile<TileType::Vec, half"), r"loads 128 elements of f16 of argument 1, which is f32"),
    "row_too_long": (changed(RMSNORM, "Stride<1, 1, 1, kCols, 1>", "Stride<1, 1, 1, kCols + 8, 1>"),
                     r"loads 128 elements of f32 from byte 8160 of the buffer of argument 0 on, which are not all"),
    "wrong_extent": (changed(RMSNORM, "Shape<1, 1, 1, kRows, kCols>", "Shape<1, 1, 1, kRows - 1, kCols>"),
                     r"the tensor has 15 rows of 128, the valid part of the tile 16 of 128"),
    "stored_to_an_input": (changed(RMSNORM, "gm_ptr<float>(args, 2)", "gm_ptr<float>(args, 0)"),
                           r"TSTORE: stores 128 elements of f32 of argument 0, which the task only reads"),
    "never_written": (without(RMSNORM, "TROWSUM(stat, sq, tmp);"), r"TSTORE: stores element \[0, 0\] of operand 1, that was never written"),
    "stored_too_early": (changed(RMSNORM, "TMUL(sq, x, x);", "TMUL(sq, x, x); TSTORE(g_out, x);"),
                         r"TSTORE: reads UB at 0x0, which \S+: TLOAD wrote"),
    "storage_of_another_shape": (changed(changed(RMSNORM, "VecTile x, sq, tmp, out;", "VecTile x, tmp, out; "
                                                 "Tile<TileType::Vec, float, kRows, 136, BLayout::RowMajor, kRows, kCols> sq;"),
                                         "kUbX = 0x0000", "kUbX = 0x8400"),
                                 r"TMUL: operand 2 is stored as \[16, 128\], and operand 1 as \[16, 136\]"),
    "wrong_statistics": (changed(RMSNORM, "TROWSUM(stat, sq, tmp)", "TROWSUM(stat_r, sq, tmp)"),
                         r"TROWSUM: operand 2 is stored as \[16, 128\], and operand 1 as \[1, 16\]"),
    "statistics_as_columns": (changed(RMSNORM, "TSQRT(stat_r, stat_r)", "TSQRT(stat, stat)"), r"TSQRT: operand 1 is not row-major"),
    **{f"no_barrier_{number}": (without_barrier(number), NO_BARRIER) for number in range(1, 7)},
}
CUBE: dict[str, tuple[str, str]] = {
    "no_l1_flag": (without(MATMUL, *flag("MTE2", "MTE1", 0)),
                   r"TEXTRACT: reads L1 at 0x0, which \S+: TLOAD wrote on PIPE_MTE2, without a flag"),
    "no_l0_flag": (without(MATMUL, *flag("MTE1", "M", 0)), r"TMATMUL: reads L0A at 0x0, which \S+: TEXTRACT wrote on PIPE_MTE1, without"),
    "no_reuse_flag": (without(MATMUL, *flag("M", "MTE1", 0)), r"may be set before PIPE_M has taken|TEXTRACT: writes L0A at 0x0, which"),
    "no_sum_flag": (without(MATMUL, *flag("M", "FIX", 0)), r"TSTORE: reads L0C at 0x0, which \S+: TMATMUL_ACC wrote on PIPE_M, without"),
    "no_fix_drain": (without(MATMUL, *flag("FIX", "S", 7)), r"the kernel ends before its stores: no flag from PIPE_FIX to PIPE_S"),
    "within_a_fractal": (changed(MATMUL, "TEXTRACT(l0a, l1a, 0, k)", "TEXTRACT(l0a, l1a, 0, k / 32)"),
                         r"row 0 and column 4 are no multiples of 16 and 8"),
    "beyond_l1": (changed(MATMUL, "TASSIGN(l1b, 0x10000)", "TASSIGN(l1b, 0x78000)"), r"ends at byte 557056 of L1, which has 524288"),
    "rows_in_columns": (changed(MATMUL, "K, BLayout::ColMajor, M, K, SLayout::RowMajor", "K, BLayout::RowMajor, M, K, SLayout::ColMajor"),
                        r"TLOAD: a ND tensor goes with a tile of L1 that is column-major blocks"),
    "half_a_fractal": (changed(MATMUL, "constexpr int M = 32", "constexpr int M = 24"),
                       r"operand 1 is \[24, 256\], not made of fractals of \[16, 8\]"),
    "sum_of_another_dtype": (changed(MATMUL, "TileAcc<float", "TileAcc<int32_t"), r"TMATMUL: the sum of f32 is f32, not i32"),
    "extents_apart": (changed(MATMUL, "TileRight<float, kStep, N, kStep, N>", "TileRight<float, kStep, N, kStep - 8, N>"),
                      r"TMATMUL: operand 3 has a valid part of \[120, 64\], not \[128, 64\]"),
    "accumulated_on_nothing": (changed(MATMUL, "TMATMUL(acc, l0a, l0b)", "TMATMUL_ACC(acc, acc, l0a, l0b)"),
                               r"adds to element \[0, 0\] of operand 2, that was never"),
}
LOOPS: dict[str, tuple[str, str]] = {
    "load_over_read": (without(LOOP, *flag("V", "MTE2", 1), *flag("V", "MTE2", 1)),
                       r"TLOAD: writes UB at 0x0, which \S+: TLOAD wrote on PIPE_MTE2, without pipe_barrier\(PIPE_MTE2\) between"),
    "read_back_too_early": (without(LOOP, *flag("MTE3", "MTE2", 0)),
                            r"TLOAD: reads global memory, which \S+: TSTORE wrote on PIPE_MTE3, without"),
    "not_set_before_the_loop": (without(LOOP, flag("V", "MTE2", 1)[0]), r"EVENT_ID1, is not set"),
    "not_taken_after_the_loop": (changed(LOOP, "}\n    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);", "}"),
                                 r"EVENT_ID1, is set, and nothing waits"),
}


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedKernel]:
    """Return every mutant of this run and every original, compiled once for a2a3."""
    asked = {params["name"] for params in selected(request)}
    vector = {"rmsnorm": RMSNORM, "ragged": RAGGED, "loop": LOOP,
              "ragged_no_guard": without(RAGGED, "if (r0 >= rows) return;"),
              "ragged_wrong_row": changed(RAGGED, "(r0) * sx", "(r0 + 1) * sx"),
              "ragged_wide": changed(RAGGED, "shapes[1]);", "shapes[1]) + 100;")}
    vector |= {name: text for name, (text, _) in {**VECTOR, **LOOPS}.items() if name in asked}
    loaded = load_batch(tmp_path_factory.mktemp("vector"), vector, "a2a3")
    cube = {"matmul": MATMUL, **{name: text for name, (text, _) in CUBE.items() if name in asked}}
    return {**loaded, **load_batch(tmp_path_factory.mktemp("cube"), cube, "a2a3", cube=True)}


def rmsnorm(kernel: LoadedKernel) -> tuple[Array, Array]:
    """Run rmsnorm, or a mutant; return what it stored and what is right."""
    rng = np.random.default_rng(0)
    x, gamma = (rng.standard_normal(shape, dtype=np.float32) for shape in ((16, 128), (128,)))
    out = np.zeros_like(x)
    kernel.run([Given(x), Given(gamma), Given(out, writable=True)], [f32_bits(1e-6)])
    return out, x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * gamma


def matmul(kernel: LoadedKernel) -> tuple[Array, Array]:
    """Run the product, or a mutant; return what it stored and what is right."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((32, 256), (256, 64)))
    out = np.zeros((32, 64), np.float32)
    kernel.run([Given(a), Given(b), Given(out, writable=True)])
    return out, a.astype(np.float64) @ b


def summed(kernel: LoadedKernel) -> tuple[Array, Array]:
    """Run the loop, or a mutant; return what it stored and what is right."""
    x, y = np.arange(96, dtype=np.float32), np.zeros(32, np.float32)
    kernel.run([Given(x), Given(y, writable=True)])
    return y, x.reshape(3, 32).sum(0)


def scaled(kernel: LoadedKernel, rows: int, block: int) -> tuple[Array, Array]:
    """Run a block of ragged rows, columns 50 and on of a wider tensor; return what it stored and what is right."""
    x, y = np.random.default_rng(2).standard_normal((rows, 100), dtype=np.float32), np.zeros((rows, 100), np.float32)
    kernel.run([Given(x[:, 50:]), Given(y[:, 50:], writable=True)], [f32_bits(0.5)], block, 3)
    return y, np.where(np.arange(100) >= 50, np.where((np.arange(rows) // 16 == block)[:, None], np.maximum(x, 0) * np.float32(0.5), 0), 0)


@pytest.mark.slow
def test_originals_run(kernels: dict[str, LoadedKernel]) -> None:
    for found, right in (rmsnorm(kernels["rmsnorm"]), matmul(kernels["matmul"]), summed(kernels["loop"]),
                         *(scaled(kernels["ragged"], 37, block) for block in range(4))):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", VECTOR)
def test_mutant_of_rmsnorm_is_caught(kernels: dict[str, LoadedKernel], name: str) -> None:
    with pytest.raises(RunFault, match=VECTOR[name][1]):
        rmsnorm(kernels[name])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CUBE)
def test_mutant_of_the_product_is_caught(kernels: dict[str, LoadedKernel], name: str) -> None:
    with pytest.raises(RunFault, match=CUBE[name][1]):
        matmul(kernels[name])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", LOOPS)
def test_mutant_of_the_loop_is_caught(kernels: dict[str, LoadedKernel], name: str) -> None:
    with pytest.raises(RunFault, match=LOOPS[name][1]):
        summed(kernels[name])


@pytest.mark.parametrize(("name", "block", "match"), [
    ("ragged_no_guard", 3, r"TLOAD|TASSIGN"), ("ragged_wrong_row", 2, "loads 50 elements of f32 that lie in no argument of the task"),
    ("ragged_wide", 0, r"valid part of \[16, 150\] in a storage of \[16, 128\]")])
def test_mutant_of_ragged_rows_is_caught(kernels: dict[str, LoadedKernel], name: str, block: int, match: str) -> None:
    with pytest.raises(RunFault, match=match):
        scaled(kernels[name], 37, block)


def test_a_kernel_of_the_other_core_is_caught(kernels: dict[str, LoadedKernel]) -> None:
    with pytest.raises(RunFault, match="PIPE_MTE1 is no pipe of a vector core"):
        matmul(LoadedKernel(kernels["matmul"].entry, cube=False))
    with pytest.raises(RunFault, match="PIPE_V is no pipe of a cube core"):
        rmsnorm(LoadedKernel(kernels["rmsnorm"].entry, cube=True))


def test_what_fits_on_one_family_is_too_large_for_the_other(tmp_path: Path) -> None:
    text = re.sub("kUbOut = 0x6240", "kUbOut = 0x2e000", RMSNORM)
    a2a3, a5 = (load_batch(tmp_path, {"far": text}, family)["far"] for family in FAMILIES)
    with pytest.raises(RunFault, match="ends at byte 196608 of UB, which has 188416"):
        rmsnorm(a2a3)
    rmsnorm(a5)
