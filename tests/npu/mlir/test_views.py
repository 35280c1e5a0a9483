"""What `.pto` text means is what the program means: run on the emulated core with a buffer for every tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pto_wsp.errors import DialectError
from pto_wsp.npu.emit.mlir_views import part_views, parts_of
from pto_wsp.npu.isa.tile_program import For, If, Instr, Step, TileProgram, steps
from tests.npu.kernels import test_families, test_vector
from tests.npu.kernels.batch import Case, check, selected_of
from tests.npu.mlir.separate import separate


def with_form() -> Iterator[Case]:
    """Yield cases of which the text has a form: statistics of rows, masks, parts of buffers, loops that carry state."""
    for case in (*test_vector.ragged(), *test_vector.loops(), *test_vector.lies(), *tuple(test_vector.reductions())[::8],
                 *test_families.bands(), *test_families.places(), *test_families.masks()[::4]):
        try:
            part_views(selected_of(case, "a2a3"))
        except DialectError:
            continue
        yield case


def reshapes(program: TileProgram) -> int:
    return sum(isinstance(step, Instr) and step.name == "TRESHAPE" for step in steps(part_views(program).body))


def without_reshapes(program: TileProgram) -> TileProgram:
    """Return the program with its views as `part_views` makes them, but with no reshape."""
    def kept(body: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(_inside(step) for step in body if not (isinstance(step, Instr) and step.name == "TRESHAPE"))

    def _inside(step: Step) -> Step:
        match step:
            case For():
                return replace(step, body=kept(step.body))
            case If():
                return replace(step, then=kept(step.then), other=kept(step.other))
            case _:
                return step

    made = part_views(program)
    return replace(made, body=kept(made.body))


@pytest.mark.slow
def test_buffers_of_their_own_change_no_result() -> None:
    check(tuple(with_form())[::4], "a2a3", separate)


@pytest.mark.slow
def test_buffers_of_their_own_change_no_result_of_any_case() -> None:
    check(tuple(with_form()), "a2a3", separate)


@pytest.mark.slow
def test_the_cases_have_reshapes_and_parts() -> None:
    programs = [selected_of(case, "a2a3") for case in with_form()]
    assert sum(map(reshapes, programs)) > 50
    assert sum(len(parts_of(program)) for program in programs) > 50


@pytest.mark.slow
def test_a_reshape_that_is_left_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.npu.mlir.separate.part_views", without_reshapes)
    with pytest.raises(AssertionError, match=r"of \d+ cases"):
        check(tuple(test_vector.ragged()), "a2a3", separate)
