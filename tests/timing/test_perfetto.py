"""A trace as Chrome JSON: processes, threads, slices, arrows and counters, by hand."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, In, Out, P, Program, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import ArgumentKindError, CommandError
from pto_wsp.timing.trace import Causes, Home, Trace


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


# 0 from 0 to 30 on executor 0 of AICPU 0; 1 from 30 to 50 there too; 2, which waits for 0, from 30 to 90 on executor 1 of AICPU 1
TRACE = Trace(column(0, 30, 30), column(30, 50, 90), column(0, 0, 30), column(0, 0, 1), column(0, 1, 1), ("load", "exp"),
              ("load", 'exp["é"]', "exp[1]"), 2, 90, (Home(0, 0), Home(1, 1)), 1.5,
              Causes(column(0, 0, 0), ("not", "executor", "edge"), column(-1, 0, 0)))


def events(trace: Trace, folder: Path) -> list[dict[str, object]]:
    """Write a trace and return its events."""
    written = trace.to_perfetto(str(folder / "trace.json"))
    data = json.loads(written.read_text(encoding="utf-8"))
    assert set(data) == {"traceEvents", "displayTimeUnit", "otherData"} and data["otherData"]["total_cycles"] == 90
    found: list[dict[str, object]] = data["traceEvents"]
    assert all({"ph", "name", "pid", "tid"} <= set(event) for event in found)
    return found


def test_aicpus_are_processes_and_executors_threads(tmp_path: Path) -> None:
    names = [(e["name"], e["pid"], e["tid"], e["args"]) for e in events(TRACE, tmp_path) if e["ph"] == "M" and int(str(e["pid"])) < 9]
    assert names == [("process_name", 0, 0, {"name": "AICPU 0"}), ("process_name", 1, 0, {"name": "AICPU 1"}),
                     ("thread_name", 0, 0, {"name": "executor 0 (pool 0)"}), ("thread_name", 1, 1, {"name": "executor 1 (pool 1)"})]


def test_a_task_is_a_slice_in_microseconds_of_the_clock(tmp_path: Path) -> None:
    slices = [e for e in events(TRACE, tmp_path) if e["ph"] == "X"]
    names = [(e["name"], e["cat"], e["pid"], e["tid"]) for e in slices]
    assert names == [("load", "load", 0, 0), ('exp["é"]', "exp", 0, 0), ("exp[1]", "exp", 1, 1)]
    assert [(e["ts"], e["dur"]) for e in slices] == [pytest.approx(times) for times in ((0, 0.02), (0.02, 0.04 / 3), (0.02, 0.04))]
    assert slices[2]["args"] == {"task": 2, "cycles": 60, "ready": 30, "submitted": 0, "delayed by": "edge"}


def test_arrows_come_from_the_task_that_was_waited_for(tmp_path: Path) -> None:
    arrows = [(e["ph"], e["id"], e["pid"], e["tid"], round(float(str(e["ts"])) * 1500)) for e in events(TRACE, tmp_path) if e["ph"] in "sf"]
    assert arrows == [("s", 1, 0, 0, 29), ("f", 1, 0, 0, 30), ("s", 2, 0, 0, 29), ("f", 2, 1, 1, 30)]


def test_counters_change_when_tasks_come_and_go(tmp_path: Path) -> None:
    counts = [(e["name"], round(float(str(e["ts"])) * 1500), e["args"]) for e in events(TRACE, tmp_path) if e["ph"] == "C"]
    assert counts == [*(("submitted, not ended", at, {"tasks": n}) for at, n in ((0, 3), (30, 2), (50, 1), (90, 0))),
                      *(("ready, not running", at, {"tasks": n}) for at, n in ((0, 1), (30, 0)))]


def test_without_a_clock_a_cycle_is_a_microsecond(tmp_path: Path) -> None:
    found = [e for e in events(replace(TRACE, clock_ghz=None, causes=None, homes=()), tmp_path) if e["ph"] != "M"]
    assert [(e["ph"], e["ts"], e["dur"], e["pid"]) for e in found] == [("X", 0, 30, 0), ("X", 30, 20, 0), ("X", 30, 60, 1)]
    assert "microsecond" in (tmp_path / "trace.json").read_text()


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="the trace cannot be written there"):
        TRACE.to_perfetto(tmp_path / "no" / "trace.json")


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(ArgumentKindError, match="to_perfetto takes a path"):
        TRACE.to_perfetto(None)  # type: ignore[arg-type]


# -- whole runs --------------------------------------------------------------------------------------------------------
X, Y, Z = (Tensor(np.ones((8, 4, 16), np.float32)) for _ in range(3))


@kernel
def scale(x: In[Tile[4, 16, DType.F32]], y: Out[Tile[4, 16, DType.F32]]) -> None:
    pto.store(y, x * 2.0)


@workload
def chain() -> None:
    for b in P(8):
        scale[b](X[b], Y[b])
        scale[b](Y[b], Z[b])


def program() -> Program:
    return chain().dispatch(DispatchPolicy.round_robin(3)).compile(target="interp", arch="ascend_910b", overheads=True).run()


def test_a_run_keeps_the_rules_of_the_format(tmp_path: Path) -> None:
    """Complete events have times that are numbers, nest or follow one another on a thread, and arrows come in pairs inside slices."""
    found = json.loads(program().trace.to_perfetto(tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    assert {event["ph"] for event in found} == {"M", "X", "s", "f", "C"}
    timed = [event for event in found if event["ph"] != "M"]
    assert all(math.isfinite(event["ts"]) and event["ts"] >= 0 and isinstance(event["pid"], int) and isinstance(event["tid"], int)
               for event in timed)
    rows: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in rows.values():
        spans.sort()
        assert all(first[1] <= second[0] + 1e-9 for first, second in pairwise(spans))
    flows = Counter((event["id"], event["ph"]) for event in found if event["ph"] in "sf")
    begun, ended = ({number for number, ph in flows if ph == kind} for kind in "sf")
    assert set(flows.values()) == {1} and begun == ended
    for event in found:
        if event["ph"] in "sf":
            assert any(begin <= event["ts"] <= end for begin, end in rows[event["pid"], event["tid"]])
    named = {(event["pid"], event["tid"]) for event in found if event["name"] == "thread_name"}
    assert set(rows) <= named and all(isinstance(value, int) for event in found if event["ph"] == "C" for value in event["args"].values())


def test_the_parser_of_the_format_reads_a_run(tmp_path: Path) -> None:
    processor = pytest.importorskip("perfetto.trace_processor")
    shell = shutil.which("trace_processor_shell")
    if shell is None:
        pytest.skip("no trace_processor_shell, which the Python package would fetch")
    done = program()
    path = done.trace.to_perfetto(tmp_path / "t.json")
    with processor.TraceProcessor(trace=str(path), config=processor.TraceProcessorConfig(bin_path=shell)) as read:
        (slices,), (flows,) = ([row.n for row in read.query(f"select count(*) as n from {table}")] for table in ("slice", "flow"))
        (errors,) = [row.n for row in read.query("select coalesce(sum(value), 0) as n from stats where severity = 'error'")]
    assert slices == 16 and errors == 0 and flows == int((done.trace.causes.task >= 0).sum())  # type: ignore[union-attr]
