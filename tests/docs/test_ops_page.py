"""docs/ops.md is what the op table says; `--update` writes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pto_wsp import pto
from pto_wsp.api.ops_page import ops_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"


def test_the_page_is_what_the_table_says(request: pytest.FixtureRequest) -> None:
    text = ops_page()
    if request.config.getoption("--update"):
        PAGE.write_text(text, encoding="utf-8")
        return
    assert PAGE.read_text(encoding="utf-8") == text, f"the op table has changed: write docs{os.sep}ops.md anew with --update"


def test_every_name_is_on_the_page() -> None:
    text = ops_page()
    assert [name for name in dir(pto) if f"`pto.{name}(" not in text and f"`pto.{name}`" not in text] == []


def test_no_call_has_two_rows() -> None:
    calls = [line.split(" | ")[0] for line in ops_page().splitlines() if line.startswith("| `pto.")]
    assert sorted(calls) == sorted(set(calls))


def test_tables_are_well_formed() -> None:
    widths: list[int] = []
    for line in ops_page().splitlines():
        cells = line.replace("\\|", "").count("|")
        widths = [*widths, cells] if line.startswith("|") else []
        assert len(set(widths)) <= 1, line
