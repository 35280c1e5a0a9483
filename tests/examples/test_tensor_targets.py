"""The table of docs/tensor_targets.md says what each target makes of each example."""

from __future__ import annotations

import pytest

from tests.examples.tensor_targets import HOSTS, PACKAGES, PAGE, outcome
from tests.examples.tensors import EXAMPLES

TARGETS = (*HOSTS, *PACKAGES)
CELLS = {(row[0].partition("]")[0].strip("[ "), target): cell.strip() for line in PAGE.read_text(encoding="utf-8").splitlines()
         if line.startswith("| [") for row in [line.strip("| ").replace("\\|", "&").split("|")]
         for target, cell in zip(TARGETS, row[1:], strict=True)}


def test_the_table_has_every_example() -> None:
    assert list(CELLS) == [(name, target) for name in EXAMPLES for target in TARGETS]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_cell_says_what_happens(name: str, target: str) -> None:
    assert CELLS[name, target] == outcome(name, target).replace("\\|", "&"), "python -m tests.examples.tensor_targets writes the table"
