"""The feed-forward block of a transformer as a pipeline, for requests of different lengths: normalise, expand, contract.

Blocks of tokens go from stage to stage. A token of the first channel says which request and which block of it, as soon as that has been
normalised; two replicas of the expanding stage take blocks in turn; the last stage adds the residual. Scratch tensors live as long as
their block needs them. Cycles on the neutral machine show what depth and replicas are good for; results are checked against NumPy.

    python examples/pipelined_mlp/pipelined_mlp.py
    python examples/pipelined_mlp/pipelined_mlp.py --lengths 100,7,64,300 --depth 1
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from pto_wsp import (
    Channel,
    Dense,
    DType,
    In,
    Out,
    P,
    Program,
    Ragged,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    process,
    pto,
    replicate,
    send,
    workload,
)

F32 = DType.F32
BLOCK, WIDTH, HIDDEN = 16, 64, 256
TOLERANCE = 1e-4     # of f32 against a float64 reference; results are of the order of 1


# ---- the reference ----

def reference(x: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Return x + gelu(rmsnorm(x) @ up) @ down in float64."""
    x, up, down = (a.astype(np.float64) for a in (x, up, down))
    normal = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)
    hidden = normal @ up
    return x + 0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden ** 3))) @ down


# ---- kernels ----

@kernel
def rmsnorm(x: In[Tile[BLOCK, WIDTH, F32]], y: Out[Tile[BLOCK, WIDTH, F32]]):
    pto.store(y, x * pto.rsqrt(pto.rowmean(x * x) + 1e-6))


@kernel
def expand(x: In[Tile[BLOCK, WIDTH, F32]], up: In[Tile[WIDTH, HIDDEN, F32]], h: Out[Tile[BLOCK, HIDDEN, F32]]):
    hidden = x @ up
    pto.store(h, 0.5 * hidden * (1 + pto.tanh(0.7978845608 * (hidden + 0.044715 * hidden * hidden * hidden))))


@kernel
def contract(h: In[Tile[BLOCK, HIDDEN, F32]], down: In[Tile[HIDDEN, WIDTH, F32]], x: In[Tile[BLOCK, WIDTH, F32]],
             y: Out[Tile[BLOCK, WIDTH, F32]]):
    pto.store(y, x + h @ down)


# ---- the pipeline ----

class Block:
    """The tensors of a batch: of each request the blocks of its tokens."""

    def __init__(self, lengths: list[int], rng: np.random.Generator) -> None:
        self.n_blocks = np.array([-(-length // BLOCK) for length in lengths], np.int32)
        most, requests = int(self.n_blocks.max()), len(lengths)
        self.x = np.zeros((requests, most * BLOCK, WIDTH), np.float32)
        for row, length in zip(self.x, lengths, strict=True):
            row[:length] = rng.standard_normal((length, WIDTH), dtype=np.float32)
        self.up = rng.standard_normal((WIDTH, HIDDEN), dtype=np.float32) / 8
        self.down = rng.standard_normal((HIDDEN, WIDTH), dtype=np.float32) / 16
        self.y = np.full_like(self.x, np.nan)
        self.X, self.Y, self.UP, self.DOWN = Tensor(self.x), Tensor(self.y), Tensor(self.up), Tensor(self.down)
        self.NORMAL = Tensor.empty((requests, most * BLOCK, WIDTH), F32)
        self.HIDDEN = Tensor.empty((requests, most * BLOCK, HIDDEN), F32)
        self.requests = Dense[requests]()
        self.blocks = Ragged(self.requests, self.n_blocks)

    def rows(self, tensor: Tensor, b: object, i: object) -> object:
        """Return block i of request b."""
        return tensor[b][i * BLOCK:(i + 1) * BLOCK]

    def normalise(self, b: object, i: object) -> object:
        return rmsnorm[b, i](x=self.rows(self.X, b, i), y=self.rows(self.NORMAL, b, i))

    def expand(self, b: object, i: object) -> object:
        return expand[b, i](x=self.rows(self.NORMAL, b, i), up=self.UP, h=self.rows(self.HIDDEN, b, i))

    def contract(self, b: object, i: object) -> object:
        return contract[b, i](h=self.rows(self.HIDDEN, b, i), down=self.DOWN, x=self.rows(self.X, b, i), y=self.rows(self.Y, b, i))


def pipelined(batch: Block, depth: int, replicas: int) -> Workload:
    """Return the block as a pipeline."""
    normal, hidden = Channel("normal", depth), Channel("hidden", depth)

    def normalising() -> None:
        for b in P.seq(batch.requests):
            for i in P.seq(batch.blocks[b]):
                send(normal, batch.normalise(b, i))

    def expanding() -> None:
        with consume(normal) as (b, i):
            send(hidden, batch.expand(b, i))

    def contracting() -> None:
        with consume(hidden) as (b, i):
            batch.contract(b, i)

    return connect([process("normalise").produces(normal).body(normalising),
                    replicate(process("expand").consumes(normal).produces(hidden).body(expanding), replicas),
                    process("contract").consumes(hidden).body(contracting)], [normal, hidden])


def one_by_one(batch: Block) -> Workload:
    """Return the same tasks, a stage of a block after the other."""
    @workload
    def plain() -> None:
        for b in P.seq(batch.requests):
            for i in P.seq(batch.blocks[b]):
                batch.normalise(b, i)
                batch.expand(b, i)
                batch.contract(b, i)

    return plain()


def check(name: str, whole: Workload, batch: Block, lengths: list[int]) -> tuple[bool, Program]:
    """Run one, print a line, and tell whether it agrees with the reference."""
    batch.y[:] = np.nan
    program = whole.compile().run()
    expected = reference(batch.x, batch.up, batch.down)
    error = max(float(np.abs(batch.y[b, :n] - expected[b, :n]).max()) for b, n in enumerate(lengths))
    right = error <= TOLERANCE
    print(f"{name}: {program.stats.task_count} tasks, {program.stats.total_cycles} cycles, max |error| {error:.1e}: "
          f"{'agrees with NumPy' if right else 'FAILED'}")
    return right, program


def main() -> int:
    """Run the stages one by one and as pipelines."""
    parser = argparse.ArgumentParser(description="A feed-forward block as a pipeline.")
    parser.add_argument("--lengths", default="48,5,100,33", help="tokens of each request, default %(default)s")
    parser.add_argument("--depth", type=int, default=2, help="blocks that a channel holds, default %(default)s")
    options = parser.parse_args()
    try:
        lengths = [int(text) for text in options.lengths.split(",")]
    except ValueError:
        parser.error("--lengths are whole numbers with commas in between")
    if not lengths or min(lengths) < 1 or options.depth < 0:
        parser.error("--lengths are at least 1, --depth at least 0")
    batch = Block(lengths, np.random.default_rng(0))
    done = [check("one by one", one_by_one(batch), batch, lengths)]
    for replicas in (1, 2):
        name = f"pipeline of depth {options.depth}, {replicas} expanding"
        done.append(check(name, pipelined(batch, options.depth, replicas), batch, lengths))
    for line in done[-1][1].checks:
        if "deadlock of normalise" in line:
            print(line)
    return 0 if all(right for right, _ in done) else 1


if __name__ == "__main__":
    sys.exit(main())
