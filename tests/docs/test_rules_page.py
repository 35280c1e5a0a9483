"""docs/tile_rules.md is what the rules of the instruction table say; `--update` writes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pto_wsp.npu.isa.rules import RULES, rules_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tile_rules.md"


def test_the_page_is_what_the_rules_say(request: pytest.FixtureRequest) -> None:
    text = rules_page()
    if request.config.getoption("--update"):
        PAGE.write_text(text, encoding="utf-8")
        return
    assert PAGE.read_text(encoding="utf-8") == text, f"the rules have changed: write docs{os.sep}tile_rules.md anew with --update"


def test_every_rule_is_on_the_page() -> None:
    text = rules_page()
    assert [rule.name for rule in RULES if f"`{rule.name}`" not in text or rule.text not in text] == []
