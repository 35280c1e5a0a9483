"""docs/errors.md is what the classes of errors say; `--update` writes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pto_wsp.cli.main import main
from pto_wsp.errors.page import STAGES, errors_by_code, errors_page, explanation

FIX = errors_by_code()["W201"].fix
PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


def test_the_page_is_what_the_classes_say(request: pytest.FixtureRequest) -> None:
    text = errors_page()
    if request.config.getoption("--update"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, f"the errors have changed: write docs{os.sep}errors.md anew with --update"


def test_every_error_says_cause_example_and_fix() -> None:
    silent = [code for code, kind in errors_by_code().items() if not (kind.cause and kind.example and kind.fix)]
    assert not silent


def test_a_code_is_one_error_of_one_stage() -> None:
    kinds = list(errors_by_code().values())
    assert len({kind.code for kind in kinds}) == len(kinds) > 70 and {code[0] for code in errors_by_code()} == set(STAGES)


def test_the_command_explains_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", "w201"])
    assert not ended.value.code
    shown = capsys.readouterr().out
    wanted = explanation("W201").replace("For example:", "For example").replace(FIX, f"What to do {FIX}")
    assert "".join(shown.split()) == "".join(wanted.split())
    assert shown.startswith("W201  RaceError")


@pytest.mark.parametrize("code, near", [("W20", "help:     W20"), ("X999", "")])
def test_a_code_that_no_error_has_is_refused(code: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", code])
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert "error[C108]" in text and code in text and near in text
