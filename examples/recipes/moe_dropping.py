"""A mixture of experts with a capacity: each expert takes C tokens at most, and what is routed to it beyond is dropped.

A router task picks two experts for each token and gives each choice a place in its expert's list, first choices before second ones, tokens
in order. How many blocks an expert has is read from what the router wrote; an expert without tokens makes no task. A dropped choice adds
nothing, and the token keeps its residual.

    python examples/recipes/moe_dropping.py
"""

import numpy as np

from pto_wsp import DenseDyn, DispatchPolicy, DType, In, Out, P, Pools, Scalar, Tensor, Tile, ceildiv, kernel, pto, workload

F32, I32 = DType.F32, DType.I32
T, E, C, D, HIDDEN, CHOICES = 64, 8, 16, 32, 64, 2        # tokens at most, experts, capacity, widths, experts of a token
BLOCK = 8                                                 # tokens of a task


def draw(tokens, favour=2.0, seed=0):
    """Return tokens and weights; `favour` is how much the first experts are preferred."""
    rng, shapes = np.random.default_rng(seed), {"x": (tokens, D), "gate": (D, E), "up": (E, D, HIDDEN), "down": (E, HIDDEN, D)}
    a = {name: rng.standard_normal(shape, np.float32) / 4 for name, shape in shapes.items()}
    a["x"][:, 0], a["gate"][0] = 1, a["gate"][0] + favour * np.float32(0.6) ** np.arange(E, dtype=np.float32)
    return a | {"tokens": tokens, "load": np.zeros((1, E), np.int32), "y": np.full((tokens, D), np.nan, np.float32)}


def expected(tokens, x, gate, up, down, **_):
    """Return the output in float64, and how many tokens each expert takes."""
    score = x @ gate
    chosen = np.argsort(-score, axis=1, kind="stable")[:, :CHOICES]
    best = np.take_along_axis(score, chosen, 1).astype(np.float64)
    share = np.exp(best) / np.exp(best).sum(axis=1, keepdims=True)
    y, load = x.astype(np.float64), np.zeros((1, E), np.int32)
    for k, t in np.ndindex(CHOICES, tokens):
        e = chosen[t, k]
        if load[0, e] < C:
            load[0, e] += 1
            y[t] += share[t, k] * (np.maximum(x[t].astype(np.float64) @ up[e], 0) @ down[e])
    return {"y": y, "load": load}


@kernel
def route(x: In[Tile[T, D, F32]], gate: In[Tile[D, E, F32]], share: Out[Tile[T, CHOICES, F32]], slot: Out[Tile[T, CHOICES, I32]],
          token: Out[Tile[E, C, I32]], load: Out[Tile[1, E, I32]]):
    """`slot[t, k]`: the place e * C + c of choice k of token t, E * C where it is dropped. `token[e, c]`: the token of a place."""
    best, chosen = pto.topk(x @ gate, CHOICES)
    number, taken = pto.iota((T, 1), axis=0), pto.zeros((1, E), I32)
    owner, slots = pto.zeros((1, E * C + 1), I32), []
    for k in range(CHOICES):
        mine = (chosen[:, k] == pto.iota((1, E))) & (number < x.valid[0])   # [T, E]: one expert a token that is there
        before = np.cumsum(mine, axis=0) - 1 + taken
        place = np.where(mine, before, 0).sum(axis=1, keepdims=True)
        slots.append(np.where((number < x.valid[0]) & (place < C), chosen[:, k] * C + place, E * C))
        owner = pto.scatter(owner, slots[-1].T, number.T)
        taken = taken + mine.sum(axis=0, keepdims=True)
    pto.store(share, pto.softmax(best))
    pto.store(slot, pto.concatenate(slots, axis=1))
    pto.store(token, pto.reshape(owner[:, :E * C], (E, C)))
    pto.store(load, np.minimum(taken, C))


@kernel
def expert(x: In[Tensor], token: In[Tile[1, "N", I32]], n: Scalar[I32], up: In[Tile["D", "HIDDEN", F32]],
           down: In[Tile["HIDDEN", "D", F32]], made: Out[Tile["N", "D", F32]]):
    rows = pto.gather(x, token.T, cols=(0, up.shape[0]), valid=n)
    pto.store(made, pto.relu(rows @ up) @ down)


@kernel
def combine(made: In[Tensor], x: In[Tile["N", "D", F32]], slot: In[Tile["N", 2, I32]], share: In[Tile["N", 2, F32]],
            y: Out[Tile["N", "D", F32]]):
    total = pto.load(x)
    for k in range(CHOICES):
        kept = slot[:, k] < E * C
        rows = pto.gather(made, np.where(kept, slot[:, k], 0), cols=(0, x.shape[1]))
        total = total + np.where(kept, rows * share[:, k], 0)               # what no task has made is not read, even if it is NaN
    pto.store(y, total)


FIRST = draw(50)
x, gate, up, down, load, y = (Tensor(FIRST[name]) for name in ("x", "gate", "up", "down", "load", "y"))
share, slot, token = Tensor.empty((T, CHOICES), F32), Tensor.empty((T, CHOICES), I32), Tensor.empty((E, C), I32)
made = Tensor.empty((E * C, D), F32)
tokens = DenseDyn(FIRST["tokens"])


@workload
def layer():
    route(x[:tokens].clip(T, D), gate, share, slot, token, load, label="router")
    for e in P(E):
        for i in P(ceildiv(load[0, e], BLOCK)):                             # read when the router has run
            mine = slice(i * BLOCK, (i + 1) * BLOCK)
            expert[e, i](x, token[e, mine], (load[0, e] - i * BLOCK).min(BLOCK), up[e], down[e], made[e * C:(e + 1) * C][mine])
    for i in P(ceildiv(tokens, BLOCK)):
        combine[i](made, *(rows[:tokens][i * BLOCK:].clip(BLOCK, rows.shape[1]) for rows in (x, slot, share, y)))


# the weights of an expert stay near; the router, which is in no loop over experts, has home 0
scheduled = layer().dispatch(DispatchPolicy.affinity(lambda t: t.get("e", 0))).task_graph(pools=Pools.by_exec_unit())


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw(3, seed=1):
        program.run(**data)
        wanted = expected(**data)
        assert np.array_equal(data["load"], wanted["load"])
        np.testing.assert_allclose(data["y"], wanted["y"], atol=2e-5)
        print(f"tokens by expert {data['load'][0].tolist()}: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
