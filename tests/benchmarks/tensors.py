# ruff: noqa: F821, UP037      (a string in Tensor[...] is a symbol)
"""Functions on whole tensors with default plans, beside kernels written by hand: `python -m tests.benchmarks.tensors [--only softmax]`.

Both spellings of a pair get the same arrays, and each result is checked against NumPy in float64 before it counts. Cycles are simulated, of
the machine `ascend_910b`; seconds are those of one thread of `cpu_sim`, the least of some runs in turns, with plans for one core. Lines are
those with code: of the hand's kernels and workload, of the function. Rows and blocks of attention are Tunable: a search varies them, too.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import itertools
import math
import sys
import time
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp import DType, Injective, InOut, Monotone, Program, Tensor, TilePlan, Tunable, Workload, auto_schedule, builtin_arch, jit, tt
from tests.benchmarks.page import put_between, stamp

F32, I32 = DType.F32, DType.I32
Array = npt.NDArray[Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ARCH, THREADS, ROUNDS = "ascend_910b", 1, 15
HOST = builtin_arch("host_cpu").with_cores(cube=THREADS, vector=THREADS)
SECONDS = 2.0     # of runs in turns at least, where runs are short
CLOCK = time.process_time     # of one thread: others on the machine disturb it less than the clock
TOLERANCE = 1e-4     # of f32 against float64; results are of size 1


# -- the functions -----------------------------------------------------------------------------------------------------
@jit
def softmax(x):
    weight = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return weight / np.sum(weight, axis=-1, keepdims=True)


@jit
def layernorm(x, residual, weight, bias):
    total = x + residual
    centred = total - np.mean(total, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * weight + bias


@jit
def matmul(a, b):
    return a @ b


@jit
def attention(q, k, v, block: int = Tunable(64, 32, 128)):
    out, scale = tt.empty(q.shape), 1 / math.sqrt(q.shape[-1])
    for h in tt.each(q.shape[0]):
        qh = q[h] * scale
        acc, seen, top = tt.zeros(qh.shape), tt.zeros((qh.shape[0], 1)), tt.full((qh.shape[0], 1), -math.inf)
        for j in tt.loop(0, k.shape[1], block):
            score = qh @ k[h, j:j + block].T
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v[h, j:j + block]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[h] = acc / seen
    return out


@jit
def moe(x, router, up, down, top: int = 2):
    score, expert = tt.topk(x @ router, top)
    share, pairs = tt.softmax(score), tt.rows_of(expert, router.shape[1])
    each = tt.empty((x.shape[0] * top, x.shape[1]))
    for e in tt.each(router.shape[1]):
        mine = pairs[e]
        each[mine] = np.maximum(x[mine // top] @ up[e], 0) @ down[e]
    return np.sum(each.reshape(x.shape[0], top, -1) * share[..., None], axis=1)


@jit
def causal_attention(q, k, v, rows: int = Tunable(64, 32, 128), block: int = Tunable(64, 32, 128)):
    (heads, n, width), out = q.shape, tt.empty(q.shape)
    for h, i in tt.each(heads, (n + rows - 1) // rows):
        qi = q[h, i * rows:(i + 1) * rows] / math.sqrt(width)
        acc, seen, top = tt.zeros(qi.shape), tt.zeros((qi.shape[0], 1)), tt.full((qi.shape[0], 1), -math.inf)
        for j in tt.loop(0, np.minimum((i + 1) * rows, n), block):
            score = qi @ k[h, j:j + block].T
            score = np.where(j + tt.arange(score.shape[1]) <= i * rows + tt.arange(score.shape[0])[:, None], score, -math.inf)
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v[h, j:j + block]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[h, i * rows:(i + 1) * rows] = acc / seen
    return out


@jit
def ragged_attention(q: Tensor[4, "t", 64, F32], k: Tensor[4, "t", 64, F32], v: Tensor[4, "t", 64, F32],
                     starts: Monotone[Tensor["b", I32]], rows: int = Tunable(64, 32, 128), block: int = Tunable(64, 32, 128)):
    out = tt.empty(q.shape)
    for b, h in tt.each(starts.shape[0] - 1, q.shape[0]):
        mine = slice(starts[b], starts[b + 1])
        q_mine, k_mine, v_mine, n = q[h, mine], k[h, mine], v[h, mine], starts[b + 1] - starts[b]
        for i in tt.each((n + rows - 1) // rows):
            qi = q_mine[i * rows:(i + 1) * rows] / math.sqrt(64)
            acc, seen, top = tt.zeros(qi.shape), tt.zeros((qi.shape[0], 1)), tt.full((qi.shape[0], 1), -math.inf)
            for j in tt.loop(0, np.minimum((i + 1) * rows, n), block):
                score = qi @ k_mine[j:j + block].T
                score = np.where(j + tt.arange(score.shape[1]) <= i * rows + tt.arange(score.shape[0])[:, None], score, -math.inf)
                peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
                weight, fade = np.exp(score - peak), np.exp(top - peak)
                acc[:] = acc * fade + weight @ v_mine[j:j + block]
                seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
                top[:] = peak
            out[h, mine][i * rows:(i + 1) * rows] = acc / seen
    return out


@jit
def paged_attention(query: Tensor["b", 4, 1, 64, F32], new_key: Tensor["b", 4, 1, 64, F32], new_value: Tensor["b", 4, 1, 64, F32],
                    keys: InOut[Tensor["pages", 4, 32, 64, F32]], values: InOut[Tensor["pages", 4, 32, 64, F32]],
                    table: Tensor["b", "m", I32], lens: Tensor["b", I32], last: Injective[Tensor["b", I32]]):
    out, page = tt.empty(query.shape), keys.shape[2]
    for b, h in tt.each(*query.shape[:2]):
        keys[last[b], h, (lens[b] - 1) % page], values[last[b], h, (lens[b] - 1) % page] = new_key[b, h, 0], new_value[b, h, 0]
    for b, h in tt.each(*query.shape[:2]):
        acc, seen, top = tt.zeros((1, 64)), tt.zeros((1, 1)), tt.full((1, 1), -math.inf)
        for j in tt.loop((lens[b] + page - 1) // page):
            held = slice(0, lens[b] - j * page)
            score = query[b, h] / math.sqrt(64) @ keys[table[b, j], h][held].T
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ values[table[b, j], h][held]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[b, h] = acc / seen
    return out


@jit
def pipelined_mlp(x: Tensor["b", "most", 64, F32], up: Tensor[64, 256, F32], down: Tensor[256, 64, F32], lens: Tensor["b", I32]):
    out = tt.empty(x.shape)
    for b in tt.each(x.shape[0]):
        mine = x[b, :lens[b]]
        hidden = mine / np.sqrt(np.mean(mine * mine, axis=-1, keepdims=True) + 1e-6) @ up
        gelu = 0.5 * hidden * (1 + np.tanh(0.7978845608 * (hidden + 0.044715 * hidden * hidden * hidden)))
        out[b, :lens[b]] = mine + gelu @ down
    return out


# -- the pairs ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Pair:
    """A function and its counterpart by hand: the example's file, the names there that make it up, and the workload of it.

    `draw`: the function's arguments by name; `by_hand`: the workload on copies of them, and the array of its result.
    """

    function: Any
    example: str
    names: tuple[str, ...]
    draw: Callable[[np.random.Generator], Mapping[str, Array]]
    by_hand: Callable[[ModuleType, Mapping[str, Array]], tuple[Workload, Array]]
    expected: Callable[[ModuleType, Mapping[str, Array]], Array]


def _arrays(**shapes: Sequence[int]) -> Callable[[np.random.Generator], Mapping[str, Array]]:
    return lambda rng: {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def _like(array: Array) -> Array:
    return np.full_like(array, np.nan)


def _softmax(module: ModuleType, given: Mapping[str, Array]) -> tuple[Workload, Array]:
    out = _like(given["x"])
    return module.softmax_workload(given["x"], out), out


def _layernorm(module: ModuleType, given: Mapping[str, Array]) -> tuple[Workload, Array]:
    out = _like(given["x"])
    return module.layernorm_workload(given["x"], given["residual"], given["weight"].reshape(1, -1), given["bias"].reshape(1, -1), out), out


def _matmul(module: ModuleType, given: Mapping[str, Array]) -> tuple[Workload, Array]:
    out = np.full((len(given["a"]), given["b"].shape[1]), np.nan, np.float32)
    return module.tiled(given["a"], given["b"], out), out


def _attention(module: ModuleType, given: Mapping[str, Array], causal: bool) -> tuple[Workload, Array]:
    out = _like(given["q"])
    return module.attention_workload(given["q"], given["k"], given["v"], out, causal), out


def _ragged(module: ModuleType, given: Mapping[str, Array]) -> tuple[Workload, Array]:
    batch = _batch(module, given)
    return module.attention_workload(batch, 64), batch.out


def _batch(module: ModuleType, given: Mapping[str, Array]) -> Any:
    starts = given["starts"].astype(np.int64)
    return module.Batch(given["q"], given["k"], given["v"], _like(given["q"]), starts[:-1], np.diff(starts))


def _requests(rng: np.random.Generator) -> Mapping[str, Array]:
    starts = np.cumsum([0, *(min(512, length) for length in _module("ragged_attention").draw_lengths(8, rng))], dtype=np.int32)
    return {**_arrays(**dict.fromkeys("qkv", (4, int(starts[-1]), 64)))(rng), "starts": starts}


def _each_request(module: ModuleType, given: Mapping[str, Array]) -> Array:
    flash, starts = _module("flash_attention"), given["starts"]
    return np.concatenate([flash.reference(*(given[name][:, start:end] for name in "qkv"), causal=True)
                           for start, end in itertools.pairwise(starts)], axis=1)


def _pages(rng: np.random.Generator) -> Mapping[str, Array]:
    module = _module("paged_attention")
    requests = module.Requests.of(module.draw_blocks(24, rng), 32, rng)
    step = module.Step.random(requests, 4, 32, rng)
    return {name: getattr(step, name) for name in ("query", "new_key", "new_value", "keys", "values")} | {
        "table": np.maximum(requests.table, 0).astype(np.int32), "lens": requests.lens.astype(np.int32),
        "last": requests.last.astype(np.int32)}


def _step(module: ModuleType, given: Mapping[str, Array]) -> tuple[Any, Any]:
    lens = given["lens"].astype(np.int64)
    requests = module.Requests(given["table"].astype(np.int64), -(-lens // 32), lens, given["last"].astype(np.int64), len(given["keys"]))
    return requests, module.Step(*(given[name] for name in ("keys", "values", "query", "new_key", "new_value")), _like(given["query"]))


def _paged(module: ModuleType, given: Mapping[str, Array]) -> tuple[Workload, Array]:
    requests, step = _step(module, given)
    return module.decode_workload(requests, step), step.out


def _paged_reference(module: ModuleType, given: Mapping[str, Array]) -> Array:
    requests, step = _step(module, given)
    return np.asarray(step.expected(requests))


def _blocks(module: ModuleType, given: Mapping[str, Array]) -> Any:
    batch = module.Block(given["lens"].tolist(), np.random.default_rng(0))
    for name in ("x", "up", "down"):
        getattr(batch, name)[:] = given[name]
    return batch


def _pipelined(module: ModuleType, given: Mapping[str, Array]) -> tuple[Workload, Array]:
    batch = _blocks(module, given)
    return module.pipelined(batch, 2, 2), batch.y


def _batches(rng: np.random.Generator) -> Mapping[str, Array]:
    lens = np.array([48, 5, 100, 33, 160, 240, 17, 96], np.int32)
    batch = _module("pipelined_mlp").Block(lens.tolist(), rng)
    return {"x": batch.x, "up": batch.up, "down": batch.down, "lens": lens}


def _pipelined_reference(module: ModuleType, given: Mapping[str, Array]) -> Array:
    wanted = np.asarray(module.reference(given["x"], given["up"], given["down"]))
    return np.where(np.arange(wanted.shape[1])[:, None] < given["lens"][:, None, None], wanted, np.nan)


def _moe(module: ModuleType, given: Mapping[str, Array]) -> tuple[Workload, Array]:
    out = np.zeros_like(given["x"])       # experts add to it
    return module.routed_by_tasks(module.Layer(**given), out), out


def _experts(rng: np.random.Generator) -> Mapping[str, Array]:
    layer = _module("moe").Layer.random(256, 8, 64, 128, rng)
    return {name: getattr(layer, name) for name in ("x", "router", "up", "down")}


PAIRS = {
    "softmax": Pair(softmax, "softmax", ("whole_rows", "softmax_workload"), _arrays(x=(1000, 1000)), _softmax,
                    lambda module, given: module.reference(given["x"])),
    "layernorm": Pair(layernorm, "layernorm", ("add_kernel", "layernorm_kernel", "layernorm_workload"),
                      _arrays(x=(1000, 512), residual=(1000, 512), weight=(512,), bias=(512,)), _layernorm,
                      lambda module, given: module.reference(**given)),
    "matmul": Pair(matmul, "matmul", ("product_kernel", "tiled"), _arrays(a=(500, 1000), b=(1000, 700)), _matmul,
                   lambda module, given: given["a"].astype(np.float64) @ given["b"]),
    "attention": Pair(attention, "flash_attention", ("attend", "attention_workload"), _arrays(**dict.fromkeys("qkv", (4, 500, 64))),
                      partial(_attention, causal=False), lambda module, given: module.reference(**given, causal=False)),
    "causal": Pair(causal_attention, "flash_attention", ("attend", "attention_workload"), _arrays(**dict.fromkeys("qkv", (4, 500, 64))),
                   partial(_attention, causal=True), lambda module, given: module.reference(**given, causal=True)),
    "ragged": Pair(ragged_attention, "ragged_attention", ("attention_kernel", "attention_workload"), _requests, _ragged, _each_request),
    "paged": Pair(paged_attention, "paged_attention", ("append", "begin", "meet_kernel", "finish", "decode_workload"), _pages, _paged,
                  _paged_reference),
    "mlp": Pair(pipelined_mlp, "pipelined_mlp", ("rmsnorm", "expand", "contract", "Block", "pipelined"), _batches, _pipelined,
                _pipelined_reference),
    "moe": Pair(moe, "moe", ("expert_kernel", "route_kernel", "routed_by_tasks"), _experts, _moe,
                lambda module, given: module.Layer(**given).expected()),
}


def _module(example: str) -> ModuleType:
    name = f"example_{example}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / example / f"{example}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


# -- lines -------------------------------------------------------------------------------------------------------------
def n_lines(path: Path, names: Sequence[str]) -> int:
    """Return how many lines of code the functions of these names in a file have, without blank lines, comments and docstrings.

    >>> n_lines(Path(__file__), ["n_lines"])
    15
    """
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    wanted: set[int] = set()
    for name in names:
        node = found[name]
        wanted |= set(range(min([node.lineno, *(part.lineno for part in node.decorator_list)]), (node.end_lineno or 0) + 1))
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner) is not None:
                wanted -= set(range(inner.body[0].lineno, (inner.body[0].end_lineno or 0) + 1))
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    written = {line for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in nothing
               for line in range(token.start[0], token.end[0] + 1)}
    return len(wanted & written)


# -- the measurement ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Figures:
    """One spelling of a pair: cycles, tasks, seconds of a run, lines of code."""

    cycles: int
    n_tasks: int
    seconds: float
    n_lines: int


def measure(pair: Pair, *, rounds: int = ROUNDS, budget: int = 0) -> tuple[Figures, ...]:
    """Return the figures of the kernels by hand, of the function, and with a budget, of the best plans that so many simulations find.

    Raises: SystemExit for a result that is not NumPy's.
    """
    module, given = _module(pair.example), pair.draw(np.random.default_rng(0))
    want = pair.expected(module, given)
    lines = (n_lines(EXAMPLES / pair.example / f"{pair.example}.py", pair.names), n_lines(Path(__file__), [pair.function.__name__]))
    runs: list[Callable[[], object]] = []
    programs: list[Program] = []
    makers: list[Callable[[Pair, ModuleType, Mapping[str, Array], str | None], Made]] = [_hand, _function]
    if budget:
        makers.append(partial(_searched, budget=budget))
    lines = (*lines, lines[-1])
    for maker in makers:
        simulated = maker(pair, module, given, ARCH)
        check(simulated, want)
        programs.append(simulated.program)
        timed = maker(pair, module, given, None)
        check(timed, want)
        runs.append(timed.program.run)
    seconds = [math.inf] * len(runs)
    began, done = time.perf_counter(), 0
    while done < rounds or (rounds == ROUNDS and time.perf_counter() - began < SECONDS):
        done += 1
        for k, run in enumerate(runs):
            start = CLOCK()
            run()
            seconds[k] = min(seconds[k], CLOCK() - start)
    return tuple(Figures(program.stats.total_cycles, program.stats.task_count, seconds[k], lines[k]) for k, program in enumerate(programs))


@dataclass(frozen=True)
class Made:
    """A program with the array that it writes."""

    program: Program
    out: Array


def _hand(pair: Pair, module: ModuleType, given: Mapping[str, Array], arch: str | None) -> Made:
    workload, out = pair.by_hand(module, {name: value.copy() for name, value in given.items()})
    return Made(_compiled(workload, arch), out)


def _function(pair: Pair, module: ModuleType, given: Mapping[str, Array], arch: str | None) -> Made:
    return _planned(pair, module, given, arch, pair.function.plan(**given, arch=arch or HOST))


def _searched(pair: Pair, module: ModuleType, given: Mapping[str, Array], arch: str | None, budget: int) -> Made:
    copies = [value.copy() for value in given.values()]
    plan = auto_schedule(pair.function, *copies, arch=arch or HOST, budget=budget, wall_time=arch is None)
    return _planned(pair, module, given, arch, plan)


def _planned(pair: Pair, module: ModuleType, given: Mapping[str, Array], arch: str | None, plan: TilePlan) -> Made:
    out = np.full(pair.expected(module, given).shape, np.nan, np.float32)
    return Made(_compiled(pair.function.lower(plan, **given, out=out), arch), out)


def _compiled(workload: Workload, arch: str | None) -> Program:
    return workload.compile(threads=THREADS) if arch is None else workload.compile(arch=arch)


def check(made: Made, want: Array) -> None:
    """Run a program once; end where its result is not NumPy's. Where `want` is NaN the result may hold anything."""
    made.program.run()
    asked = ~np.isnan(want)
    if not np.allclose(made.out[asked], want[asked], atol=TOLERANCE * max(1.0, float(np.abs(want[asked]).max())), rtol=0):
        raise SystemExit(f"wrong: the result of {made.program!r} is not NumPy's")


