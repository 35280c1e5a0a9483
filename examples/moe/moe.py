"""A mixture of experts, routed in two ways: by the host before the run, and by tasks of the run itself.

Every token goes through two of the experts, and a few experts are in favour, so the number of tasks an expert gets is far from even.

- Routed by the host: the choices are a sparse matrix, and the workload walks its rows.
- Routed by tasks: a kernel scores the experts, picks two for each token, and the workload reads what it picked to find the experts'
  weights. The orchestrator waits for the tasks that write what it reads.

Both give the same numbers; the simulator tells what the waiting costs.

    python examples/moe/moe.py
    python examples/moe/moe.py --tokens 256 --experts 16 --workers 8
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from pto_wsp import Dense, DispatchPolicy, DType, In, InOut, Out, P, Program, Scalar, Sparse, Tensor, Tile, Workload, kernel, pto, workload

CHOICES = 2        # experts a token
BLOCK = 16         # tokens that a task routes
TOLERANCE = 1e-4   # of f32 against a float64 reference; outputs are of size 1
F32, I32 = DType.F32, DType.I32


# ---- the data ----

@dataclass(frozen=True)
class Layer:
    """One layer: x [tokens, width], router [width, experts], up [experts, width, hidden], down [experts, hidden, width]."""

    x: np.ndarray
    router: np.ndarray
    up: np.ndarray
    down: np.ndarray

    @staticmethod
    def random(tokens: int, experts: int, width: int, hidden: int, rng: np.random.Generator) -> Layer:
        """Return normal weights; the first feature of every token is 1, and its weights say which experts are in favour."""
        x = rng.standard_normal((tokens, width), dtype=np.float32)
        x[:, 0] = 1
        router = rng.standard_normal((width, experts), dtype=np.float32) / np.float32(np.sqrt(width))
        router[0] += 2 * np.float32(0.6) ** np.arange(experts, dtype=np.float32)
        up = rng.standard_normal((experts, width, hidden), dtype=np.float32) / np.float32(np.sqrt(width))
        down = rng.standard_normal((experts, hidden, width), dtype=np.float32) / np.float32(np.sqrt(hidden))
        return Layer(x, router, up, down)

    def route(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the experts of each token, ascending, and their shares: a softmax over the two."""
        scores = self.x @ self.router
        chosen = np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :CHOICES], axis=1)
        weight = np.exp(np.take_along_axis(scores, chosen, 1) - scores.max(axis=1, keepdims=True))
        return chosen, (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32)

    def expected(self) -> np.ndarray:
        """Return the layer's output in float64."""
        chosen, shares = self.route()
        x, up, down = (a.astype(np.float64) for a in (self.x, self.up, self.down))
        out = np.zeros_like(x)
        for b, (experts, weights) in enumerate(zip(chosen, shares, strict=True)):
            for e, share in zip(experts, weights, strict=True):
                out[b] += share * (np.maximum(x[b] @ up[e], 0) @ down[e])
        return out


# ---- the kernels ----

def expert_kernel(width: int, hidden: int):
    """Return one token through one expert, added to what the token has."""

    @kernel
    def expert(x: In[Tile[1, width, F32]], up: In[Tile[width, hidden, F32]], down: In[Tile[hidden, width, F32]], share: Scalar[F32],
               out: InOut[Tile[1, width, F32]]):
        pto.store(out, out + (pto.relu(x @ up) @ down) * share)

    return expert


def route_kernel(width: int, experts: int):
    """Return the two best experts of some tokens, and their shares."""

    @kernel
    def route(x: In[Tile[BLOCK, width, F32]], router: In[Tile[width, experts, F32]], chosen: Out[Tile[BLOCK, CHOICES, I32]],
              shares: Out[Tile[BLOCK, CHOICES, F32]]):
        best, columns = pto.topk(x @ router, CHOICES)
        weight = pto.exp(best - pto.rowmax(best))
        pto.store(chosen, columns)
        pto.store(shares, weight / pto.rowsum(weight))

    return route


# ---- the workloads ----

