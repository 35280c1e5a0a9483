"""Passes: what each changed, its time, and whether kernels keep their numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.ir import kernel as k
from pto_wsp.view.card import DiffPart, TablePart
from pto_wsp.view.pass_cards import lowered_card
from tests.view.test_cards import part_of, text_of

X, Y = (Tensor(np.ones((6, 4), np.float32), name=name) for name in "XY")


@kernel
def halves(x: In[Tile[2, 4, DType.F32]], y: Out[Tile[2, 4, DType.F32]]) -> None:
    pto.store(y, x / 2.0 + x / 2.0)


@workload
def all_halves() -> None:
    for b in P(3):
        halves[b](x=X[2 * b:2 * b + 2], y=Y[2 * b:2 * b + 2])


def made() -> Workload:
    return all_halves()


def test_lowering_keeps_what_each_pass_changed() -> None:
    lowered = made().lower("cpu_sim", until="drop_dead_code", verify_passes=True)
    steps = {step.name: step for step in lowered.steps}
    merged = steps["merge_common"]
    assert merged.changed and merged.level == "kernel" and merged.ir == "halves" and merged.same_numbers is True
    assert "-    %2 = div %0, 2.0" in "\n".join(merged.diff())
    assert not steps["forward_buffers"].changed and str(steps["forward_buffers"]) == "it changed nothing"
    assert list(steps)[-1] == lowered.until and all(step.seconds >= 0 for step in lowered.steps)
    assert repr(merged) == "PassRun(merge_common on kernel halves: changed)"
    diffs = {part.title: part for part in lowered.card.parts if isinstance(part, DiffPart)}
    assert diffs["merge_common"].lines == merged.diff()
    rows = {row[1]: row for row in part_of(lowered.card, TablePart).rows}
    assert rows["merge_common"][5] == "same" and rows["forward_buffers"][3] == ""
    assert f"{sum(step.changed for step in lowered.steps)} of {len(lowered.steps)} passes" in lowered.card.sentence
    assert lowered.card.sentence.endswith("kernels compute the same numbers.")


def test_without_verification_nothing_is_said_of_numbers() -> None:
    lowered = made().lower("ascend_npu")
    assert all(step.same_numbers is None for step in lowered.steps)
    assert "numbers" not in lowered.card.sentence
    assert {"plan", "kernel", "tile program"} <= {step.level for step in lowered.steps}
    text_of(lowered._repr_mimebundle_()["text/html"])


def test_a_pass_that_changes_the_numbers_is_red() -> None:
    (ir,) = made().lower("cpu_sim", until="merge_common").irs
    assert isinstance(ir, k.Kernel)
    steps = made().lower("cpu_sim", until="merge_common").steps
    card = lowered_card("merge_common", "", [replace(step, same_numbers=False) if step.changed else step for step in steps])
    assert card.tone == "bad" and "changed the numbers" in card.sentence


def test_a_pass_shows_its_diff() -> None:
    step = next(step for step in made().lower("cpu_sim", until="merge_common").steps if step.name == "merge_common")
    card = step.card
    assert part_of(card, DiffPart).lines == step.diff() and "ms" in card.state
    nothing = next(step for step in made().lower("cpu_sim", until="merge_common").steps if not step.changed)
    assert nothing.card.sentence == "It changed nothing." and nothing.card.parts == ()
