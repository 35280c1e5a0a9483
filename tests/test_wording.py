"""Numbers with their nouns, and names that may have been meant."""

from pto_wsp.ir.execution_rules import ExecutionRules, WindowUnit
from pto_wsp.wording import counted, less, nearest


def test_one_is_not_many() -> None:
    assert [counted(n, "cycle") for n in (0, 1, 2)] == ["0 cycles", "1 cycle", "2 cycles"]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]


def test_what_helps_a_little_does_not_read_as_nothing() -> None:
    assert [less(fraction) for fraction in (0.5, 0.014, 0.0031)] == ["−50%", "−1%", "−0.3%"]


def test_a_window_says_its_unit() -> None:
    said = [ExecutionRules(window=size, window_unit=unit).window_text for size, unit in
            ((1, WindowUnit.TASKS), (8192, WindowUnit.TASKS), (64, WindowUnit.BYTES), (1, WindowUnit.ENTRIES), (2, WindowUnit.ENTRIES))]
    assert said == ["window of 1 task", "window of 8192 tasks", "window of 64 bytes", "window of 1 entry", "window of 2 entries"]


def test_a_near_name_is_found_and_a_far_one_is_not() -> None:
    assert [nearest(name, iter(("threads", "target", "thread"))) for name in ("threds", "targt", "x")] == ["threads", "target", None]
