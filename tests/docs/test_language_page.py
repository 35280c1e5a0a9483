"""The names on the page of the language are those that bodies take. `--update` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pto_wsp.trace.tensor import torch_functions
from pto_wsp.trace.tensor.namespace import MEMBERS, OWN
from pto_wsp.trace.tensor.protocols import FUNCTIONS, METHODS, meaning_of_ufunc

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tensor_language.md"
BEGIN, END = "<!-- names: written by tests/docs/test_language_page.py -->", "<!-- end of names -->"


def _listed(names: object) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))  # type: ignore[call-overload]


def names_table() -> str:
    known = [one for one in vars(np).values() if isinstance(one, np.ufunc) and meaning_of_ufunc(one) is not None]
    rows = [("`np.`", {*FUNCTIONS, *(one.__name__ for one in known)}), ("methods", METHODS), ("`torch.`, `F.`", torch_functions.FUNCTIONS),
            ("`tt.` alone", OWN), ("`tt.`, ops", {*MEMBERS} - {*OWN})]
    return "\n".join(["| of | names |", "| --- | --- |", *(f"| {of} | {_listed(names)} |" for of, names in rows)])


def test_the_names_are_those_that_bodies_take(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    found, _, after = rest.partition(END)
    if request.config.getoption("--update"):
        PAGE.write_text(f"{before}{BEGIN}\n\n{names_table()}\n\n{END}{after}", encoding="utf-8")
        return
    assert found.strip() == names_table(), "the names have changed: write docs/tensor_language.md anew with --update"


def test_every_code_of_the_page_is_an_error() -> None:
    import pto_wsp.errors as errors

    known = {getattr(one, "code", "") for one in vars(errors).values()}
    refused = PAGE.read_text(encoding="utf-8").partition("## What is refused")[2]
    assert {*re.findall(r"\b[JKT]\d{3}\b", refused)} <= known
