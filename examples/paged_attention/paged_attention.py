"""One decoding step over a paged KV cache whose pages are shared: requests with a common prefix read the same pages.

A request's keys and values lie in pages anywhere in the cache, listed by its row of a page table. The step first writes each
request's new key and value into its last page, then lets its query meet its pages one after the other. Tables, lengths and the
number of requests are data: the second half of the trace runs in the same compiled program.

No two requests may write into one page. The workload promises it of `last` with `Injective`; the race check relies on the promise,
and every run is held to it.

    python examples/paged_attention/paged_attention.py
    python examples/paged_attention/paged_attention.py --trace mooncake_conversation_400.jsonl --requests 40
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pto_wsp import Dense, DenseDyn, DispatchPolicy, DType, In, Injective, InOut, Out, P, Tensor, Tile, Workload, kernel, pto, workload

HEAD_DIM = 64
TOLERANCE = 2e-5   # of f32 against a float64 reference; outputs are averages of values of size 1
F32 = DType.F32


# ---- the data: which pages each request has ----

@dataclass(frozen=True)
class Requests:
    """Page tables of some requests: `table[b, :pages[b]]` are the pages of request b, the rest of a row is -1."""

    table: np.ndarray      # [requests, most pages]
    pages: np.ndarray      # [requests]
    lens: np.ndarray       # [requests] tokens, the new one included
    last: np.ndarray       # [requests] the page that the new token goes to, of no other request
    n_pages: int

    @property
    def n_read(self) -> int:
        """How many pages are read, shared ones as often as they are."""
        return int(self.pages.sum())

    @staticmethod
    def of(blocks: Sequence[Sequence[int]], page: int, rng: np.random.Generator) -> Requests:
        """Return requests whose full pages hold the given blocks (equal ids: the same page), and whose last page is their own."""
        numbers: dict[int, int] = {}
        rows = [[numbers.setdefault(block, len(numbers)) for block in row] for row in blocks]
        own = len(numbers) + np.arange(len(rows))
        order = rng.permutation(len(numbers) + len(rows))       # pages lie anywhere in the cache
        table = np.full((len(rows), max(map(len, rows)) + 1), -1, np.int64)
        for b, row in enumerate(rows):
            table[b, :len(row) + 1] = order[[*row, own[b]]]
        pages = np.array([len(row) + 1 for row in rows])
        tails = rng.integers(1, page + 1, len(rows))            # tokens in the last page, the new one included
        return Requests(table, pages, (pages - 1) * page + tails, order[own], len(order))


@dataclass(frozen=True)
class Step:
    """What one decoding step reads and writes, beside the tables."""

    keys: np.ndarray       # [pages, heads, page, HEAD_DIM]
    values: np.ndarray
    query: np.ndarray      # [requests, heads, 1, HEAD_DIM]
    new_key: np.ndarray
    new_value: np.ndarray
    out: np.ndarray

    @staticmethod
    def random(requests: Requests, heads: int, page: int, rng: np.random.Generator) -> Step:
        """Return normal keys, values and queries."""
        cache, one = (requests.n_pages, heads, page, HEAD_DIM), (len(requests.lens), heads, 1, HEAD_DIM)
        keys, values = (rng.standard_normal(cache, dtype=np.float32) for _ in range(2))
        query, new_key, new_value = (rng.standard_normal(one, dtype=np.float32) for _ in range(3))
        return Step(keys, values, query, new_key, new_value, np.full(one, np.nan, np.float32))

    def expected(self, requests: Requests) -> np.ndarray:
        """Return the step's output in float64, from arrays as they were before it."""
        out = np.zeros(self.query.shape)
        page = self.keys.shape[2]
        for b, length in enumerate(requests.lens):
            rows = requests.table[b, :requests.pages[b]]
            k, v = (cache[rows].transpose(1, 0, 2, 3).reshape(cache.shape[1], len(rows) * page, HEAD_DIM)[:, :length].astype(np.float64)
                    for cache in (self.keys, self.values))
            k[:, -1], v[:, -1] = self.new_key[b, :, 0], self.new_value[b, :, 0]
            score = self.query[b].astype(np.float64) @ k.transpose(0, 2, 1) / math.sqrt(HEAD_DIM)
            weight = np.exp(score - score.max(axis=2, keepdims=True))
            out[b] = weight @ v / weight.sum(axis=2, keepdims=True)
        return out


# ---- the kernels ----

