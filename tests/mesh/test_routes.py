"""Copies over several links: cycles by hand, contention, what is shown, and drawn copies against a simulation of their own."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from pto_wsp import (
    Arch,
    Deps,
    DType,
    Mesh,
    P,
    Program,
    Replicate,
    Shard,
    TaskWindow,
    Tensor,
    TensorLayout,
    WindowMode,
    Workload,
    all_to_all,
    allreduce,
    builtin_arch,
    copy,
    timeline,
    workload,
)
from pto_wsp.errors import ArchError, DeadlockError, WindowError
from pto_wsp.run.simulator import Recorder

F32 = DType.F32
ROWS = TensorLayout.sharded(0, 2, "x")
DATA = Deps.infer_bytes_overlap()


def linked(topology: str, **more: object) -> Arch:
    return builtin_arch("unit").with_links(topology=topology, **more)


def part_of(name: str, n: int) -> Tensor:
    """Return a tensor of which each of n ranks has two rows of eight elements: 16 cycles a link."""
    return Tensor(np.arange(16 * n, dtype=np.float32).reshape(2 * n, 8), name=name, layout=ROWS)


def copies(n: int, pairs: Sequence[tuple[int, int]]) -> Workload:
    """Return a workload of copies that depend on nothing: the source and target rank of each."""
    given, taken = part_of("given", n), [part_of(f"taken{k}", n) for k in range(len(pairs))]

    @workload
    def sent() -> None:
        for _ in P(Mesh(x=n)):
            pass
        for target, (of, to) in zip(taken, pairs, strict=True):
            copy(given.on(of), target.on(to))

    return sent().task_graph(deps=DATA)


def run(w: Workload, arch: Arch) -> Program:
    return w.compile(target="interp", arch=arch).run()


def links_of(program: Program, task: int) -> list[tuple[str, int, int]]:
    """Return the links of a task, and when it was on each."""
    return [(hop.link, hop.began, hop.ended) for hop in program.explain(task).hops]


# -- by hand -----------------------------------------------------------------------------------------------------------
# A copy of 16 elements: 16 cycles a link, 5 more of latency where there is one. Of six ranks in a ring the farthest is three links away;
# up where both ways are equal.
@pytest.mark.parametrize("topology, n, pair, latency, cycles", [
    ("all", 4, (0, 2), 0, 16), ("ring", 4, (0, 1), 0, 16), ("ring", 4, (0, 2), 0, 32), ("ring", 4, (0, 3), 0, 16),
    ("ring", 4, (0, 2), 5, 42),
    ("ring", 6, (4, 1), 5, 63), ("torus", 6, (1, 5), 0, 32), ("switch", 4, (0, 1), 0, 32), ("switch", 4, (3, 0), 5, 42),
    ("switch", 2, (1, 0), 0, 32), ("ring", 2, (1, 0), 0, 16)])
def test_cycles_of_a_route(topology: str, n: int, pair: tuple[int, int], latency: int, cycles: int) -> None:
    program = run(copies(n, [pair]), linked(topology, latency_cycles=latency))
    assert (program.stats.total_cycles, program.stats.critical_path, program.stats.work) == (cycles, cycles, cycles)
    assert program.critical_path.cycles == cycles and sum(program.explain(0).chain().causes.values()) == cycles


# The way from 0 to 2 of a ring of four goes over 1. Two copies from 1 to 2 keep the link of 1 until 32; the one from 0 is there at 16.
def test_two_copies_share_a_link() -> None:
    program = run(copies(4, [(0, 2), (1, 2), (1, 2)]), linked("ring"))
    assert program.trace.end.tolist() == [48, 16, 32] and program.stats.total_cycles == 48 and program.stats.critical_path == 32
    assert links_of(program, 0) == [("rank 0 link to the next rank", 0, 16), ("rank 1 link to the next rank", 32, 48)]
    text = str(program.explain(0))
    link = "rank 1 link to the next rank"
    assert f"on {link} from 32 to 48, 16 cycles after it came: {link}, which carried 2 copy" in text
    assert ", 16 of them" not in text                        # nothing was slower: it waited
    assert program.explain(0).chain().cycles == {"task": 32, "executor": 16}
    assert program.stats.kernels[0].cycles == 4 * 16
    pools = {pool.pool: pool.work for pool in program.stats.pools}
    assert sum(pools.values()) == 64 == program.stats.work


def test_what_a_copy_waits_for_at_its_first_link_is_the_link_and_not_the_whole_route() -> None:
    program = run(copies(4, [(0, 2), (0, 1)]), linked("ring"))
    assert program.trace.start.tolist() == [0, 16] and program.trace.end.tolist() == [32, 32]
    chain = program.explain(1).chain()
    assert "until 16" in program.explain(1).cause.text and [(step.begin, step.end) for step in chain] == [(0, 16), (16, 32)]


def test_a_torus_is_crossed_axis_after_axis() -> None:
    mesh = Mesh(x=3, z=1, y=4)
    layout = TensorLayout((Shard("x"), Shard("y")))
    A, B = (Tensor(np.zeros((6, 8), np.float32), name=name, layout=layout) for name in "AB")

    @workload
    def crossing() -> None:
        for _ in P(mesh):
            pass
        copy(A.on(0), B.on(10))                            # (0, 0) to (2, 2): down x, up y twice

    program = run(crossing().task_graph(deps=DATA), linked("torus"))
    assert [name for name, *_ in links_of(program, 0)] == ["rank 0 link down x", "rank 8 link up y", "rank 9 link up y"]


# Three ranks send to rank 0 at once: their links to the switch are busy until 16, that from the switch to 0 takes one after the other.
def test_a_switch_shows_who_sends_to_one_rank() -> None:
    program = run(copies(4, [(1, 0), (2, 0), (3, 0)]), linked("switch"))
    assert program.trace.end.tolist() == [32, 48, 64]
    assert {links_of(program, task)[1][0] for task in range(3)} == {"rank 0 link from the switch"}
    assert run(copies(4, [(0, 1), (1, 2), (2, 3), (3, 0)]), linked("switch")).stats.total_cycles == 32


# Each rank of a ring of p sends a chunk to the next one p - 1 times, and as often again: no copy waits for a link.
def test_a_ring_of_copies_on_a_ring_of_links_has_no_contention() -> None:
    Y = Tensor.empty((8, 8), F32, layout=TensorLayout.partial_of(2, "x"))
    X = part_of("X", 4)

    @workload
    def summed() -> None:
        for r in P(Mesh(x=4)):
            copy(X.on(r), Y.on(r)[:2])
        allreduce(Y, algorithm="ring")

    ran = {topology: run(summed().task_graph(deps=DATA), linked(topology)) for topology in ("all", "ring")}
    trace = ran["ring"].trace
    assert trace.hops is not None and not len(trace.hops)
    assert sum("link to the next" in trace.name_of(executor) for executor in trace.executor) == 4 * 6
    assert np.array_equal(trace.start, ran["all"].trace.start) and np.array_equal(trace.end, ran["all"].trace.end)


# All send to all: the link up carries the copy to the next rank, the first part of the one to the rank behind that, and the last part of
# the one of the rank before; the link down one alone. Of a shard of 2 x 8 each rank gets 2 x 2: 4 cycles
# on a link, 8 for the copy of its own, which it reads and writes.
def test_all_to_all_on_a_ring_of_links_has_contention() -> None:
    X = part_of("X", 4)

    @workload
    def turned() -> None:
        for _ in P(Mesh(x=4)):
            pass
        all_to_all(X, 1)

    ring, direct = (run(turned().task_graph(deps=DATA), linked(topology)) for topology in ("ring", "all"))
    assert (direct.stats.total_cycles, ring.stats.total_cycles) == (8, 12)
    busy = [ring.stats.executors[executor].busy for executor in range(4, 12)]
    assert sorted(busy) == [4] * 4 + [12] * 4                # a link down is busy for 4, one up for 12


# -- what is shown -----------------------------------------------------------------------------------------------------
def test_lanes_show_each_link_of_a_route(tmp_path: object) -> None:
    program = run(copies(4, [(0, 2)]), linked("ring"))
    text = str(timeline(program.trace, width=40)).splitlines()
    assert [line.split("|")[:2] for line in text[:2]] == [["rank 0 link to the next rank ", "A" * 20 + "·" * 20],
                                                         ["rank 1 link to the next rank ", "·" * 20 + "A" * 20]]
    marks = [(mark.x, mark.width) for lane in program.trace.card.parts[0].lanes for mark in lane.marks]
    assert marks == [(0, 500), (500, 500)]
    written = program.trace.to_perfetto(tmp_path / "t.json").read_text()      # type: ignore[operator]
    assert written.count('"ph":"X"') == 2
    assert np.array_equal(program.trace.columns()["end"], [32])


def test_figures_name_ranks_and_links_and_say_what_went_between_ranks() -> None:
    program = run(copies(4, [(0, 2), (0, 2), (3, 1)]), linked("ring"))
    rows = [line.split("  ")[0] for line in str(program.stats).splitlines() if line.startswith("rank")]
    assert rows == [f"rank {rank} link to the next rank" for rank in (0, 1, 3)]         # idle cores and links are left out
    assert len(set(map(len, str(program.stats).splitlines()[3:7]))) == 1
    tables = {part.title: part for part in program.card.parts if part.kind == "table"}
    assert [row[0] for row in tables["Executors"].rows] == rows
    between = tables["Bytes between ranks: 192"]                                       # of 16 elements each
    assert between.head == ("from, to", "rank 0", "rank 1", "rank 2", "rank 3", "sent")
    assert between.rows[0] == ("rank 0", "·", "·", "128", "·", "128") and between.rows[3] == ("rank 3", "·", "64", "·", "·", "64")
    assert between.rows[4] == ("received", "·", "64", "128", "·", "·")
    many = run(copies(16, [(2, 5), (2, 7)]), linked("ring"))
    assert many.stats.task_count == 2
    (rows,) = [part.rows for part in many.card.parts if part.kind == "table" and part.title == "Bytes between ranks: 128"]
    assert rows[2] == ("rank 2", "128", "0", "2") and rows[5] == ("rank 5", "0", "64", "0")


def test_a_run_is_timed_again_on_other_links() -> None:
    program = run(copies(6, [(0, 3), (0, 2)]), linked("ring"))
    for topology, cycles in (("all", 16), ("switch", 48), ("torus", 48), ("ring", 48)):
        assert program.simulate(arch=linked(topology)).total_cycles == cycles


def test_buffers_are_for_routes() -> None:
    with pytest.raises(ArchError, match="no buffers"):
        builtin_arch("unit").with_links(buffers=2)


# -- buffers -----------------------------------------------------------------------------------------------------------
# Each rank of a ring sends over two links, twice. The first copies have the one buffer of their links and stand behind the second ones,
# which wait for it.
def test_full_links_in_a_circle_are_found_before_the_run() -> None:
    pairs = [(r, (r + 2) % 4) for r in range(4) for _ in range(2)]
    w = copies(4, pairs)
    program = w.compile(target="interp", arch=linked("ring", buffers=1))
    with pytest.raises(DeadlockError, match="4 links in a circle are full") as stuck:
        program.run()
    text = str(stuck.value)
    for r in range(4):
        assert f"rank {r} link to the next rank is full: {2 * r} copy_part" in text and f"from rank {r} to rank {(r + 2) % 4}" in text
    assert "test_routes.py:" in text and "2 buffers are enough here: arch.with_links(buffers=2)" in text
    enough = run(copies(4, pairs), linked("ring", buffers=2))
    assert enough.stats.total_cycles == 64
    with pytest.raises(DeadlockError, match="4 links"):
        enough.simulate(arch=linked("ring", buffers=1))
    assert "rank 0 link to the next rank → rank 1 link to the next rank" in "\n".join(program.checks)


def test_links_without_a_circle_are_proved_to_drain() -> None:
    for topology, pairs in (("ring", [(0, 2), (1, 3), (0, 2), (1, 3)]), ("switch", [(r, (r + 2) % 4) for r in range(4)] * 3),
                            ("ring", [(r, (r + 1) % 4) for r in range(4)] * 3)):
        program = run(copies(4, pairs), linked(topology, buffers=1))
        assert any(line.startswith("proved: deadlock of links") for line in program.checks), program.checks


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_copies_are_simulated_before_a_run_unless_they_are_proved_to_drain(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("simulated")

    proved, circle = (copies(4, pairs).compile(target=target, arch=linked("ring", buffers=1)) for pairs in (
        [(0, 2), (1, 3)], [(r, (r + 2) % 4) for r in range(4)]))
    monkeypatch.setattr(Recorder, "simulate", refuse)
    proved.run()
    with pytest.raises(AssertionError, match="simulated"):
        circle.run()


@pytest.mark.parametrize("buffers", [1, 8])
def test_a_window_that_ends_the_run_does_so_beside_links_with_buffers(buffers: int) -> None:
    w = copies(4, [(r, (r + 2) % 4) for r in range(4)]).task_graph(deps=DATA, window=TaskWindow(2, "tasks", WindowMode.ABORT))
    with pytest.raises(WindowError, match=r"copy_part found no room in the window"):
        w.compile(target="interp", arch=linked("ring", buffers=buffers)).run()


# -- drawn copies, against a simulation of their own -------------------------------------------------------------------
Link = tuple[str, int]


def route(topology: str, shape: Sequence[int], of: int, to: int) -> list[Link]:
    """Return the links from rank to rank: an axis and direction with the rank that they leave; of a switch with the rank at their end."""
    if topology == "all":
        return [(f"to {to}", of)]
    if topology == "switch":
        return [("to the switch", of), ("from the switch", to)]
    at, target, found = list(np.unravel_index(of, shape)), np.unravel_index(to, shape), []
    for axis, size in enumerate(shape):
        up = (target[axis] - at[axis]) % size
        step = 1 if up <= size - up else -1
        while at[axis] != target[axis]:
            found.append((f"{axis} {step}", int(np.ravel_multi_index(at, shape))))
            at[axis] = (at[axis] + step) % size
    return found


def simulated(routes: Sequence[Sequence[Link]], cost: Sequence[int], before: Sequence[set[int]],
              buffers: int = 0) -> list[list[int]] | None:
    """Return when each copy ends on each of its links, by looking at every cycle; None where nothing goes on."""
    n = len(routes)
    ends: list[list[int]] = [[] for _ in range(n)]
    standing: dict[Link, list[tuple[int, int]]] = {}
    running: dict[Link, tuple[int, int]] = {}
    taken: dict[Link, int] = {}
    begun: set[int] = set()
    now = 0
    while any(len(ends[k]) < len(routes[k]) for k in range(n)):
        for link, (end, task) in sorted(running.items(), key=lambda item: item[1]):
            if end == now:
                del running[link]
                ends[task].append(now)
                at = len(ends[task])
                if at > 1:
                    taken[routes[task][at - 2]] -= 1
                if at < len(routes[task]):
                    standing.setdefault(routes[task][at], []).append((now, task))
        for task in range(n):
            if task not in begun and all(len(ends[k]) == len(routes[k]) for k in before[task]):
                begun.add(task)
                standing.setdefault(routes[task][0], []).append((now, task))
        for link, queue in standing.items():
            if link not in running and queue:
                _, task = min(queue)
                goes_on = routes[task][-1] != link
                if goes_on and buffers and taken.get(link, 0) >= buffers:
                    continue
                queue.remove(min(queue))
                taken[link] = taken.get(link, 0) + goes_on
                running[link] = (now + cost[task], task)
        if not running and any(len(ends[k]) < len(routes[k]) for k in range(n)):
            return None
        now += 1
    return ends


def drawn(rng: random.Random) -> tuple[Workload, list[tuple[int, int]], list[int], tuple[int, ...]]:
    """Return a workload of copies between parts drawn at random, with their ranks, their elements, and the mesh's shape."""
    shape = rng.choice([(3,), (4,), (6,), (7,), (2, 3), (3, 4), (2, 4), (5, 1)])
    n = int(np.prod(shape))
    mesh = Mesh(**dict(zip("xy", shape, strict=False)))
    layout = TensorLayout((Shard("x"), Shard("y") if len(shape) > 1 else Replicate()))
    tensors = [Tensor(np.zeros((8 * shape[0], 8 * (*shape, 1)[1]), np.float32), name=name, layout=layout) for name in "ABC"]
    pairs, sizes = [], []

    @workload
    def mixed() -> None:
        for _ in P(mesh):
            pass
        for _ in range(rng.randrange(1, 30)):
            of, to = rng.sample(range(n), 2)
            rows, first = rng.randrange(1, 4), rng.randrange(0, 5)
            source, target = rng.choice(tensors), rng.choice(tensors)
            pairs.append((of, to))
            sizes.append(8 * rows)
            copy(source.on(of)[first:first + rows], target.on(to)[first:first + rows])

    return mixed().task_graph(deps=DATA), pairs, sizes, shape


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_drawn_copies_take_the_time_of_their_links(seed: int) -> None:
    rng = random.Random(seed)
    w, pairs, sizes, shape = drawn(rng)
    for topology in ("all", "ring", "torus", "switch"):
        latency = rng.randrange(0, 9)
        program = run(w, linked(topology, latency_cycles=latency))
        routes = [route(topology, (int(np.prod(shape)),) if topology == "ring" else shape, *pair) for pair in pairs]
        before: list[set[int]] = [set() for _ in pairs]
        for edge in program.graph.edges:
            before[edge.target].add(edge.source)
        ends = simulated(routes, [size + latency for size in sizes], before)
        assert ends is not None
        assert program.trace.end.tolist() == [each[-1] for each in ends], topology
        spans = program.trace.spans
        assert [spans.end[spans.task == task].tolist() for task in range(len(pairs))] == ends
        assert program.stats.work == sum((size + latency) * len(way) for size, way in zip(sizes, routes, strict=True))
        assert sum(step.end - step.begin for step in program.stats.chain()) == program.stats.total_cycles   # type: ignore[misc]


