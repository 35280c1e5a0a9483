"""The report as a file: what its data says of a run, its size, what it escapes, and that it may ask for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Deps,
    DispatchPolicy,
    DType,
    In,
    Mesh,
    Out,
    P,
    Pools,
    Program,
    TaskWindow,
    Tensor,
    TensorLayout,
    Tile,
    WindowMode,
    builtin_arch,
    connect,
    consume,
    copy,
    kernel,
    process,
    pto,
    send,
    workload,
)
from pto_wsp.api.finished_run import FinishedRun
from pto_wsp.view.html import page_of
from pto_wsp.view.run_page import encoded, json_of

F32 = DType.F32
X, Y, Z = (Tensor(np.ones((3, 4, 16, 64), np.float32)) for _ in range(3))
W = Tensor(np.ones((64, 64), np.float32))
LENS = Tensor(np.array([2, 0, 3], np.int64))


@kernel
def scale(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel
def mm(x: In[Tile[16, 64, F32]], w: In[Tile[64, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x @ w)


@workload
def layer() -> None:
    for b in P(3):
        for t in P.seq(4):
            scale[b, t](X[b, t], Y[b, t])
            mm[b, t](Y[b, t], W, Z[b, t], label="a & b <i>")


@pytest.fixture(scope="module")
def program() -> Program:
    scheduled = layer().dispatch(DispatchPolicy.round_robin(num_aicpus=2)).task_graph(
        window=TaskWindow(4, "tasks", WindowMode.STALL), pools=Pools.by_exec_unit())
    return scheduled.compile(target="interp", arch="ascend_910b", overheads=True).run()


def decoded(column: dict[str, Any]) -> np.ndarray:
    """Return a column as the page's script reads it."""
    n = column["n"]
    if "type" not in column:
        return np.full(n, column["base"])
    raw = np.frombuffer(zlib.decompress(base64.b64decode(column["data"])), np.uint8)
    if column["type"] == "f8":
        return raw.view(np.float64)
    width = int(column["type"][1])
    values = (raw.reshape(width, n).astype(np.int64) << (8 * np.arange(width))[:, None]).sum(axis=0) + column["base"]
    return np.cumsum(np.append(column["delta"], values[1:])) if "delta" in column else values


