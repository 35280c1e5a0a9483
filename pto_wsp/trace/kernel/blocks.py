"""Keep the bodies of a kernel being traced: loops and branches open and close them, statements go into the innermost.

Each body knows what has certainly been written at its current point: a loop that may not run, and one side of a branch, add nothing to the
body around.
"""

from __future__ import annotations

from dataclasses import field
from typing import NoReturn

from pto_wsp.errors import BufferMisuseError, DepthError, unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.source import Span, here
from pto_wsp.trace.branch import AwaitedWiths
from pto_wsp.trace.bytecode import left_early_error
from pto_wsp.values import dataclass

MOST_NESTED = 64     # nested loops and branches: every traversal of a body recurses


@dataclass(slots=True)
class TracedBlock:
    """A body being written. `written`: buffers and Out parameters that are certainly written at this point.

    `opener`: the loop or branch of the body; None for the kernel. `first`: in the body of a branch's second side, what the first side
    wrote.
    `ended`: the branch that ended last in this body, and what its first side wrote.
    """

    id: int
    opener: k.For | k.If | None = None
    stmts: list[k.Stmt] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    first: set[str] | None = None
    ended: tuple[k.If, set[str]] | None = None


class Blocks:
    """The open bodies, the kernel's first."""

    def __init__(self) -> None:
        self.open = [TracedBlock(0)]
        self._kinds = ["kernel"]
        self.awaited = AwaitedWiths()
        self._n_vars = 0

    @property
    def innermost(self) -> TracedBlock:
        """The body that statements are appended to."""
        return self.open[-1]

    def append(self, stmt: k.Stmt) -> None:
        """Append a statement to the body being written."""
        self.innermost.stmts.append(stmt)

    def is_open(self, block: int) -> bool:
        """Tell whether the body of that id is open."""
        return any(each.id == block for each in self.open)

    def kind(self, block: int) -> str:
        """Return the kind of a body, by id: "kernel", "loop" or "branch"."""
        return self._kinds[block]

    def made_at(self, value: k.Value) -> Span | None:
        """Return where a value was made; None if it was made in no open body."""
        bodies = [tuple(block.stmts) for block in self.open]
        bodies += [block.opener.then for block in self.open if isinstance(block.opener, k.If)]
        return next((stmt.span for body in bodies for stmt in walk(body) if isinstance(stmt, k.Compute | k.Load | k.Read)
                     and stmt.result.id == value.id), None)

    @property
    def open_vars(self) -> frozenset[s.Var]:
        """The variables of the open loops."""
        return frozenset(block.opener.var for block in self.open if isinstance(block.opener, k.For))

    def _push(self, opener: k.For | k.If, kind: str) -> None:
        if len(self.open) > MOST_NESTED:
            raise DepthError(f"more than {MOST_NESTED} loops and branches stand in each other", opener.span,
                             help="compute several indices from one loop, i // n and i % n; join conditions with &")
        self.open.append(TracedBlock(len(self._kinds), opener, written=set(self.innermost.written)))
        self._kinds.append(kind)

    # -- loops ---------------------------------------------------------------------------------------------------------

    def open_loop(self, name: str, bounds: tuple[s.Scalar, s.Scalar, s.Scalar], span: Span) -> s.Var:
        """Start the body of a loop; return its variable."""
        var = s.Var(name, self._n_vars)
        self._n_vars += 1
        self._push(k.For(var, *bounds, body=(), span=span), "loop")
        return var

    def close_loop(self, var: s.Var) -> None:
        """End the body of the loop of `var`.

        Raises: K103 if an inner loop was left by break or return.
        """
        block, loop = self.innermost, self.innermost.opener
        if not isinstance(loop, k.For) or loop.var != var:
            self._refuse_exit()
        self.open.pop()
        self.append(k.For(loop.var, loop.start, loop.stop, loop.step, tuple(block.stmts), loop.span))
        if isinstance(loop.start, s.Const) and isinstance(loop.stop, s.Const) and loop.start.value < loop.stop.value:
            self.innermost.written |= block.written

    # -- branches ------------------------------------------------------------------------------------------------------

    def open_branch(self, condition: s.Scalar | None, span: Span | None = None) -> int | None:
        """Start a body of a branch; return the body's id.

        `condition` None: the body for a false condition of the branch that has just ended; None if no branch has just ended.
        """
        if condition is not None:
            self._push(k.If(condition, (), (), span or here()), "branch")
            return self.innermost.id
        enclosing = self.innermost
        if enclosing.ended is None or not enclosing.stmts or enclosing.stmts[-1] is not enclosing.ended[0]:
            return None
        branch, first = enclosing.ended
        enclosing.stmts.pop()
        self._push(branch, "branch")
        self.innermost.first = first
        return self.innermost.id

    def close_branch(self, body: int, *, early: bool) -> None:
        """End the body of a branch. `early`: it was left before its end.

        Raises: K103 if `early`, or if an inner loop was left by break or return.
        """
        block, branch = self.innermost, self.innermost.opener
        if not isinstance(branch, k.If) or block.id != body or early:
            self._refuse_exit()
        self.open.pop()
        enclosing = self.innermost
        if block.first is None:
            branch = k.If(branch.condition, tuple(block.stmts), (), branch.span)
            enclosing.ended = (branch, block.written)
        else:
            branch = k.If(branch.condition, branch.then, tuple(block.stmts), branch.span)
            enclosing.ended = None
            enclosing.written |= block.first & block.written
        self.append(branch)

    # -- end of the body -----------------------------------------------------------------------------------------------

    def finish(self) -> tuple[k.Stmt, ...]:
        """Return the statements of the kernel.

        Raises: K103 if a loop was left by break or return, or a condition was never opened by `with`.
        """
        if len(self.open) > 1:
            self._refuse_exit()
        self.awaited.check()
        return tuple(self.innermost.stmts)

    def _refuse_exit(self) -> NoReturn:
        """Raise K103 for the innermost body, which was left early."""
        match self.innermost.opener:
            case k.For(var) as loop:
                raise left_early_error(f"the loop over `{var.name}` was left by break or return", loop.span,
                                           help="the body is traced once, for all iterations: bound the loop, pto.range(n), or "
                                                "choose elements with pto.where(mask, a, b)")
            case k.If(condition) as branch:
                raise left_early_error(f"the branch on `{print_scalar(condition)}` was left early", branch.span,
                                           help="both sides are traced, so break, continue, return and exceptions have no meaning "
                                                "in them; put what is not to run into `with pto.otherwise():`")
            case None:
                unreachable("end of a body")


def check_buffers_change(body: tuple[k.Stmt, ...]) -> None:
    """Check that a buffer allocated before a loop and read in it is written somewhere.

    Raises: K106 for a buffer that nothing writes.
    """
    written = {stmt.buffer.id for stmt in walk(body) if isinstance(stmt, k.Write | k.WritePart)}
    for loop in (stmt for stmt in walk(body) if isinstance(stmt, k.For)):
        own = {stmt.buffer.id for stmt in walk(loop.body) if isinstance(stmt, k.Alloc)}
        for stmt in walk(loop.body):
            if isinstance(stmt, k.Read) and stmt.buffer.id not in written | own:
                name = stmt.buffer.name
                raise BufferMisuseError(f"buffer `{name}` is read in a loop and never written: it holds its init in every iteration",
                                        stmt.span, help=f"write it in place: {name} += ..., or {name}[:] = ...; `{name} = ...` gives the "
                                        "name to another value, and a constant is pto.full(shape, value, dtype)")
