"""Which schedule for experts of which a few get most of the tokens? Decided in simulated time, without running a kernel twice.

Tokens are routed to experts with a Zipf distribution, so the blocks of rows per expert differ widely. Each block goes through two
products. The program runs once; its tasks are then timed under one schedule after the other on `ascend_910b`, with what its control
processors cost. The slowest one is explained, `auto_schedule` looks for a better one, and what it finds is frozen into a calendar: a
table that says of each task where and when it runs. The numbers are the same under every schedule, and are checked against NumPy.

    python examples/schedule_search/schedule_search.py
    python examples/schedule_search/schedule_search.py --experts 64 --tokens 4096 --budget 200 --seed 3
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from pto_wsp import (
    Dense,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Program,
    Ragged,
    ReadyPolicy,
    Tensor,
    Tile,
    Workload,
    auto_schedule,
    kernel,
    pto,
    workload,
)

F32 = DType.F32
BLOCK, WIDTH, HIDDEN = 64, 64, 128
ARCH = "ascend_910b"
TOLERANCE = 1e-4     # of f32 against float64; results are of the order of 1


@kernel
def expand(x: In[Tile[BLOCK, WIDTH, F32]], up: In[Tile[WIDTH, HIDDEN, F32]], h: Out[Tile[BLOCK, HIDDEN, F32]]):
    pto.store(h, pto.maximum(x @ up, 0.0))


@kernel
def contract(h: In[Tile[BLOCK, HIDDEN, F32]], down: In[Tile[HIDDEN, WIDTH, F32]], y: Out[Tile[BLOCK, WIDTH, F32]]):
    pto.store(y, h @ down)


class Experts:
    """Tokens of every expert in blocks of BLOCK rows, padded with zeros: x[expert, row, :]."""

    def __init__(self, experts: int, tokens: int, rng: np.random.Generator) -> None:
        share = 1 / np.arange(1, experts + 1)
        self.counts = rng.multinomial(tokens, share / share.sum())
        self.n_blocks = -(-self.counts // BLOCK)
        rows = max(1, int(self.n_blocks.max())) * BLOCK
        self.x = np.zeros((experts, rows, WIDTH), np.float32)
        for expert, count in enumerate(self.counts):
            self.x[expert, :count] = rng.standard_normal((count, WIDTH), dtype=np.float32)
        self.up = rng.standard_normal((experts, WIDTH, HIDDEN), dtype=np.float32) / 6
        self.down = rng.standard_normal((experts, HIDDEN, WIDTH), dtype=np.float32) / 8
        self.y = np.zeros_like(self.x)

    def error(self) -> float:
        """Return the largest absolute difference from the same in float64, of the rows that are tokens."""
        x, up, down = (a.astype(np.float64) for a in (self.x, self.up, self.down))
        difference = np.abs(np.maximum(x @ up, 0) @ down - self.y)
        return max((float(difference[e, :count].max()) for e, count in enumerate(self.counts) if count), default=0.0)


def feed_forward(data: Experts) -> Workload:
    """Return two tasks for each block of each expert."""
    X, UP, DOWN, Y = Tensor(data.x), Tensor(data.up), Tensor(data.down), Tensor(data.y)
    H = Tensor.empty((*data.x.shape[:2], HIDDEN), F32)
    experts = Dense[len(data.counts)]()
    blocks = Ragged(experts, data.n_blocks)

    @workload
    def mixture() -> None:
        for e in P(experts):
            for i in P(blocks[e]):
                rows = slice(i * BLOCK, (i + 1) * BLOCK)
                expand[e, i](x=X[e, rows], up=UP[e], h=H[e, rows])
                contract[e, i](h=H[e, rows], down=DOWN[e], y=Y[e, rows])

    return mixture()


def compare(program: Program, whole: Workload) -> None:
    """Print what some schedules take, and why the slowest of them takes so long."""
    candidates = {
        "an expert each, by number": whole.dispatch(DispatchPolicy.affinity("e", 6)),
        "the same, idle ones steal": whole.dispatch(DispatchPolicy.affinity("e", 6)).task_graph(ready=ReadyPolicy.work_steal()),
        "in turn": whole.dispatch(DispatchPolicy.round_robin(6)),
        "one queue for all": whole.dispatch(DispatchPolicy.work_steal(6)),
    }
    print(f"{'schedule':<28}{'cycles':>10}{'above bound':>13}  mostly")
    timed = {name: program.simulate(schedule, overheads=True) for name, schedule in candidates.items()}
    for name, simulation in timed.items():
        stats = simulation.stats
        print(f"{name:<28}{stats.total_cycles:>10}{stats.gap:>13.1%}  {stats.dominated_by.partition(':')[0]}")
    slowest = max(timed.values(), key=lambda simulation: simulation.total_cycles)
    last = int(np.argmax(slowest.trace.end))
    print(f"\nwhy the slowest one's last task ends so late:\n{slowest.explain(last)}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Search a schedule for a mixture of experts in simulated time.")
    parser.add_argument("--experts", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--budget", type=int, default=80, help="schedules to simulate")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if min(options.experts, options.tokens, options.budget) < 1:
        parser.error("--experts, --tokens and --budget are at least 1")
    data = Experts(options.experts, options.tokens, np.random.default_rng(options.seed))
    whole = feed_forward(data)
    print(f"{options.tokens} tokens, blocks of {BLOCK} per expert: {data.n_blocks.tolist()}")

    program = whole.compile(arch=ARCH).run()
    compare(program, whole)

    found = auto_schedule(whole, arch=ARCH, budget=options.budget, seed=options.seed, overheads=True)
    print(f"\nfound: {found}")

    frozen = found.workload.compile(arch=ARCH, overheads=True).run().freeze()
    data.y[:] = np.nan
    again = whole.under(frozen).compile(arch=ARCH, overheads=True).run()
    error = data.error()
    print(f"\nfrozen: {again.stats.total_cycles} cycles, max |error| {error:.1e}: "
          f"{'agrees with NumPy' if error <= TOLERANCE else 'DIFFERS FROM NUMPY'}")
    return 0 if error <= TOLERANCE and again.stats.total_cycles == found.cycles else 1


if __name__ == "__main__":
    sys.exit(main())