def data_of(path: Path) -> dict[str, Any]:
    """Return the data of a written report."""
    found = re.findall('<script type="application/json" id="run">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 1
    data: dict[str, Any] = json.loads(found[0])
    return data


@pytest.mark.parametrize("values", [
    [], [5], [7, 7, 7], [3, 1, 2], list(range(0, 10 ** 6, 1000)), [-5, 300, -70000], [0, 1 << 40, 5], [0, 255], [0, 256], [0, 65535, 65536],
    [1 << 40, (1 << 40) + 1, (1 << 40) + 3]])
def test_columns_come_back_as_they_were(values: list[int]) -> None:
    column = json.loads(json.dumps(encoded(np.array(values, np.int64))))
    assert decoded(column).tolist() == values


def test_columns_take_the_narrower_form() -> None:
    assert encoded(np.arange(0, 10 ** 9, 10 ** 6) + np.arange(1000) % 3)["type"] == "u1"       # differences
    assert "delta" not in encoded(np.array([0, 200, 0, 200]))


def test_the_data_says_what_the_run_was(program: Program, tmp_path: Path) -> None:
    data, trace = data_of(program.report(tmp_path / "x.html")), program.trace
    columns = {name: decoded(column) for name, column in data["columns"].items()}
    submit = columns["submit"]
    ready = submit + columns["ready"]
    start = np.maximum(ready, submit) + columns["start"]
    assert (start == trace.start).all() and (start + columns["run"] == trace.end).all() and (ready == trace.ready).all()
    assert (columns["executor"] == trace.executor).all() and trace.causes is not None and (submit == trace.causes.submit).all()
    assert [data["held"][held] for held in columns["held"]] == list(trace.causes.held)
    by = np.arange(len(trace)) - columns["cause"]
    assert (np.where(columns["cause"] != 0, by, -1) == trace.causes.task).all()
    assert [data["kernels"][data["sites"][site]["kernel"]]["name"] for site in columns["site"]] == ["scale", "mm"] * 12
    assert decoded(data["index"]["b"]).tolist() == [b for b in range(3) for _ in range(8)]
    assert data["pools"] == ["AIC", "AIV"] and data["total"] == program.stats.total_cycles and data["bound"] == program.stats.lower_bound
    assert data["sentence"] == program.card.sentence
    chain = data["chain"]
    assert sum(end - begin for begin, end, _, _ in chain["steps"]) == sum(chain["causes"].values()) == data["total"]
    assert {cause for *_, cause in chain["steps"]} <= set(data["tones"])


def linked(topology: str, p: int = 4) -> Program:
    """Return a run over p ranks: kernels, and copies that take two links where the ranks are a ring."""
    given, made, there = (Tensor(np.ones((16 * p, 64), np.float32), layout=TensorLayout.sharded(0, 2, "x")) for _ in range(3))

    @workload
    def shifted() -> None:
        for r in P(Mesh(x=p)):
            scale[r](given.on(r), made.on(r))
        for r in P(Mesh(x=p)):
            copy(made.on(r), there.on((r + 2) % p))

    arch = builtin_arch("unit").with_links(topology=topology, latency_cycles=100)
    return shifted().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp", arch=arch).run()


@pytest.mark.parametrize("topology, n_links", [("ring", 2), ("switch", 2), ("all", 1)])
def test_the_data_has_each_link_of_a_copy_between_ranks(topology: str, n_links: int, tmp_path: Path) -> None:
    program = linked(topology)
    data, trace = data_of(program.report(tmp_path / "x.html")), program.trace
    assert data["pools"] == ["rank", "link"] and (decoded(data["columns"]["run"]) == trace.end - trace.start).all()
    used = set(trace.spans.executor.tolist())
    assert data["names"] == {str(executor): trace.name_of(executor) for executor in sorted(used)} and len(used) >= 8
    if n_links == 1:
        assert data["hops"] is None
        return
    hops = {name: decoded(column).tolist() for name, column in data["hops"].items()}
    assert hops["task"] == [task for task in range(4, 8) for _ in range(n_links)]
    spans = [(task, executor, start, end) for task, executor, start, end in zip(
        *(getattr(trace.spans, name).tolist() for name in ("task", "executor", "start", "end")), strict=True) if task >= 4]
    assert sorted(zip(*hops.values(), strict=True)) == sorted(spans)


def test_edges_lead_from_the_tasks_that_others_wait_for(program: Program, tmp_path: Path) -> None:
    edges = data_of(program.report(tmp_path / "x.html"))["edges"]
    target = np.repeat(np.arange(24), decoded(edges["count"]))
    found = zip((target - decoded(edges["source"])).tolist(), target.tolist(),
                [edges["reasons"][reason] for reason in decoded(edges["reason"])], strict=True)
    assert sorted(found) == sorted((edge.source, edge.target, ", ".join(edge.reasons)) for edge in program.graph.edges)


def test_regions_are_offsets_and_extents_in_tensors(program: Program, tmp_path: Path) -> None:
    data = data_of(program.report(tmp_path / "x.html"))
    site = next(site for site in data["sites"] if data["kernels"][site["kernel"]]["name"] == "mm")
    x, w, y = site["args"]
    assert decoded(x["offset"]).tolist() == [(b * 4 + t) * 16 * 64 for b in range(3) for t in range(4)]
    assert set(decoded(w["offset"]).tolist()) == {0} and set(decoded(w["rows"]).tolist()) == {64}
    assert (y["role"], y["view"], set(decoded(y["rows"]).tolist()), set(decoded(y["across"]).tolist())) == ("out", "Z[b, t]", {16}, {1})
    assert data["tensors"][x["tensor"]]["shape"] == [3, 4, 16, 64]


def test_source_lines_of_calls_stand_with_what_is_around_them(program: Program, tmp_path: Path) -> None:
    data = data_of(program.report(tmp_path / "x.html"))
    (source,) = data["sources"]
    text = [line.strip() for _, line in source["lines"]]
    assert text == ["def layer() -> None:", "for b in P(3):", "for t in P.seq(4):", "scale[b, t](X[b, t], Y[b, t])",
                    'mm[b, t](Y[b, t], W, Z[b, t], label="a & b <i>")']
    assert {site["line"] for site in data["sites"]} == {number for number, line in source["lines"] if "[b, t](" in line}


def test_channels_have_levels(tmp_path: Path) -> None:
    passed = Channel("passed <b>", 2)

    def make() -> None:
        for t in P.seq(4):
            send(passed, scale[0, t](X[0, t], Y[0, t]))

    def use() -> None:
        with consume(passed) as (b, t):
            mm[b, t](Y[b, t], W, Z[b, t])

    piped = connect([process("make").produces(passed).body(make), process("use").consumes(passed).body(use)], [passed]).compile(
        target="interp").run()
    (channel,) = data_of(piped.report(tmp_path / "x.html"))["channels"]
    levels = decoded(channel["levels"])
    assert (channel["name"], channel["depth"], len(levels), levels[-1], levels.max()) == ("passed <b>", 2, 8, 0, 2)
    assert (np.diff(decoded(channel["times"])) >= 0).all()
    assert set(np.abs(np.diff(levels, prepend=0)).tolist()) == {1}


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<!--", "a\"b'c&d", "\u202eright to left", "שלום", "x" * 10_000,
                                  "\u2028\u2029"])
