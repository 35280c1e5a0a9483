"""Run tile programs with pipes that run ahead and behind as their flags allow: the ground truth for passes and checks.

Memory is cells of 32 bytes that hold numbers; an instruction writes to every cell of its results a number mixed from the cells that it
reads. Pipe V has several instructions on the way, which read and write early or late; flags are up or down, and setting one that is
up is a fault. `in_order` is the meaning: one step after the other, every buffer for itself.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pto_wsp.ir.scalar import Number, Scalar, Var, evaluate
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.tile_program import Pipe

Cell = tuple[object, ...]
CELL_BYTES = 32
IGNORED_SCRATCH = "TROWSUM"        # its last operand is scratch: written, and what it held does not count


class Fault(Exception):
    """What a run did that no program may do."""


@dataclass
class Task:
    """What one pipe is given: work on cells, or a flag to set or to await, or a barrier."""

    pipe: Pipe
    kind: str
    reads: tuple[Cell, ...] = ()
    writes: tuple[Cell, ...] = ()
    salt: int = 0
    flag: tuple[Pipe, Pipe, int] | None = None
    seen: tuple[int, ...] = ()
    reads_late: bool = False
    started: bool = False


@dataclass
class Issuer:
    """Turns a program into tasks in program order. `leaf`: the values of parameters' extents and scalars."""

    program: tp.TileProgram
    leaf: Callable[[Scalar], Number]
    planned: bool
    vars: dict[Var, Number] = field(default_factory=dict)
    copy: dict[int, int] = field(default_factory=dict)        # bytes from the start of the buffer
    salt: int = 0

    def tasks(self) -> list[Task]:
        """Return all tasks."""
        return list(self._block(self.program.body))

    def _value(self, node: Scalar) -> int:
        return int(evaluate(node, lambda leaf: self.vars[leaf] if isinstance(leaf, Var) else self.leaf(leaf)))

    def _block(self, body: tuple[tp.Step, ...]) -> Iterator[Task]:
        for step in body:
            match step:
                case tp.BindTile(tile, turn, shift):
                    buffer = self.program.buffer(self.program.tile(tile).buffer)
                    copy = self._value(turn) % buffer.copies if self.planned else 0
                    self.copy[tile] = copy * buffer.size_bytes + self._value(shift)
                case tp.Let(var, value):
                    self.vars[var] = self._value(value)
                case tp.For(var, start, stop, by, inner):
                    for at in range(self._value(start), self._value(stop), self._value(by)):
                        self.vars[var] = at
                        yield from self._block(inner)
                case tp.If(condition, then, other):
                    yield from self._block(then if self._value(condition) else other)
                case tp.Leave(condition):
                    if self._value(condition):
                        return
                case tp.SetFlag(after, before, event):
                    yield Task(after, "set", flag=(after, before, self._value(event)))
                case tp.WaitFlag(after, before, event):
                    yield Task(before, "wait", flag=(after, before, self._value(event)))
                case tp.Barrier(pipe):
                    yield Task(pipe, "barrier")
                case _:
                    yield self._work(step)

    def _work(self, step: tp.Step) -> Task:
        pipe = tp.pipe_of(step, self.program)
        assert pipe is not None
        reads: list[Cell] = []
        writes: list[Cell] = []
        uses = tp.uses_of(step)
        for at, arg in enumerate(uses):
            cells = self._cells(arg.tile)
            scratch = isinstance(step, tp.Instr) and step.name == IGNORED_SCRATCH and at == len(uses) - 1
            if arg.access.reads and not scratch:
                reads += cells
            if arg.access.writes:
                writes += cells
        match step:
            case tp.GmLoad(tile, param, row, col, turned):
                reads += self._rect(param, row, col, tile, turned)
            case tp.GmStore(param, tile, row, col, turned):
                writes += self._rect(param, row, col, tile, turned)
            case tp.Peek(var) | tp.GmPeek(var):
                self.vars[var] = 0
                if isinstance(step, tp.GmPeek):
                    reads += [("gm", step.param, self._value(step.row), self._value(step.col) // 8)]
                writes.append(("log", self.salt))
            case _:
                pass
        self.salt += 1
        return Task(pipe, "work", tuple(reads), tuple(writes), self.salt)

    def _cells(self, tile_id: int) -> list[Cell]:
        tile = self.program.tile(tile_id)
        buffer = self.program.buffer(tile.buffer)
        first = self.copy[tile_id] + tile.offset
        if self.planned:
            assert buffer.address is not None
            first += buffer.address
        home: Cell = (buffer.space.value,) if self.planned else (buffer.space.value, buffer.id)
        return [(*home, at) for at in range(first // CELL_BYTES, -(-(first + tile.size_bytes) // CELL_BYTES))]

    def _rect(self, param: str, row: Scalar, col: Scalar, tile_id: int, turned: bool) -> list[Cell]:
        tile = self.program.tile(tile_id)
        first, start = self._value(row), self._value(col)
        rows, cols = self._value(tile.valid_rows), self._value(tile.valid_cols)
        if turned:
            rows, cols = cols, rows
        return [("gm", param, r, c) for r in range(first, first + rows) for c in range(start // 8, -(-(start + cols) // 8))]


Memory = dict[Cell, int]
Result = Mapping[Cell, int]


def _read(memory: Memory, task: Task) -> tuple[int, ...]:
    return tuple(memory.get(cell, 0) for cell in task.reads)


def _write(memory: Memory, task: Task) -> None:
    for at, cell in enumerate(task.writes):
        memory[cell] = hash((task.salt, at, task.seen))


def _outputs(memory: Memory) -> Result:
    return {cell: value for cell, value in memory.items() if cell[0] in ("gm", "log")}


def in_order(program: tp.TileProgram, leaf: Callable[[Scalar], Number]) -> Result:
    """Return what the program leaves in global memory, and what it peeked at: one step after the other, buffers apart."""
    memory: Memory = {}
    for task in Issuer(program, leaf, planned=False).tasks():
        if task.kind == "work":
            task.seen = _read(memory, task)
            _write(memory, task)
    return _outputs(memory)


def adversarial(program: tp.TileProgram, leaf: Callable[[Scalar], Number], seed: int) -> Result:
    """Return the same for pipes that run as the seed says; as soon as pipe S is through, the kernel has ended.

    Raises: Fault for a deadlock, a flag set twice, and flags that are up at the end.
    """
    chance = random.Random(seed)
    queues: dict[Pipe, deque[Task]] = {pipe: deque() for pipe in Pipe}
    for task in Issuer(program, leaf, planned=True).tasks():
        task.reads_late = task.pipe is Pipe.V and chance.random() < 0.5
        queues[task.pipe].append(task)
    weight = {pipe: chance.choice((1, 3, 30)) for pipe in Pipe}
    weight[Pipe.S] = 1000
    flying: dict[Pipe, list[Task]] = {pipe: [] for pipe in Pipe}
    flags: set[tuple[Pipe, Pipe, int]] = set()
    memory: Memory = {}
    ended: Result | None = None if queues[Pipe.S] else {}
    depth = chance.choice((1, 2, 4))

    def ready(pipe: Pipe) -> bool:
        if not queues[pipe]:
            return False
        task = queues[pipe][0]
        if task.kind == "wait":
            return task.flag in flags
        if task.kind in ("set", "barrier"):
            return not flying[pipe]
        return len(flying[pipe]) < (1 if pipe in (Pipe.M, Pipe.S) else depth)

    while any(queues.values()) or any(flying.values()):
        choices = [(pipe, "start") for pipe in Pipe if ready(pipe)] + [(pipe, "finish") for pipe in Pipe if flying[pipe]]
        if not choices:
            raise Fault(f"deadlock: {[(pipe.name, queue[0].flag) for pipe, queue in queues.items() if queue]}")
        pipe, what = chance.choices(choices, [weight[pipe] for pipe, _ in choices])[0]
        if what == "finish":
            task = flying[pipe].pop(chance.randrange(len(flying[pipe])))
            if task.reads_late:
                task.seen = _read(memory, task)
            _write(memory, task)
        else:
            task = queues[pipe].popleft()
            if task.kind == "work":
                if not task.reads_late:
                    task.seen = _read(memory, task)
                flying[pipe].append(task)
            elif task.kind == "set":
                assert task.flag is not None
                if task.flag in flags:
                    raise Fault(f"{task.flag} is set again before it was awaited")
                flags.add(task.flag)
            elif task.kind == "wait":
                assert task.flag is not None
                flags.remove(task.flag)
        if ended is None and not queues[Pipe.S] and not flying[Pipe.S]:
            ended = _outputs(memory)
    if flags:
        raise Fault(f"{flags} are up at the end")
    return ended or {}
