"""What a cached artifact depends on beside the program: every module, template and C file of the package, Python, NumPy."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import resources
from pto_wsp.artifact import build
from tests.artifact.small_program import SCRIPT, finish, small, start
from tests.caches import with_runtime

ASK = SCRIPT.replace('print(program.artifact_dir or "none")', 'print("hit" if program._compiled.from_cache else "miss")')


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources that may be changed, with a script and a cache of its own."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in (Path(resources.__file__).parent, resources.csrc_dir(), resources.templates_dir()):
        shutil.copytree(folder, root / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "model.py").write_text(ASK)
    with_runtime(root / "cache")
    return root


def ask(checkout: Path, *, target: str = "cpu_sim") -> str:
    """Return what a process says of the cache: hit or miss."""
    return finish(start(checkout / "model.py", checkout / "cache", target, env={"PYTHONPATH": str(checkout)})).name


@pytest.mark.slow      # the digest itself is looked at in tests/test_resources.py
@pytest.mark.parametrize("name", [
    "pto_wsp/plan/waits/handles.py", "csrc/include/pto_math.h", "templates/cpu_sim/tables.c.j2", "pto_wsp/types/dtype.py",
    "pto_wsp/__init__.py", "pto_wsp/artifact/store.py", "pto_wsp/codegen/cpu_sim.py", "pto_wsp/expr/kernel.py",
    "pto_wsp/plan/targets/capability.py", "pto_wsp/schedule/schedule.py", "pto_wsp/values.py", "pto_wsp/view/timeline.py"])
def test_a_changed_file_of_the_package_is_a_miss(name: str, checkout: Path) -> None:
    ask(checkout)
    assert ask(checkout) == "hit"
    path = checkout / name
    text = path.read_text()
    path.write_text(text + "\n")
    try:
        assert ask(checkout) == "miss"
    finally:
        path.write_text(text)


@pytest.mark.parametrize(("owner", "name"), [(np, "__version__"), (build.sys, "version")])
def test_another_python_or_numpy_is_a_miss(owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small(factor=61)
    assert small(factor=61)[0]._compiled.from_cache
    key = build.package_key()
    monkeypatch.setattr(owner, name, "0.0")
    assert build.package_key() != key
    program, found = small(factor=61)
    assert not program._compiled.from_cache
    program.run()
    assert (found == 122).all()
