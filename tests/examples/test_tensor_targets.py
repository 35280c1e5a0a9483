"""The table of docs/tensor_targets.md says what each target makes of each example."""

from __future__ import annotations

import pytest

from pto_wsp import PtoError
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lightning_indexer", "moe", "decode_layer", "paged_attention"])
def test_a_package_without_arrays_asks_for_sizes_before_anything_else(name: str) -> None:
    """N106, N101 or data that decides on tasks would come next, and arrays would answer all of them."""
    function = EXAMPLES[name].function
    with pytest.raises(PtoError, match="only a run knows the size of") as caught:
        function.lower(function.plan(target="ascend_npu")).compile(target="ascend_npu")
    assert {error.code for error in (caught.value, *caught.value.others)} == {"C109"} and "_tensor`" not in str(caught.value)
