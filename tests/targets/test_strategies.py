"""compile(passes="none" or a list): strategies give the same results, required passes stay, and each strategy has artifacts of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from pto_wsp import DType, In, InOut, Out, P, Scalar, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.cli.programs import pipelines
from pto_wsp.errors import CompileOptionError, PassError, PassStrategyError, PtoError, UnknownPassError
from pto_wsp.ir.kernel import Kernel
from pto_wsp.passes.kernel.passes import KERNEL, KERNEL_PASSES
from pto_wsp.passes.kernel.simplify import simplify
from pto_wsp.passes.passes import PLAN
from pto_wsp.passes.pipeline import Pass
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.strategies import STRATEGIES
from pto_wsp.targets.table import find_target
from pto_wsp.view.text import text_of
from tests.caches import with_runtime
from tests.laws.generated_kernels import Recipe, recipes
from tests.laws.test_kernels import clipped, run
from tests.tolerances import Array, assert_identical

F32, I32 = DType.F32, DType.I32
BLOCK = Tile[16, 32, F32]
NAMES = tuple(strategy.name for strategy in STRATEGIES)
TARGETS = ("interp", "cpu_sim", "ascend_npu", "pto")


@kernel
def mixed(x: In[BLOCK], w: In[Tile[32, 32, F32]], t: In[Tensor], n: Scalar[I32], y: Out[BLOCK], z: InOut[BLOCK]) -> None:
    acc = pto.alloc((16, 32), F32, init=0)
    for i in pto.range(n):
        acc += pto.matmul(pto.load(t, (i * 16, 0), shape=(16, 32)), w)
        acc += pto.load(x) * 0.5 * 1.0
    raised = pto.exp(acc - pto.rowmax(acc))
    normal = raised / pto.rowsum(raised)
    pto.store(y, pto.matmul(normal, w) + x + pto.colsum(normal))
    pto.store(z, pto.load(z) + pto.transpose(pto.transpose(x)))


def program() -> tuple[Workload, Tensor, Tensor]:
    rng = np.random.default_rng(0)
    x, w, t = (Tensor(rng.standard_normal(shape).astype(np.float32)) for shape in ((32, 32), (32, 32), (64, 32)))
    y, z = Tensor(np.zeros((32, 32), np.float32)), Tensor(np.ones((32, 32), np.float32))

    @workload
    def all_rows() -> None:
        for b in P(2):
            rows = slice(16 * b, 16 * b + 16)
            mixed[b](x[rows], w, t, 3, y[rows], z[rows])

    return all_rows(), y, z


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a store of its own for each test."""
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path / "cache")))


def required(target: str) -> list[str]:
    return [step.name for step in find_target(target).passes(CompileOptions()) if step.required]


def all_names(target: str) -> list[str]:
    return [step.name for step in find_target(target).passes(CompileOptions())]


@pytest.mark.slow
def test_every_strategy_gives_the_same_results() -> None:
    made, y, z = program()
    made.compile("interp").run()
    expected, expected_z = y.data.copy(), z.data.copy()
    texts = set()
    for target in ("interp", "cpu_sim"):
        for name in NAMES:
            y.data[:], z.data[:] = 7, 1
            compiled = made.compile(target, passes=name, **({"verify_passes": True} if target == "cpu_sim" else {}))
            compiled.run()
            np.testing.assert_allclose(y.data, expected, rtol=2e-6, atol=1e-6)
            assert np.array_equal(z.data, expected_z)
            if target == "cpu_sim":
                texts.add("".join(path.read_text() for path in sorted(compiled.artifact_dir.rglob("*.c"))))
    assert len(texts) == len(NAMES), "every strategy makes other code"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_every_strategy_makes_a_package(target: str) -> None:
    made, _, _ = program()
    packages = {made.compile(target, passes=name).artifact_dir for name in NAMES}
    assert len(packages) == len(NAMES)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.sampled(4)
