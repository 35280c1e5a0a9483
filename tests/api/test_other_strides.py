"""Arrays that a run binds may lie in memory otherwise than the declared ones."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_an_array_with_other_strides_along_the_declared_neighbours_is_read_as_it_lies(target: str) -> None:
    """A Fortran-ordered tensor has its unit stride along rows; a run may bind one that has not."""
    fortran = np.asfortranarray(np.arange(32, dtype=np.float32).reshape(4, 8))
    A, B, C = Tensor(np.eye(4, dtype=np.float32), name="A"), Tensor(fortran, name="B"), Tensor(np.zeros((8, 4), np.float32), name="C")

    @kernel
    def multiply(b: In[Tile[8, 4, DType.F32]], a: In[Tile[4, 4, DType.F32]], c: Out[Tile[8, 4, DType.F32]]) -> None:
        pto.store(c, b @ a)

    @workload
    def case() -> None:
        multiply(B.T, A, C)
    program = case().compile(target=target)
    for given in (fortran, np.ascontiguousarray(fortran), np.arange(64, dtype=np.float32).reshape(8, 8)[::2]):
        program.run(B=given)
        np.testing.assert_array_equal(C.data, given.T)
