"""Compare and simplify extents: whole-number scalars, as polynomials in normal form.

A polynomial is a sum of products of atoms with whole coefficients. Atoms are symbols, loop variables, elements, and operations that are
no sum or product: `n // 16`, `min(16, n)`. Extents are far below 2**63, so nothing wraps here.

>>> n = SymbolRef("n", 0)
>>> same(mul(add(n, Const(1)), Const(2)), add(n, add(n, Const(2)))), print_scalar(simplified(sub(add(n, n), Const(3))))
(True, 'n * 2 - 3')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import gcd
from types import MappingProxyType
from typing import TypeAlias

from pto_wsp.ir.scalar import (
    Binary,
    Const,
    Element,
    Op,
    Scalar,
    Select,
    SymbolRef,
    Unary,
    add,
    binary,
    maximum,
    minimum,
    mul,
    print_scalar,
    scalar_dtype,
    sub,
    unary,
)

Monomial: TypeAlias = tuple[Scalar, ...]             # atoms, sorted; one that occurs twice stands twice
Polynomial: TypeAlias = Mapping[Monomial, int]       # coefficients, none of which is 0


def same(a: Scalar, b: Scalar) -> bool:
    """Tell whether two extents are equal for all values of their symbols, as far as the normal form shows."""
    return difference(a, b) == 0


def difference(a: Scalar, b: Scalar) -> int | None:
    """Return a - b if it is the same number for all values of the symbols, and the normal form shows this; None otherwise."""
    if a == b:
        return 0
    rest = _minus(_normal(simplified(a), True), _normal(simplified(b), True))
    return rest.get((), 0) if all(monomial == () for monomial in rest) else None


def simplified(extent: Scalar) -> Scalar:
    """Return an extent as its polynomial: like terms joined, numbers last. An expression that is no whole number stays as it is."""
    if not scalar_dtype(extent).is_integer:
        return extent
    found = _simplified(extent)
    return extent if found == extent else found      # the same object, so that what is simple already is known by identity


@lru_cache(maxsize=8192)
def _simplified(extent: Scalar) -> Scalar:
    return _scalar(_normal(extent, False))


def product(extents: Iterable[Scalar]) -> Scalar:
    """Return the product of extents, simplified; 1 of none."""
    total: Polynomial = {(): 1}
    for extent in extents:
        total = _times(total, _normal(extent, False))
    return _scalar(total)


def divided(dividend: Scalar, divisor: Scalar) -> Scalar | None:
    """Return the extent that, times `divisor`, is `dividend` for all values of their symbols; None where there is none."""
    rest, by = _normal(dividend, False), _normal(divisor, False)
    if not by:
        return None
    lead = max(by, key=_degree_order)
    quotient: Polynomial = {}
    while rest:
        monomial = max(rest, key=_degree_order)
        factor = _without(monomial, lead)
        if factor is None or rest[monomial] % by[lead]:
            return None
        part = {factor: rest[monomial] // by[lead]}
        quotient = _plus(quotient, part)
        rest = _minus(rest, _times(part, by))
    return _scalar(quotient)


def most_times(extent: Scalar, by: int) -> Scalar:
    """Return an upper bound of extent * by, in which quotients are not rounded down: n // 16 times 16 is n at most."""
    most: Polynomial = {}
    for monomial, factor in _normal(extent, False).items():
        match monomial:
            case (Binary(Op.FLOORDIV, top, Const(part)),) if part > 0 and by % part == 0 and factor > 0:
                most = _plus(most, _times(_normal(top, False), {(): factor * by // int(part)}))
            case _:
                most = _plus(most, {monomial: factor * by})
    return _scalar(most)


# -- polynomials -------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=8192)
def _normal(node: Scalar, deep: bool) -> Polynomial:
    """Return a scalar as a polynomial. `deep`: remainders and minima in a form that shows more equalities, and reads worse."""
    return MappingProxyType(_made(node, deep))


def _made(node: Scalar, deep: bool) -> Polynomial:
    if not scalar_dtype(node).is_integer:
        return {(node,): 1}
    match node:
        case Const(value):
            return {(): int(value)} if value else {}
        case Unary(Op.NEG, value):
            return _minus({}, _normal(value, deep))
        case Binary(Op.ADD, lhs, rhs):
            return _plus(_normal(lhs, deep), _normal(rhs, deep))
        case Binary(Op.SUB, lhs, rhs):
            return _minus(_normal(lhs, deep), _normal(rhs, deep))
        case Binary(Op.MUL, lhs, rhs):
            return _times(_normal(lhs, deep), _normal(rhs, deep))
        case Binary(Op.FLOORDIV, lhs, Const(by)) if by > 0:
            return _floor_divided(_normal(lhs, deep), int(by))
        case Binary(Op.MOD, lhs, Const(by)) if by > 0:
            return _remainder(_normal(lhs, deep), int(by), deep)
        case Binary(Op.MIN | Op.MAX as op, lhs, rhs):
            return _least(op, _normal(lhs, deep), _normal(rhs, deep), deep)
        case Binary(op, lhs, rhs):
            return _atom(binary(op, _inside(lhs, deep), _inside(rhs, deep)))
        case Select(condition, then, other):
            return _atom(Select(_inside(condition, deep), _inside(then, deep), _inside(other, deep)))
        case Element(tensor, index):
            return _atom(Element(tensor, tuple(_inside(at, deep) for at in index)))
        case _:
            return {(node,): 1}


def _inside(node: Scalar, deep: bool) -> Scalar:
    """Return an operand of an atom, simplified; of a condition, its sides."""
    if scalar_dtype(node).is_integer:
        return _scalar(_normal(node, deep))
    match node:
        case Binary(op, lhs, rhs):
            return binary(op, _inside(lhs, deep), _inside(rhs, deep))
        case Unary(op, value):
            return Unary(op, _inside(value, deep))
        case _:
            return node


def _atom(node: Scalar) -> Polynomial:
    return ({(): int(node.value)} if node.value else {}) if isinstance(node, Const) else {(node,): 1}


def _plus(a: Polynomial, b: Polynomial) -> Polynomial:
    total = dict(a)
    for monomial, factor in b.items():
        total[monomial] = total.get(monomial, 0) + factor
    return {monomial: factor for monomial, factor in total.items() if factor}


def _minus(a: Polynomial, b: Polynomial) -> Polynomial:
    return _plus(a, {monomial: -factor for monomial, factor in b.items()})


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for left, m in a.items():
        total = _plus(total, {tuple(sorted((*left, *right), key=_name)): m * n for right, n in b.items()})
    return total


def _floor_divided(top: Polynomial, by: int) -> Polynomial:
    """Return floor(top / by): the whole multiples come out, what remains is an atom: (n * 32 + 5) // 16 is n * 2."""
    whole = {monomial: factor // by for monomial, factor in top.items() if factor // by}
    rest = {monomial: factor % by for monomial, factor in top.items() if factor % by}
    shared = gcd(by, *(factor for monomial, factor in rest.items() if monomial))
    rest = {monomial: factor // shared for monomial, factor in rest.items() if factor // shared}
    by //= shared
    if by == 1:
        return _plus(whole, rest)
    if not any(rest):     # a number below `by`, or nothing
        return whole
    match _only_atom(rest):
        case Binary(Op.FLOORDIV, inner, Const(first)) if first > 0:      # (n // 4) // 2 → n // 8
            return _plus(whole, {(Binary(Op.FLOORDIV, inner, Const(int(first) * by)),): 1})
    return _plus(whole, {(Binary(Op.FLOORDIV, _scalar(rest), Const(by)),): 1})


def _remainder(top: Polynomial, by: int, deep: bool) -> Polynomial:
    if deep:
        return _minus(top, _times(_floor_divided(top, by), {(): by}))
    rest = {monomial: factor % by for monomial, factor in top.items() if factor % by}
    if not any(rest):
        return rest
    return {(Binary(Op.MOD, _scalar(rest), Const(by)),): 1}


def _least(op: Op, a: Polynomial, b: Polynomial, deep: bool) -> Polynomial:
    """Return the smaller or larger of two: decided where their difference is a number."""
    apart = _minus(a, b)
    if all(monomial == () for monomial in apart):
        return a if (apart.get((), 0) <= 0) == (op is Op.MIN) else b
    if deep:              # min(a, b) is b + min(0, a - b), max(a, b) is a - min(0, a - b): one of a - b and b - a is taken
        if apart[max(apart, key=_degree_order)] < 0:
            a, b, apart = b, a, _minus(b, a)
        below: Polynomial = {(Binary(Op.MIN, Const(0), _scalar(apart)),): 1}
        return _plus(b, below) if op is Op.MIN else _minus(a, below)
    parts = {*_parts(op, a), *_parts(op, b)}
    numbers = [int(part.value) for part in parts if isinstance(part, Const)]
    others: list[Scalar] = sorted((part for part in parts if not isinstance(part, Const)), key=_name)
    join = minimum if op is Op.MIN else maximum
    while len(others) > 1:
        last = others.pop()
        others[-1] = join(others[-1], last)
    if not numbers:
        return _atom(others[0])
    return _atom(join(Const((min if op is Op.MIN else max)(numbers)), others[0]))      # the number first, where `limit_of` finds it


def _parts(op: Op, polynomial: Polynomial) -> tuple[Scalar, ...]:
    def flat(node: Scalar) -> tuple[Scalar, ...]:
        return (*flat(node.lhs), *flat(node.rhs)) if isinstance(node, Binary) and node.op is op else (node,)
    return flat(_scalar(polynomial))


def _only_atom(polynomial: Polynomial) -> Scalar | None:
    match tuple(polynomial.items()):
        case (((atom,), 1),):
            return atom
        case _:
            return None


def _scalar(polynomial: Polynomial) -> Scalar:
    """Return a polynomial as a scalar: products in order of degree and name, those that are subtracted behind, the number last."""
    terms = sorted((monomial for monomial in polynomial if monomial), key=lambda m: (polynomial[m] < 0, -len(m), tuple(map(_name, m))))
    total: Scalar = Const(0)
    for monomial in terms:
        factor, term = polynomial[monomial], monomial[0]
        for atom in monomial[1:]:
            term = mul(term, atom)
        if factor < 0 and total != Const(0):
            total = sub(total, mul(term, Const(-factor)))
        else:
            total = add(total, unary(Op.NEG, term) if factor == -1 else mul(term, Const(factor)))
    return add(total, Const(polynomial.get((), 0)))


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """Return the atoms of a monomial without the atoms of `part`; None if an atom of `part` is missing."""
    left = list(monomial)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _degree_order(monomial: Monomial) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Return the key of an order of monomials that products keep: the degree, then the atoms."""
    return len(monomial), tuple(map(_name, monomial))


def _name(node: Scalar) -> tuple[str, str]:
    """Return the key that atoms are sorted by: symbols before operations, as they print."""
    return print_scalar(node) if not isinstance(node, SymbolRef) else node.name, repr(node)
