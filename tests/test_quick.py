"""The quick set: every folder has a part in it, and every file that it names is there."""

from __future__ import annotations

from pathlib import Path

from tests.quick import QUICK, SAMPLED

TESTS = Path(__file__).resolve().parent
ELSEWHERE = {"benchmarks", "soak"}      # measurements


def test_every_folder_of_tests_has_a_part_in_the_quick_set() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")} - ELSEWHERE
    assert len(folders) > 10
    assert {name.partition("/")[0] for name in QUICK} == folders


def test_every_file_of_the_quick_set_is_there() -> None:
    assert all((TESTS / name).is_file() for name in QUICK)
    assert len(set(QUICK)) == len(QUICK) and SAMPLED.keys() <= set(QUICK)
