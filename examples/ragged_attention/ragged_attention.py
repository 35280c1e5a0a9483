"""Causal attention over a batch of requests whose lengths come from a recorded trace.

Every request has its own length, so the number of tasks differs from request to request and the last block of each is short. The
kernel says how one block of queries meets the keys before it; the workload says which blocks there are; the schedule says where
they run. Lengths and offsets are data: the second half of the trace runs in the same compiled program.

    python examples/ragged_attention/ragged_attention.py
    python examples/ragged_attention/ragged_attention.py --trace azure_llm_conv_2023.csv --requests 40 --workers 8
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pto_wsp import (
    Dense,
    DenseDyn,
    DispatchPolicy,
    DType,
    In,
    Kernel,
    Out,
    P,
    Program,
    Scalar,
    Tensor,
    Tile,
    Workload,
    ceildiv,
    kernel,
    pto,
    timeline,
    workload,
)

HEAD_DIM = 64
TOLERANCE = 2e-5   # of f32 against a float64 reference; outputs are averages of values of size 1
F32, I32 = DType.F32, DType.I32


# ---- the kernel: one block of queries against all keys before it ----

def attention_kernel(block: int) -> Kernel:
    """Return flash attention for blocks of `block` queries and keys."""
    scale = 1 / math.sqrt(HEAD_DIM)

    @kernel
    def attend(q: In[Tile[block, HEAD_DIM, F32]], keys: In[Tensor], values: In[Tensor], first: Scalar[I32],
               out: Out[Tile[block, HEAD_DIM, F32]]):
        """`keys`, `values`: [tokens of the request, HEAD_DIM]; `first`: which token row 0 of `q` is, a multiple of `block`."""
        acc = pto.alloc((block, HEAD_DIM), F32, init=0)
        row_max = pto.alloc((block, 1), F32, init=-math.inf)
        row_sum = pto.alloc((block, 1), F32, init=0)
        scaled = q * scale

        def meet(score, v):
            """Add a block of keys, of which the scores are given, to what was summed so far."""
            new_max = pto.maximum(row_max, pto.rowmax(score))
            shrink = pto.exp(row_max - new_max)             # what was summed so far, seen from the new maximum
            weight = pto.exp(score - new_max)
            acc[:] = acc * shrink + weight @ v
            row_sum[:] = row_sum * shrink + pto.rowsum(weight)
            row_max[:] = new_max

        for start in pto.range(0, first, block):            # keys before the first query: every query sees them
            k = pto.load(keys, (start, 0), shape=(block, HEAD_DIM))
            v = pto.load(values, (start, 0), shape=(block, HEAD_DIM))
            meet(scaled @ k.T, v)
        rows = q.valid[0]                                   # the last block is short
        k = pto.load(keys, (first, 0), shape=(block, HEAD_DIM), valid=(rows, None))
        v = pto.load(values, (first, 0), shape=(block, HEAD_DIM), valid=(rows, None))
        sees = pto.iota((1, block), I32, axis=1) <= pto.iota((block, 1), I32, axis=0)
        meet(pto.where(sees, scaled @ k.T, -math.inf), v)
        pto.store(out, acc / row_sum)

    return attend


# ---- the data: requests one after the other along the token axis ----

@dataclass(frozen=True)
class Batch:
    """Some requests: arrays [heads, tokens of all requests, HEAD_DIM], and where each request lies in them."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    out: np.ndarray
    starts: np.ndarray
    lens: np.ndarray

    @staticmethod
    def random(lens: Sequence[int], heads: int, rng: np.random.Generator) -> Batch:
        """Return normal queries, keys and values for requests of these lengths."""
        shape = (heads, sum(lens), HEAD_DIM)
        q, k, v = (rng.standard_normal(shape, dtype=np.float32) for _ in range(3))
        ends = np.cumsum(lens, dtype=np.int64)
        return Batch(q, k, v, np.full(shape, np.nan, np.float32), ends - lens, np.asarray(lens, np.int64))

    def error(self) -> float:
        """Return the largest absolute difference of `out` from causal attention in float64."""
        worst = 0.0
        for start, length in zip(self.starts, self.lens, strict=True):
            q, k, v, out = (a[:, start:start + length] for a in (self.q, self.k, self.v, self.out))
            score = (q.astype(np.float64) @ k.transpose(0, 2, 1)) / math.sqrt(HEAD_DIM)
            score[:, ~np.tri(length, dtype=bool)] = -np.inf
            weight = np.exp(score - score.max(axis=2, keepdims=True))
            difference = np.abs(weight @ v / weight.sum(axis=2, keepdims=True) - out).max()
            worst = max(worst, math.inf if np.isnan(difference) else float(difference))
        return worst


