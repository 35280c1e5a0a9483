"""Trace rings: channels of buffers, which a process fills and another one reads, with credits for the buffers that are free.

>>> tiles = Ring((64, 64), DType.F32, slots=2, name="tiles")
>>> with P.pipe():
...     for i in P.seq(n):
...         with produce(tiles) as tile:
...             load[i](x=X[i], out=tile)
...     with consume(tiles) as tile:
...         scale(x=tile, out=...)

A ring is two channels and a tensor, and `produce` and `consume` are statements of these. Token number k of `full` is sent when buffer
k mod slots has been filled, and carries k; a token is sent to `free` before a buffer is filled, and received when it has been read.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NoReturn

from pto_wsp.calls import user_calls
from pto_wsp.errors import RingError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.source import Span, here, user_frame
from pto_wsp.trace.bytecode import AssignTarget, target_of
from pto_wsp.trace.workload.pipelines import MAX_PAYLOAD, Channel, Consumer, send_payload, token_numbers
from pto_wsp.trace.workload.trace import TraceScope, WorkloadTrace, current_trace, refuse_left_early
from pto_wsp.values import dataclass

MAX_SLOTS = 1 << 12
_EVERY = " and stands for every buffer"


@user_calls()
class Ring:
    """`Ring((rows, cols), dtype, slots=2)`: buffers that a producer process fills and a consumer process reads, one after the other.

    `shape`: of one buffer; `slots`: the number of buffers, 2 for a double buffer. The producer waits while no buffer is free, the consumer
    while no buffer is full; both take the buffers in the same order.
    """

    __slots__ = ("buffers", "free", "full", "slots")

    def __init__(self, shape: tuple[int, ...], dtype: DType, slots: int = 2, name: str = "ring") -> None:
        if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= MAX_SLOTS:
            raise RingError(f"ring `{name}` has a number of buffers that there is none of", here(),
                            expected=f"a whole number, 1 .. {MAX_SLOTS}", found=repr(slots))
        if not isinstance(shape, tuple | list) or not shape:
            raise RingError(f"ring `{name}` needs the shape of a buffer", here(), expected="Ring((rows, cols), dtype, slots)",
                            found=repr(shape))
        self.full, self.free = Channel(name, slots), Channel(f"{name} (free)", slots)
        self.buffers = Tensor.empty((slots, *shape), dtype, name=name)
        self.slots = slots

    @property
    def name(self) -> str:
        """The ring's name, also that of its buffers and of the channel of full ones."""
        return self.full.name

    @property
    def channels(self) -> tuple[Channel, Channel]:
        """The channel of full buffers, and the channel of credits for free ones."""
        return self.full, self.free

    def __iter__(self) -> NoReturn:
        raise RingError(f"ring `{self.name}` is no loop", here(), help=f"with consume({self.name}) as buffer: ... takes its buffers")

    def __repr__(self) -> str:
        return f"Ring({self.buffers.shape[1:]}, {self.buffers.dtype}, slots={self.slots}, name={self.name!r})"


def buffer_of(ring: Ring, token: s.Scalar) -> TensorView:
    """Return the view of the buffer of a token, by the token's number."""
    view: TensorView = ring.buffers[Symbolic(s.binary(s.Op.MOD, token, s.Const(ring.slots)))]
    return view


