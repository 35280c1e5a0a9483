"""Scatters through tables against brute force: programs drawn at random, every legal table of a few small numbers tried.

A proof means that no legal table lets two unordered tasks touch one row; an error means that some legal table does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Injective, Kernel, Out, P, Scalar, Tensor, Tile, Workload, combine, kernel, pto, sequential, workload
from pto_wsp.check.races.check import check_races
from pto_wsp.check.verdict import Verdict
from tests.check.races.brute_force import plan_of

I64 = DType.I64
WIDTH = 2
MOST_TABLES = 1500       # tried for one program


def is_injective(held: Sequence[int]) -> bool:
    """Tell whether a table keeps its contract: no two entries are equal, but for negative ones."""
    used = [entry for entry in held if entry >= 0]
    return len(set(used)) == len(used)


@dataclass
class Block:
    """How one kernel reaches rows: entries of a table, each times `factor` plus `offset`, as many rows as `length`."""

    form: str
    factor: int
    offset: int
    length: int
    entries: int

    def rows(self, held: tuple[int, ...]) -> set[int]:
        return {entry * self.factor + self.offset + k for entry in held for k in range(self.length)}

    @property
    def writes(self) -> bool:
        return self.form != "gather"

    def kernel(self) -> Kernel:
        """Return a kernel of this form; its parameter `way` is a part of a table, an entry, or a view of the rows themselves."""
        factor, offset, length, entries = self.factor, self.offset, self.length, self.entries
        n = entries * length

        def picked(way: Any) -> Any:
            first = pto.cast(way, I64).T * factor + offset
            return pto.concat(*[first + k for k in range(length)], axis=0) if length > 1 else first

        @kernel
        def scatter(way: In[Tile[1, entries, I64]], out: Out[Tensor]) -> None:
            pto.scatter(out, picked(way), pto.zeros((n, WIDTH), I64))

        @kernel
        def steps(way: In[Tile[1, entries, I64]], out: Out[Tensor]) -> None:
            for k in pto.range(length):
                pto.scatter(out, way.T * factor + (k + offset), pto.zeros((entries, WIDTH), I64))

        @kernel
        def block(way: In[Tile[1, 1, I64]], out: Out[Tensor]) -> None:
            pto.scatter(out, way * factor + offset + pto.iota((length, 1), axis=0, dtype=I64), pto.zeros((length, WIDTH), I64))

        @kernel
        def gather(way: In[Tile[1, entries, I64]], out: In[Tensor], sink: Out[Tile[1, 1, I64]]) -> None:
            rows = [pto.gather(out, way.T * factor + (k + offset), cols=WIDTH) for k in range(length)]
            pto.store(sink, pto.colsum(pto.rowsum(rows[0])))

        @kernel
        def offset_store(way: Scalar[I64], out: Out[Tensor]) -> None:
            pto.store(out, pto.zeros((length, WIDTH), I64), (way * factor + offset, 0))

        @kernel
        def view(way: Out[Tile[length, WIDTH, I64]]) -> None:
            pto.store(way, pto.zeros((length, WIDTH), I64))

        return {"scatter": scatter, "steps": steps, "block": block, "gather": gather, "offset": offset_store, "view": view}[self.form]


@dataclass
class Use:
    """One task site: a block, the table that it goes through, and the first entry of each task as `times` * (j // `apart`) + `first`."""

    block: Block
    table: int
    times: int
    apart: int
    first: int

    def begin(self, j: Any) -> Any:
        return (j // self.apart) * self.times + self.first

    def rows(self, j: int, tables: tuple[tuple[int, ...], ...]) -> set[int]:
        begin = self.begin(j)
        return self.block.rows(tables[self.table][begin:begin + self.block.entries])


class Drawing:
    """A program: uses in one parallel loop, in two such loops in order, or in two sides."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.n_tasks = rng.randint(2, 3)
        self.extent = rng.randint(3, 6)
        self.injective = [rng.random() < 0.85 for _ in range(2)]
        self.shape = rng.choice(("loop", "loop", "loop", "loops", "sides"))
        self.uses = [self._use(0)]
        if self.shape != "loop" or rng.random() < 0.3:
            behind = self.uses[0].begin(self.n_tasks) if rng.random() < 0.5 else 0
            self.uses.append(self._use(min(behind, self.extent - 2)))
        self.out = Tensor(np.zeros((64, WIDTH), np.int64), name="OUT")
        self.tables = []
        for number, injective in enumerate(self.injective):
            table = Tensor(np.arange(self.extent), name=f"table{number}")
            self.tables.append(Injective(table) if injective else table)

    def _use(self, least: int) -> Use:
        rng = self.rng
        form = rng.choice(("scatter", "scatter", "steps", "block", "gather", "offset", "view"))
        while True:
            entries = rng.randint(1, 2) if form in ("scatter", "steps", "gather") else 1
            length = 1 if form in ("scatter", "gather") else rng.randint(1, 3)
            factor = length if rng.random() < 0.7 else rng.randint(1, 3)
            block = Block(form, factor, rng.choice((0, 0, 1)), length, entries)
            table, times = rng.choice((0, 0, 0, 1)), entries if rng.random() < 0.8 else rng.randint(0, 2)
            use = Use(block, table, times, 1 if rng.random() < 0.85 else 2, rng.choice((least, least, rng.randint(0, 2))))
            if all(use.begin(j) + entries <= self.extent for j in range(self.n_tasks)):
                return use
            least = 0

    def trace(self) -> Workload:
        sink = Tensor(np.zeros((len(self.uses), self.n_tasks, 1, 1), np.int64), name="SINK")

        def call(number: int, j: Any) -> None:
            use, table = self.uses[number], self.tables[self.uses[number].table]
            block, begin, made = use.block, use.begin(j), use.block.kernel()
            if block.form == "view":
                row = table[begin] * block.factor + block.offset
                made[j](way=self.out[row:row + block.length])
            elif block.form == "offset":
                made[j](way=table[begin], out=self.out)
            elif block.form == "gather":
                made[j](way=table[begin:begin + block.entries], out=self.out, sink=sink[number, j])
            else:
                made[j](way=table[begin:begin + block.entries], out=self.out)

        def loop(numbers: Iterable[int]) -> Callable[[], None]:
            def body() -> None:
                for j in P(self.n_tasks, names=("j",)):
                    for number in numbers:
                        call(number, j)
            return body

        numbers = range(len(self.uses))
        if self.shape == "loop":
            return workload(loop(numbers))()
        sides = [workload(loop([number]))() for number in numbers]
        return (combine if self.shape == "sides" else sequential)(*sides)

    def contents(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Yield legal tables of small numbers: all of one table, if they are few, then drawn ones."""
        used = {use.table for use in self.uses}
        values = range(-1, self.extent)
        first = min(used)
        if len(used) == 1:
            for held in product(values, repeat=self.extent) if self.extent < 5 else ():
                if not self.injective[first] or is_injective(held):
                    yield held, held
        for _ in range(MOST_TABLES):
            yield tuple(self._table(values, injective) for injective in self.injective)

    def _table(self, values: Sequence[int], injective: bool) -> tuple[int, ...]:
        while True:
            held = tuple(self.rng.sample([*values, -1], self.extent) if injective else self.rng.choices(values, k=self.extent))
            if self.rng.random() < 0.1 or -1 not in held:
                return held

    def touches(self) -> bool:
        """Tell whether some legal tables let two unordered tasks touch one row, both of which stay inside."""
        return any(self._touch(tables) for tables in self.contents())

    def _touch(self, tables: tuple[tuple[int, ...], ...]) -> bool:
        for a, first in enumerate(self.uses):
            for b, second in enumerate(self.uses[a:], a):
                if (not first.block.writes and not second.block.writes) or (a != b and self.shape == "loops"):
                    continue
                for i in range(self.n_tasks):
                    for j in range(self.n_tasks):
                        unordered = i != j if a == b or self.shape == "loop" else True
                        ours, theirs = first.rows(i, tables), second.rows(j, tables)
                        if unordered and ours & theirs and min(*ours, *theirs) >= 0:
                            return True
        return False


def verdicts(seeds: Iterable[int]) -> Counter[tuple[Verdict, bool]]:
    """Count programs by verdict and by whether a legal table makes tasks touch; a wrong verdict raises AssertionError."""
    counts: Counter[tuple[Verdict, bool]] = Counter()
    for seed in seeds:
        drawn = Drawing(seed)
        found = {each.verdict for each in check_races(plan_of(drawn.trace())).findings if "`OUT`" in each.check}
        if not found:      # nothing is written
            continue
        verdict = next(one for one in (Verdict.COUNTEREXAMPLE, Verdict.NOT_PROVED, Verdict.PROVED) if one in found)
        touches = drawn.touches()
        counts[verdict, touches] += 1
        assert (verdict, touches) not in ((Verdict.PROVED, True), (Verdict.COUNTEREXAMPLE, False)), (
            seed, drawn.shape, drawn.n_tasks, drawn.injective, drawn.uses)
    return counts


def check_counts(counts: Counter[tuple[Verdict, bool]]) -> None:
    """Raise AssertionError where programs that never touch are left open, or the programs are no test."""
    assert counts[Verdict.NOT_PROVED, False] <= 0.05 * counts.total(), counts
    assert counts[Verdict.PROVED, False] > 0.25 * counts.total() and counts[Verdict.COUNTEREXAMPLE, True] > 0.2 * counts.total(), counts


@pytest.mark.slow
def test_scatters_are_proved_where_no_table_touches() -> None:
    check_counts(verdicts(range(40)))


@pytest.mark.slow
def test_many_scatters_are_proved_where_no_table_touches() -> None:
    check_counts(verdicts(range(1_000, 1_150)))
