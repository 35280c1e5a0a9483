"""Laws of pipelines, on random networks: the same results, cycles and stops as said in plain Python, whatever the threads do."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from pto_wsp import P, PtoError, Tensor, Workload, workload
from pto_wsp.api.program import Program
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Channels
from tests.laws.generated_pipelines import FOLD, WIDTHS, Network, expected, random_network, workload_of

N_NETWORKS = [40, pytest.param(90, marks=pytest.mark.slow)]
LATENCIES = (0, 0, 7, 40)


@pytest.fixture(scope="module")
def cost() -> dict[int, int]:
    """Cycles of a task, by its width: of programs of one task."""
    found = {}
    for width in WIDTHS:
        acc = Tensor(np.zeros((1, 8), np.int64), name="acc")

        @workload
        def one(acc: Tensor = acc, width: int = width) -> None:
            FOLD[width](x=acc[0:1, 0:width], n=3)

        found[width] = one().compile(target="interp").run().stats.total_cycles
    assert len(set(found.values())) == len(WIDTHS)
    return found


def built(network: Network, target: str, latency: int, **options: object) -> tuple[Program | PtoError, np.ndarray]:
    """Return the program after a run, or the error that compiling or running it gave, and what was noted."""
    notes = np.zeros((len(network.scripts), 8), np.int64)
    traced: Workload = workload_of(network, Tensor(notes, name="acc"))
    arch = builtin_arch("unit").model_copy(update={"channels": Channels(latency_cycles=latency)})
    try:
        return traced.compile(target=target, arch=arch, **options).run(), notes
    except PtoError as error:
        return error, notes


def wrapped(notes: list[list[int]]) -> list[list[int]]:
    return [[(n + (1 << 63)) % (1 << 64) - (1 << 63) for n in row] for row in notes]


@pytest.mark.slow
@pytest.mark.parametrize("merges", [False, True], ids=["one process an end", "merges and splits"])
@pytest.mark.parametrize("n_networks", N_NETWORKS)
def test_networks_do_in_the_interpreter_what_they_do_in_plain_python(merges: bool, n_networks: int, cost: dict[int, int]) -> None:
    ends: dict[str, int] = {}
    for seed in range(n_networks):
        network, latency = random_network(seed, merges=merges), LATENCIES[seed % len(LATENCIES)]
        how, notes, cycles = expected(network, cost, latency)
        found, noted = built(network, "interp", latency)
        ends[how] = ends.get(how, 0) + 1
        if isinstance(found, PtoError):
            assert found.code == how, (seed, network, str(found))
        else:
            assert how == "ended", (seed, network)
            assert noted.tolist() == wrapped(notes), (seed, network)
            assert found.stats.total_cycles == cycles, (seed, network)
    assert ends["ended"] >= n_networks // 3 and ends["W111"] >= n_networks // 30


def one_that_ends(first: int, cost: dict[int, int], *, merges: bool) -> Network:
    """Return the first of many networks that ends."""
    networks = (random_network(first + k, merges=merges) for k in range(100))
    return next(network for network in networks if expected(network, cost, 0)[0] == "ended")


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 10))])
def test_both_targets_write_one_stream(seed: int, cost: dict[int, int]) -> None:
    network = one_that_ends(1000 + 100 * seed, cost, merges=seed % 2 == 1)
    ours, notes = built(network, "interp", 3)
    native, noted = built(network, "cpu_sim", 3, threads=2)
    assert isinstance(ours, Program) and isinstance(native, Program)
    assert noted.tolist() == notes.tolist() == wrapped(expected(network, cost, 3)[1])
    one, other = ours.compiled.runner.recorder.columns(), native.compiled.runner.recorder.columns()
    for column in fields(one):
        np.testing.assert_array_equal(getattr(one, column.name), getattr(other, column.name), err_msg=column.name)
    assert ours.stats.total_cycles == native.stats.total_cycles == expected(network, cost, 3)[2]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_threads_and_orders_change_nothing(seed: int, cost: dict[int, int]) -> None:
    network = one_that_ends(5000 + 100 * seed, cost, merges=True)
    _, notes, cycles = expected(network, cost, 0)
    for threads in (1, 2, 3, 4):
        program, noted = built(network, "cpu_sim", 0, threads=threads)
        assert isinstance(program, Program)
        assert noted.tolist() == wrapped(notes) and program.stats.total_cycles == cycles
        for order_seed in range(1, 6):
            noted[:] = 0
            program.compiled.runner.run(program.bind(), order_seed)
            assert noted.tolist() == wrapped(notes), (threads, order_seed)


@pytest.mark.slow
@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("n_networks", N_NETWORKS)
def test_what_the_check_says_is_so(merges: bool, n_networks: int, cost: dict[int, int]) -> None:
    """All numbers of these networks are known, so the check decides each of them before it runs."""
    for seed in range(7000, 7000 + n_networks):
        network = random_network(seed, merges=merges)
        how = expected(network, cost, 0)[0]
        found, _ = built(network, "interp", 0)
        if how == "ended":
            assert isinstance(found, Program)
            verdicts = [line for line in found.checks if "deadlock of p" in line or "tokens of p" in line]
            assert len(verdicts) == 2 and all(line.startswith("proved") for line in verdicts), verdicts
        else:
            assert isinstance(found, PtoError) and found.code == how


@pytest.mark.slow
@pytest.mark.parametrize("n_networks", N_NETWORKS)
def test_the_depths_of_a_report_are_live_and_smallest(n_networks: int, cost: dict[int, int]) -> None:
    n_reports = 0
    for seed in range(9000, 9000 + n_networks):
        network = random_network(seed, merges=False)
        found, _ = built(network, "interp", 0)
        if not isinstance(found, PtoError) or found.code != "W111" or found.help is None or not found.help.startswith("these depths"):
            continue
        n_reports += 1
        depths = dict(enumerate(network.depths))
        named = {c: int(found.help.split(f"Channel('c{c}', depth=")[1].split(")")[0]) for c in depths if f"'c{c}'" in found.help}
        assert named and all(depth > depths[c] for c, depth in named.items())

        def ends(wanted: dict[int, int], network: Network = network) -> bool:
            changed = Network(network.scripts, tuple(wanted[c] for c in sorted(wanted)), network.producers, network.consumers)
            return expected(changed, cost, 0)[0] == "ended"

        assert ends({**depths, **named}), (seed, named)
        for c, depth in named.items():
            assert not ends({**depths, **named, c: depth - 1}), (seed, named, c)
    assert n_reports >= n_networks // 15


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_pipeline_of_no_processes_does_nothing(target: str) -> None:
    @workload
    def nothing() -> None:
        with P.pipe():
            pass
    assert nothing().compile(target=target).run().stats.task_count == 0
