"""Emit a plan as a standalone program: tables of bindings and error texts, and the files that build the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pto_wsp.c.flags import compile_flags
from pto_wsp.c.printer import c_string
from pto_wsp.c.render import ProgramUnit, TableField, render
from pto_wsp.c.syntax import c_ident
from pto_wsp.ir.dtype import DType, Family
from pto_wsp.ir.flow import Pipeline, walk
from pto_wsp.ir.kernel import Compute, Gather, Scatter
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.names import Names
from pto_wsp.ir.plan import CheckKind, TaskPlan, is_float_symbol
from pto_wsp.ir.plan_walk import numbered_checks, submits
from pto_wsp.ir.scalar import Const, SymbolRef, Var, print_scalar
from pto_wsp.ops.guards import guards_of

_I64 = (-(1 << 63), (1 << 63) - 1)
_NOTHING = {"char *const": "0", "int64_t": "0"}
_BUILD_ONLY = ("-shared", "-fPIC")       # the Makefile has these itself


def emit_program(plan: TaskPlan, intermediates: Iterable[int], *, portable: bool, max_tasks: int) -> Mapping[str, str]:
    """Return the files that make a program of an artifact, by path.

    `intermediates`: tensor slots of results between tasks. `max_tasks`: number of tasks that a record keeps.
    """
    ident = c_ident(plan.name)
    names, lists = _unique([slot.ref.shown for slot in plan.tensors]), _Lists()
    tables = {
        "tensors": ("pto_program_tensor", _tensors(plan, names, frozenset(intermediates))),
        "slots": ("pto_program_slot", _slots(plan)),
        "symbols": ("pto_program_symbol", [_symbol(plan, symbol) for symbol in plan.symbols]),
        "checks": ("pto_program_check", _checks(plan, lists)),
        "kernels": ("pto_program_kernel", _kernels(plan)),
        "sites": ("pto_program_site", _sites(plan, lists)),
        "sparse": ("pto_program_sparse", _sparse(plan)),
        "streams": ("char *const", [c_string(name) for name in _streams(plan)]),
        "channels": ("char *const", [c_string(channel.name) for channel in plan.channels]),
        "events": ("char *const", [c_string(event.name) for event in plan.events]),
    }
    pools = plan.rules.pool_size or ()
    texts = [*lists.texts(), *_guards(plan), *(_table(kind, f"all_{name}", rows) for name, (kind, rows) in tables.items()),
             _table("int64_t", "all_pools", [str(size) for size in pools]),
             _table("int64_t", "all_starts", [str(start) for start in plan.rules.starts])]
    if plan.rules.more:
        texts.append(_table("pto_window", "all_windows", [f"{{{bound.size}, {int(bound.unit)}, {int(bound.full)}}}"
                                                          for bound in plan.rules.more]))
    record = {**plan.rules.record_options(max_tasks), "infer": int(plan.infer)}
    sim = {**plan.rules.sim_options(), "n_pools": len(pools)}
    counted = [(f"n_{name}", len(rows)) for name, (_, rows) in tables.items() if name not in ("slots", "kernels")]
    unit = ProgramUnit(
        name=plan.name, ident=ident, c_name=c_string(plan.name),
        tables=tuple(texts),
        fields=(*(TableField(name=name, value=f"all_{name}") for name in tables),
                *(TableField(name=name, value=str(count)) for name, count in counted)),
        record=_initialiser(record), execute=_initialiser(plan.rules.execute_options()),
        sim=f"{_initialiser(sim)}, .pool_size = all_pools, .starts = all_starts" + ", .more = all_windows" * bool(plan.rules.more),
        flags=" ".join(flag for flag in compile_flags(portable) if flag not in _BUILD_ONLY))
    templates = {"src/program.c": "program.c", f"{ident}.h": "program.h", "Makefile": "Makefile", "build_ffi.py": "build_ffi.py",
                 f"{ident}.py": "module.py"}
    return {path: render(f"cpu_sim/{name}.j2", unit) for path, name in templates.items()}


class _Lists:
    """Lists of names that table rows point to, each written once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], str] = {}

    def of(self, names: Iterable[str]) -> str:
        """Return the C name of the list of these names."""
        return self._known.setdefault(tuple(names), f"names_{len(self._known)}")

    def texts(self) -> Iterator[str]:
        """Yield the definitions."""
        for names, called in self._known.items():
            yield f"static const char *const {called}[] = {{ {', '.join([*map(c_string, names), '0'])} }};"


def _table(kind: str, name: str, rows: Sequence[str]) -> str:
    """Return a constant array; an empty table gets one zero row, as C has no empty arrays."""
    return "\n".join((f"static const {kind} {name}[] = {{", *(f"    {row}," for row in rows or [_NOTHING.get(kind, "{0}")]), "};"))


def _row(**fields: object) -> str:
    return f"{{ {_initialiser(fields)} }}"


