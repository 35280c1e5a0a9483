"""Run one program from any number of threads at once: each run has an engine, and memory between tasks, of its own.

`Program.run` binds by name, checks what it binds, and takes one run at a time. A call of a jit function has checked its arrays already, by
their layout, and knows the slot of each: it gives the bindings themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from pto_wsp.api.bindings import run_shape
from pto_wsp.api.program import Program, interrupts_as_usual
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.progress import is_visible, step
from pto_wsp.run.bound import MADE, Array, Bindings, Number, RunMemory, layout_of
from pto_wsp.run.interpreter import Interpreter
from pto_wsp.run.native import Engine
from pto_wsp.run.prints import run_text
from pto_wsp.values import dataclass

ArrayLayout: TypeAlias = tuple[object, ...]     # as `layout_of` gives it

_MOST_IDLE = 8                   # states that are kept for later runs
_SMALL_SCRATCH = 1 << 22         # bytes of memory between tasks up to which a second state is kept: results lie at two places in turn


@dataclass(slots=True, eq=False)
class _RunState:
    """The state of one run at a time: an engine or an interpreter, and the memory between tasks by slot."""

    runner: Engine | Interpreter
    scratch: dict[int, tuple[Array, ArrayLayout]] = field(default_factory=dict)
    last: tuple[object, ...] = ()      # the layouts and numbers of its last run, without those of its own memory


@dataclass(frozen=True, slots=True, eq=False)
class RunShape:
    """What runs at the same extents have alike. `symbols`: by slot; `scratch`: slot and shape of each tensor between tasks."""

    symbols: tuple[Number, ...]
    scratch: tuple[tuple[int, tuple[int, ...]], ...]


class ProgramRuns:
    """The runs of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.plan: TaskPlan = program.plan
        self.slots: Mapping[str, int] = {slot.ref.name: k for k, slot in enumerate(self.plan.tensors) if not slot.fresh}
        self.symbols: Mapping[str, int] = {symbol.name: k for k, symbol in enumerate(self.plan.symbols)}
        self._runner = program.compiled.to_run()
        self._made = program.scratch
        self._idle: list[_RunState] = []
        self._n_states = 0
        self._alone = threading.Lock() if program.compiled.options.sanitize else None      # a sanitized run knows its memory
        self._changing = threading.Lock()
        self._sanitized: dict[int, tuple[Array, ArrayLayout]] = {
            slot: (array, layout_of(array)) for slot, array in program.wrapped.items() if slot in self._made}
        kept = program.wrapped      # constants among them
        self._blank = tuple(MADE if slot.fresh else kept.get(k) for k, slot in enumerate(self.plan.tensors))
        self._blank_layouts: tuple[ArrayLayout, ...] = tuple(() if array is None else layout_of(array) for array in self._blank)
        self._apart = tuple(range(len(self.plan.tensors)))

    @property
    def is_watched(self) -> bool:
        """Whether the program is compiled with sanitize=True."""
        return self._alone is not None

    def shape_of(self, values: Mapping[str, Number]) -> RunShape:
        """Return what runs with these values of the plan's symbols have alike.

        Raises: R102 for an extent that is negative or fits no memory.
        """
        symbols = tuple(values[symbol.name] for symbol in self.plan.symbols)
        scratch: list[tuple[int, tuple[int, ...]]] = []
        for slot, sizes in self._made.items():
            shape = run_shape(self.plan, slot, sizes, symbols) if sizes else None
            scratch.append((slot, self.plan.tensors[slot].ref.shape if shape is None else shape))
        return RunShape(symbols, tuple(scratch))

    def run(self, shape: RunShape, symbols: tuple[Number, ...], given: Sequence[tuple[int, Array, ArrayLayout]]) -> None:
        """Run the program and wait. `given`: slot, array and its layout; no array that is written shares memory with another one.

        Raises: the errors of a run.
        """
        if self._alone is not None:
            with self._alone:
                self._run(self._runner, self._bound(_RunState(self._runner, self._sanitized), shape, symbols, given))
            return
        key = (tuple([layout for _, _, layout in given]), symbols)
        state = self._take(key)
        try:
            self._run(state.runner, self._bound(state, shape, symbols, given))
            state.last = key
        finally:
            with self._changing:
                if len(self._idle) < _MOST_IDLE:
                    self._idle.append(state)
                else:
                    self._n_states -= 1

    def _bound(self, state: _RunState, shape: RunShape, symbols: tuple[Number, ...],
               given: Sequence[tuple[int, Array, ArrayLayout]]) -> Bindings:
        arrays, layouts = list(self._blank), list(self._blank_layouts)
        for slot, array, layout in given:
            arrays[slot], layouts[slot] = array, layout
        for slot, extents in shape.scratch:
            arrays[slot], layouts[slot] = self._scratch(state, slot, extents)
        bound: tuple[Array, ...] = tuple(arrays)  # type: ignore[arg-type]
        return Bindings(bound, symbols, self._apart, tuple(layouts))

    def _take(self, key: tuple[object, ...]) -> _RunState:
        """Return a state that no other run uses: the state whose last run had the same memory, which makes no task anew."""
        with self._changing:
            for place, state in enumerate(self._idle):
                if state.last == key:
                    return self._idle.pop(place)
            if self._idle and (self._n_states > 1 or not self._idle[0].last or self._is_large(self._idle[0])):
                return self._idle.pop(0)      # the state that has rested longest
            self._n_states += 1
        return _RunState(self._runner.apart())

    def _is_large(self, state: _RunState) -> bool:
        return sum(array.nbytes for array, _ in state.scratch.values()) > _SMALL_SCRATCH

    def _scratch(self, state: _RunState, slot: int, extents: tuple[int, ...]) -> tuple[Array, ArrayLayout]:
        kept = state.scratch.get(slot)
        if kept is None or kept[0].shape != extents:
            array: Array = RunMemory.made(extents, self.plan.tensors[slot].ref.dtype.np)
            kept = state.scratch[slot] = (array, layout_of(array))
        return kept

    def _run(self, runner: Engine | Interpreter, bindings: Bindings) -> None:
        try:
            if threading.current_thread() is threading.main_thread() and not interrupts_as_usual():
                _run_in_thread(runner, bindings)
            elif is_visible():
                with step("run, tasks", count=runner.n_run):
                    runner.run(bindings)
            else:
                runner.run(bindings)
        finally:
            runner.let_go()
            prints = runner.take_prints()
            if prints.shown or prints.n_dropped:
                print(run_text(self.plan, prints), end="")


def _run_in_thread(runner: Engine | Interpreter, bindings: Bindings) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            runner.run(bindings)
        except BaseException as failure:   # raised in the thread that waits
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        thread.join()
    except BaseException:     # what the user's handler raises
        runner.cancel()
        thread.join()
        raise
    if failures:
        raise failures[0]