@kernel
def append(key: In[Tile[1, HEAD_DIM, F32]], value: In[Tile[1, HEAD_DIM, F32]], keys: Out[Tile[1, HEAD_DIM, F32]],
           values: Out[Tile[1, HEAD_DIM, F32]]):
    """Put a token's key and value into the cache."""
    pto.store(keys, key)
    pto.store(values, value)


@kernel
def begin(acc: Out[Tile[1, HEAD_DIM, F32]], row_max: Out[Tile[1, 1, F32]], row_sum: Out[Tile[1, 1, F32]]):
    """No page has been met yet."""
    pto.store(acc, pto.zeros((1, HEAD_DIM), F32))
    pto.store(row_max, pto.full((1, 1), -math.inf, F32))
    pto.store(row_sum, pto.zeros((1, 1), F32))


def meet_kernel(page: int):
    """Return the kernel in which a query meets one page, of which the last may hold fewer tokens."""
    scale = 1 / math.sqrt(HEAD_DIM)

    @kernel
    def meet(query: In[Tile[1, HEAD_DIM, F32]], keys: In[Tile[page, HEAD_DIM, F32]], values: In[Tile[page, HEAD_DIM, F32]],
             acc: InOut[Tile[1, HEAD_DIM, F32]], row_max: InOut[Tile[1, 1, F32]], row_sum: InOut[Tile[1, 1, F32]]):
        held = pto.iota((1, page), DType.I32, axis=1) < keys.valid[0]
        score = pto.where(held, (query * scale) @ keys.T, -math.inf)
        new_max = pto.maximum(row_max, pto.rowmax(score))
        shrink = pto.exp(row_max - new_max)
        weight = pto.exp(score - new_max)
        pto.store(acc, acc * shrink + weight @ values)
        pto.store(row_sum, row_sum * shrink + pto.rowsum(weight))
        pto.store(row_max, new_max)

    return meet


@kernel
def finish(acc: In[Tile[1, HEAD_DIM, F32]], row_sum: In[Tile[1, 1, F32]], out: Out[Tile[1, HEAD_DIM, F32]]):
    """Divide by the sum of the weights."""
    pto.store(out, acc / row_sum)


# ---- the workload: which tasks there are ----

def decode_workload(requests: Requests, step: Step) -> Workload:
    """Return one decoding step: a task for each request and head that writes, and one for each of its pages that reads."""
    K, V, Q, KN, VN, Y = (Tensor(a) for a in (step.keys, step.values, step.query, step.new_key, step.new_value, step.out))
    table, pages, lens = Tensor(requests.table), Tensor(requests.pages), Tensor(requests.lens)
    last = Injective(requests.last)
    batch, heads = DenseDyn(len(requests.lens)), Dense[step.keys.shape[1]]()
    page = step.keys.shape[2]
    meet = meet_kernel(page)

    @workload
    def decode():
        for b, h in P(batch, heads):
            slot = lens[b] - (pages[b] - 1) * page - 1          # the new token's place in the last page
            append[b, h](key=KN[b, h], value=VN[b, h], keys=K[last[b], h, slot], values=V[last[b], h, slot])
        for b, h in P(batch, heads):
            acc, row_max, row_sum = (Tensor.empty((1, width), F32) for width in (HEAD_DIM, 1, 1))
            begin[b, h](acc, row_max, row_sum)
            for j in P.seq(pages[b]):
                held = (lens[b] - j * page).min(page)
                meet[b, h, j](query=Q[b, h], keys=K[table[b, j], h, :held], values=V[table[b, j], h, :held],
                              acc=acc, row_max=row_max, row_sum=row_sum)
            finish[b, h](acc, row_sum, Y[b, h])

    return decode()


# ---- the requests: from a trace, or drawn ----

class TraceError(Exception):
    """What is wrong with the trace, for the user."""


