"""Every recipe gives NumPy's numbers for several sizes, on each path that runs here, with the same bits under every schedule."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, Program, TaskWindow, WindowMode, Workload
from tests.docs.test_blocks import blocks_of
from tests.examples.recipes import ARCH, FOLDER, RECIPES, Array, Recipe, page_table
from tests.npu.harness import FAMILIES, check_package
from tests.tolerances import SUMS, assert_identical, assert_near

OTHER_SCHEDULES: dict[str, Callable[[Recipe], Workload]] = {
    "none": lambda recipe: recipe.plain,
    "narrow window": lambda recipe: recipe.plain.dispatch(DispatchPolicy.round_robin(3)).task_graph(
        window=TaskWindow(4, "tasks", WindowMode.STALL)),
}
PAGE = FOLDER.parents[1] / "docs" / "recipes.md"
every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
# Two recipes are compiled to C in the fast tests, all of them in the slow ones.
FAST = ("gqa_paged", "generation")
every_compiled_recipe = pytest.mark.parametrize("recipe", [
    pytest.param(recipe, id=name, marks=() if name in FAST else pytest.mark.slow) for name, recipe in RECIPES.items()])


def section(recipe: Recipe) -> str:
    """Return the part of the page that begins with a link to the recipe's file."""
    link = f"\n[{recipe.path.name}](../examples/recipes/{recipe.path.name})"
    return PAGE.read_text(encoding="utf-8").partition(link)[2].partition("\n## ")[0]


def runs(recipe: Recipe, program: Program) -> list[dict[str, Array]]:
    """Run a program on each of the sizes, and return what it has written."""
    found = []
    for data in recipe.draws():
        names = recipe.expected(data)
        program.run(**data)
        found.append({name: data[name] for name in names})
    return found


def compare(recipe: Recipe, found: list[dict[str, Array]]) -> None:
    """Raise AssertionError unless floats agree with the file's reference in float64, and whole numbers are equal."""
    for k, data in enumerate(recipe.draws()):
        for name, wanted in recipe.expected(data).items():
            where = f"{name}, sizes {k}"
            if wanted.dtype.kind == "i":
                assert_identical(found[k][name], wanted, where)
            else:
                size = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
                assert_near(found[k][name], wanted.astype(np.float32), SUMS[DType.F32], where, scale=size)


def test_every_recipe_is_in_the_table() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(RECIPES)


@every_recipe
def test_a_recipe_is_short(recipe: Recipe) -> None:
    assert len(recipe.lines) < 110


@every_compiled_recipe
@pytest.mark.sampled(2)
def test_a_recipe_runs_as_a_script(recipe: Recipe, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(recipe.path)], cwd=tmp_path, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 2 and not list(tmp_path.iterdir())
    assert f"```text\n{done.stdout}```" in section(recipe), f"docs/recipes.md shows another output of {recipe.name}:\n{done.stdout}"


@every_recipe
def test_the_page_shows_the_lines_of_the_file(recipe: Recipe) -> None:
    blocks = blocks_of(section(recipe))
    assert blocks and all(block.code in recipe.path.read_text(encoding="utf-8") for block in blocks)


@pytest.mark.slow
def test_the_page_says_what_each_target_makes_of_a_recipe() -> None:
    table = page_table()
    assert table in PAGE.read_text(encoding="utf-8"), f"the table of docs/recipes.md is\n{table}"


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "family"), [pytest.param(recipe, FAMILIES[number % 2], id=f"{name}-{FAMILIES[number % 2]}")
                                               for number, (name, recipe) in enumerate(RECIPES.items())])
def test_the_package_of_a_recipe_gives_what_its_golden_says(recipe: Recipe, family: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)       # what is recorded and not enforced
        program = recipe.scheduled.compile(target="ascend_npu", arch={"a2a3": "ascend_910b", "a5": "ascend_950"}[family])
    assert program.artifact_dir is not None
    check_package(program.artifact_dir, family, params={"steps": 24} if recipe.name == "generation" else None)


@pytest.mark.sampled(2)
@every_compiled_recipe
def test_a_recipe_gives_numpys_numbers_in_c(recipe: Recipe) -> None:
    compare(recipe, runs(recipe, recipe.scheduled.compile(arch=ARCH, threads=3)))


@every_recipe
@pytest.mark.sampled(4)
def test_a_recipe_gives_numpys_numbers_in_numpy(recipe: Recipe) -> None:
    compare(recipe, runs(recipe, recipe.scheduled.compile(target="interp", arch=ARCH)))


@pytest.mark.slow
@every_compiled_recipe
def test_a_recipe_verifies(recipe: Recipe) -> None:
    program = recipe.scheduled.compile(arch=ARCH, threads=3)
    for data in recipe.draws():
        program.verify(**data)


@pytest.mark.slow
@every_recipe
def test_a_recipe_gives_the_same_bits_under_every_schedule(recipe: Recipe) -> None:
    wanted = runs(recipe, recipe.scheduled.compile(threads=1))
    for schedule, scheduled in {"of the file": lambda recipe: recipe.scheduled, **OTHER_SCHEDULES}.items():
        for threads in (1, 3):
            for k, found in enumerate(runs(recipe, scheduled(recipe).compile(threads=threads))):
                for name, array in found.items():
                    assert_identical(array, wanted[k][name], f"{name}, sizes {k}, schedule {schedule}, {threads} threads")
