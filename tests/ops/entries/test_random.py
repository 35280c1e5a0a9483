"""pto.random: the published words of Philox4x32-10, the same bits on every target, and a number that its place alone decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp import DType, In, Out, P, PtoError, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.ops.entries.random import philox
from tests.npu.select.numbers import check

F32, I32, I64, U32 = DType.F32, DType.I32, DType.I64, DType.U32
Array = npt.NDArray[Any]
SEEDS = (0, 1, -5, (3 << 40) + 77, (1 << 64) - 1, -(1 << 63))

# Known answers of Random123, kat_vectors, philox4x32 10: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)),
    ((0xffffffff,) * 4, (0xffffffff,) * 2, (0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd)),
    ((0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), (0xa4093822, 0x299f31d0), (0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1)),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_published_words(counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, ...]) -> None:
    @kernel
    def words(c: In[Tile[1, 4, U32]], out: Out[Tile[1, 4, U32]]) -> None:
        a, b, c_, d = philox((c[:, 0:1], c[:, 1:2], c[:, 2:3], c[:, 3:4]), key)
        pto.store(out, pto.concat(a, b, c_, d))
    assert words.run(np.array([counter], np.uint32)).tolist() == [list(expected)]      # type: ignore[union-attr]


def drawn(shape: tuple[int, int], seed: int, counter: int) -> Array:
    """Return the numbers by products of 64 bits in NumPy."""
    low, half = np.uint64(0xffffffff), np.uint64(32)
    rows, cols = shape
    blocks = -(-cols // 4)
    at_col, at_row = np.meshgrid(np.arange(blocks, dtype=np.uint64), np.arange(rows, dtype=np.uint64))
    c = [at_col, at_row, *(np.full_like(at_col, counter >> s & 0xffffffff) for s in (0, 32))]
    keys = [seed & 0xffffffff, seed >> 32 & 0xffffffff]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [second >> half ^ c[1] ^ np.uint64(keys[0]), second & low, first >> half ^ c[3] ^ np.uint64(keys[1]), first & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xffffffff, (keys[1] + 0xBB67AE85) & 0xffffffff]
    bits = np.stack(c, axis=2).reshape(rows, -1)[:, :cols] >> np.uint64(8)
    return (bits / 2.0 ** 24).astype(np.float32)


def kernel_of(shape: tuple[int, int], seed: object, counter: object) -> Any:
    @kernel
    def draw(y: Out[Tile[shape[0], shape[1], F32]]) -> None:  # type: ignore[misc]
        pto.store(y, pto.random(shape, seed, counter))
    return draw


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_those_of_the_definition(seed: int) -> None:
    for shape, counter in (((1, 1), 0), ((3, 7), 1), ((4, 8), -1), ((5, 2), 1 << 63)):
        assert np.array_equal(kernel_of(shape, seed, counter).run(), drawn(shape, seed, counter))


def test_a_place_has_its_number_in_every_tile() -> None:
    large = kernel_of((6, 12), 9, 4).run()
    assert np.array_equal(large[:3, :5], kernel_of((3, 5), 9, 4).run()) and not np.array_equal(large, kernel_of((6, 12), 9, 5).run())


def test_numbers_lie_evenly_in_their_range() -> None:
    found = kernel_of((64, 256), 2024, 0).run()
    assert found.min() >= 0 and found.max() < 1 and len(np.unique(found)) > 16000
    assert np.histogram(found, 16, (0, 1))[0].std() < 100 and abs(np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]) < 0.03


def numbers_at(places: Array, seed: int) -> Array:
    """Return the first words of Philox2x32-10 as numbers, by products of 64 bits in NumPy."""
    left, right, key = places.astype(np.uint64), np.uint64(seed >> 32 & 0xffffffff), seed & 0xffffffff
    for _ in range(10):
        product = left * np.uint64(0xD256D193)
        left, right = product >> np.uint64(32) ^ np.uint64(key) ^ right, product & np.uint64(0xffffffff)
        key = (key + 0x9E3779B9) & 0xffffffff
    return ((left >> np.uint64(8)) / 2.0 ** 24).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_number_is_that_of_its_place(seed: int) -> None:
    @kernel
    def draw(places: In[Tile[3, 8, U32]], y: Out[Tile[3, 8, F32]]) -> None:
        pto.store(y, pto.random_at(places, seed))

    places = np.random.default_rng(1).integers(0, 1 << 32, (3, 8), np.uint32)
    assert np.array_equal(draw.run(places), numbers_at(places, seed))


def test_numbers_of_neighbouring_places_lie_evenly() -> None:
    found = numbers_at(np.arange(1 << 14), 3)
    assert found.min() >= 0 and found.max() < 1 and np.histogram(found, 16, (0, 1))[0].std() < 100
    assert all(abs(np.corrcoef(found[:-k], found[k:])[0, 1]) < 0.03 for k in (1, 2, 4, 64))


@pytest.mark.slow
def test_every_target_and_order_draws_the_same() -> None:
    @kernel
    def draw(seed: Scalar[I64], turn: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, pto.random((4, 8), seed, turn))

    Y = Tensor(np.zeros((6, 4, 8), np.float32))

    @workload
    def all_drawn() -> None:
        for i in P(6):
            draw[i]((1 << 40) + 3, i, Y[i])

    expected = np.stack([drawn((4, 8), (1 << 40) + 3, i) for i in range(6)])
    for target, options in (("interp", {}), ("cpu_sim", {}), ("cpu_sim", {"threads": 2}), ("cpu_sim", {"portable": True})):
        Y.data[:] = 7
        all_drawn().compile(target, **options).run()
        assert np.array_equal(Y.data, expected), (target, options)


@pytest.mark.slow
def test_an_npu_draws_the_same() -> None:
    for seed in (5, (1 << 63) + 9):
        check(lambda x, seed=seed: x * 0 + pto.random((8, 16), seed, seed), np.ones((8, 16), np.float32), out=(8, 16, F32))
        check(lambda x, seed=seed: x * 0 + pto.random_at(pto.iota((8, 16), U32, 1), seed), np.ones((8, 16), np.float32), out=(8, 16, F32))


@pytest.mark.parametrize(("call", "code"), [
    (lambda x: pto.random((4, 8), 1 << 64), "T209"), (lambda x: pto.random((4, 8), 0.5), "T209"),
    (lambda x: pto.random((4, 8), True), "T209"),
    (lambda x: pto.random((4, 8), x), "T209"), (lambda x: pto.random((4, 8), 1, "a"), "T209"), (lambda x: pto.random((4,), 1), "T207"),
    (lambda x: pto.random_at(x, 1), "T204"), (lambda x: pto.random_at(3, 1), "T213"),
    (lambda x: pto.random_at(pto.iota((4, 8), U32, 1), 0.5), "T209"), (lambda x: pto.random((4, 8)), "T101"),
    (lambda x: pto.rand(4, 8), "T211"),  # type: ignore[call-arg]
])
def test_a_mistake_is_an_error(call: Any, code: str) -> None:
    @kernel
    def wrong(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, call(x))
    with pytest.raises(PtoError) as caught:
        wrong.run(np.zeros((4, 8), np.float32))
    assert caught.value.code == code


def test_a_call_outside_a_kernel_is_refused() -> None:
    with pytest.raises(PtoError) as caught:
        pto.random((4, 8), 1)
    assert caught.value.code == "K105"
