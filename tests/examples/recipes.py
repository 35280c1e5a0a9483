"""The recipes of examples/recipes: their files as modules, and the sizes to try beside their own."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp import PtoError, Workload

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "recipes"
Data = dict[str, Any]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Recipe:
    """One file: the workload that it defines, and the sizes to try beside its own, as arguments of `draw`."""

    name: str
    workload: str
    sizes: tuple[tuple[Any, ...], ...]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    @property
    def module(self) -> ModuleType:
        return _module(self.name)

    @property
    def plain(self) -> Workload:
        """Return the workload without a schedule."""
        made: Workload = getattr(self.module, self.workload)()
        return made

    @property
    def scheduled(self) -> Workload:
        """Return the workload with the schedule of the file."""
        made: Workload = self.module.scheduled
        return made

    def draws(self) -> list[Data]:
        """Return the arrays of each size, new ones at each call; the first are of the file's own first sizes."""
        return [{name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in self.module.FIRST.items()},
                *(self.module.draw(*sizes, seed=7 + k) for k, sizes in enumerate(self.sizes))]

    def expected(self, data: Data) -> dict[str, Array]:
        """Return what the file's own reference gives, by name."""
        found: dict[str, Array] = self.module.expected(**data)
        return found


RECIPES = {recipe.name: recipe for recipe in (
    Recipe("mla_decode", "decode", (([64],), ([0, 0, 1],), ([31, 33, 32, 0, 96, 97, 5],))),
    Recipe("gqa_paged", "decode", (([1],), ([160, 16, 17, 15], 9), ([1, 1, 1, 40],))),
    Recipe("quantised_gemm", "linear", ((1,), (16,), (97,), (0,))),
    Recipe("moe_dropping", "layer", ((64, 8.0), (1,), (33, 0.0), (17, -2.0))),
    Recipe("tree_attention", "speculate", (([0], [16]), ([112, 1, 7, 30, 64], [16, 1, 2, 3, 4]), ([5] * 8, [6] * 8))),
    Recipe("sparse_attention", "attention", (([1],), ([16, 17, 0, 15, 200],))),
    Recipe("mamba2", "scan", (([0],), ([32, 33, 31, 0, 0, 1],))),
    Recipe("generation", "generate", (([1],), ([30, 1, 2, 3, 17, 8], 20), ([3], 0))),
)}


ARCH = "ascend_910b"      # the machine of the page's cycles, and of the files' own runs


@cache
def refusal(name: str, target: str, runtime: str | None = None) -> PtoError | None:
    """Return the error with which a target refuses a recipe, or None where it makes a package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)       # what is recorded and not enforced
        try:
            RECIPES[name].scheduled.compile(target=target, options={"runtime": runtime} if runtime else {})
        except PtoError as error:
            return error
    return None


def page_table() -> str:
    """Return the table of docs/recipes.md."""
    rows = [("recipe", "lines", "tasks", "cycles, no schedule", "its schedule", "`cpu_sim`, `interp`", "`ascend_npu`",
             "for `host_build_graph`", "`pto`"), ("---",) * 9]
    for recipe in RECIPES.values():
        stats = [scheduled.compile(target="interp", arch=ARCH).run(**recipe.draws()[0]).stats
                 for scheduled in (recipe.plain, recipe.scheduled)]
        targets = (("ascend_npu", None), ("ascend_npu", "host_build_graph"), ("pto", None))
        rows.append((f"[{recipe.name}](../examples/recipes/{recipe.path.name})", str(len(recipe.lines)), str(stats[1].task_count),
                     *(f"{each.total_cycles:,}" for each in stats), "runs", *(_taken(recipe, *target) for target in targets)))
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _taken(recipe: Recipe, target: str, runtime: str | None) -> str:
    error = refusal(recipe.name, target, runtime)
    if error is None:
        return "a package"
    assert error.span is not None and Path(error.span.file) == recipe.path
    there = recipe.lines[error.span.line - 1][error.span.column - 1:].partition("(")[0]
    why = f"has no form of `{there}`" if target == "pto" else error.message.partition(" cannot ")[2].replace("read", "cannot read")
    return f"refused, {error.code}: {why}"


@cache
def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"recipe_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
