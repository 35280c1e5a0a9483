import pto_wsp

TEXT = """\
kernel double(x: In[Tile[4, 8, f32]], y: Out[Tile[4, 8, f32]]):
    %0 = load x
    %1 = mull %0, 2.0
    store y, %1
"""


def mistake():
    pto_wsp.parse(TEXT)

# error[W116]: there is no op `mull`
#   --> <ir 0e5f1597>:3:10
#     |
#   3 |     %1 = mull %0, 2.0
#     |          ^^^^
#    = expected: an op of docs/ops.md, load, read or gather
#    = found:    `mull`
#    = help:     did you mean `mul`?
