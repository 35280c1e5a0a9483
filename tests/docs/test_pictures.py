"""The pictures of the README and the pages are what docs/pictures/make.py draws; `python docs/pictures/make.py` writes them."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from pto_wsp import builtin_arch
from pto_wsp.arch.instances import ARCH_NAMES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
MAKE: dict[str, Any] = runpy.run_path(str(FOLDER / "make.py"))
OF_RUNS = {"schedules", "iteration_space", "over_ranks"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in OF_RUNS else name for name in MAKE["PICTURES"]])
def test_a_picture_is_what_the_script_draws(name: str) -> None:
    drawn = MAKE["PICTURES"][name]()
    assert MAKE["PICTURES"][name]() == drawn, "two calls draw the same"
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawn, f"write it anew: python docs/pictures/make.py {name}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_is_complete_in_itself(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    ET.fromstring(text)
    assert len(text) < 40_000 and not any(word in text for word in ("<script", "<foreignObject", "href", "url(", "@import"))
    assert path.name == "mark.svg" or "prefers-color-scheme:dark" in text


def test_every_built_in_machine_has_a_picture() -> None:
    assert {f"machine_{name}" for name in ARCH_NAMES} <= set(MAKE["PICTURES"])


def test_a_machine_is_drawn_with_its_executors() -> None:
    drawn = (FOLDER / "machine_ascend_910b.svg").read_text(encoding="utf-8")
    counts = [drawn.count(f'<rect class="c{pool}"') for pool in (0, 1)]
    assert counts == [24 + 1, 48 + 1]                  # cores, and the unit inside of one
    for number in ("512 KiB", "192 KiB", "~1,152 bytes a cycle", "~1,200 cycles to submit", "600 to dispatch", "400 to retire"):
        assert number in drawn


def test_the_cpu_of_the_picture_is_like_that_of_this_machine() -> None:
    real, drawn = builtin_arch("host_cpu"), MAKE["example_cpu"]()
    assert real.cores.shared and drawn.cores.shared and real.clock_ghz != 0
    assert real.aicpu == drawn.aicpu
    assert all(memory.name == "GM" or memory.name.startswith("cache ") for memory in (*real.memories, *drawn.memories))


def test_a_picture_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert MAKE["main"](["no_such"]) == 2
    assert "no_such" in capsys.readouterr().err
