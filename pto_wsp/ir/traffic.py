"""Define `Collective`: the number of bytes that a collective of a workload sends, as an expression.

>>> w.collectives[0].bytes_sent(0), w.collectives[0].formula
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pto_wsp.ir import scalar as s
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, as_scalar
from pto_wsp.source import Span
from pto_wsp.values import dataclass

Sent: TypeAlias = Callable[[Sequence["int | Symbolic"]], Any]     # a whole number, or a scalar of the positions


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """A collective of a workload: its kind (allreduce, …), algorithm, mesh axis, tensor, and the user's line."""

    name: str
    algorithm: str
    mesh: Mesh
    axis: str
    tensor: str
    sent: Sent
    span: Span

    @property
    def formula(self) -> str:
        """The bytes that a rank sends to others, in terms of its position along the axes of the mesh."""
        return print_scalar(as_scalar(self.sent([Symbolic(s.Var(name, number)) for number, (name, _) in enumerate(self.mesh.axes)])))

    def bytes_sent(self, rank: int) -> int:
        """Return the bytes that a rank sends to others.

        Raises: M102 for a rank that the mesh does not have.
        """
        node = as_scalar(self.sent(self.mesh.coordinates(rank)))
        return int(s.evaluate(node, lambda leaf: leaf.value if isinstance(leaf, s.Const) else 0))

    @property
    def total(self) -> int:
        """The bytes that all ranks send."""
        return sum(map(self.bytes_sent, range(self.mesh.size)))

    def __repr__(self) -> str:
        return f"{self.name}({self.tensor}, {self.axis!r}, {self.algorithm}): {self.formula} bytes a rank"