def _initialiser(fields: Mapping[str, object]) -> str:
    """Return designators for the fields that are not zero; strings are C text already."""
    designators = (f".{name} = {_number(value) if isinstance(value, int | float) else value}" for name, value in fields.items() if value)
    return ", ".join(designators) or "0"


def _number(value: int | float) -> str:
    if isinstance(value, float):
        return repr(value)
    if value == _I64[0]:
        return "INT64_MIN"
    return str(int(value)) if abs(value) < 1 << 31 else f"INT64_C({int(value)})"


def _unique(names: Sequence[str]) -> list[str]:
    """Return distinct names: a second `X` becomes `X_2`."""
    given, first = Names(names), {name: position for position, name in reversed(list(enumerate(names)))}
    return [name if first[name] == position else given.take(name) for position, name in enumerate(names)]


def _guards(plan: TaskPlan) -> Iterator[str]:
    """Yield the guard table of each kernel."""
    for k, use in enumerate(plan.kernels):
        rows = [_row(what=c_string(guard.what), place=c_string(guard.span.short),
                     is_index=int(isinstance(guard.stmt, Compute | Gather | Scatter))) for guard in guards_of(use.kernel)]
        yield _table("pto_program_guard", f"guards_{k}", rows or ["{0}"])


def _tensors(plan: TaskPlan, names: Sequence[str], intermediates: frozenset[int]) -> list[str]:
    return [_row(name=c_string(name), dtype=c_string(str(slot.ref.dtype.np)), dim=f"{{ {', '.join(map(str, slot.ref.shape))} }}"
                 if slot.ref.shape else "", rank=slot.ref.rank, elem_bytes=slot.ref.dtype.nbytes, is_read=int(slot.reads or slot.scalars),
                 is_written=int(slot.writes), is_made=int(k in intermediates and not slot.fresh), is_fresh=int(slot.fresh))
            for k, (name, slot) in enumerate(zip(names, plan.tensors, strict=True))]


def _slots(plan: TaskPlan) -> list[str]:
    return [_row(is_scalars=int(slot.scalars), is_unit_inner=int(slot.ref.layout.unit_inner),
                 is_signed=int(slot.ref.dtype.family is Family.INT),
                 is_injective=int(Contract.INJECTIVE in slot.ref.contracts and not slot.writes),
                 is_monotone=int(Contract.MONOTONE in slot.ref.contracts and not slot.writes),
                 fixed=sum(1 << one.dim for one in slot.fixed)) for slot in plan.tensors]


def _symbol(plan: TaskPlan, symbol: SymbolRef) -> str:
    least, most = (0, 0) if is_float_symbol(symbol) else _range(symbol)
    return _row(name=c_string(symbol.name), is_float=int(is_float_symbol(symbol)), is_given=int(symbol.default is not None),
                value=symbol.default or 0, least=least, most=most)


def _range(symbol: SymbolRef) -> tuple[int, int]:
    dtype = symbol.dtype or DType.I64
    if dtype.is_bool:
        return 0, 1
    bits = 8 * dtype.nbytes
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.family is Family.INT else (0, (1 << bits) - 1)
    return max(least, 0 if symbol.default is not None else _I64[0]), min(most, _I64[1])


def _checks(plan: TaskPlan, lists: _Lists) -> list[str]:
    return [_row(what=c_string(numbered.check.kind.value), subject=c_string(numbered.check.subject),
                 value=c_string("" if isinstance(numbered.check.value, Const | Var) else print_scalar(numbered.check.value)),
                 place=c_string(numbered.check.span.short), loops=lists.of(var.name for var in numbered.loops),
                 is_extent=int(numbered.check.kind is CheckKind.EXTENT)) for numbered in numbered_checks(plan)]


def _kernels(plan: TaskPlan) -> list[str]:
    return [_row(name=c_string(use.kernel.name), guards=f"guards_{k}", n_guards=len(guards_of(use.kernel)),
                 has_own_body=int(use.kernel.c_body is not None)) for k, use in enumerate(plan.kernels)]


def _sites(plan: TaskPlan, lists: _Lists) -> list[str]:
    return [_row(place=c_string(task.span.short), labels=lists.of(task.labels), kernel=task.kernel) for task in submits(plan)]


def _sparse(plan: TaskPlan) -> list[str]:
    """Return the sparse axes whose tensors no task writes; guards of the run check the rows of the others."""
    rows = []
    for axis in plan.axes:
        if axis.sparse:
            slots = [slot for slot in axis.slots if slot is not None and not plan.tensors[slot].writes]
            if len(slots) == 2:
                rows.append(_row(name=c_string(axis.name), indptr=slots[0], indices=slots[1]))
    return rows


def _streams(plan: TaskPlan) -> list[str]:
    names = ["main"] * plan.n_streams
    for item in walk(plan.body):
        if isinstance(item, Pipeline):
            for process in item.processes:
                for replica in range(process.replicas):
                    names[process.stream + replica] = process.name if process.replicas == 1 else f"{process.name} (replica {replica})"
    return names