def independent(rng: random.Random) -> tuple[Workload, list[tuple[int, int]], list[int], tuple[int, ...]]:
    """Return a workload of copies with few dependencies, most of them far, as `drawn` does."""
    shape = rng.choice([(5,), (6,), (7,), (5, 2), (6, 2)])
    n = int(np.prod(shape))
    layout = TensorLayout((Shard("x"), Shard("y") if len(shape) > 1 else Replicate()))
    size = (shape[0], 8 * (*shape, 1)[1])
    given, late = (Tensor(np.zeros(size, np.float32), name=name, layout=layout) for name in ("given", "late"))
    count, pairs = rng.randrange(n, 4 * n), []
    taken = [Tensor(np.zeros(size, np.float32), name=f"taken{k}", layout=layout) for k in range(count)]
    far = rng.choice((1, 2, 2, 3))

    @workload
    def mixed() -> None:
        for _ in P(Mesh(**dict(zip("xy", shape, strict=False)))):
            pass
        for k in range(count):
            of = rng.randrange(n)
            to = (of + far * (*shape, 1)[1]) % n if rng.randrange(3) else rng.choice([r for r in range(n) if r != of])
            pairs.append((of, to))
            copy((late if rng.randrange(8) == 0 else given).on(of), (late if rng.randrange(8) == 0 else taken[k]).on(to))

    return mixed().task_graph(deps=DATA), pairs, [8] * count, shape


