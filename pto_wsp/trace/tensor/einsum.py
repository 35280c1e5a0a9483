"""Trace np.einsum: sums and products along named dimensions, by views, one matrix product, and sums of what one operand has alone."""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.errors import EinsumError
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.extents import product
from pto_wsp.ir.scalar import Const, Scalar
from pto_wsp.ir.view import Permute, Pick
from pto_wsp.source import here
from pto_wsp.trace.tensor.along import refolded
from pto_wsp.trace.tensor.reductions import sum_
from pto_wsp.trace.tensor.trace import TensorTrace, current_trace
from pto_wsp.trace.tensor.value import TensorValue

_EXPECTED = 'one or two operands, each letter once in each, no ...: "thd,hdc->thc"'


def einsum(subscripts: object, *operands: object) -> TensorValue:
    """Return the sum of products that letters name: np.einsum("thd,hdc->thc", q, w).

    Raises: J207 for a text that is none, J201 for extents of one letter that are not provably equal.
    """
    trace = current_trace("einsum")
    inputs, output = _letters(subscripts, len(operands))
    values = [trace.value("`einsum`", operand) for operand in operands]
    extents: dict[str, Scalar] = {}
    for letters, value in zip(inputs, values, strict=True):
        if len(letters) != value.rank:
            raise EinsumError(f"`einsum`: `{letters}` names {len(letters)} dimensions", here(), expected=_EXPECTED, found=repr(value))
        for letter, extent in zip(letters, value.extents, strict=True):
            known = extents.setdefault(letter, extent)
            if not trace.facts.are_same(known, extent):
                trace.refuse_extents(f"`einsum`: letter `{letter}`", known, extent, " and ".join(map(repr, values)))
    reduced = [_summed(letters, value, {*output, *(other for k, each in enumerate(inputs) if k != at for other in each)})
               for at, (letters, value) in enumerate(zip(inputs, values, strict=True))]
    if len(reduced) == 1:
        (letters, value), = reduced
        return _turned(value, letters, output)
    return _of_two(trace, reduced[0], reduced[1], output, extents)


def _letters(subscripts: object, count: int) -> tuple[list[str], str]:
    if not isinstance(subscripts, str) or "." in subscripts:
        raise EinsumError("`einsum` takes a text of letters", here(), expected=_EXPECTED, found=repr(subscripts))
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if not arrow:
        letters = "".join(inputs)
        output = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    legal = all(letters.isalpha() or not letters for letters in (*inputs, output))
    once = all(len(set(letters)) == len(letters) for letters in (*inputs, output))
    if not legal or not once or len(inputs) != count or count not in (1, 2) or not set(output) <= set("".join(inputs)):
        raise EinsumError("`einsum`: this text is not known here", here(), expected=_EXPECTED,
                          found=f"{subscripts!r} of {count} operand{'s' * (count != 1)}",
                          help="np.trace and diagonals have no op" if not once else None)
    return inputs, output


def _summed(letters: str, value: TensorValue, kept: set[str]) -> tuple[str, TensorValue]:
    """Return an operand summed over the letters that neither another operand nor the result has."""
    alone = tuple(k for k, letter in enumerate(letters) if letter not in kept)
    if not alone:
        return letters, value
    return "".join(letter for letter in letters if letter in kept), sum_(value, alone)


def _turned(value: TensorValue, letters: str, order: str) -> TensorValue:
    places = tuple(letters.index(letter) for letter in order)
    return value if places == tuple(range(len(places))) else value.then(Permute(places))


def _of_two(trace: TensorTrace, left: tuple[str, TensorValue], right: tuple[str, TensorValue], output: str,
            extents: dict[str, Scalar]) -> TensorValue:
    (a, x), (b, y) = left, right
    batch = [letter for letter in output if letter in a and letter in b]
    joint = [letter for letter in a if letter in b and letter not in output]
    rows = [letter for letter in output if letter in a and letter not in b]
    cols = [letter for letter in output if letter in b and letter not in a]
    if not joint:
        return _aligned(x, a, output) * _aligned(y, b, output)  # type: ignore[return-value]
    lhs = _folded(_turned(x, a, "".join([*batch, *rows, *joint])), batch, (rows, joint), extents)
    rhs = _folded(_turned(y, b, "".join([*batch, *joint, *cols])), batch, (joint, cols), extents)
    made = trace.product("`einsum`", lhs, rhs)
    made = _unfolded(made, batch, rows, cols, extents)
    return _turned(made, "".join([*batch, *rows, *cols]), output)


def _aligned(value: TensorValue, letters: str, output: str) -> TensorValue:
    """Return an operand with the result's dimensions, of extent 1 where it has none."""
    value = _turned(value, letters, "".join(letter for letter in output if letter in letters))
    for at, letter in enumerate(output):
        if letter not in letters:
            value = value.then(tf.Insert(at))
    return value


def _folded(value: TensorValue, batch: Sequence[str], parts: tuple[Sequence[str], Sequence[str]], extents: dict[str,
                                                                                                                Scalar]) -> TensorValue:
    """Return an operand as a matrix behind its batch dimensions: several letters of a side joined, none as an extent of 1."""
    if all(len(part) == 1 for part in parts):
        return value
    if all(len(part) <= 1 for part in parts):
        at = len(batch) + (1 if parts[0] else 0)
        return value.then(tf.Insert(at))
    shape = tuple(extents[letter] for letter in batch) + tuple(product(extents[letter] for letter in part) for part in parts)
    return refolded(value, shape)


def _unfolded(value: TensorValue, batch: Sequence[str], rows: Sequence[str], cols: Sequence[str], extents: dict[str,
                                                                                                                Scalar]) -> TensorValue:
    if len(rows) > 1 or len(cols) > 1:
        return refolded(value, tuple(extents[letter] for letter in (*batch, *rows, *cols)))
    if not cols:
        value = value.then(Pick(len(batch) + 1, Const(0)))
    if not rows:
        value = value.then(Pick(len(batch), Const(0)))
    return value
