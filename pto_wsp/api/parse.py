"""`parse`: the kernel, workload or plan that IR text prints."""

from __future__ import annotations

from pto_wsp.api.kernel import Kernel
from pto_wsp.calls import user_call
from pto_wsp.trace.text.read import read_ir


@user_call()
def parse(text: str, *, bodies: bool = False) -> Kernel:
    """Return the kernel that IR text prints: `parse(str(k.ir)) == k.ir`. The grammar is in docs/ir_text.md.

    The kernel runs, stands in workloads and compiles like a traced one: what the text says is traced again. `bodies`: take kernels with
    a body in C or C++ too, which runs as code when the kernel does.
    Raises: W116 at the place in the text that is no IR, or that no trace gives; K107 for a body in C or C++ without `bodies`.
    """
    return Kernel.of_ir(read_ir(text, bodies=bodies))
