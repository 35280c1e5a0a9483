"""Laws of pipelines that share buffers: verdicts against brute force, any order that is allowed against the sequential meaning."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pto_wsp import Program, PtoError, Tensor
from pto_wsp.check.races.check import Races, check_races
from pto_wsp.check.verdict import Verdict
from tests.check.races.brute_force import arrays_of, plan_of, races_of
from tests.laws.generated_sharing import Sharing, expected, random_sharing, workload_of

N_NETWORKS = [20, pytest.param(80, marks=pytest.mark.slow)]
N_RUN = [8, pytest.param(25, marks=pytest.mark.slow)]
SEEDS = range(1, 6)

# Of tensors that do not race, the part that is left open: those of several statements that send, and of replicas that take in turn.
MOST_LEFT_OPEN = 0.3


def arrays(net: Sharing) -> tuple[Tensor, Tensor]:
    given = np.arange(1, 2 * net.n_tokens + 1, dtype=np.int64).reshape(net.n_tokens, 2) * 7
    return Tensor(given, name="GIVEN"), Tensor(np.zeros((2 * net.n_tokens, 2), np.int64), name="MADE")


def symbols(net: Sharing) -> dict[str, int]:
    return {"n": net.n_tokens} if net.symbolic and not net.events else {}


def verdicts(net: Sharing, *, structure: bool = True) -> tuple[dict[str, Verdict], set[str]]:
    """Return the worst verdict on each tensor, and which of them race; without `structure` under a schedule that takes its order from
    data."""
    made = workload_of(net, *arrays(net))
    plan = replace(plan_of(made), structure=structure)
    found: dict[str, Verdict] = {}
    ranked = (Verdict.PROVED, Verdict.NOT_PROVED, Verdict.COUNTEREXAMPLE)
    for finding in check_races(plan, arrays_of(made)).findings:
        name = finding.check.split("`")[1]
        found[name] = max(found.get(name, Verdict.PROVED), finding.verdict, key=ranked.index)
    return found, races_of(made, plan, symbols=symbols(net))


@pytest.mark.slow
@pytest.mark.parametrize("n_networks", N_NETWORKS)
def test_verdicts_are_those_of_brute_force(n_networks: int) -> None:
    """What is proved has no two tasks without an order on one element; what is shown has some. A symbol stands for any number of tokens,
    of which brute force has one: a race of another number is no race of this one."""
    counts: Counter[tuple[Verdict, bool]] = Counter()
    for seed in range(n_networks):
        net = random_sharing(seed)
        found, racy = verdicts(net)
        assert racy <= found.keys(), (seed, net)
        for name, verdict in found.items():
            if name != "MADE":       # a row for each token: nothing to find
                counts[verdict, name in racy] += 1
            assert not (verdict is Verdict.PROVED and name in racy), (seed, name, net)
            assert not (verdict is Verdict.COUNTEREXAMPLE and name not in racy), (seed, name, net)
    free = counts[Verdict.PROVED, False] + counts[Verdict.NOT_PROVED, False]
    assert counts[Verdict.NOT_PROVED, False] <= MOST_LEFT_OPEN * free, counts
    assert counts[Verdict.COUNTEREXAMPLE, True] > 0.2 * counts.total(), counts
    assert counts[Verdict.NOT_PROVED, True] <= 0.1 * counts[Verdict.COUNTEREXAMPLE, True], counts


@pytest.mark.slow
@pytest.mark.parametrize("n_networks", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_without_structure_nothing_is_proved_by_program_order(n_networks: int) -> None:
    proved = less = 0
    for seed in range(40_000, 40_000 + n_networks):
        net = random_sharing(seed)
        found, racy = verdicts(net, structure=False)
        with_structure, _ = verdicts(net)
        for name, verdict in found.items():
            assert not (verdict is Verdict.PROVED and name in racy), (seed, name, net)
            assert (verdict is Verdict.COUNTEREXAMPLE) == (with_structure[name] is Verdict.COUNTEREXAMPLE), (seed, name, net)
            proved += verdict is Verdict.PROVED and name != "MADE"
            less += with_structure[name] is Verdict.PROVED is not verdict
    assert less


def compiled(net: Sharing, target: str, monkeypatch: pytest.MonkeyPatch, *, checked: bool) -> tuple[Program, np.ndarray]:
    """Return the program, though it may race unless it is `checked`, and the array of its results."""
    given, made = arrays(net)
    if not checked:
        monkeypatch.setattr("pto_wsp.targets.planning.check_races", lambda plan, arrays, lanes: Races(()))
    assert made.data is not None
    return workload_of(net, given, made).compile(target=target), made.data


def is_proved(net: Sharing) -> bool:
    """Tell whether it compiles without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            workload_of(net, *arrays(net)).compile(target="interp")
        except (PtoError, UserWarning):
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("n_networks", N_RUN)
def test_what_is_proved_means_the_same_in_any_order(n_networks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n_proved = 0
    for seed in range(10_000, 10_000 + n_networks):
        net = random_sharing(seed)
        if not is_proved(net):
            continue
        n_proved += 1
        program, made = compiled(net, "interp", monkeypatch, checked=True)
        wanted = expected(net, arrays(net)[0].data)
        program.run(**symbols(net))
        cycles, edges = program.stats.total_cycles, len(program.graph.edges)
        for order in SEEDS:
            assert (made == wanted).all(), (seed, order - 1, net)
            made[:] = 0
            program.replay(order, **symbols(net))
        assert (made == wanted).all(), (seed, net)
        assert (program.stats.total_cycles, len(program.graph.edges)) == (cycles, edges), (seed, net)
    assert n_proved >= n_networks // 5


@pytest.mark.slow
@pytest.mark.parametrize("n_networks", N_RUN)
def test_what_races_shows_in_some_order(n_networks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A race need not change a number, but most do in one order of a few."""
    shown = races = 0
    for seed in range(20_000, 20_000 + n_networks):
        net = random_sharing(seed)
        if Verdict.COUNTEREXAMPLE not in verdicts(net)[0].values():
            continue
        races += 1
        program, made = compiled(net, "interp", monkeypatch, checked=False)
        wanted = expected(net, arrays(net)[0].data)
        for order in range(1, 12):
            made[:] = 0
            program.replay(order, **symbols(net))
            if (made != wanted).any():
                shown += 1
                break
    assert races >= n_networks // 5 and shown >= 0.8 * races, (shown, races)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))])
def test_native_orders_mean_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net = next(net for k in range(100) if is_proved(net := random_sharing(30_000 + 100 * seed + k)))
    program, made = compiled(net, "cpu_sim", monkeypatch, checked=True)
    wanted = expected(net, arrays(net)[0].data)
    program.run(**symbols(net))
    assert (made == wanted).all(), net
    for order in SEEDS:
        made[:] = 0
        program.replay(order, **symbols(net))
        assert (made == wanted).all(), (order, net)