def routed_by_host(layer: Layer, out: np.ndarray) -> Workload:
    """Return the layer with the choices as a sparse matrix: a row for each token, a column for each expert."""
    chosen, shares = layer.route()
    tokens, width = layer.x.shape
    X, UP, DOWN, Y = (Tensor(a) for a in (layer.x, layer.up, layer.down, out))
    SHARES = Tensor(shares.reshape(-1))
    batch = Dense[tokens]()
    indptr, indices = np.arange(0, chosen.size + 1, CHOICES), chosen.reshape(-1)
    routing = Sparse(batch, indptr, indices)
    expert = expert_kernel(width, layer.up.shape[2])

    @workload
    def by_host():
        for b in P(batch):
            for e in P.sel.seq(routing[b]):          # in order: both add to the row of b
                expert[b, e](x=X[b], up=UP[e], down=DOWN[e], share=SHARES[e.position], out=Y[b])

    return by_host()


def routed_by_tasks(layer: Layer, out: np.ndarray) -> Workload:
    """Return the layer with tasks that choose, and a workload that reads what they chose."""
    (tokens, width), experts = layer.x.shape, layer.router.shape[1]
    X, ROUTER, UP, DOWN, Y = (Tensor(a) for a in (layer.x, layer.router, layer.up, layer.down, out))
    CHOSEN, SHARES = Tensor(np.zeros((tokens, CHOICES), np.int32)), Tensor(np.zeros((tokens, CHOICES), np.float32))
    batch, blocks = Dense[tokens](), Dense[tokens // BLOCK]()
    expert, route = expert_kernel(width, layer.up.shape[2]), route_kernel(width, experts)

    @workload
    def by_tasks():
        for i in P(blocks):
            rows = slice(i * BLOCK, (i + 1) * BLOCK)
            route[i](x=X[rows], router=ROUTER, chosen=CHOSEN[rows], shares=SHARES[rows])
        for b in P(batch):
            for c in P.seq(CHOICES):
                e = CHOSEN[b, c]                     # read when the tasks above have written it
                expert[b, e](x=X[b], up=UP[e], down=DOWN[e], share=SHARES[b, c], out=Y[b])

    return by_tasks()


# ---- running ----

def report(name: str, program: Program, error: float) -> str:
    """Return what came of a run, a line."""
    waits = "; ".join(f"{stall.count} {stall.reason} of {stall.cycles:,} cycles in all" for stall in program.stats.stalls) or "no waits"
    return (f"{name}: {program.stats.task_count} tasks, {program.stats.total_cycles:,} simulated cycles, {program.stats.gap:.0%} above "
            f"the lower bound; {waits}; max |error| {error:.1e}")


def run(options: argparse.Namespace) -> int:
    """Run both workloads and print what came of them; return 1 when a result is off."""
    rng = np.random.default_rng(options.seed)
    layer = Layer.random(options.tokens, options.experts, options.width, options.hidden, rng)
    want = layer.expected()
    counts = np.bincount(layer.route()[0].reshape(-1), minlength=options.experts)
    print(f"mixture of {options.experts} experts, {CHOICES} a token, {options.tokens} tokens")
    print(f"tokens an expert: {' '.join(map(str, counts))}")
    errors = []
    for name, make in (("routed by the host", routed_by_host), ("routed by tasks", routed_by_tasks)):
        out = np.zeros_like(layer.x)
        written = make(layer, out)
        print(f"\n{written.type}")
        program = written.dispatch(DispatchPolicy.affinity(lambda t: t.params[0], options.workers)).compile(target=options.target)
        program.run()
        errors.append(float(np.abs(out - want).max()))
        print(report(name, program, errors[-1]))
    if not max(errors) <= TOLERANCE:
        print(f"FAILED: the results are off by more than {TOLERANCE:.0e}", file=sys.stderr)
        return 1
    print(f"\nboth agree with NumPy within {TOLERANCE:.0e}")
    return 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="A mixture of experts, routed by the host and by tasks.")
    for name, default, what in (("tokens", 64, "tokens, a multiple of 16"), ("experts", 8, "experts"), ("width", 64, "numbers a token"),
                                ("hidden", 128, "numbers in an expert's middle"), ("workers", 4, "executors"),
                                ("seed", 0, "for weights and tokens")):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} (default %(default)s)")
    parser.add_argument("--target", choices=("cpu_sim", "interp"), default="cpu_sim", help="what runs it (default %(default)s)")
    options = parser.parse_args()
    for name, least in (("tokens", 16), ("experts", CHOICES), ("width", 1), ("hidden", 1), ("workers", 1), ("seed", 0)):
        if getattr(options, name) < least:
            parser.error(f"--{name} is at least {least}")
    if options.tokens % BLOCK:
        parser.error(f"--tokens is a multiple of {BLOCK}")
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