def test_data_never_ends_its_script(name: str) -> None:
    text = json_of({"name": name})
    assert json.loads(text) == {"name": name} and text.isascii() and not set("<>&") & set(text)
    html = page_of((), name, text)
    assert html.count("<script") == html.count("</script>") == 2


def test_a_page_may_run_its_own_script_and_ask_for_nothing(program: Program, tmp_path: Path) -> None:
    html = program.report(tmp_path / "x.html").read_text(encoding="utf-8")
    (script,) = re.findall('<script type="module">(.*?)</script>', html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"" in html
    assert not re.search(r"\bsrc=|\bhref=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", html)
    assert html.index("<main") < html.index("<script")          # the cards are read without scripts
    assert "script-src" not in page_of((), "cards alone")


def test_a_report_of_no_tasks_says_so(tmp_path: Path) -> None:
    @workload
    def empty() -> None:
        for b in P(0):
            scale[b](X[b, 0], Y[b, 0])

    path = empty().compile(target="interp").run().report(tmp_path / "x.html")
    data = data_of(path)
    assert (data["n"], data["chain"], data["sentence"]) == (0, None, "No task ran.")


def test_a_report_shows_advice_that_was_asked_for_and_asks_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = layer().dispatch(DispatchPolicy.work_steal(1)).compile(target="interp").run()
    asked: list[float] = []
    advise = FinishedRun.advise
    monkeypatch.setattr(FinishedRun, "advise", lambda run, budget_s, seed: asked.append(budget_s) or advise(run, budget_s, seed))

    def written() -> tuple[str, bool]:
        path = program.report(tmp_path / "x.html")
        titles = re.findall('class="title">([^<]*)<', path.read_text(encoding="utf-8"))
        return data_of(path)["sentence"], "Advice" in titles

    sentence, is_shown = written()
    assert not is_shown and "Change: " not in sentence and not asked
    best = program.advise(0)[0]         # one change is tried
    sentence, is_shown = written()
    assert is_shown and sentence.endswith(f"Change: {best.change} → {best.cycles:,} cycles, −{best.gain:.0%}.") and asked == [0]
    program.run()                                   # advice is on one run
    sentence, is_shown = written()
    assert not is_shown and "Change: " not in sentence and asked == [0]


def test_a_report_of_data_dependent_tasks_has_those_that_ran(tmp_path: Path) -> None:
    @workload
    def ragged() -> None:
        for b in P(3):
            for t in P(LENS[b]):
                scale[b, t](X[b, t], Y[b, t])

    data = data_of(ragged().compile(target="interp").run().report(tmp_path / "x.html"))
    assert data["n"] == 5 and decoded(data["index"]["t"]).tolist() == [0, 1, 0, 1, 2]


def test_the_page_is_small_for_many_tasks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    worst = [encoded(rng.integers(0, 1 << bits, 10 ** 5)) for bits in (3, 7, 31, 20, 20, 31, 4, 17)]
    assert sum(len(column["data"]) for column in worst) < 25 * 10 ** 5      # of 36 bytes a task; the rest is for edges and regions


def test_a_report_of_scratch_that_bodies_make_has_its_shape(tmp_path: Path) -> None:
    @workload
    def through() -> None:
        for b in P(3):
            between = Tensor.empty((16, 64), F32, name="between")
            scale[b, 0](X[b, 1], between)
            scale[b, 1](between, Y[b, 1])

    page = through().compile(target="interp").run().report(tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<title>between[:, :] of [16, 64] f32: dim 0 ↓, dim 1 →</title>" in page
