"""SwiGLU over the ranks of a mesh: columns of the two first matrices, rows of the last one, and one allreduce.

    y = (silu(x @ gate) * (x @ up)) @ down

Each rank has some hidden units: its columns of gate and up, and its rows of down. The last product is then a term of a sum over the ranks.
The sum by ring, by tree and directly: results are held against float64, and what was sent against what the collective says.

    python examples/mesh_swiglu/mesh_swiglu.py
    python examples/mesh_swiglu/mesh_swiglu.py --ranks 3 --hidden 100
    mpirun -n 2 python -m mpi4py examples/mesh_swiglu/mesh_swiglu.py

Over MPI each process is a rank; its result has the bits of the same mesh in one process.
"""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np

from pto_wsp import (
    Deps,
    DType,
    In,
    Kernel,
    Mesh,
    Out,
    P,
    Program,
    Tensor,
    TensorLayout,
    Tile,
    Workload,
    allreduce,
    builtin_arch,
    ceildiv,
    kernel,
    pto,
    timeline,
    workload,
)

F32 = DType.F32
ROWS = 16              # tokens of a task
TOLERANCE = 1e-5       # of f32 sums of products against float64, relative to the largest result


# ---- the reference ----

def reference(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Return SwiGLU in float64."""
    x, gate, up, down = (array.astype(np.float64) for array in (x, gate, up, down))
    opened = x @ gate
    return (opened / (1 + np.exp(-opened)) * (x @ up)) @ down


# ---- a rank's share ----

def share(width: int, units: int) -> Kernel:
    """Return the kernel of 16 tokens and at most `units` hidden units: a term of the result."""

    @kernel
    def swiglu_share(x: In[Tile[ROWS, width, F32]], gate: In[Tile[width, units, F32]], up: In[Tile[width, units, F32]],
                     down: In[Tile[units, width, F32]], y: Out[Tile[ROWS, width, F32]]):
        opened = x @ gate
        pto.store(y, (opened * pto.sigmoid(opened) * (x @ up)) @ down)

    return swiglu_share


def swiglu(mesh: Mesh, arrays: tuple[np.ndarray, ...], y: np.ndarray, algorithm: str) -> Workload:
    """Return the layer over a mesh; `arrays` are x, gate, up and down."""
    x, gate, up, down = arrays
    (tokens, width), hidden = x.shape, gate.shape[1]
    X = Tensor(x, layout=TensorLayout.replicated(2))
    Gate, Up = (Tensor(array, layout=TensorLayout.sharded(dim=1, rank=2, mesh_axis="x")) for array in (gate, up))
    Down = Tensor(down, layout=TensorLayout.sharded(dim=0, rank=2, mesh_axis="x"))
    Y = Tensor(y, layout=TensorLayout.replicated(2))
    of_rank = share(width, ceildiv(hidden, mesh.size))

    @workload
    def swiglu_over_ranks():
        Terms = Tensor.empty((tokens, width), F32, layout=TensorLayout.partial_of(2, "x"))
        for r in P(mesh):
            for t in P(ceildiv(tokens, ROWS)):
                rows = slice(t * ROWS, (t + 1) * ROWS)
                of_rank[r, t](X.on(r)[rows], Gate.on(r), Up.on(r), Down.on(r), Terms.on(r)[rows])
        allreduce(Terms, out=Y, algorithm=algorithm)

    return swiglu_over_ranks().task_graph(deps=Deps.infer_bytes_overlap())


# ---- checks ----

def same_over_mpi(comm: object, mesh: Mesh, arrays: tuple[np.ndarray, ...], y: np.ndarray, algorithm: str) -> bool:
    """Run a layer over MPI, and tell whether this rank has the bits of one process."""
    own = np.full_like(y, np.nan)
    swiglu(mesh, arrays, own, algorithm).compile(mesh=mesh, comm=comm).run()
    same = own.tobytes() == y.tobytes()
    print(f"{algorithm:>6}: over MPI {'the same bits' if same else 'OTHER BITS: FAILED'}")
    return same


def agrees(name: str, program: Program, layer: Workload, y: np.ndarray, expected: np.ndarray) -> bool:
    """Run a layer, print a line, and tell whether its numbers and its bytes are right."""
    program.run()
    error = float(np.abs(y - expected).max() / np.abs(expected).max())
    sent = program.bytes_sent.copy()
    np.fill_diagonal(sent, 0)
    said = [layer.collectives[0].bytes_sent(rank) for rank in range(len(sent))]
    right = error <= TOLERANCE and sent.sum(axis=1).tolist() == said
    print(f"{name:>6}: max relative error {error:.1e}, {program.stats.total_cycles} cycles, bytes a rank sends {said}: "
          f"{'agrees with NumPy' if right else 'FAILED'}")
    return right


def main() -> int:
    """Run the layer by each algorithm; 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description="SwiGLU over the ranks of a mesh.")
    comm = importlib.import_module("mpi4py.MPI").COMM_WORLD if "mpi4py" in sys.modules else None      # `python -m mpi4py` loads it
    parser.add_argument("--ranks", type=int, default=2 if comm is None else comm.size, help="default %(default)s")
    parser.add_argument("--tokens", type=int, default=64, help="a multiple of 16, default %(default)s")
    parser.add_argument("--width", type=int, default=32, help="default %(default)s")
    parser.add_argument("--hidden", type=int, default=96, help="default %(default)s")
    options = parser.parse_args()
    if min(options.ranks, options.width) < 1 or options.tokens < ROWS or options.tokens % ROWS or options.hidden < 1:
        parser.error("--ranks, --width and --hidden are at least 1, --tokens a multiple of 16")
    rng = np.random.default_rng(0)
    shapes = ((options.tokens, options.width), (options.width, options.hidden), (options.width, options.hidden),
              (options.hidden, options.width))
    arrays = tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    expected = reference(*arrays)
    mesh = Mesh(x=options.ranks)
    arch = builtin_arch("unit").with_links(bandwidth_bytes_per_cycle=4.0, latency_cycles=50)
    right, ring = True, None
    for algorithm in ("ring", "tree", "direct"):
        y = np.full((options.tokens, options.width), np.nan, np.float32)
        layer = swiglu(mesh, arrays, y, algorithm)
        program = layer.compile(mesh=mesh, arch=arch)
        right &= agrees(algorithm, program, layer, y, expected)
        if comm is not None:
            right &= same_over_mpi(comm, mesh, arrays, y, algorithm)
        ring = ring or program
    print(timeline(ring.trace, width=60))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
