"""Greedy generation with a small model: prompts of different lengths, one token of every request a step, until each one ends.

Everything is on the machine: the token that a step picks is an element that the next step's index reads. A request that has ended makes
no more tasks, so a step costs what the requests that are left cost. Keys and values are appended to the cache in place.

    python examples/recipes/generation.py
"""

import numpy as np

from pto_wsp import DenseDyn, DispatchPolicy, DType, In, InOut, Out, P, Pools, Symbol, Tensor, Tile, ceildiv, kernel, pto, workload

F32, I32 = DType.F32, DType.I32
D, VOCAB, S, BLOCK, END = 32, 64, 96, 16, 0        # width, tokens there are, longest sequence, cache rows of a task, the last token
SCALE = D ** -0.5


def draw(lens, steps=48, seed=0):
    """Return prompts of `lens` tokens, and the weights of a model of one layer."""
    rng = np.random.default_rng(seed)
    B = len(lens)
    tokens = np.full((B, S + 1), -1, np.int32)
    for row, n in zip(tokens, lens, strict=True):
        row[:n] = rng.integers(1, VOCAB, n)
    shapes = {"EMB": (VOCAB, D), "WQ": (D, D), "WK": (D, D), "WV": (D, D), "HEAD": (D, VOCAB)}
    return {name: rng.standard_normal(shape, np.float32) / 6 for name, shape in shapes.items()} | {
        "requests": B, "lens": np.array(lens, np.int32), "steps": steps, "tokens": tokens, "alive": np.ones((B, 1, 1), np.int32),
        "K": np.zeros((B, S, D), np.float32), "V": np.zeros((B, S, D), np.float32)}


def expected(lens, steps, tokens, EMB, WQ, WK, WV, HEAD, **_):
    """Return the sequences, one request after the other in float64."""
    done = tokens.copy()
    for row, n in zip(done, lens, strict=True):
        for t in range(min(steps, S)):
            x = EMB[row[:t + 1]].astype(np.float64)
            x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6)
            score = x[t] @ WQ @ (x @ WK).T * SCALE
            weight = np.exp(score - score.max())
            picked = np.argmax((EMB[row[t]] + weight @ (x @ WV) / weight.sum()) @ HEAD)
            if t + 1 >= n:
                row[t + 1] = picked
                if picked == END:
                    break
    return {"tokens": done}


@kernel
def project(emb: In[Tile[1, "D", F32]], wq: In[Tile["D", "D", F32]], wk: In[Tile["D", "D", F32]], wv: In[Tile["D", "D", F32]],
            q: Out[Tile[1, "D", F32]], k: Out[Tile[1, "D", F32]], v: Out[Tile[1, "D", F32]],
            acc: Out[Tile[1, "D", F32]], top: Out[Tile[1, 1, F32]], total: Out[Tile[1, 1, F32]]):
    x = emb / np.sqrt((emb * emb).mean(axis=1, keepdims=True) + 1e-6)
    for target, value in (q, x @ wq), (k, x @ wk), (v, x @ wv), (acc, 0), (top, -np.inf), (total, 0):
        pto.store(target, value)


@kernel
def meet(q: In[Tile[1, "D", F32]], k: In[Tile["N", "D", F32]], v: In[Tile["N", "D", F32]],
         acc: InOut[Tile[1, "D", F32]], top: InOut[Tile[1, 1, F32]], total: InOut[Tile[1, 1, F32]]):
    score = np.where(pto.iota((1, k.shape[0])) < k.valid[0], q @ k.T * SCALE, -np.inf)
    highest = np.maximum(top, score.max(axis=1, keepdims=True))
    shrink, weight = np.exp(top - highest), np.exp(score - highest)
    pto.store(acc, acc * shrink + weight @ v)
    pto.store(total, total * shrink + weight.sum(axis=1, keepdims=True))
    pto.store(top, highest)


@kernel
def pick(emb: In[Tile[1, "D", F32]], acc: In[Tile[1, "D", F32]], total: In[Tile[1, 1, F32]], head: In[Tile["D", "VOCAB", F32]],
         token: Out[Tile[1, 1, I32]], alive: Out[Tile[1, 1, I32]]):
    best = ((emb + acc / total) @ head).argmax(axis=1, keepdims=True)
    pto.store(token, best)
    pto.store(alive, (best != END).astype(I32))


FIRST = draw([5, 1, 20, 9])
lens, tokens, alive, K, V, EMB, WQ, WK, WV, HEAD = (Tensor(FIRST[name]) for name in (
    "lens", "tokens", "alive", "K", "V", "EMB", "WQ", "WK", "WV", "HEAD"))
requests, steps = DenseDyn(FIRST["requests"]), Symbol("steps")


@workload
def generate():
    for t in P.seq(steps):
        for b in P(requests):
            with P.when(alive[b, 0, 0] != 0):                               # read when the step before has picked
                q, acc, top, total = (Tensor.empty((1, width), F32) for width in (D, D, 1, 1))
                emb = EMB[tokens[b, t]]
                project[t, b](emb, WQ, WK, WV, q, K[b, t], V[b, t], acc, top, total)
                for j in P.seq(ceildiv(t + 1, BLOCK)):
                    rows = slice(j * BLOCK, (t + 1).min((j + 1) * BLOCK))
                    meet[t, b, j](q, K[b, rows].clip(BLOCK, D), V[b, rows].clip(BLOCK, D), acc, top, total)
                with P.when(t + 1 >= lens[b]):                              # behind the prompt
                    pick[t, b](emb, acc, total, HEAD, tokens[b, t + 1:t + 2], alive[b])


scheduled = generate().dispatch(DispatchPolicy.affinity(lambda t: t.b)).task_graph(pools=Pools.by_exec_unit())


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw([30, 2], steps=60, seed=1):
        wanted = expected(**data)["tokens"]
        program.run(**data)
        assert np.array_equal(data["tokens"], wanted)
        made = (data["tokens"] >= 0).sum(axis=1) - data["lens"]
        print(f"{made.tolist()} tokens made: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
