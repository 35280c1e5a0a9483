"""Bodies of `with` that end, and bodies that are left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import TracebackType

import pytest

from pto_wsp.trace import bytecode

LEFT: list[bool] = []


class Watch:
    """Notes whether its body was left early."""

    def __init__(self) -> None:
        self.entered_at: list[int] = []

    def __enter__(self) -> None:
        self.entered_at.append(sys._getframe(1).f_lasti)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        entered_at = self.entered_at.pop()
        if kind is None:
            LEFT.append(bytecode.left_early(sys._getframe(1), entered_at))


def ends(w: Watch, go: Callable[..., object]) -> None:
    with w:
        go()
    with w:
        pass
    with w: pass   # noqa: E701
    go()


def ends_in_loops(w: Watch, go: Callable[..., object]) -> None:
    for _ in range(2):
        with w:
            go()
    for _ in range(1):
        with w:
            go()
        go()
    while go():
        with w:
            go()


def ends_nested(w: Watch, go: Callable[..., object]) -> None:
    with w:
        go()
        with w:
            go()
    with w, Watch():
        if go():
            go()
        else:
            go(1)
    with w:
        for _ in range(2):
            if go():
                break


def ends_as_a_value(w: Watch, go: Callable[..., object]) -> object:
    with w as nothing:
        go(nothing)
    return go()


def ends_in_a_try(w: Watch, go: Callable[..., object]) -> None:
    try:
        with w:
            go()
    finally:
        go()


def continues(w: Watch, go: Callable[..., object]) -> None:
    for _ in range(1):
        with w:
            continue
        go()


def continues_on_one_line(w: Watch, go: Callable[..., object]) -> None:
    for _ in range(1):
        with w: continue   # noqa: E701
        go()


def continues_if(w: Watch, go: Callable[..., object]) -> None:
    for _ in range(1):
        with w:
            if not go():
                continue
            go()
        go()


def breaks(w: Watch, go: Callable[..., object]) -> None:
    for _ in range(3):
        with w:
            break
    go()


def returns(w: Watch, go: Callable[..., object]) -> None:
    with w:
        if not go():
            return
    go()


def returns_a_value(w: Watch, go: Callable[..., object]) -> object:
    with w:
        return go()
    return 1


def returns_from_two(w: Watch, go: Callable[..., object]) -> None:
    with w:
        with w:
            return
        go()
    go()


@pytest.mark.parametrize("function", [ends, ends_in_loops, ends_nested, ends_as_a_value, ends_in_a_try])
def test_a_body_that_ends(function: Callable[..., object]) -> None:
    LEFT.clear()
    answers: Iterator[bool] = iter([True])
    function(Watch(), lambda *_: next(answers, False))
    assert LEFT and not any(LEFT)


@pytest.mark.parametrize("function", [continues, continues_on_one_line, continues_if, breaks, returns, returns_a_value, returns_from_two])
def test_a_body_that_is_left(function: Callable[..., object]) -> None:
    LEFT.clear()
    function(Watch(), lambda *_: False)
    assert LEFT and all(LEFT)


def test_a_body_that_no_with_has_opened() -> None:
    LEFT.clear()
    watch = Watch()
    watch.__enter__()
    watch.__exit__(None, None, None)
    assert LEFT == [False]
