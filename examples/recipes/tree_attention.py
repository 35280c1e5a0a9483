"""Speculative decoding with a tree of drafts: attention along branches, acceptance of the longest right path, compaction of the cache.

A request's draft is a tree of up to N tokens. A node attends to the cache and to the nodes above it; the model's choice there says which
of its children is right. The longest right path is accepted, and its rows are moved to the end of the cache: as many as tasks have found.

    python examples/recipes/tree_attention.py
"""

import numpy as np

from pto_wsp import DenseDyn, DType, In, Out, P, Tensor, Tile, kernel, pto, workload

F32, I32 = DType.F32, DType.I32
N, S, D, VOCAB, SCALE = 16, 128, 32, 64, 32 ** -0.5       # nodes of a tree at most, tokens of a cache, width, tokens there are


def draw(lens, nodes, seed=0):
    """Return requests with `lens` cached tokens and trees of `nodes`, drafted so that some children are right."""
    rng, B = np.random.default_rng(seed), len(lens)
    shapes = {"K": (B, S, D), "V": (B, S, D), "q": (B, N, D), "k": (B, N, D), "v": (B, N, D), "head": (D, VOCAB)}
    a = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    a |= {"drafts": np.zeros((B, 1, N), np.int32), "above": np.zeros((B, N, N), np.int32), "accepted": np.zeros((B, 1, 1), np.int32),
          "following": np.zeros((B, 1, 1), np.int32), "lens": np.array(lens, np.int32), "requests": B}
    for b, n in enumerate(nodes):
        parents = [0, *(int(rng.integers(max(0, i - 3), i)) for i in range(1, n))]
        for i, parent in enumerate(parents):                                # above[i]: the nodes of the path to i, i among them
            a["above"][b, i] = a["above"][b, parent] | (np.arange(N) == i)
        choice = choices(b, **a)
        a["drafts"][b, 0, :n] = [choice[parent] if rng.random() < 0.7 else rng.integers(VOCAB) for parent in parents]
    return a


def choices(b, lens, K, V, q, k, v, above, head, **_):
    """Return the model's choice of a next token at each node of request b, in float64."""
    keys, values = (np.concatenate([c[b, :lens[b]], new[b]]).astype(np.float64) for c, new in ((K, k), (V, v)))
    n, seen = above[b].trace(), np.concatenate([np.ones((N, lens[b])), above[b]], axis=1) > 0
    weight = np.where(seen[:n], np.exp(q[b, :n] @ keys.T * SCALE), 0)
    return np.argmax(weight @ values / weight.sum(axis=1, keepdims=True) @ head, axis=1)


def expected(K, V, k, v, above, drafts, lens, accepted, following, **rest):
    """Return what is accepted, and the caches with the path's rows at their ends."""
    K, V, accepted, following = (array.copy() for array in (K, V, accepted, following))
    for b, length in enumerate(lens):
        choice, nodes = choices(b, lens, K, V, k=k, v=v, above=above, **rest), above[b].trace()
        best = max((path for path in map(np.flatnonzero, above[b, :nodes]) if np.all(drafts[b, 0, path[1:]] == choice[path[:-1]])), key=len)
        K[b, length:length + len(best)], V[b, length:length + len(best)] = k[b, best], v[b, best]
        accepted[b], following[b] = len(best), choice[best[-1]]
    return {"K": K, "V": V, "accepted": accepted, "following": following}


@kernel
def attend(q: In[Tile[N, D, F32]], K: In[Tile[S, D, F32]], V: In[Tile[S, D, F32]], k: In[Tile[N, D, F32]], v: In[Tile[N, D, F32]],
           above: In[Tile[N, N, I32]], head: In[Tile[D, VOCAB, F32]], choice: Out[Tile[N, 1, I32]]):
    cached = np.where(pto.iota((1, S)) < K.valid[0], q @ K.T * SCALE, -1e30)
    drafted = np.where(above != 0, q @ k.T * SCALE, -1e30)
    weight = pto.softmax(np.concatenate([cached, drafted], axis=1))
    pto.store(choice, ((weight[:, :S] @ V + weight[:, S:] @ v) @ head).argmax(axis=1, keepdims=True))


@kernel
def accept(choice: In[Tile[N, 1, I32]], drafts: In[Tile[1, N, I32]], above: In[Tile[N, N, I32]], path: Out[Tile[N, 1, I32]],
           accepted: Out[Tile[1, 1, I32]], following: Out[Tile[1, 1, I32]]):
    node, column, depth = pto.iota((N, 1), axis=0), pto.iota((1, N)), above.sum(axis=1, keepdims=True)   # depth 0: there is no node
    parent = np.where((above != 0) & (column != node), column, -1).max(axis=1, keepdims=True)           # the last node above
    chosen = pto.gather(choice, np.maximum(parent, 0), axis=0).T            # what a node's parent would have drafted
    wrong = (above != 0) & (drafts != chosen) & (column > 0)
    best = np.where(wrong.any(axis=1, keepdims=True), 0, depth).argmax(axis=0, keepdims=True)            # [1, 1]
    steps = pto.gather(above, best, axis=0)                     # [1, N]: which nodes are on the path
    place = np.where(steps != 0, np.cumsum(steps, axis=1) - 1, N)
    pto.store(path, pto.scatter(pto.zeros((1, N + 1), I32), place, column)[:, :N].T)
    pto.store(accepted, steps.sum(axis=1, keepdims=True))
    pto.store(following, pto.gather(choice, best, axis=0))


@kernel
def compact(k: In[Tensor], v: In[Tensor], path: In[Tile[N, 1, I32]], K: Out[Tile[N, D, F32]], V: Out[Tile[N, D, F32]]):
    pto.store(K, pto.gather(k, path, cols=(0, D)))
    pto.store(V, pto.gather(v, path, cols=(0, D)))


FIRST = draw([100, 3, 50, 0], [16, 5, 1, 9])
lens, K, V, q, k, v = (Tensor(FIRST[name]) for name in ("lens", "K", "V", "q", "k", "v"))
above, drafts, head, accepted, following = (Tensor(FIRST[name]) for name in ("above", "drafts", "head", "accepted", "following"))
requests = DenseDyn(FIRST["requests"])
choice, path = (Tensor.empty((requests, N, 1), I32) for _ in range(2))


@workload
def speculate():
    for b in P(requests):
        attend[b](q[b], K[b, :lens[b]].clip(S, D), V[b, :lens[b]].clip(S, D), k[b], v[b], above[b], head, choice[b])
        accept[b](choice[b], drafts[b], above[b], path[b], accepted[b], following[b])
    for b in P(requests):                                                   # another loop: all trees are on their way before one is read
        end = slice(lens[b], lens[b] + accepted[b, 0, 0])
        compact[b](k[b], v[b], path[b], K[b, end].clip(N, D), V[b, end].clip(N, D))


scheduled = speculate().task_graph()


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw([64, 112], [12, 16], seed=1):
        wanted = expected(**data)
        program.run(**data)
        assert all(np.array_equal(data[name], array) for name, array in wanted.items())
        print(f"accepted {data['accepted'].ravel().tolist()}: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
