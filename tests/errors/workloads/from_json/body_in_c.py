"""JSON of a workload with a body in C, which would be compiled and run."""

from pto_wsp import DType, InOut, Tensor, Tile, Workload, kernel, workload


@kernel(c_src="system(0);")
def run(y: InOut[Tile[1, 4, DType.F32]]) -> None: ...


@workload
def running() -> None:
    run(Tensor(shape=(1, 4), dtype=DType.F32, name="Y"))


def mistake() -> None:
    Workload.from_json(running().to_json())


# error[K107]: kernel `run` has a body in C, and is read as data
#   --> body_in_c.py:16:5
#      |
#   16 |     Workload.from_json(running().to_json())
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: kernels of tile ops, which can only compute on what they are given
#    = help:     Workload.from_json(text, bodies=True), for text that you trust as you trust code
