import pto_wsp

TEXT = """\
kernel double(x: In[Tile[4, 8, f32]], y: Out[Tile[4, 8, f32]]):
    %0 = load x
    %1 = mul %0, 2.0
    store x, %1
"""


def mistake():
    pto_wsp.parse(TEXT)

# error[W116]: kernel `double`: parameter `x` is In: it cannot be stored to
#   --> <ir bf3928c8>:4:5
#     |
#   4 |     store x, %1
#     |     ^^^^^
#    = expected: Out or InOut
#    = found:    declared at <ir bf3928c8>:1:15
#    = help:     declare it InOut, if the kernel may change it
#    = note:     of a trace, this is K106
