"""Every rule of the instruction table: the emulated core refuses what breaks it, and so does the emitter's own check."""

from __future__ import annotations

import re

import pytest

from pto_wsp.npu.check.forms import broken_demands
from pto_wsp.npu.isa.instructions import FAMILIES
from pto_wsp.npu.isa.rules import RULES, Demand, Rule
from tests.npu.emulator import LoadedKernel
from tests.npu.harness import RunFault
from tests.npu.instructions.batch import load_batch
from tests.npu.isa_rules import HEADER, header
from tests.npu.rule_cases import OUTSIDE, STATIC, RuleCase, cases_of

_IDS = [f"{rule.name}-{rule.demand.name}-{'_'.join(rule.families)}" for rule in STATIC]
_WORDS = {
    **dict.fromkeys((Demand.ONE_TYPE, Demand.ONE_STORAGE, Demand.ONE_STORED_ROWS), r"operand \d is stored as"),
    Demand.ONE_VALID: r"operand \d is valid in", Demand.STORED_AS_PRODUCT: "not M x N, M x K and K x N",
    Demand.STORED_COLS_BY: "not stored columns in multiples of", Demand.VALID_COLS_BY: "not valid columns in multiples of",
    Demand.BITS_OF: "not a bit for each column", Demand.TURNING_ROOM: r"is scratch of .*, of at least \d+ elements",
    Demand.ONE_ROW: "not one valid row", Demand.U32: "not u32", Demand.FLAGS_DOWN: "EVENT_ID0 from PIPE_V to PIPE_S is up"}


def _named(family: str) -> dict[str, tuple[RuleCase, bool]]:
    """Return all cases of a family by a name for each, and whether a rule is broken."""
    named: dict[str, tuple[RuleCase, bool]] = {}
    for at, rule in enumerate(STATIC):
        for form, pair in enumerate(cases_of(rule) if family in rule.families else ()):
            for case, broken in zip(pair, (False, True), strict=True):
                named[f"k{at}_{form}_{'broken' if broken else 'right'}"] = case, broken
    return named


@pytest.fixture(scope="module", params=FAMILIES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, LoadedKernel]]:
    """Return kernels of all cases of one family."""
    cases, folder = _named(request.param), tmp_path_factory.mktemp("rules")
    kernels: dict[str, LoadedKernel] = {}
    for cube in (False, True):
        (folder / str(cube)).mkdir()
        sources = {name: case.source() for name, (case, _) in cases.items() if case.cube is cube}
        kernels |= load_batch(folder / str(cube), sources, request.param, cube=cube)
    return request.param, kernels


@pytest.mark.slow
def test_the_emulated_core_refuses_what_breaks_a_rule(loaded: tuple[str, dict[str, LoadedKernel]]) -> None:
    family, kernels = loaded
    cases = _named(family)
    assert sum(broken for _, broken in cases.values()) > 40
    wrong = []
    for name, (case, broken) in cases.items():
        said = ""
        try:
            kernels[name].run([])
        except RunFault as fault:
            said = str(fault)
        words = re.search(rf": {case.rule.name}: .*{_WORDS[case.rule.demand]}", said)
        if bool(words) is not broken:     # right ones may fail for what they read, which nothing wrote
            wrong.append(f"{case.rule.name}, {case.rule.demand.name}, {'broken' if broken else 'right'}: {said}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("rule", [rule for rule in STATIC if rule.demand is not Demand.FLAGS_DOWN],
                         ids=[name for name, rule in zip(_IDS, STATIC, strict=True) if rule.demand is not Demand.FLAGS_DOWN])
def test_the_emitter_refuses_what_breaks_a_rule(rule: Rule) -> None:
    for family in rule.families:
        for right, broken in cases_of(rule):
            assert list(broken_demands(right.step, right.tiles, family)) == []
            found = [expected for expected, _ in broken_demands(broken.step, broken.tiles, family)]
            assert any(rule.text in expected for expected in found), found
            others = set(FAMILIES) - set(rule.families)
            assert all(list(broken_demands(broken.step, broken.tiles, other)) == [] for other in others)


def test_every_rule_is_held_by_a_case() -> None:
    elsewhere = {(rule.name, rule.demand) for rule in RULES if rule.demand in (Demand.TEMPLATE, Demand.NOT_ZERO) or rule.name in OUTSIDE}
    assert elsewhere == {("TCI", Demand.TEMPLATE), ("TFMOD", Demand.NOT_ZERO), ("TFMODS", Demand.NOT_ZERO),
                         ("TPUSH", Demand.FLAGS_DOWN), ("TDEQUANT", Demand.FLAGS_DOWN)}
    assert all(list(cases_of(rule)) for rule in STATIC)


def test_the_core_reads_the_rules_of_the_table(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update"):
        HEADER.write_text(header(), encoding="utf-8")
        return
    assert HEADER.read_text(encoding="utf-8") == header(), "the rules have changed: write the core's header anew with --update"
