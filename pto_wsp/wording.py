"""Words for people: what reads the same wherever it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_SHOWN = 40      # lines of a long list


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun; `many`: the noun's plural where that is not `one` with an s.

    >>> counted(1, "task"), counted(0, "task"), counted(2, "entry", "entries")
    ('1 task', '0 tasks', '2 entries')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def less(fraction: float) -> str:
    """Return by how much something is less; below 1% with a digit more, so that what helps a little does not read as nothing.

    >>> less(0.14), less(0.003)
    ('−14%', '−0.3%')
    """
    return f"−{fraction:.0%}" if fraction >= 0.01 else f"−{fraction:.1%}"


def both_ends(n: int, line: Callable[[int], str], left_out: Callable[[int], str]) -> list[str]:
    """Return the lines of n rows, or of the first and the last twenty with a line about how many are left out.

    >>> both_ends(2, str, "… {}".format)
    ['0', '1']
    """
    if n <= _SHOWN:
        return [line(at) for at in range(n)]
    half = _SHOWN // 2
    return [*(line(at) for at in range(half)), left_out(n - _SHOWN), *(line(at) for at in range(n - half, n))]


def printable(text: str) -> str:
    """Return the text with every character escaped that could steer a terminal, except newlines and tabs.

    >>> printable("a\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, most: int = 120) -> str:
    """Return the text without its middle, where it is longer than `most` characters.

    >>> shortened("a long name", 7)
    'a l…ame'
    """
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that one may have been meant for, None where none is near.

    >>> nearest("treads", ["threads", "target"]), nearest("x", ["threads"])
    ('threads', None)
    """
    import difflib  # only a mistake needs it

    return next(iter(difflib.get_close_matches(name, list(known), 1)), None)


def suggestion(name: object, known: Iterable[str]) -> str | None:
    """Return the help text for an unknown name: the known name that is nearest, or the only known name that contains the unknown one.

    >>> suggestion("cpusim", ["cpu_sim", "interp"]), suggestion("910b", ["ascend_910b", "ascend_950"])
    ('did you mean cpu_sim?', 'did you mean ascend_910b?')
    """
    if not isinstance(name, str) or not name:
        return None
    names = list(known)
    near = nearest(name, names)
    holding = [one for one in names if name in one]
    near = holding[0] if near is None and len(holding) == 1 else near
    return None if near is None else f"did you mean {near}?"


_FORMS = {      # what kernels, workloads and functions on tensors have under a name of their own
    "range": ("pto.range(n)", "P.seq(n)", "tt.loop(n)"), "each": ("pto.range(n)", "P(n)", "tt.each(n)"),
    "when": ("pto.when(c)", "P.when(c)", "tt.when(c)"), "otherwise": ("pto.otherwise()", "P.otherwise()", "tt.otherwise()"),
}
_FORMS["loop"] = _FORMS["for_each"] = _FORMS["range"]
_FORMS["parallel_for"] = _FORMS["select"] = _FORMS["each"]
_FORMS["cond"] = _FORMS["when"]


def form_elsewhere(name: str) -> str:
    """Return what a loop or a branch is called in each kind of body; "" for another name."""
    forms = _FORMS.get(name)
    return "in a kernel it is {}, in a workload {}, in a function on tensors {}".format(*forms) if forms else ""
