"""Each rank of a ring sends over two links, twice, and a link has room for one copy at its far end."""

import numpy as np

from pto_wsp import Deps, Mesh, P, Tensor, TensorLayout, builtin_arch, copy, workload

ROWS = TensorLayout.sharded(0, 2, "x")
mesh = Mesh(x=4)
X, Y, Z = (Tensor(np.ones((4, 8), np.float32), name=name, layout=ROWS) for name in "XYZ")


@workload
def made():
    for r in P(mesh):
        copy(X.on(r), Y.on((r + 2) % 4))
    for r in P(mesh):
        copy(X.on(r), Z.on((r + 2) % 4))


def mistake() -> None:
    ring = builtin_arch("unit").with_links(topology="ring", buffers=1)
    made().task_graph(deps=Deps.infer_bytes_overlap()).compile("interp", arch=ring).run()


# error[W111]: copies wait for each other: 4 links in a circle are full
#   --> links_without_buffers.py:15:9
#      |
#   15 |         copy(X.on(r), Y.on((r + 2) % 4))
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: links that drain
#    = found:    1 buffer at the far end of each link
#    = help:     2 buffers are enough here: arch.with_links(buffers=2); or send to neighbours only, as the ring algorithm does
#    = note:     rank 0 link to the next rank is full: 0 copy_part[r=0] from rank 0 to rank 2, links_without_buffers.py:15
#    = note:     rank 1 link to the next rank is full: 1 copy_part[r=1] from rank 1 to rank 3, links_without_buffers.py:15
#    = note:     rank 2 link to the next rank is full: 2 copy_part[r=2] from rank 2 to rank 0, links_without_buffers.py:15
#    = note:     rank 3 link to the next rank is full: 3 copy_part[r=3] from rank 3 to rank 1, links_without_buffers.py:15
#    = note:     each waits for the link of the line below, the last one for the first
