"""The search itself: which candidates are tried, in batches that do not depend on who simulates them.

A small space is tried completely. In a large one every answer is tried by itself first, then those that helped together, the best ones
first; from there on a batch is half drawn at random and half close to the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pto_wsp.auto.space import Candidate, Draw
from pto_wsp.values import dataclass

BATCH = 16
_PARENTS = 4


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate and what became of it: its cycles, or why there are none. `bound`: no schedule on its executors takes less."""

    candidate: Candidate
    cycles: int | None
    bound: int = 0
    refused: str = ""


Simulate = Callable[[Sequence[Candidate]], Sequence[Tried]]


def search(draw: Draw, budget: int, simulate: Simulate) -> Iterator[Tried]:
    """Yield what was tried, in order, the candidate that says nothing first; at most `budget` of them, each another one."""
    found: list[Tried] = []
    for batch in _batches(draw, budget, found):
        results = simulate(batch)
        found.extend(results)
        yield from results


def _batches(draw: Draw, budget: int, found: Sequence[Tried]) -> Iterator[Sequence[Candidate]]:
    """Yield what is tried next; `found` has grown by what became of it when the next batch is asked for."""
    if draw.size <= budget:
        yield from _parts(draw.all())
        return
    yield from _parts([draw.first(), *draw.alone()][:budget])
    seen = {one.candidate for one in found}
    yield [candidate for candidate in draw.together([one.candidate for one in _helped(found)]) if candidate not in seen][
        :budget - len(found)]
    while batch := _next_batch(draw, found, min(BATCH, budget - len(found))):
        yield batch


def _parts(candidates: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    return (candidates[at:at + BATCH] for at in range(0, len(candidates), BATCH))


def best_of(tried: Sequence[Tried]) -> Tried:
    """Return the one of least cycles; of equals the one that says least, then the first."""
    return min((one for one in tried if one.cycles is not None), key=_rank)


def _rank(tried: Tried) -> tuple[int, int]:
    return (tried.cycles or 0, sum(1 for place in tried.candidate.places if place))


def _helped(found: Sequence[Tried]) -> list[Tried]:
    """Return those that take less than the first, the least first."""
    usual = found[0].cycles
    return sorted((one for one in found if one.cycles is not None and usual is not None and one.cycles < usual), key=_rank)


def _next_batch(draw: Draw, found: Sequence[Tried], size: int) -> list[Candidate]:
    """Return candidates that have not been tried; fewer when drawing finds no more."""
    seen = {one.candidate for one in found}
    parents = sorted((one for one in found if one.cycles is not None), key=_rank)[:_PARENTS]
    batch: list[Candidate] = []
    for turn in range(20 * max(0, size)):
        if len(batch) == size:
            break
        candidate = draw.near(parents[turn // 2 % len(parents)].candidate) if turn % 2 and parents else draw.any()
        if candidate not in seen:
            seen.add(candidate)
            batch.append(candidate)
    return batch
