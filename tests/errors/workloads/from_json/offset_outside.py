"""JSON of a workload in which a kernel reads outside its tile."""

from pto_wsp import DType, InOut, Tensor, Tile, Workload, kernel, pto, workload


@kernel
def double(y: InOut[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, y * 2)


@workload
def doubled() -> None:
    double(Tensor(shape=(1, 4), dtype=DType.F32, name="Y"))


def mistake() -> None:
    text = doubled().to_json()
    Workload.from_json(text.replace('"row":{"kind":"Const","value":0}', '"row":{"kind":"Const","value":-1}'))


# error[W113]: this JSON is not a workload
#   --> offset_outside.py:18:5
#      |
#   18 |     Workload.from_json(text.replace('"row":{"kind":"Const","value":0}', '"row":{"kind":"Const","value":-1}'))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    kernel `double`: T301: `pto.load` leaves parameter `y`
#    = note:     expected: 0 <= row, row + 1 <= 1
#    = note:     found: row -1
