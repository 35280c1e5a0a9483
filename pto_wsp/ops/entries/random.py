"""Random numbers that depend on a seed, a counter and the place in the tile alone: the same bits on every target, in every order of tasks.

Philox4x32-10 maps a counter of four 32-bit words under a key of two to four random words. Here the key is the seed, and the counter is
(column // 4, row, counter's lower word, its upper word); the four words belong to four neighbouring columns.
`random_at` has one number a place, so it takes the form of two words, Philox2x32-10: counter (place, seed's upper word), key the lower.
Source: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011.
"""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.errors import NumberError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ops import typing
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.create import full, iota
from pto_wsp.ops.entries.elementwise import add, and_, mul, shr, xor
from pto_wsp.ops.entries.formula import Formula, tile_of
from pto_wsp.ops.entries.movement import interleave, slice_
from pto_wsp.ops.entry import Operand, active, user_call
from pto_wsp.source import here

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
SHORT_MULTIPLIER = 0xD256D193       # of Philox2x32
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
WORDS = 4
_WORD = 1 << 32
_HALF = 0xFFFF
_FLOAT_BITS = 24        # of a word, an f32 holds its upper 24 bits exactly

Number: TypeAlias = int | Symbolic


@user_call("pto.random")
def random(shape: tuple[int, int], seed: object, counter: object = 0) -> Operand:
    """Return f32 numbers in [0, 1), equally likely multiples of 2^-24, from a seed and a counter: whole numbers or scalars of the kernel.

    The element in row r and column c depends on seed, counter, r and c alone. A kernel that draws in many tasks gives each its own counter.
    """
    active("random")
    rows, cols = typing.as_shape("random", shape)
    keys = _words("seed", seed)
    lower, upper = _words("counter", counter)
    blocks = -(-cols // WORDS)
    words = philox((iota((1, blocks), DType.U32, 1), iota((rows, 1), DType.U32, 0),
                    full((1, 1), lower, DType.U32), full((1, 1), upper, DType.U32)), keys)
    drawn = interleave(interleave(words[0], words[2]), interleave(words[1], words[3]))
    kept = drawn if cols == blocks * WORDS else slice_(drawn, slice(None), slice(0, cols))
    return _unit(kept)


@user_call("pto.random_at")
def random_at(places: Operand, seed: object) -> Operand:
    """Return an f32 number in [0, 1) for each place of a u32 tile, equally likely multiples of 2^-24: it depends on seed and place alone.

    A tile of pto.random costs half as much.
    """
    active("random_at")
    left = tile_of("random_at", places, (DType.U32,), "pto.cast(places, DType.U32)")
    key, upper = _words("seed", seed)
    right = full((1, 1), upper, DType.U32)
    for k in range(ROUNDS):
        high, low = _product(SHORT_MULTIPLIER, left)
        left, right = xor(xor(high, right), (key + k * KEY_STEPS[0]) % _WORD), low
    return _unit(left)


def philox(counter: tuple[Operand, Operand, Operand, Operand], keys: tuple[Number, Number]) -> tuple[Operand, Operand, Operand, Operand]:
    """Return four random words for each four words of a counter, all u32, under a key."""
    a, b, c, d = counter
    for k in range(ROUNDS):
        first, second = ((key + k * step) % _WORD for key, step in zip(keys, KEY_STEPS, strict=True))
        (high_a, low_a), (high_c, low_c) = _product(MULTIPLIERS[0], a), _product(MULTIPLIERS[1], c)
        a, b, c, d = xor(xor(high_c, b), first), low_c, xor(xor(high_a, d), second), low_a
    return a, b, c, d


def _unit(words: Operand) -> Operand:
    """Return random words as numbers in [0, 1)."""
    return mul(cast(shr(words, 32 - _FLOAT_BITS), DType.F32), 2.0 ** -_FLOAT_BITS)


def _product(factor: int, x: Operand) -> tuple[Operand, Operand]:
    """Return the upper and the lower word of the 64 bits of factor * x, by products of half words, of which none overflows."""
    upper, lower = factor >> 16, factor & _HALF
    x_upper, x_lower = shr(x, 16), and_(x, _HALF)
    middle = add(mul(x_lower, upper), shr(mul(x_lower, lower), 16))
    other = add(mul(x_upper, lower), and_(middle, _HALF))
    return add(add(mul(x_upper, upper), shr(middle, 16)), shr(other, 16)), mul(x, factor)


def _words(what: str, value: object) -> tuple[Number, Number]:
    """Return the lower and the upper 32 bits of a whole number or scalar.

    Raises: T209 for anything else, and for a number of more than 64 bits.
    """
    if isinstance(value, Symbolic):
        return value % _WORD, value // _WORD % _WORD
    number = whole_number(value)
    if number is None or not -(_WORD // 2) * _WORD <= number < _WORD * _WORD:
        raise NumberError(f"`pto.random`: the {what} is a whole number of 64 bits, or a scalar of the kernel", here(), found=repr(value))
    return number % _WORD, number // _WORD % _WORD


FORMULAS = (Formula(random, synonyms=("rand", "uniform")), Formula(random_at))
