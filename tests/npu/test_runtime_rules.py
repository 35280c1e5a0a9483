"""Every rule of the runtime's table is kept by what is emitted, and a package changed so that it breaks the rule is caught."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Deps, DType, P, Tensor, Workload, workload
from pto_wsp.npu.isa.runtime import RUNTIME_RULES, rule
from tests.npu.harness import RunFault, Target, build, run
from tests.npu.package import RUNTIMES
from tests.npu.runtime_rules import HEADER, header_text
from tests.npu.submits import npu_plan, write_orchestration
from tests.npu.tasks import move

ARRAYS = {name: np.ones((8, 4, 8), np.float32) for name in "XYZ"}


def case() -> Workload:
    """A tensor of the runtime, parts that are written again, reads that are written over, and a handle."""
    X, Y, Z = (Tensor(value, name=name) for name, value in ARRAYS.items())

    @workload
    def tasks() -> None:
        R = Tensor.empty((8, 4, 8), DType.F32, "R")
        for i in P(4):
            move[i](X[i], R[i])
        for i in P(4):
            made = move[i](R[i], Y[i])
        for i in P(4):
            move[i](Z[i], X[i])                   # behind who has read it
        move(Z[5], Y[1])                          # behind who has written it
        move(Z[6], Z[7], after=made)
    return tasks().task_graph(deps=Deps.infer_bytes_overlap())


Change = Callable[[str], str]


def swap(old: str, new: str, count: int = 0) -> Change:
    """Return what puts a text in the place of another: of all, or of the first so many."""
    def change(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, count or -1)
    return change


def behind_its_scope(text: str) -> str:
    """Close the scope of R before the tensor is used."""
    text = swap("PTO_WSP_SCOPE {", "pto_wsp::Tensor early = X;\n    PTO_WSP_SCOPE {")(text)
    made = re.findall(r"const pto_wsp::Tensor &R = (\w+\.get_ref\(0\));", text)[0]
    return swap(f"const pto_wsp::Tensor &R = {made};", f"early = {made};\n    }}\n    {{\n        const pto_wsp::Tensor &R = early;")(text)


def without_waits(text: str) -> str:
    """Take out what is waited for beyond what data says."""
    return re.sub(r"\n.*wait_for\(task.*", "", text)


NAMED = "pto_wsp::wait_for(task, behind);"
OTHER_ID = "if (behind.size() > 0) behind.data()[0] = pto_wsp::TaskId{99};"
ADDED = "task.add_input(x_view);"
LAST = "\n}\n\n}  // extern"
MUTANTS: Mapping[str, Change] = {
    "tensors": swap(ADDED, f"for (int k = 0; k < 32; ++k) {ADDED}"),
    "scalars": swap("auto made =", "for (int k = 0; k < 17; ++k) pto_wsp::add_integer(task, 1);\n        auto made ="),
    "dims": swap("R_shape[3] = {8, 4, 8}", "R_shape[6] = {1, 1, 1, 8, 4, 8}"),
    "scopes": swap("PTO_WSP_SCOPE {", "PTO_WSP_SCOPE " * 64 + "{"),
    "tensors_first": swap(ADDED, f"pto_wsp::add_integer(task, 1);\n        {ADDED}"),
    "arguments_live": swap(ADDED, "{\n const pto_wsp::Tensor gone = x_view;\n task.add_input(gone);\n }"),
    "inside": swap("x_shape[3] = {1, 4, 8}", "x_shape[3] = {9, 4, 8}"),
    "own_core": swap("pto_wsp::submit_aiv(0, task)", "pto_wsp::submit_aic(0, task)"),
    "not_empty": swap("R_shape[3] = {8, 4, 8}", "R_shape[3] = {0, 4, 8}"),
    "scope_end": behind_its_scope,
    "dependencies_some": swap(NAMED, "task.set_dependencies(behind.data(), 0);"),
    "dependencies_once": swap(NAMED, f"{NAMED}\n        {NAMED}"),
    "dependencies_live": swap(NAMED, f"{NAMED}\n        {OTHER_ID}"),
    "dependencies_valid": swap(NAMED, f"{OTHER_ID}\n        {NAMED}"),
    "get_ref_named": lambda text: re.sub(r"auto \w+ = (pto_wsp::allocate\(.*\));\n(.*) = \w+\.get_ref\(0\);", r"\2 = \1.get_ref(0);", text),
    "get_ref_count": swap(".get_ref(0)", ".get_ref(1)"),
    "given_elements": lambda text: swap("#define PTO_WSP_EDGES", "#define PTO_WSP_EDGES\n#define PTO_WSP_ELEMENTS")(
        swap(LAST, f"\n    (void)pto_wsp::element<float>(Y, 1, 0, 0);{LAST}")(text)),
    "wait_lookup": swap(ADDED, "task.add_output(x_view);"),
    "wait_output": swap("task.add_inout(y_view);", "task.add_output(y_view);"),
    "wait_readers": without_waits,
}
FAST = ("wait_lookup", "given_elements")
REFUSALS = {"get_ref_named": "deleted function", "wait_lookup": "nothing orders", "wait_output": "nothing orders",
            "wait_readers": "nothing orders"}


def check(root: Path, change: Change = lambda text: text, n_times: int = 1) -> None:
    """Submit the case on the runtime that makes all tasks first, with its kernels so many times.

    Raises: RunFault for what the runtime refuses, and for tasks that conflict without an order.
    """
    plan = npu_plan(case())
    package = write_orchestration(root, plan, change)
    package = replace(package, kernels=package.kernels * n_times)
    outcome = run(package, build(package, Target("a2a3", RUNTIMES[1])), dict(ARRAYS), {}, (("program", 0),))[0]
    for conflict in outcome.graph.unordered_conflicts():
        raise RunFault(f"nothing orders {conflict}")


@pytest.mark.slow
def test_the_case_keeps_the_rules(tmp_path: Path) -> None:
    check(tmp_path)


def test_every_rule_has_its_mutant() -> None:
    assert [found.name for found in RUNTIME_RULES if found.name not in {*MUTANTS, "callables"}] == []


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in MUTANTS])
def test_a_package_that_breaks_a_rule_is_caught(name: str, tmp_path: Path) -> None:
    with pytest.raises(RunFault, match=REFUSALS.get(name) or re.escape(f"{rule(name).says} [{name}]")):
        check(tmp_path, MUTANTS[name])


@pytest.mark.slow
def test_a_package_of_too_many_kernels_is_caught(tmp_path: Path) -> None:
    check(tmp_path / "most", n_times=64)
    with pytest.raises(RunFault, match=r"\[callables\]"):
        check(tmp_path / "more", n_times=65)


def test_the_emulation_has_the_table(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update"):
        HEADER.write_text(header_text())
    assert HEADER.read_text() == header_text()