class RingProducer:
    """The result of `produce(ring, …)`: `with` waits for a free buffer, and sends it as full when the tasks of the body have completed."""

    __slots__ = ("_entered_at", "_first", "_numbers", "_ring", "_scope", "_span", "_token", "_trace")

    def __init__(self, trace: WorkloadTrace, ring: Ring, numbers: tuple[s.Scalar, ...], span: Span) -> None:
        self._trace, self._ring, self._numbers, self._span = trace, ring, numbers, span
        self._scope: TraceScope | None = None
        trace.awaited.add(self, span)

    def __enter__(self) -> TensorView:
        if self._trace is not current_trace("produce(...)") or self._scope is not None:
            raise RingError(f"produce({self._ring.name}) is opened where it was not made", here(),
                            help=f"write it here: with produce({self._ring.name}) as buffer: ...")
        self._trace.awaited.opened(self)
        self._entered_at = user_frame().f_lasti
        self._token = self._trace.use(token_number(self._trace, self._ring, self._span), user_frame(), self._span)
        send_payload(self._trace, self._ring.free.ref, (self._token,), (), self._span)
        self._scope = self._trace.scopes[-1]
        self._first = len(self._scope.items)
        return buffer_of(self._ring, self._token)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None or self._scope is None:
            return
        refuse_left_early(f"produce({self._ring.name})", _EVERY, self._entered_at)
        made = tuple(task.handle for item in self._scope.items[self._first:] for task in wl.tasks(item))
        if not made:
            raise RingError(f"no task fills the buffer of `{self._ring.name}`", self._span,
                            help=f"call a kernel in the body: with produce({self._ring.name}) as buffer: load[i](..., out=buffer)")
        send_payload(self._trace, self._ring.full.ref, (self._token, *self._numbers), made, self._span)

    def __repr__(self) -> str:
        return f"produce({self._ring.name})"


class RingConsumer(Consumer):
    """The result of `consume(ring)`: the body of `with` runs for every full buffer, which is free again behind it."""

    __slots__ = ("_ring",)

    def __init__(self, trace: WorkloadTrace, ring: Ring, span: Span) -> None:
        super().__init__(trace, ring.full.ref, span)
        self._ring = ring

    def _open(self, target: AssignTarget) -> Any:
        super()._open(_with_number(self._ring, target))
        self._scope.token = self._vars[0]
        return _taken(self._ring, self._vars)

    def _close(self) -> None:
        self._scope.items.append(flow.Receive(self._ring.free.ref, (), span=self._span))
        super()._close()


class RingReceiver:
    """The result of `receive(ring)`: `with` takes the next full buffer, which is free again behind the body."""

    __slots__ = ("_entered_at", "_ring", "_span", "_trace", "_vars")

    def __init__(self, trace: WorkloadTrace, ring: Ring, span: Span) -> None:
        self._trace, self._ring, self._span = trace, ring, span
        self._vars: tuple[s.Var, ...] = ()
        trace.awaited.add(self, span)

    def __enter__(self) -> Any:
        if self._trace is not current_trace("receive(...)") or self._vars:
            raise RingError(f"receive({self._ring.name}) is opened where it was not made", here(),
                            help=f"write it here: with receive({self._ring.name}) as buffer: ...")
        self._trace.awaited.opened(self)
        frame = user_frame()
        self._entered_at = frame.f_lasti
        target = _with_number(self._ring, target_of(frame))
        self._vars = tuple(self._trace.new_var(name) for name in target.names)
        self._trace.bind(self._vars)
        self._trace.append(flow.Receive(self._ring.full.ref, self._vars, span=self._span))
        return _taken(self._ring, self._vars)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            refuse_left_early(f"receive({self._ring.name})", _EVERY, self._entered_at)
            self._trace.append(flow.Receive(self._ring.free.ref, (), span=self._span))

    def __repr__(self) -> str:
        return f"receive({self._ring.name})"


def _with_number(ring: Ring, target: AssignTarget) -> AssignTarget:
    """Return the target of a token of a ring for the user's target of its buffer: the buffer's number stands in place of the buffer."""
    others = target.names[1:] if len(target.names) == target.count else tuple(f"t{k}" for k in range(1, target.count))
    return AssignTarget(len(others) + 1, (f"{ring.name}.number", *others))


def _taken(ring: Ring, variables: tuple[s.Var, ...]) -> Any:
    """Return the buffer of a token, with the numbers that came with it if there are names for them."""
    buffer, numbers = buffer_of(ring, variables[0]), tuple(map(Symbolic, variables[1:]))
    return (buffer, *numbers) if numbers else buffer