def table(found: Mapping[str, tuple[Figures, ...]]) -> str:
    """Return the figures as a table of Markdown: by hand, of the function, the quotient, and that of the best plan if one was searched."""
    rows = ["| pair | cycles by hand | function | | best | ms by hand | function | | best | tasks | lines by hand | of it |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name, (hand, function, *best) in found.items():
        of_cycles = f"{best[0].cycles / hand.cycles:.2f}" if best else "-"
        of_seconds = f"{best[0].seconds / hand.seconds:.2f}" if best else "-"
        rows.append(f"| {name} | {hand.cycles:,} | {function.cycles:,} | {function.cycles / hand.cycles:.2f} | {of_cycles} | "
                    f"{hand.seconds * 1e3:.2f} | {function.seconds * 1e3:.2f} | {function.seconds / hand.seconds:.2f} | {of_seconds} | "
                    f"{hand.n_tasks} / {function.n_tasks} | {hand.n_lines} | {function.n_lines} |")
    return "\n".join(rows)


def main() -> int:
    """Measure the pairs and print the table."""
    parser = argparse.ArgumentParser(description="Functions on whole tensors beside kernels by hand.")
    parser.add_argument("--only", choices=PAIRS, nargs="*", default=list(PAIRS), help="which pairs")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs whose least time counts (default %(default)s)")
    parser.add_argument("--budget", type=int, default=0, help="simulations of a search for the best plan; 0 (default): none")
    parser.add_argument("--page", type=Path, help="put the table between its marks in this page")
    options = parser.parse_args()
    found = table({name: measure(PAIRS[name], rounds=options.rounds, budget=options.budget) for name in options.only})
    print(found)
    if options.page is not None:
        put_between(options.page, "tensors", f"{stamp()}: `python -m tests.benchmarks.tensors --budget {options.budget}`\n\n{found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
