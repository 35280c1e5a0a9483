"""The error tree: a code means one thing, and every class says what it is for."""

from __future__ import annotations

import re
from collections import Counter

from pto_wsp.errors import catalog


def test_a_code_is_given_once() -> None:
    assert [code for code, count in Counter(kind.code for kind in catalog()).items() if count > 1] == []


def test_every_error_says_its_cause_an_example_and_the_fix() -> None:
    for kind in catalog():
        assert re.fullmatch(r"[KTDWSCRNJM][1-9]\d\d", kind.code), kind
        assert kind.cause and kind.example and kind.fix, kind
