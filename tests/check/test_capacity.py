"""Who lives in on-chip memory, counted by hand, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.api.kernel import Kernel
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch, Memory
from pto_wsp.errors import CapacityError

F32, F16, I32 = DType.F32, DType.F16, DType.I32
KIB = 1024


@kernel
def chain(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    doubled = x * 2.0
    lifted = doubled + 1.0
    total = pto.rowsum(lifted)
    pto.store(y, pto.exp(total) + x)


@kernel
def loop(x: In[Tensor], n: Scalar[I32], y: Out[Tile[16, 64, F32]]) -> None:
    scale = pto.load(x, (0, 0), shape=(16, 64))
    acc = pto.alloc((16, 64), F32, init=0)
    for j in pto.range(n):
        scaled = pto.load(x, (16 * j, 0), shape=(16, 64)) * scale
        acc[:] = pto.exp(scaled) * scaled
    pto.store(y, acc)


@kernel
def product(a: In[Tensor], b: In[Tensor], n: Scalar[I32], y: Out[Tile[64, 32, F32]]) -> None:
    acc = pto.alloc((64, 32), F32, init=0)
    for j in pto.range(n):
        acc += pto.load(a, (0, 16 * j), shape=(64, 16)) @ pto.load(b, (16 * j, 0), shape=(16, 32))
    pto.store(y, acc)


def peaks(made: Kernel, **given: object) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return bytes and names at the peak of each memory."""
    found = made.check("ascend_910b", **given)
    return {peak.memory: (peak.size_bytes, tuple(tenant.name for tenant in peak.tenants)) for peak in found.peaks}


def test_a_tile_lives_from_its_statement_to_its_last_use() -> None:
    # at the addition: x, which the last line needs, what is added to, and the sum
    assert peaks(chain) == {"UB": (3 * 16 * 64 * 4, ("x", "mul", "add"))}


def test_what_is_made_before_a_loop_lives_as_long_as_the_loop() -> None:
    # at the last product: both of its operands, its result, the buffer, and the scale, which the next round needs
    size, names = peaks(loop, x=F32)["UB"]
    assert size == 5 * 16 * 64 * 4 and sorted(names) == ["acc", "exp", "mul", "mul", "x"]


def test_products_live_in_the_memories_of_the_cube() -> None:
    found = peaks(product, a=F16, b=F16)
    a, b, acc = 64 * 16 * 2, 16 * 32 * 2, 64 * 32 * 4
    assert found == {"L1": (a + b, ("a", "b")), "L0A": (a, ("a",)), "L0B": (b, ("b",)), "L0C": (acc, ("acc",))}


def test_what_the_vector_unit_reads_of_a_product_is_in_its_memory_too() -> None:
    @kernel
    def scaled(a: In[Tile[32, 32, F16]], y: Out[Tile[32, 32, F32]]) -> None:
        pto.store(y, (a @ a) * 2.0)
    found = peaks(scaled)
    assert found["L0C"] == (4096, ("matmul",)) and found["UB"] == (8192, ("matmul", "mul")) and found["L1"] == (2048, ("a",))


def test_an_exact_fit_fits_and_one_more_row_does_not() -> None:
    def arch(size: int) -> Arch:
        return Arch(name="small", memories=(Memory(name="GM"), Memory(name="UB", capacity_bytes=size + 64, reserved_bytes=64)))
    needed = 3 * 16 * 64 * 4
    shown = repr(chain.check(arch(needed))).splitlines()
    assert shown[0] == "kernel chain on small, bytes at the peak of each memory" and shown[1].startswith(f"UB: {needed} of {needed}, ")
    with pytest.raises(CapacityError) as refused:
        chain.check(arch(needed - 1))
    text = str(refused.value)
    assert f"needs {needed} bytes of UB, more than small has" in text and f"at most {needed - 1} bytes" in text
    assert "tiles of 1/2 of the elements fit, e.g. `x` as [8, 64] instead of [16, 64]" in text
    for name in ("x", "mul", "add"):
        assert f"4096  {name}" in text


def test_compile_checks_the_arch_that_is_given() -> None:
    @kernel
    def large(x: In[Tile[256, 256, F32]], y: Out[Tile[256, 256, F32]]) -> None:
        pto.store(y, x + 1.0)
    X, Y = Tensor(np.ones((2, 256, 256), np.float32)), Tensor(np.zeros((2, 256, 256), np.float32))

    @workload
    def main() -> None:
        for b in P(2):
            large[b](x=X[b], y=Y[b])
    main().compile(target="interp")
    main().compile(target="interp", arch="host_cpu")         # caches hold what they can: no limit
    with pytest.raises(CapacityError, match=f"needs {2 * 256 * KIB} bytes of UB, more than ascend_910b has"):
        main().compile(arch="ascend_910b")


def test_the_advice_fits() -> None:
    for side in (160, 256, 1024):
        @kernel
        def wide(x: In[Tile[side, 256, F32]], y: Out[Tile[side, 256, F32]]) -> None:
            pto.store(y, x + 1.0)
        with pytest.raises(CapacityError) as refused:
            wide.check("ascend_910b")
        advice = str(refused.value.help)
        factor = int(advice.split("1/")[1].split()[0])
        assert 2 * side * 256 * 4 // factor <= (builtin_arch("ascend_910b").memory("UB").usable_bytes or 0)
