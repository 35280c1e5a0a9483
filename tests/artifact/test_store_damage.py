"""Whatever happens to any file or folder of a store: the right result, or an error that says what to remove there, never a crash."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.artifact.damaged_stores import RIGHTS, FilledStore, Outcome, damage, damages_of, filled_store


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FilledStore:
    """Return a store with a program in it."""
    return filled_store(tmp_path_factory.mktemp("filled"))


def allowed(entry: str, name: str) -> set[str]:
    """Return what may come of a damage to what a cached start reads."""
    part, _, rest = entry.partition("/")
    if part in ("locks", "records"):            # only those who build take locks; a record that cannot be used is made again
        return {"right"}
    if name in RIGHTS:
        return {"C106"}
    if part == ".":                             # the way to the store may lead through the user's links
        return {"right"} if name in ("remove", "link") else {"C106"}
    if entry.endswith("manifest.json") and name == "longer":
        return {"right"}                        # a line without text, which JSON does not see
    if name == "remove" and rest.count("/") == 0:
        return {"right"}                        # whatever is not there is built again
    if part == "keys" and rest:
        return {"C103"} if name == "folder" else {"right"}
    return {"C103"}


def allowed_when_forgotten(entry: str, name: str) -> set[str]:
    """Return what may come of a damage to what is built again."""
    if entry.partition("/")[0] == "records":
        return {"right"}
    if name in RIGHTS:                          # rights are looked at where something is opened
        return {"right", "C106"}
    if entry.count("/") == 0 and name != "remove":
        return {"C103"}
    return {"right", "C106"} if entry.endswith(".lock") else {"right"}


def advised(outcome: Outcome) -> list[str]:
    """Return the paths that an error says to remove."""
    return re.findall(r"remove (/\S+?)[,;]", outcome.text)


def check(filled: FilledStore, cases: Iterable[tuple[str, str]], folder: Path, *, forgotten: bool = False) -> None:
    """Do each damage to a store of its own, and raise AssertionError unless what comes of it is allowed.

    `forgotten`: no key leads to what is there, so that all of it is built again, in the place of what is damaged.
    """
    listed, stores = list(cases), []
    for number, (entry, name) in enumerate(listed):
        store = filled.copy(folder / f"{number}" / "store")
        damage(store, entry, name)
        if forgotten:
            shutil.rmtree(store / "keys")
        stores.append(store)
    for (entry, name), store, outcome in zip(listed, stores, filled.run(stores), strict=True):
        expected = allowed_when_forgotten(entry, name) if forgotten else allowed(entry, name)
        assert outcome.kind in expected, f"{name} of {entry}: {outcome.kind}, not {expected}\n{outcome.text}"
        assert all(path == str(store) or path.startswith(f"{store}/") for path in advised(outcome)), outcome.text
        assert outcome.kind != "C103" or (advised(outcome) and str(store) not in advised(outcome)), outcome.text


def all_cases(filled: FilledStore) -> list[tuple[str, str]]:
    """Return every damage to every entry."""
    return [(entry, name) for entry in filled.entries() for name in damages_of(filled.root / entry)]


@pytest.mark.slow
def test_many_damages_to_all_entries(filled: FilledStore, tmp_path: Path) -> None:
    cases = all_cases(filled)
    assert len(filled.entries()) > 20 and len(cases) > 200
    check(filled, cases[::6], tmp_path)


@pytest.mark.slow
def test_many_damages_to_what_is_built_again(filled: FilledStore, tmp_path: Path) -> None:
    cases = [(entry, name) for entry, name in all_cases(filled) if not entry.startswith("keys") and entry != "."]
    check(filled, random.Random(7).sample(cases, 15), tmp_path, forgotten=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["half", "remove", "pipe"])
def test_a_library_that_no_key_leads_to_is_not_trusted(name: str, filled: FilledStore, tmp_path: Path) -> None:
    libraries = [entry for entry in filled.entries() if entry.endswith(".so")]
    assert len(libraries) == 2
    check(filled, [(entry, name) for entry in libraries], tmp_path, forgotten=True)


@pytest.mark.slow
@pytest.mark.parametrize("text", [b"../../../../../../etc", *(pytest.param(text, marks=pytest.mark.slow) for text in (
    b"", b"\xff\xfe", b"scripted-0123456789ab\n", b"0" * 64 + b" " + b"0" * 64 + b"\n"))])
def test_no_text_of_a_key_file_becomes_the_name_of_a_folder(text: bytes, filled: FilledStore, tmp_path: Path) -> None:
    store = filled.copy(tmp_path / "store")
    for key in (store / "keys").iterdir():
        key.write_bytes(text)
    assert filled.run([store]) == [Outcome("right", "")]
