"""`parse`: the kernel, workload or plan that IR text prints."""

from __future__ import annotations

from pto_wsp.api.kernel import Kernel
from pto_wsp.api.workload import Workload
from pto_wsp.calls import user_call
from pto_wsp.ir import kernel as k
from pto_wsp.ir import workload as wl
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.trace.text.read import read_ir


@user_call()
def parse(text: str, *, bodies: bool = False) -> Kernel | Workload | TaskPlan:
    """Return the kernel, workload or plan that IR text prints; the grammar is in docs/ir_text.md.

    `parse(str(k.ir)) == k.ir`, `parse(str(w.ir)) == w.ir` and `parse(str(program.plan)) == program.plan`. A kernel runs, and a workload
    compiles, like a traced one: what the text says is held to the rules of a trace. A workload's tensors have no buffers, and it has no
    schedule: bind the tensors by name, and give the schedule with `under`. `bodies`: take kernels with a body in C or C++ too, which runs
    as code when the kernel does.
    Raises: W116 at the place in the text that is no IR, or that no trace gives; K107 for a body in C or C++ without `bodies`.
    """
    made = read_ir(text, bodies=bodies)
    match made:
        case k.Kernel():
            return Kernel.of_ir(made)
        case wl.Workload():
            return Workload(made, {})
        case TaskPlan():
            return made
