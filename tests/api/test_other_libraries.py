"""Programs and kernels run on arrays of other libraries: inputs without a copy, results in the memory that was given.

Stand-ins speak the protocols where PyTorch and JAX are not installed; the tests of the libraries themselves run where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Program, PtoError, Tensor, Tile, kernel, pto, workload
from pto_wsp.ir.exchange import tensor_in_capsule

BF16, F32 = DType.BF16, DType.F32


class ByDlpack:
    """An array of another library, of which NumPy knows no dtype where `code` is given."""

    def __init__(self, array: np.ndarray[Any, Any], code: int | None = None, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.code, self.device = array, code, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: object) -> object:
        capsule = self.array.__dlpack__(**options)  # type: ignore[arg-type]
        tensor = tensor_in_capsule(capsule)
        if self.code is not None and tensor is not None:
            tensor.dtype.code = self.code
        return capsule


@kernel
def twice(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def twice_bf16(x: In[Tile[2, 4, BF16]], y: Out[Tile[2, 4, BF16]]) -> None:
    pto.store(y, x * 2)


def program(target: str, x: object, y: object, dtype: DType = F32) -> Program:
    X, Y = Tensor(x, name="X"), Tensor(y, name="Y")
    body = twice if dtype is F32 else twice_bf16

    @workload
    def blocks() -> None:
        for b in P(2):
            body[b](X[2 * b:2 * b + 2], Y[2 * b:2 * b + 2])
    return blocks().compile(target=target)


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_run_reads_and_writes_the_memory_that_is_bound(target: str) -> None:
    ones, first = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
    made = program(target, ByDlpack(ones), ByDlpack(first))
    made.run()
    assert (first == 2).all()
    ones[3] = 5                         # a change in place is seen
    made.run()
    assert (first[3] == 10).all()
    x, y = np.full((4, 4), 3, np.float32), np.zeros((4, 4), np.float32)
    given_x, given_y = ByDlpack(x), ByDlpack(y)
    for factor in (3, 4):               # the same objects again: the memory is read anew
        x[...] = factor
        made.run(X=given_x, Y=given_y)
        assert (y == 2 * factor).all()
    made.execute(X=ByDlpack(np.full((4, 4), 6, np.float32)), Y=given_y)
    made.synchronize()
    assert (y == 12).all() and (first[3] == 10).all()


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_bf16_of_another_library_goes_through_a_run(target: str) -> None:
    bits, results = np.full((4, 4), 0x3FC0, np.uint16), np.zeros((4, 4), np.uint16)      # 1.5, by hand
    made = program(target, ByDlpack(bits, 4), ByDlpack(np.zeros((4, 4), np.uint16), 4), BF16)
    made.run(Y=ByDlpack(results, 4))
    assert (results == 0x4040).all()                                                   # 3.0


def test_a_kernel_runs_on_arrays_of_another_library() -> None:
    y = np.zeros((2, 4), np.float32)
    result = twice.run(ByDlpack(np.ones((2, 4), np.float32)), ByDlpack(y))
    assert (y == 2).all() and isinstance(result, np.ndarray) and np.shares_memory(result, y)
    assert (twice.run(ByDlpack(np.ones((2, 4), np.float32))) == 2).all()


def _read_only() -> np.ndarray[Any, Any]:
    array = np.zeros((4, 4), np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("name, given, words", [
    ("X", ByDlpack(np.zeros((4, 4), np.float32), device=(2, 0)), "another device"),
    ("X", ByDlpack(np.zeros((4, 4), np.uint16), 4), "another dtype"),
    ("X", ByDlpack(np.zeros(4, np.float32)), "another rank"),
    ("X", np.zeros((4, 4), ">f4"), "byte order"),
    ("X", np.frombuffer(bytearray(65), np.float32, 16, 1).reshape(4, 4), r"multiples of their size(?s:.*)address \d+\n"),
    ("X", [[1.0]], "no array"),
    ("Y", ByDlpack(_read_only()), "read-only"),
    ("Y", _read_only(), "read-only"),
])
def test_a_run_refuses_what_it_cannot_use(name: str, given: object, words: str) -> None:
    made = program("interp", np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32))
    with pytest.raises(PtoError, match=words) as caught:
        made.run(**{name: given})
    assert caught.value.code == "R113" and f"`{name}`" in caught.value.message


@pytest.mark.parametrize("given, code, words", [
    ((ByDlpack(np.zeros((2, 4), np.float32), device=(2, 0)),), "T205", "another device"),
    (([[1.0]],), "T205", "no array"),
    ((np.zeros((2, 4), np.float32), _read_only()[:2]), "R113", "read-only"),
])
def test_a_kernel_refuses_what_it_cannot_use(given: tuple[object, ...], code: str, words: str) -> None:
    with pytest.raises(PtoError, match=words) as caught:
        twice.run(*given)
    assert caught.value.code == code


def test_a_list_of_tasks_takes_arrays_of_another_library() -> None:
    X, Y = Tensor(np.ones((4, 4), np.float32), name="X"), Tensor(np.zeros((4, 4), np.float32), name="Y")
    counts = Tensor(np.array([1]), name="counts")

    @workload
    def w() -> None:
        for b in P(counts[0]):
            twice[b](X[2 * b:2 * b + 2], Y[2 * b:2 * b + 2])
    assert [len(w().tasks(counts=ByDlpack(np.array([n])))) for n in (0, 1, 2)] == [0, 1, 2]


# -- the libraries themselves ------------------------------------------------------------------------------------------
def test_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for dtype, code in ((F32, torch.float32), (BF16, torch.bfloat16)):
        x, y = torch.ones(4, 4, dtype=code), torch.zeros(4, 4, dtype=code)
        made = program("cpu_sim", x, y, dtype)
        made.run()
        assert (y == 2).all()
        z = torch.zeros(4, 4, dtype=code)
        made.run(X=x * 3, Y=z)
        assert (z == 6).all() and (y == 2).all()
        back = torch.from_dlpack(Tensor(y))
        assert back.dtype is code and back.data_ptr() == y.data_ptr()
    for name in ("float16", "float8_e4m3fn", "float8_e5m2", "int8", "uint16", "bool", "int64"):
        given = torch.zeros(2, 4).to(getattr(torch, name))
        tensor = Tensor(given)
        back = torch.from_dlpack(tensor)
        assert back.dtype is given.dtype and back.data_ptr() == given.data_ptr()
    refused = {"gradients": torch.ones(2, requires_grad=True), "strides": torch.eye(2).to_sparse(), "device": torch.ones(2, device="meta"),
               "numbers": torch.ones(2, dtype=torch.complex64).conj().imag}
    for words, given in refused.items():
        with pytest.raises(PtoError, match=words) as caught:
            Tensor(given)
        assert caught.value.code == "D101"


def test_jax() -> None:
    jnp = pytest.importorskip("jax.numpy")
    for dtype, code in ((F32, jnp.float32), (BF16, jnp.bfloat16)):
        y = np.zeros((4, 4), dtype.np)
        made = program("cpu_sim", jnp.ones((4, 4), code), y, dtype)
        made.run()
        assert (y == 2).all()
        with pytest.raises(PtoError, match="read-only"):
            made.run(Y=jnp.zeros((4, 4), code))
        assert jnp.from_dlpack(Tensor(y)).dtype == code