# ---- the workload: which tasks there are ----

def attention_workload(data: Batch, block: int) -> Workload:
    """Return attention over `data`: a task for each request, head and block of queries."""
    Q, K, V, Y = (Tensor(a) for a in (data.q, data.k, data.v, data.out))
    starts, lens = Tensor(data.starts), Tensor(data.lens)
    requests, heads = DenseDyn(len(data.lens)), Dense[data.q.shape[0]]()
    attend = attention_kernel(block)

    @workload
    def ragged_attention():
        for b, h in P(requests, heads):
            mine = slice(starts[b], starts[b] + lens[b])
            for i in P(ceildiv(lens[b], block)):
                attend[b, h, i](q=Q[h, mine][i * block:].clip(block, HEAD_DIM), keys=K[h, mine], values=V[h, mine],
                                first=i * block, out=Y[h, mine][i * block:].clip(block, HEAD_DIM))

    return ragged_attention()


# ---- the lengths: from a trace, or drawn ----

class TraceError(Exception):
    """What is wrong with the trace, for the user."""


def read_lengths(path: Path, count: int) -> list[int]:
    """Return ContextTokens + GeneratedTokens of the first `count` requests of a CSV file.

    Raises: TraceError for a file that cannot be read or is no trace.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            missing = [name for name in ("ContextTokens", "GeneratedTokens") if name not in (rows.fieldnames or ())]
            if missing:
                raise TraceError(f"{path} has no column {' and '.join(missing)}; its columns: {', '.join(rows.fieldnames or ())}")
            lengths = [_tokens(path, rows.line_num, row) for row, _ in zip(rows, range(count), strict=False)]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise TraceError(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from None
    if len(lengths) < 2:
        raise TraceError(f"{path} has {len(lengths) or 'no'} request{'s' * (len(lengths) != 1)}; at least two are needed, "
                         "one for each half")
    return lengths


def _tokens(path: Path, line: int, row: dict[str, str]) -> int:
    try:
        context, generated = int(row["ContextTokens"]), int(row["GeneratedTokens"])
    except (TypeError, ValueError):
        raise TraceError(f"{path}, line {line}: ContextTokens and GeneratedTokens are whole numbers, "
                         f"not {row['ContextTokens']!r} and {row['GeneratedTokens']!r}") from None
    if context < 0 or generated < 0 or context + generated < 1:
        raise TraceError(f"{path}, line {line}: a request has at least one token, not {context} + {generated}")
    return context + generated


def draw_lengths(count: int, rng: np.random.Generator) -> list[int]:
    """Return log-normal lengths: the mean and deviation of their logarithms are those of the trace named above, rounded."""
    return [max(1, round(length)) for length in rng.lognormal(mean=6.9, sigma=0.8, size=count)]


# ---- the report ----

def compare(one: Program, many: Program, workers: int) -> str:
    """Return what the simulator says of the last run of two programs, side by side."""
    lines = [f"{'schedule':<26}{'one worker':>14}{f'round_robin({workers})':>18}"]
    for label, figure in (("simulated cycles", "total_cycles"), ("lower bound", "lower_bound"), ("critical path", "critical_path")):
        lines.append(f"{label:<26}{getattr(one.stats, figure):>14,}{getattr(many.stats, figure):>18,}")
    lines.append(f"{'speed-up':<26}{'1.00':>14}{one.stats.total_cycles / many.stats.total_cycles:>18.2f}")
    lines.append(f"{'wall time, all host cores':<26}{one.stats.execute_time_ms:>11.1f} ms{many.stats.execute_time_ms:>15.1f} ms")
    scale = one.stats.total_cycles
    for name, program in (("one worker", one), (f"round_robin({workers})", many)):
        lines += ["", f"{name}: dominated by {program.stats.dominated_by}", timeline(program.trace, width=64, end=scale)]
    return "\n".join(lines)


def describe(lens: np.ndarray) -> str:
    """Return how many requests there are and how long they are."""
    return f"{len(lens)} requests, {lens.min()} to {lens.max()} tokens, {lens.sum():,} in all"


def run(options: argparse.Namespace) -> int:
    """Run both halves of the trace and print the report; return 1 when a result is off."""
    rng = np.random.default_rng(options.seed)
    if options.trace is None:
        lengths, source = draw_lengths(options.requests, rng), f"log-normal, seed {options.seed}"
    else:
        lengths, source = read_lengths(options.trace, options.requests), options.trace.name
    capped = [min(length, options.max_length) for length in lengths]
    middle = (len(capped) + 1) // 2
    first, second = (Batch.random(half, options.heads, rng) for half in (capped[:middle], capped[middle:]))

    print(f"ragged causal attention, {options.heads} heads of {HEAD_DIM}, blocks of {options.block}, target {options.target}")
    print(f"lengths: {source}, at most {options.max_length}")
    if options.trace is not None and "azure" in source.lower():
        print("trace: Microsoft Azure public dataset, LLM inference trace 2023, CC-BY 4.0")
    attention = attention_workload(first, options.block)
    print(attention.type, end="\n\n")

    one = attention.compile(target=options.target)
    many = attention.dispatch(DispatchPolicy.round_robin(options.workers)).compile(target=options.target)
    one.run()
    many.run()
    errors = [first.error()]
    print(f"first half: {describe(first.lens)}: {many.stats.task_count} tasks, max |error| {errors[0]:.1e}", end="\n\n")
    print(compare(one, many, options.workers), end="\n\n")

    # The same program on other requests: their number, lengths, offsets and arrays are bound anew, nothing is compiled.
    started = time.perf_counter()
    many.run(Q=second.q, K=second.k, V=second.v, Y=second.out, starts=second.starts, lens=second.lens, requests=len(second.lens))
    elapsed_ms = (time.perf_counter() - started) * 1e3
    errors.append(second.error())
    stats = many.stats
    print(f"second half, same program: {describe(second.lens)}: {stats.task_count} tasks, max |error| {errors[1]:.1e}")
    print(f"{stats.total_cycles:,} simulated cycles, {stats.gap:.0%} above the lower bound; {elapsed_ms:.1f} ms with binding")
    if max(errors) > TOLERANCE:
        print(f"FAILED: the results are off by more than {TOLERANCE:.0e}", file=sys.stderr)
        return 1
    print(f"both halves agree with NumPy within {TOLERANCE:.0e}")
    return 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Causal attention over requests of different lengths.")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="CSV with the columns TIMESTAMP, ContextTokens, GeneratedTokens; "
                        "without it, lengths are drawn")
    parser.add_argument("--requests", type=int, default=25, help="how many, from the start of the trace (default %(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="attention heads (default %(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="executors of the second schedule (default %(default)s)")
    parser.add_argument("--block", type=int, default=64, help="queries and keys in a block (default %(default)s)")
    parser.add_argument("--max-length", type=int, default=1024, help="longer requests are cut (default %(default)s)")
    parser.add_argument("--target", choices=("cpu_sim", "interp"), default="cpu_sim", help="what runs it (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="for queries, keys, values and drawn lengths (default %(default)s)")
    options = parser.parse_args()
    for name, least in (("requests", 2), ("heads", 1), ("workers", 1), ("block", 1), ("max_length", 1), ("seed", 0)):
        if getattr(options, name) < least:
            parser.error(f"--{name.replace('_', '-')} is at least {least}")
    try:
        return run(options)
    except TraceError as problem:
        parser.error(f"--trace: {problem}")


if __name__ == "__main__":
    sys.exit(main())
