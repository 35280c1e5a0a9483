"""Define `TensorType`, the type of a parameter of a function on whole tensors: `Tensor["t", 4096, DType.F32]`.

>>> tensor_type(("t", 4096, DType.F32))
Tensor["t", 4096, f32]
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.errors import TensorSignatureError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import MAX_RANK, whole_number
from pto_wsp.ir.layout import Contract
from pto_wsp.source import here
from pto_wsp.values import dataclass

_EXPECTED = 'Tensor["t", 4096, DType.F32]: whole numbers >= 1 or names of extents, then a dtype'


@dataclass(frozen=True, slots=True, repr=False)
class TensorType:
    """Extents (numbers, or names that stand for one number a call), dtype and contracts; `written`: the function writes it in place."""

    extents: tuple[int | str, ...]
    dtype: DType
    contracts: tuple[Contract, ...] = ()
    written: bool = False

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    def promising(self, contract: Contract) -> TensorType:
        """Return the type with a contract more."""
        return self if contract in self.contracts else replace(self, contracts=(*self.contracts, contract))

    def writable(self) -> TensorType:
        """Return the type of a parameter that the function writes in place."""
        return replace(self, written=True)

    def __repr__(self) -> str:
        names = [f'"{n}"' if isinstance(n, str) else str(n) for n in self.extents]
        text = f"Tensor[{', '.join([*names, str(self.dtype)])}]"
        for contract in self.contracts:
            text = f"{contract.value.capitalize()}[{text}]"
        return f"InOut[{text}]" if self.written else text


def tensor_type(item: object) -> TensorType:
    """Return `Tensor[item]`.

    Raises: J101 for anything but extents and a dtype.
    """
    parts = item if isinstance(item, tuple) else (item,)
    dtype = parts[-1] if parts and isinstance(parts[-1], DType) else None
    extents: list[int | str] = []
    for part in parts[:-1]:
        number = whole_number(part)
        if isinstance(part, str) and part.isidentifier():
            extents.append(part)
        elif number is not None and number >= 1:
            extents.append(number)
        else:
            raise _refusal(parts, f"{part!r} is no extent")
    if dtype is None or not extents:
        raise _refusal(parts, "the dtype is missing" if dtype is None else "the extents are missing")
    if len(extents) > MAX_RANK:
        raise _refusal(parts, f"{len(extents)} dimensions, of at most {MAX_RANK}")
    return TensorType(tuple(extents), dtype)


def _refusal(parts: tuple[object, ...], what: str) -> TensorSignatureError:
    shown = ", ".join("..." if part is Ellipsis else repr(part) for part in parts)
    return TensorSignatureError(f"this is no type of a tensor: {what}", here(), expected=_EXPECTED, found=f"Tensor[{shown:.80}]",
                                help="a formula is no name: leave the annotation out, or compute the extent in the body"
                                if "is no extent" in what else None)
