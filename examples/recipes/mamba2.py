"""The scan of Mamba-2 (state space duality) over sequences of different lengths, chunk by chunk.

Inside a chunk the recurrence is a masked product, as in attention; from chunk to chunk a state of N x D numbers is carried on. The work
inside of chunks is independent and large, what is carried is small and in order. States are given and kept: a second run goes on where
the first has ended.

    python examples/recipes/mamba2.py
"""

import numpy as np

from pto_wsp import DenseDyn, DType, In, InOut, Out, P, ReadyPolicy, Scalar, Tensor, Tile, ceildiv, kernel, pto, workload

F32 = DType.F32
H, D, N, CHUNK = 4, 32, 16, 32    # heads, numbers of a head, of a column of the state, tokens of a chunk


def draw(lens, seed=0):
    """Return sequences of `lens` tokens, one after the other, and states that are not 0."""
    rng, lens = np.random.default_rng(seed), np.array(lens, np.int32)
    T = int(lens.sum())
    shapes = {"x": (H, T, D), "dt": (H, T, 1), "A": (H,), "B": (T, N), "C": (T, N), "state": (len(lens), H, N, D)}
    a = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    return a | {"dt": np.log1p(np.exp(a["dt"])) / 4, "A": -np.exp(a["A"]), "y": np.full((H, T, D), np.nan, np.float32),
                "lens": lens, "starts": (np.cumsum(lens) - lens).astype(np.int32), "sequences": len(lens)}


def expected(lens, starts, x, dt, A, B, C, state, **_):
    """Return outputs and last states, token by token in float64."""
    y, last = np.zeros(x.shape), state.astype(np.float64)
    for b, (start, n) in enumerate(zip(starts, lens, strict=True)):
        for t in range(start, start + n):
            for h in range(H):
                last[b, h] = np.exp(dt[h, t] * A[h]) * last[b, h] + np.outer(B[t], dt[h, t] * x[h, t])
                y[h, t] = C[t] @ last[b, h]
    return {"y": y, "state": last}


@kernel
def inside(x: In[Tile["T", "D", F32]], dt: In[Tile["T", 1, F32]], B: In[Tile["T", "N", F32]], C: In[Tile["T", "N", F32]], a: Scalar[F32],
           y: Out[Tile["T", "D", F32]], gain: Out[Tile["N", "D", F32]], decay: Out[Tile["T", 1, F32]]):
    """What a chunk gives on its own: its outputs, what it adds to the state, and the decay since its start."""
    T = x.shape[0]
    log_decay = np.cumsum(dt * a, axis=0)                                   # tokens that are not there have dt 0: no decay, no gain
    later = pto.iota((T, 1), axis=0) >= pto.iota((1, T))
    between = np.exp(np.where(later, log_decay - log_decay.T, -np.inf))     # from token s to a later token t: [t, s]
    pto.store(y, (C @ B.T * between) @ (x * dt))
    pto.store(gain, (B * np.exp(log_decay[-1:] - log_decay)).T @ (x * dt))
    pto.store(decay, np.exp(log_decay))


@kernel
def carry(C: In[Tile["T", "N", F32]], gain: In[Tile["N", "D", F32]], decay: In[Tile["T", 1, F32]], state: InOut[Tile["N", "D", F32]],
          y: InOut[Tile["T", "D", F32]]):
    """Add what the state in front of a chunk gives, and carry the state on."""
    before = pto.load(state)
    pto.store(y, y + (C * decay) @ before)
    pto.store(state, decay[-1:] * before + gain)


FIRST = draw([100, 1, 64, 0, 130])
lens, starts, x, dt, A, B, C, state, y = (Tensor(FIRST[name]) for name in ("lens", "starts", "x", "dt", "A", "B", "C", "state", "y"))
sequences = DenseDyn(FIRST["sequences"])


def chunk(rows, b, i):
    """Return chunk i of sequence b, which may be short."""
    return rows[starts[b]:starts[b] + lens[b]][i * CHUNK:].clip(CHUNK, rows.shape[1])


@workload
def scan():
    for b, h in P(sequences, H):
        for i in P.seq(ceildiv(lens[b], CHUNK)):
            gain, decay = Tensor.empty((N, D), F32), Tensor.empty((CHUNK, 1), F32)
            mine = chunk(C, b, i), chunk(y[h], b, i)
            inside[b, h, i](chunk(x[h], b, i), chunk(dt[h], b, i), chunk(B, b, i), mine[0], A[h], mine[1], gain, decay)
            carry[b, h, i](mine[0], gain, decay, state[b, h], mine[1])


# edges from data: chunks side by side, states in order; early chunks go first, because all later ones of their sequence wait for them
scheduled = scan().task_graph(ready=ReadyPolicy.priority(lambda t: -t.i))


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw([33, 200], seed=1):
        wanted = expected(**data)                                           # before the run, which carries the states on
        program.run(**data)
        np.testing.assert_allclose(data["y"], wanted["y"], atol=1e-4)
        np.testing.assert_allclose(data["state"], wanted["state"], atol=1e-4)
        print(f"{data['lens'].tolist()}: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