def ring_producer(ring: object, numbers: tuple[object, ...]) -> RingProducer:
    """Return the context manager that fills the next buffer of a ring; the numbers go with it.

    Raises: K105 outside a workload, W115 for what is no ring, T209 for what is no number.
    """
    trace, span = current_trace("produce(...)"), here()
    if not isinstance(ring, Ring):
        raise RingError("produce takes a ring", span, expected="a Ring", found=f"{type(ring).__name__}: {ring!r:.60}",
                        help="send(channel, task) gives to a channel")
    if len(numbers) >= MAX_PAYLOAD:
        raise RingError(f"a buffer of `{ring.name}` takes too many numbers along", span, expected=f"at most {MAX_PAYLOAD - 1}",
                        found=str(len(numbers)))
    return RingProducer(trace, ring, token_numbers(trace, ring.full.ref, numbers, user_frame(), span), span)


def ring_consumer(ring: Ring) -> RingConsumer:
    """Return the context manager that takes every full buffer of a ring in turn.

    Raises: K105 outside a workload.
    """
    return RingConsumer(current_trace("consume(...)"), ring, here())


def ring_receiver(ring: Ring) -> RingReceiver:
    """Return the context manager that takes the next full buffer of a ring.

    Raises: K105 outside a workload.
    """
    return RingReceiver(current_trace("receive(...)"), ring, here())


@dataclass(frozen=True, slots=True)
class _LoopAround:
    """A loop around the place where a ring is filled: the number of the iteration, and how many there are (None: not known)."""

    number: s.Scalar
    count: s.Scalar | None


def token_number(trace: WorkloadTrace, ring: Ring, span: Span) -> s.Scalar:
    """Return how many buffers of a ring have been filled before, as an expression of the loops of the process.

    Raises: W115 where the loops do not tell: an unordered loop, a condition, a loop whose length differs between iterations.
    """
    def refuse(why: str, help: str) -> NoReturn:
        raise RingError(f"ring `{ring.name}` is filled {why}", span, expected="P.seq(...) loops, or with consume(ring), of the process "
                           "itself, each as long in every iteration", help=help)

    begin = next((k + 1 for k in range(len(trace.scopes) - 1, -1, -1) if trace.scopes[k].is_pipe), 1)
    if begin == 1 and trace.called_in is not None:
        refuse("in a workload that another one calls", "fill it where the process is written")
    around: list[_LoopAround] = []
    for scope in trace.scopes[begin:]:
        walk = scope.walk
        if scope.token is not None:
            around.append(_LoopAround(scope.token, None))
        elif scope.choice is not None:
            refuse("under a condition", "fill a buffer in any case, and send a number that says what it is: produce(ring, kind)")
        elif walk is None or scope.var is None:
            refuse("in the body of another channel", "take from a ring there, or loop with P.seq")
        elif not scope.ordered:
            refuse("in an unordered loop", "buffers are filled one after the other: P.seq(...) in place of P(...)")
        elif walk.leads_to is not None:
            refuse("in a loop over a sparse row", "loop over positions: P.seq(n)")
        else:
            number = s.binary(s.Op.FLOORDIV, s.sub(scope.var, walk.start), walk.step)
            around.append(_LoopAround(number, s.ceil_div(s.sub(walk.stop, walk.start), walk.step)))
    position: s.Scalar = s.Const(0)
    variables = {leaf.id for each in around for leaf in s.leaves(each.number) if isinstance(leaf, s.Var)}
    for k, each in enumerate(around):
        if k and (each.count is None or any(isinstance(leaf, s.Var) and leaf.id in variables for leaf in s.leaves(each.count))):
            refuse("in a loop whose length differs between iterations", "make one loop of the two: P.seq(total)")
        position = each.number if not k else s.add(s.mul(position, each.count or s.Const(1)), each.number)
    return position