def read_blocks(path: Path, count: int) -> list[list[int]]:
    """Return `hash_ids` of the first `count` requests of a JSON-lines file.

    Raises: TraceError for a file that cannot be read or is no trace.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[:count]
    except (OSError, UnicodeDecodeError) as problem:
        raise TraceError(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from None
    if len(lines) < 2:
        raise TraceError(f"{path} has {len(lines) or 'no'} request{'s' * (len(lines) != 1)}; at least two are needed, one for each half")
    return [_blocks(path, number, line) for number, line in enumerate(lines, 1)]


def _blocks(path: Path, number: int, line: str) -> list[int]:
    try:
        found = json.loads(line)["hash_ids"]
    except (ValueError, KeyError, TypeError):
        raise TraceError(f"{path}, line {number}: a request is a JSON object with hash_ids, not {line[:40]!r}") from None
    if not isinstance(found, list) or not all(isinstance(block, int) and not isinstance(block, bool) for block in found):
        raise TraceError(f"{path}, line {number}: hash_ids is a list of whole numbers, not {str(found)[:40]}")
    return found


def draw_blocks(count: int, rng: np.random.Generator) -> list[list[int]]:
    """Return requests of a seeded generator: a few prefixes that many share, and log-normal tails of their own."""
    prefixes = [[1000 * p + k for k in range(2 + 4 * p)] for p in range(4)]
    found, fresh = [], 10_000
    for _ in range(count):
        prefix = prefixes[min(int(rng.exponential()), 3)]
        own = int(rng.lognormal(mean=1.5, sigma=0.8))
        found.append([*prefix, *range(fresh, fresh + own)])
        fresh += own
    return found


# ---- running ----

def run(options: argparse.Namespace) -> int:
    """Run both halves of the trace and print what came of it; return 1 when a result is off."""
    rng = np.random.default_rng(options.seed)
    if options.trace is None:
        blocks, source = draw_blocks(options.requests, rng), f"drawn, seed {options.seed}"
    else:
        blocks, source = read_blocks(options.trace, options.requests), options.trace.name
    blocks = [row[:options.max_pages] for row in blocks]
    middle = (len(blocks) + 1) // 2
    halves = [Requests.of(half, options.page, rng) for half in (blocks[:middle], blocks[middle:])]
    steps = [Step.random(requests, options.heads, options.page, rng) for requests in halves]
    wanted = [step.expected(requests) for step, requests in zip(steps, halves, strict=True)]

    print(f"paged attention, one token a request, {options.heads} heads of {HEAD_DIM}, pages of {options.page} tokens")
    print(f"page tables: {source}, at most {options.max_pages} full pages a request")
    if options.trace is not None and "mooncake" in source.lower():
        print("trace: Mooncake, FAST'25 release, Apache-2.0")
    decode = decode_workload(halves[0], steps[0])
    print(decode.type, end="\n\n")

    program = decode.dispatch(DispatchPolicy.affinity(lambda t: t.b, options.workers)).compile(target=options.target)
    print("checks:", *(line for line in program.checks if "race" in line), sep="\n  ", end="\n\n")
    errors = []
    for name, requests, step, want in zip(("first half", "second half, same program"), halves, steps, wanted, strict=True):
        started = time.perf_counter()
        program.run(K=step.keys, V=step.values, Q=step.query, KN=step.new_key, VN=step.new_value, Y=step.out, table=requests.table,
                    pages=requests.pages, lens=requests.lens, last=requests.last, batch=len(requests.lens))
        elapsed_ms = (time.perf_counter() - started) * 1e3
        difference = float(np.abs(step.out - want).max())
        errors.append(math.inf if math.isnan(difference) else difference)
        print(f"{name}: {len(requests.lens)} requests, {requests.n_read} pages read of {requests.n_pages} in the cache, "
              f"{program.stats.task_count} tasks, max |error| {errors[-1]:.1e}")
        print(f"  {program.stats.total_cycles:,} simulated cycles on {options.workers} executors, {program.stats.gap:.0%} above the "
              f"lower bound; {elapsed_ms:.1f} ms with binding")
    if max(errors) > TOLERANCE:
        print(f"FAILED: the results are off by more than {TOLERANCE:.0e}", file=sys.stderr)
        return 1
    print(f"both halves agree with NumPy within {TOLERANCE:.0e}")
    return 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="One decoding step over a paged KV cache with shared prefixes.")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="JSON lines with hash_ids; without it, requests are drawn")
    parser.add_argument("--requests", type=int, default=24, help="how many, from the start of the trace (default %(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="attention heads (default %(default)s)")
    parser.add_argument("--page", type=int, default=32, help="tokens a page (default %(default)s)")
    parser.add_argument("--max-pages", type=int, default=24, help="longer requests are cut (default %(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="executors (default %(default)s)")
    parser.add_argument("--target", choices=("cpu_sim", "interp"), default="cpu_sim", help="what runs it (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="for arrays and drawn requests (default %(default)s)")
    options = parser.parse_args()
    for name, least in (("requests", 2), ("heads", 1), ("page", 1), ("max_pages", 0), ("workers", 1), ("seed", 0)):
        if getattr(options, name) < least:
            parser.error(f"--{name.replace('_', '-')} is at least {least}")
    try:
        return run(options)
    except TraceError as problem:
        parser.error(f"--trace: {problem}")


if __name__ == "__main__":
    sys.exit(main())
