"""The golden fixture itself, in a small project of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("golden_files.py")     # all that a conftest.py needs for them
TEST = '''
import pytest

@pytest.mark.parametrize("word", {words})
def test_says(golden, word):
    golden(word + {tail!r})
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "sub").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
    write_test(tmp_path)
    return tmp_path


def write_test(project: Path, words: tuple[str, ...] = ("one",), tail: str = "\n") -> None:
    (project / "tests" / "sub" / "test_demo.py").write_text(TEST.format(words=words, tail=tail))


def run(project: Path, *options: str, ci: bool = False) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"     # what the project has installed takes a second to load
    if ci:
        env["CI"] = "1"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=project, env=env, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr


def test_missing_golden_fails(project: Path) -> None:
    code, text = run(project)
    assert code == 1
    assert "golden tests/goldens/sub/test_demo/test_says-one.txt is missing" in text


@pytest.mark.slow
def test_update_writes_and_a_change_is_shown(project: Path) -> None:
    assert run(project, "--update")[0] == 0
    assert (project / "tests/goldens/sub/test_demo/test_says-one.txt").read_text() == "one\n"
    write_test(project, tail=" more\n")
    code, text = run(project)
    assert code == 1
    assert "-one" in text and "+one more" in text


def test_update_is_refused_in_ci(project: Path) -> None:
    code, text = run(project, "--update", ci=True)
    assert code != 0
    assert "--update is refused where CI is set" in text
    assert not (project / "tests/goldens").exists()


def test_two_tests_cannot_share_a_golden(project: Path) -> None:
    write_test(project, words=("a:b", "a;b"))
    code, text = run(project, "--update")
    assert code == 1
    assert "two tests share the golden" in text
