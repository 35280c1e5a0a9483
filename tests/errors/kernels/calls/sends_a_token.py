"""A kernel sends a token, as a workload does."""

from pto_wsp import Channel, DType, In, Out, Tile, pto, send

ready = Channel("ready")


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x)
    send(ready, 1)


# error[K105]: `send` is a word of workloads, and was called in another body
#   --> sends_a_token.py:10:5
#      |
#   10 |     send(ready, 1)
#      |     ^^^^^^^^^^^^^^
#    = help:     call it in a workload, or outside of such bodies
