"""Open the bodies of a branch by `with`: the results of pto.when, pto.otherwise, tt.when and tt.otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType, UnionType
from typing import NoReturn, Protocol

from pto_wsp.errors import PtoError, SymbolicControlError
from pto_wsp.ir.scalar import Scalar, print_scalar
from pto_wsp.source import Span, here, user_frame
from pto_wsp.trace.bytecode import LoopCarried, carried_variable, held_by_names, left_early
from pto_wsp.values import dataclass


class AwaitedWiths:
    """The context managers that calls in a body have returned and no `with` has opened yet."""

    def __init__(self) -> None:
        self._spans: list[tuple[object, Span]] = []

    def add(self, manager: object, span: Span) -> None:
        """Await the `with` of a context manager that the call at `span` returns."""
        self._spans.append((manager, span))

    def opened(self, manager: object) -> None:
        """Record that a `with` has opened a context manager."""
        self._spans = [(each, span) for each, span in self._spans if each is not manager]

    def check(self) -> None:
        """Raise K103 for the first context manager that no `with` has opened."""
        for manager, span in self._spans:
            raise SymbolicControlError(f"`{manager!r}` stands without a `with`", span, expected=f"with {manager!r}: ...",
                                       found="a statement of its own")


class BranchBodies(Protocol):
    """The bodies of a function being traced, as far as branches concern them."""

    awaited: AwaitedWiths

    def open_branch(self, condition: Scalar | None) -> int | None:
        """Start a body and return its id. `condition` None: the second body of the branch just before; None if there is no such branch."""

    def close_branch(self, body: int, *, early: bool) -> object:
        """End a body. `early`: it was left before its end.

        Raises: K103 if `early`, or if an inner loop was left by break or return.
        """


@dataclass(frozen=True, slots=True)
class BranchKind:
    """The branches of kernels, or of functions on tensors.

    `module`: "pto" or "tt"; `tracked`: types of the variables that no body may read and then assign; `check_carried`: raises K109 for
    such a variable; `error`: the error of an `otherwise` without its `when`.
    """

    module: str
    tracked: UnionType
    check_carried: Callable[[LoopCarried | None, str, str], None]
    error: type[PtoError]


class BranchSide:
    """One side of a branch, which `with` opens; `condition` None: the second side of the branch before."""

    __slots__ = ("_bodies", "_condition", "_kind", "_opened")

    def __init__(self, kind: BranchKind, bodies: BranchBodies, condition: Scalar | None) -> None:
        self._kind = kind
        self._bodies = bodies
        self._condition = condition
        self._opened: list[tuple[int, int, Mapping[str, object]]] = []   # open bodies: (id, bytecode offset, variables)
        bodies.awaited.add(self, here())

    def __enter__(self) -> None:
        self._bodies.awaited.opened(self)
        body = self._bodies.open_branch(self._condition)
        if body is None:
            name = self._kind.module
            raise self._kind.error(f"`{name}.otherwise()` does not stand directly after a `with {name}.when(...)`", here(),
                                   help="nothing may come between the two sides; a second condition is nested: "
                                        f"with {name}.otherwise(): with {name}.when(c): ...")
        frame = user_frame()
        self._opened.append((body, frame.f_lasti, held_by_names(frame, self._kind.tracked)))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        body, entered_at, before = self._opened.pop()
        if kind is None:
            frame = user_frame()
            self._bodies.close_branch(body, early=left_early(frame, entered_at))
            self._kind.check_carried(carried_variable(frame, entered_at, frame.f_lasti, before), "branch", "whether it runs or not")

    def __bool__(self) -> NoReturn:
        raise self._kind.error(f"`{self!r}` opens a body, it is no truth value", here(), expected=f"with {self!r}: ...")

    def __repr__(self) -> str:
        name = self._kind.module
        return f"{name}.otherwise()" if self._condition is None else f"{name}.when({print_scalar(self._condition)})"
