import numpy as np

from pto_wsp import DType, Tensor, jit


@jit
def places(x: Tensor["t", 4000, DType.F32]):
    place = np.argmax(x, axis=-1)
    return place


def mistake():
    places.plan(target="ascend_npu", arch="ascend_910b").but(tiles={"place": {"t": 11}})


# error[J304]: group `place`: these tiles do not fit
#   --> tiles_without_room_for_instructions.py:13:5
#      |
#   13 |     places.plan(target="ascend_npu", arch="ascend_910b").but(tiles={"place": {"t": 11}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> tiles_without_room_for_instructions.py:8:13: the group computes this
#     |
#   8 |     place = np.argmax(x, axis=-1)
#     |             ^^^^^^^^^^^^^^^^^^^^^
#    = expected: the largest that fits, with the others as they are: t=2
#    = found:    t=11 needs 752,768 of 188,416 bytes of UB
#    = help:     take a smaller extent, or let the compiler choose
#    = note:     tiles that live in UB then:
#    = note:       176000  x              [11, 4000] f32  line 8
#    = note:       176000  working memory [11, 4000] i32  line 8, for np.argmax(x, axis=-1)
#    = note:       176000  working memory [11, 4000] f32  line 8, for np.argmax(x, axis=-1)
#    = note:       176000  working memory [11, 4000] f32  line 8, for np.argmax(x, axis=-1)
#    = note:        16000  working memory [1, 4000] f32  line 8, for np.argmax(x, axis=-1)
#    = note:        16000  working memory [1, 4000] f32  line 8, for np.argmax(x, axis=-1)
#    = note:        16000  working memory [1, 4000] f32  line 8, for np.argmax(x, axis=-1)
#    = note:          512  working memory [1, 512] u8  line 8, for np.argmax(x, axis=-1)
#    = note:          256  working memory [1, 256] u8  line 8, for np.argmax(x, axis=-1)