@pytest.mark.slow
def test_drawn_copies_are_stuck_where_the_check_says_so() -> None:
    verdicts = set[tuple[bool, bool]]()
    for seed in range(16):
        _check_verdicts(seed, verdicts)
    assert verdicts == {(True, False), (False, False), (False, True)}


def _check_verdicts(seed: int, verdicts: set[tuple[bool, bool]]) -> None:
    rng = random.Random(1000 + seed)
    w, pairs, sizes, shape = independent(rng)
    for topology in ("ring", "torus", "switch"):
        buffers = rng.choice((1, 1, 2, 3))
        program = w.compile(target="interp", arch=linked(topology, buffers=buffers))
        free = run(w, linked(topology))
        before: list[set[int]] = [set() for _ in pairs]
        for edge in free.graph.edges:
            before[edge.target].add(edge.source)
        routes = [route(topology, (int(np.prod(shape)),) if topology == "ring" else shape, *pair) for pair in pairs]
        ends = simulated(routes, sizes, before, buffers)
        is_proved = any(line.startswith("proved: deadlock of links") for line in program.checks)
        verdicts.add((is_proved, ends is None))
        if ends is None:
            assert not is_proved
            with pytest.raises(DeadlockError, match="in a circle are full"):
                program.run()
        else:
            assert program.run().trace.end.tolist() == [each[-1] for each in ends]
