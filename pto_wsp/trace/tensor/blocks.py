"""Keep the bodies of a function on tensors while it is traced: loops and branches open and close them, statements go into the innermost."""

from __future__ import annotations

from dataclasses import field
from typing import NoReturn, TypeAlias

from pto_wsp.errors import DepthError
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.scalar import Scalar, Var
from pto_wsp.source import Span, here
from pto_wsp.trace.branch import AwaitedWiths
from pto_wsp.trace.bytecode import left_early_error
from pto_wsp.trace.tensor.value import Storage, TakenCopy
from pto_wsp.values import dataclass

MOST_NESTED = 64     # loops and branches: every traversal of a body recurses


@dataclass(slots=True)
class TracedLoop:
    """The loop that a body belongs to."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    ordered: bool
    note: tf.BodyNote
    span: Span


@dataclass(slots=True)
class TracedBranch:
    """The side of a branch that a body belongs to: the first has a condition, the second (None) joins the choice before it."""

    condition: Scalar | None
    note: tf.BodyNote
    span: Span


Opener: TypeAlias = TracedLoop | TracedBranch | None


@dataclass(slots=True)
class TracedBody:
    """A body being written. `written`: storages written in it. `taken`: copies of older elements that it uses."""

    id: int
    opener: Opener = None
    items: list[tf.Item] = field(default_factory=list)
    written: set[Storage] = field(default_factory=set)
    taken: list[tuple[TakenCopy, Span]] = field(default_factory=list)


class TracedBodies:
    """The open bodies, the function's first."""

    def __init__(self) -> None:
        self.open = [TracedBody(0)]
        self.kinds = ["function"]
        self.loops: dict[int, TracedLoop] = {}      # every loop, by the id of its variable
        self._n_vars = 0
        self.groups: list[str] = []                 # of the open `with tt.group(...)`, the outermost first
        self.awaited = AwaitedWiths()

    @property
    def group(self) -> str:
        """The name of the innermost `with tt.group(...)`; "" outside."""
        return self.groups[-1] if self.groups else ""

    @property
    def innermost(self) -> TracedBody:
        """The body that statements are appended to."""
        return self.open[-1]

    def is_open(self, block: int) -> bool:
        """Tell whether the body of that id is open."""
        return any(each.id == block for each in self.open)

    def is_loop_open(self, var: Var) -> bool:
        """Tell whether the loop of a variable is open."""
        return any(isinstance(each.opener, TracedLoop) and each.opener.var == var for each in self.open)

    def append(self, statement: tf.Statement) -> None:
        """Append a statement to the innermost body."""
        self.innermost.items.append(flow.Do(statement))

    def open_loop(self, name: str, bounds: tuple[Scalar, Scalar, Scalar], ordered: bool) -> Var:
        """Start the body of a loop; return its variable."""
        var = Var(name, self._n_vars)
        self._n_vars += 1
        loop = TracedLoop(var, *bounds, ordered, tf.BodyNote(self.group), here())
        self.loops[var.id] = loop
        self._push(loop, "loop")
        return var

    def close_loop(self, var: Var) -> TracedBody:
        """End the body of the loop of `var`, and return it.

        Raises: K103 if an inner body was left by break or return.
        """
        body = self.innermost
        loop = body.opener
        if not isinstance(loop, TracedLoop) or loop.var != var:
            refuse_exit()
        self.open.pop()
        self.innermost.items.append(flow.Loop(loop.var, loop.start, loop.stop, loop.step, loop.ordered,
                                              flow.Sequence(tuple(body.items)), loop.note, span=loop.span))
        self._leave(body)
        return body

    def open_branch(self, condition: Scalar | None) -> int | None:
        """Start the body of one side of a branch; None where a second side does not stand behind a first."""
        if condition is None:
            items = self.innermost.items
            if not items or not isinstance(items[-1], flow.Choice) or items[-1].otherwise.items:
                return None
        self._push(TracedBranch(condition, tf.BodyNote(self.group), here()), "branch")
        return self.innermost.id

    def close_branch(self, block: int, *, early: bool) -> TracedBody:
        """End the body of a branch, and return the body. `early`: the branch was left before its end.

        Raises: K103 if `early`, or if an inner loop was left by break or return.
        """
        body = self.innermost
        side = body.opener
        if not isinstance(side, TracedBranch) or body.id != block or early:
            refuse_exit()
        self.open.pop()
        items = self.innermost.items
        inside: tf.Body = flow.Sequence(tuple(body.items))
        if side.condition is not None:
            items.append(flow.Choice((flow.Branch(side.condition, inside, side.note, side.span),), flow.Sequence()))
        else:
            first = items.pop()
            assert isinstance(first, flow.Choice)
            items.append(flow.Choice(first.branches, inside))
        self._leave(body)
        return body

    def _push(self, opener: TracedLoop | TracedBranch, kind: str) -> None:
        if len(self.open) > MOST_NESTED:
            raise DepthError(f"more than {MOST_NESTED} loops and branches stand in each other", opener.span,
                             help="join conditions with &, and loops by indices i // n and i % n")
        self.open.append(TracedBody(len(self.kinds), opener))
        self.kinds.append(kind)

    def _leave(self, body: TracedBody) -> None:
        self.innermost.written |= body.written
        self.innermost.taken += body.taken


def refuse_exit() -> NoReturn:
    """Raise the error of a traced body that break, continue or return leaves before its end.

    Raises: K103.
    """
    raise left_early_error("a traced body is left by break, continue or return", here(),
                               help="the body is traced once, for all iterations: put what may not "
                               "run under `with tt.when(c):`")
