"""Products on the emulated cube core against NumPy: every dtype, tiles filled by rows and by columns, ragged extents, K in steps."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.npu.emulator import Array, Given, LoadedKernel
from tests.npu.harness import FAMILIES, RunFault
from tests.npu.instructions.batch import load_batch
from tests.npu.instructions.case import C_TYPES
from tests.selected import selected

F32, F16, BF16, I8 = np.float32, np.float16, ml_dtypes.bfloat16, np.int8


@dataclass(frozen=True)
class Product:
    """out[m, n] = a[m, k] @ b[k, n], K in steps. `turned`: b lies transposed, and is read so. `dynamic`: extents go to constructors."""

    name: str
    dtype: npt.DTypeLike
    m: int = 32
    k: int = 64
    n: int = 48
    steps: int = 1
    turned: bool = False
    dynamic: bool = False
    out: npt.DTypeLike = F32
    move: bool = False
    bias: bool = False

    def source(self) -> str:
        """Return the kernel."""
        c_type, out = C_TYPES[np.dtype(self.dtype)], C_TYPES[np.dtype(self.out)]
        summed = "int32_t" if np.dtype(self.dtype) == np.int8 else "float"
        box = 32 // np.dtype(self.dtype).itemsize
        rows, inner, cols = (-(-extent // unit) * unit for extent, unit in ((self.m, 16), (self.k, max(16, box)), (self.n, max(16, box))))
        step, valid_k = inner // self.steps, self.k // self.steps

        def tile(head: str, shape: tuple[int, int], valid: tuple[int, int], tail: str = "") -> str:
            inside = "-1, -1" if self.dynamic else f"{valid[0]}, {valid[1]}"
            return f"{head}{shape[0]}, {shape[1]}, {{}}{inside}{tail}>"

        def declared(name: str, kind: str, valid: tuple[int, int], address: int) -> str:
            given = f"({valid[0]}, {valid[1]})" if self.dynamic else ""
            return f"{kind} {name}{given}; TASSIGN({name}, {address});"

        nz, zn = ("BLayout::ColMajor, ", ", SLayout::RowMajor, 512"), ("BLayout::RowMajor, ", ", SLayout::ColMajor, 512")
        blocks_b, inner_b = zn if self.turned else nz
        l1a = tile(f"Tile<TileType::Mat, {c_type}, ", (rows, inner), (self.m, self.k), nz[1]).format(nz[0])
        l1b = tile(f"Tile<TileType::Mat, {c_type}, ", (inner, cols), (self.k, self.n), inner_b).format(blocks_b)
        left = tile(f"TileLeft<{c_type}, ", (rows, step), (self.m, valid_k)).format("")
        right = tile(f"TileRight<{c_type}, ", (step, cols), (valid_k, self.n)).format("")
        acc = tile(f"TileAcc<{summed}, ", (rows, cols), (self.m, self.n)).format("")
        steps_b, layout = (f"1, {self.k}", ", Layout::DN") if self.turned else (f"{self.n}, 1", "")
        take = ("TMOV(a, l1a); TMOV(b, l1b);" if self.move else f"TEXTRACT(a, l1a, 0, k * {step}); TEXTRACT(b, l1b, k * {step}, 0);")
        multiply = "TMATMUL_BIAS(c, a, b, bias);" if self.bias else "if (k == 0) TMATMUL(c, a, b); else TMATMUL_ACC(c, c, a, b);"
        lines = [
            f"GlobalTensor<{c_type}, Shape<1, 1, 1, {self.m}, {self.k}>, Stride<1, 1, 1, {self.k}, 1>> ga({_pointer(c_type, 0)});",
            f"GlobalTensor<{c_type}, Shape<1, 1, 1, {self.k}, {self.n}>, Stride<1, 1, 1, {steps_b}>{layout}> gb({_pointer(c_type, 1)});",
            f"GlobalTensor<{out}, Shape<1, 1, 1, {self.m}, {self.n}>, Stride<1, 1, 1, {self.n}, 1>> gc({_pointer(out, 2)});",
            declared("l1a", l1a, (self.m, self.k), 0), declared("l1b", l1b, (self.k, self.n), 0x20000),
            declared("a", left, (self.m, valid_k), 0), declared("b", right, (valid_k, self.n), 0), declared("c", acc, (self.m, self.n), 0),
            "TLOAD(l1a, ga); TLOAD(l1b, gb);", *(self._bias(cols) if self.bias else ()), _flag("MTE2", "MTE1"),
            f"for (int k = 0; k < {self.steps}; ++k) {{", f"if (k > 0) {{ {_flag('M', 'MTE1')} }}",
            take, *(("TMOV(bias, l1bias);",) if self.bias else ()), _flag("MTE1", "M"), multiply, "}", _flag("M", "FIX"), "TSTORE(gc, c);",
            _flag("FIX", "S")]
        return 'extern "C" void kernel_entry(int64_t *args) {\nusing namespace pto;\n' + "\n".join(lines) + "\n}\n"

    def _bias(self, cols: int) -> tuple[str, ...]:
        return (f"Tile<TileType::Mat, float, 16, {cols}, BLayout::ColMajor, 1, {self.n}, SLayout::RowMajor, 512> l1bias; "
                "TASSIGN(l1bias, 0x40000);",
                f"Tile<TileType::Bias, float, 1, {cols}, BLayout::RowMajor, 1, {self.n}> bias; TASSIGN(bias, 0);",
                f"GlobalTensor<float, Shape<1, 1, 1, 1, {self.n}>, Stride<1, 1, 1, {self.n}, 1>> gbias({_pointer('float', 3)});",
                "TLOAD(l1bias, gbias);")

    def check(self, kernel: LoadedKernel) -> None:
        """Run the kernel and compare what it stored."""
        rng = np.random.default_rng(3)
        a, b = (rng.integers(-8, 8, shape).astype(self.dtype) for shape in ((self.m, self.k), (self.k, self.n)))
        bias = rng.integers(-8, 8, (1, self.n)).astype(F32)
        found = np.zeros((self.m, self.n), self.out)
        given = [Given(a), Given(np.ascontiguousarray(b.T) if self.turned else b), Given(found, writable=True)]
        kernel.run([*given, Given(bias)] if self.bias else given)
        right: Array = a.astype(np.float64) @ b.astype(np.float64) + (bias if self.bias else 0)
        np.testing.assert_array_equal(found, right.astype(self.out))


def _pointer(c_type: str, slot: int) -> str:
    return f"reinterpret_cast<{c_type} *>(reinterpret_cast<ChipTensor *>(args[{slot}])->buffer.addr)"


def _flag(after: str, before: str) -> str:
    return f"set_flag(PIPE_{after}, PIPE_{before}, EVENT_ID0); wait_flag(PIPE_{after}, PIPE_{before}, EVENT_ID0);"


PRODUCTS = (
    Product("f32", F32), Product("f16", F16), Product("bf16", BF16), Product("i8", I8, out=np.int32, n=64),
    Product("f32_in_steps", F32, k=128, steps=4), Product("f16_in_steps", F16, k=128, steps=2),
    Product("f32_turned", F32, turned=True), Product("bf16_turned", BF16, turned=True), Product("i8_turned", I8, out=np.int32, turned=True),
    Product("f16_ragged", F16, m=5, k=37, n=29), Product("f32_ragged", F32, m=17, k=19, n=21),
    Product("f16_ragged_turned", F16, 5, 37, 29, turned=True),
    Product("f32_dynamic", F32, m=17, k=19, n=21, dynamic=True),
    Product("bf16_dynamic_turned", BF16, m=3, k=64, n=40, turned=True, dynamic=True),
    Product("f16_to_f16", F16, out=F16), Product("bf16_to_bf16", BF16, k=16, out=BF16), Product("f32_moved", F32, move=True),
    Product("f32_bias", F32, bias=True),
)


@pytest.fixture(scope="module", params=FAMILIES)
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedKernel]:
    """Return the products of this run as kernels of one family, compiled together."""
    wrong = {"i8_to_f32": Product("", I8), "f32_to_i32": Product("", F32, out=np.int32)}
    products = [params["product"] for params in selected(request) if params["kernels"] == request.param and "name" not in params]
    sources = {product.name: product.source() for product in products} | {name: product.source() for name, product in wrong.items()}
    return load_batch(tmp_path_factory.mktemp("products"), sources, request.param, cube=True)


@pytest.mark.sampled(17)
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_product(kernels: dict[str, LoadedKernel], product: Product, request: pytest.FixtureRequest) -> None:
    if product.bias and request.node.callspec.params["kernels"] == "a5":      # a row from L1, which is stored as 16, to one that is not
        with pytest.raises(RunFault, match=r"TMOV: operand 2 is stored as \[16, 48\], and operand 1 as \[1, 48\]"):
            product.check(kernels[product.name])
        return
    product.check(kernels[product.name])


@pytest.mark.parametrize(("name", "product"), [("i8_to_f32", Product("", I8)), ("f32_to_i32", Product("", F32, out=np.int32))])
def test_sums_are_stored_as_what_they_are(kernels: dict[str, LoadedKernel], name: str, product: Product) -> None:
    with pytest.raises(RunFault, match=r"TSTORE: the tile is (i32, the tensor f32|f32, the tensor i32)"):
        product.check(kernels[name])