def test_each_pass_that_is_not_required_may_be_left_out_alone(target: str) -> None:
    made, y, _ = program()
    made.compile("interp").run()
    expected = y.data.copy()
    for name in all_names(target):
        if name in required(target):
            with pytest.raises(PassStrategyError, match=f"without pass `{name}`"):
                made.compile(target, passes=[step for step in all_names(target) if step != name])
        elif target != "cpu_sim" or name in ("form_columns", "vectorise", "drop_dead_code", "fuse_products"):     # the C compiler is slow
            compiled = made.compile(target, passes=[step for step in all_names(target) if step != name])
            if target in ("interp", "cpu_sim"):
                y.data[:] = 7
                compiled.run()
                np.testing.assert_allclose(y.data, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.slow
@given(recipes())
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_drawn_kernels_compute_the_same_under_every_strategy(recipe: Recipe) -> None:
    calls = [(recipe.build(0), clipped(recipe, recipe.arrays()))]
    (expected,) = run("interp", calls)
    for strategy in NAMES:
        (found,) = run("cpu_sim", calls, passes=strategy)
        for name in found:
            assert_identical(found[name], expected[name], (name, strategy, recipe), zeros_alike=recipe.zeros_alike)


@pytest.mark.slow
def test_a_strategy_is_a_part_of_what_the_store_knows_a_program_by() -> None:
    made, _, _ = program()
    first = made.compile("cpu_sim", passes="none")
    assert made.compile("cpu_sim", passes="O0").artifact_dir == first.artifact_dir
    assert made.compile("cpu_sim").artifact_dir != first.artifact_dir
    assert made.compile("cpu_sim", passes="default").artifact_dir == made.compile("cpu_sim").artifact_dir
    assert made.compile("cpu_sim", passes=required("cpu_sim")).artifact_dir == first.artifact_dir


@pytest.mark.slow
def test_dump_and_lower_show_the_passes_that_run() -> None:
    made, _, _ = program()
    compiled = made.compile("cpu_sim", passes="none", dump=True)
    after = {path.name.split("_after_")[1].removesuffix(".wsp") for path in compiled.artifact_dir.rglob("*_after_*.wsp")}
    assert after == {*required("cpu_sim")}
    assert "rowmax" in str(made.lower("cpu_sim", until="fuse_rows", passes="none"))
    assert made.lower("interp", passes="none").until == "price_tasks"
    with pytest.raises(PassStrategyError, match="`simplify` does not run"):
        made.lower("cpu_sim", until="simplify", passes="none")


@pytest.mark.slow
def test_a_pass_value_in_a_list_stands_for_the_pass_of_its_name() -> None:
    made, y, _ = program()
    made.compile("interp").run()
    expected, seen = y.data.copy(), []

    def mine(node: Kernel, context: Any) -> Kernel:
        seen.append(node.name)
        return simplify(node, context)

    def nothing_is_cubed(node: Kernel) -> None:
        assert "cube" not in node.name

    passes: list[object] = list(all_names("cpu_sim"))
    passes[passes.index("simplify")] = Pass("simplify", KERNEL, mine, nothing_is_cubed)
    passes[passes.index("fuse_rows")] = next(step for step in KERNEL_PASSES if step.name == "fuse_rows")
    y.data[:] = 7
    made.compile("cpu_sim", passes=passes).run()
    assert seen and np.array_equal(y.data, made_again(made, y, expected))

    def never(node: Kernel) -> None:
        raise AssertionError("it is never right")

    passes[passes.index("merge_common")] = Pass("merge_common", KERNEL, mine, never)
    with pytest.raises(PassError, match="it is never right"):
        made.compile("cpu_sim", passes=passes)


def made_again(made: Workload, y: Tensor, expected: Array) -> Array:
    """Return what the default passes give."""
    found = y.data.copy()
    made.compile("cpu_sim").run()
    default = y.data.copy()
    y.data[:] = found
    np.testing.assert_allclose(default, expected, rtol=2e-6, atol=1e-6)
    return default


def _swapped(names: Sequence[str]) -> list[str]:
    return [names[1], names[0], *names[2:]]


@pytest.mark.parametrize(("passes", "kind", "message", "help"), [
    (lambda: "nonne", CompileOptionError, "there is no pass strategy 'nonne'", "did you mean 'none'?"),
    (lambda: "O3", CompileOptionError, "there is no pass strategy 'O3'", None),
    (lambda: 3, CompileOptionError, "compile() option `passes` does not take this value", None),
    (lambda: [3], CompileOptionError, "a list of passes has names of passes, and Pass values", None),
    (lambda: [], PassStrategyError, "target cpu_sim does not do without pass `place_tasks`", None),
    (lambda: ["simplfy"], UnknownPassError, "target cpu_sim has no pass 'simplfy'", None),
    (lambda: [Pass("mine", KERNEL, simplify)], UnknownPassError, "target cpu_sim has no pass 'mine'", None),
    (lambda: [Pass("simplify", PLAN, simplify)], UnknownPassError, "pass `simplify` of target cpu_sim is a pass on a kernel", None),
    (lambda: _swapped(all_names("cpu_sim")), PassStrategyError, "pass `drop_repeated_checks` stands behind `place_tasks`", None),
    (lambda: [*all_names("cpu_sim"), "plan_arena"], PassStrategyError, "pass `plan_arena` stands twice in the list", None),
])
def test_mistakes_are_errors(passes: Callable[[], Any], kind: type[PtoError], message: str, help: str | None) -> None:
    with pytest.raises(kind) as caught:
        program()[0].compile("cpu_sim", passes=passes())
    assert caught.value.message == message
    if help is not None:
        assert caught.value.help == help


@pytest.mark.slow
def test_check_finite_takes_every_pass_on_kernels() -> None:
    with pytest.raises(CompileOptionError, match="package's own passes on kernels alone"):
        program()[0].compile("cpu_sim", check_finite=True, passes="none")
    program()[0].compile("cpu_sim", check_finite=True, passes="default").run()


def test_the_strategies_name_passes_and_are_listed() -> None:
    names = {name for target in TARGETS for name in all_names(target)}
    assert all((strategy.only or frozenset()) <= names for strategy in STRATEGIES)
    text = text_of(pipelines("cpu_sim"), 200)
    assert "passes='none' or 'O0'" in text and "without drop_repeated_checks, find_ragged_outputs" in text
