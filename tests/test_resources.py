"""The two homes of csrc/ and templates/."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto_wsp import resources


def test_finds_the_abi_header() -> None:
    assert (resources.csrc_dir() / "include" / "pto_abi.h").is_file()


def test_finds_the_templates() -> None:
    assert resources.templates_dir().is_dir()


def test_prefers_the_wheels_home(tmp_path: Path) -> None:
    package = tmp_path / "pto_wsp"
    (package / "_data" / "csrc").mkdir(parents=True)
    (tmp_path / "csrc").mkdir()
    assert resources._find("csrc", package) == package / "_data" / "csrc"


def test_names_both_homes_when_neither_is_there(tmp_path: Path) -> None:
    package = tmp_path / "pto_wsp"
    with pytest.raises(FileNotFoundError) as caught:
        resources._find("templates", package)
    assert str(package / "_data" / "templates") in str(caught.value)
    assert str(tmp_path / "templates") in str(caught.value)
