"""Define the instructions of the PTO ISA for kernel bodies: destination first, every tile declared.

An instruction traces an op of the table that writes a buffer, so it becomes ordinary kernel IR, in the written order. Names come from the
table's `npu` entries; forms without an entry (scalar operands, vectors spread over rows or columns, moves between memory and tiles) are
listed here.

>>> t = ptoisa.Tile(16, 128, DType.F32)
>>> ptoisa.TLOAD(t, x); ptoisa.TEXP(t, t); ptoisa.TSTORE(out, t)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum, StrEnum
from inspect import Parameter, Signature
from types import MappingProxyType

from pto_wsp.calls import user_call
from pto_wsp.errors import ArityError, InstructionOperandError, MixedDTypeError, OperandShapeError, OutsideTraceError, unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ops.entries import compare, create, elementwise, matmul, movement
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entry import Operand, bind, is_active
from pto_wsp.ops.spec import ColReduce, Elementwise, RowReduce
from pto_wsp.ops.table import ENTRIES
from pto_wsp.source import here
from pto_wsp.trace.kernel import memory as kernel_memory
from pto_wsp.trace.kernel.tile_value import BufferRef, TensorParamRef, TileParamRef, is_tile
from pto_wsp.trace.kernel.trace import KernelTrace, current_kernel
from pto_wsp.values import dataclass

_SCALAR_FORMS = frozenset({"TADDS", "TSUBS", "TMULS", "TDIVS", "TMAXS", "TMINS", "TREMS", "TPOWS", "TANDS", "TORS", "TXORS", "TSHLS",
                           "TSHRS"})
_SPREAD_FORMS = frozenset({"TADD", "TSUB", "TMUL", "TDIV", "TMAX", "TMIN"})
_WITH_TMP = frozenset({"TXOR", "TREM", "TPOW", "TRSQRT", "TREMS", "TXORS", "TPOWS"})


class CmpMode(StrEnum):
    """The comparison of TCMP and TCMPS."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


class _New(Enum):
    """Stands for a destination that the instruction declares."""

    NEW = 0


NEW = _New.NEW


@dataclass(frozen=True, slots=True)
class InstructionOperands:
    """The operands of one instruction, by name, and their checks."""

    name: str
    trace: KernelTrace
    values: Mapping[str, object]
    made: list[BufferRef] = field(default_factory=list)     # the destination that the instruction declares, for NEW

    def tile(self, operand: str) -> BufferRef:
        """Return an operand that must be a declared tile.

        Raises: T208 for anything else.
        """
        value = self.values[operand]
        if isinstance(value, BufferRef):
            return value
        if value is NEW:
            raise ArityError(f"`ptoisa.{self.name.lower()}` cannot tell the type of its destination", here(),
                             expected=f"a declared tile: t = ptoisa.Tile(rows, cols, dtype); ptoisa.{self.name}(t, ...)")
        load = isinstance(value, TileParamRef | TensorParamRef)
        declared = "t = ptoisa.Tile(rows, cols, dtype)"
        raise InstructionOperandError(f"`ptoisa.{self.name}`: {operand} is not a declared tile", here(), expected=declared,
                                      found=repr(value) if is_tile(value) or load else f"{type(value).__name__}: {value!r:.60}",
                                      help=f"a parameter lies in global memory: {declared}; ptoisa.TLOAD(t, x)" if load else None)

    def scalar(self, operand: str) -> object:
        """Return an operand that must be a number or a scalar of the kernel.

        Raises: T208 for a tile.
        """
        value = self.values[operand]
        if is_tile(value):
            raise InstructionOperandError(f"`ptoisa.{self.name}`: {operand} is a tile", here(),
                                          expected="a number or a scalar of the kernel", found=repr(value),
                                          help=f"ptoisa.{self.name.removesuffix('S')} takes two tiles")
        return value

    def shaped(self, operand: str, rows: int, cols: int, help: str | None = None) -> BufferRef:
        """Return an operand that must be a declared tile of that shape.

        Raises: T202 for another shape.
        """
        tile = self.tile(operand)
        if tile.shape != (rows, cols):
            raise OperandShapeError(f"`ptoisa.{self.name}`: {operand} has the wrong shape", here(), expected=f"[{rows}, {cols}]",
                                    found=repr(tile.type), help=help)
        return tile

    def alike(self, operand: str) -> BufferRef:
        """Return an operand that must be a declared tile of the destination's shape: instructions do not broadcast."""
        rows, cols = self.extents
        spread = self.name if self.name in _SPREAD_FORMS else None
        help = None if spread is None else f"ptoisa.TROWEXPAND{spread[1:]} and ptoisa.TCOLEXPAND{spread[1:]} spread a column or a row"
        return self.shaped(operand, rows, cols, help)

    @property
    def extents(self) -> tuple[int, int]:
        """The shape of the destination: that of the first source, if the instruction declares the destination."""
        first = next(name for name in self.values if name != "dst") if self.values["dst"] is NEW else "dst"
        return self.tile(first).shape

    def write(self, value: Operand) -> None:
        """Write a value to the destination.

        Raises: T202, T203 if the destination has another type.
        """
        if self.values["dst"] is NEW:
            made = declare(*value.shape, value.dtype)
            self.trace.assign(made, value)
            self.made.append(made)
            return
        dst = self.tile("dst")
        if value.dtype is not dst.dtype:
            raise MixedDTypeError(f"`ptoisa.{self.name}`: the destination has another dtype", here(), expected=str(value.dtype),
                                  found=repr(dst.type), help="ptoisa.TCVT(dst, src) converts")
        if value.shape != dst.shape:
            raise OperandShapeError(f"`ptoisa.{self.name}`: the destination has another shape", here(),
                                    expected=f"[{value.shape[0]}, {value.shape[1]}]", found=repr(dst.type))
        self.trace.assign(dst, value)


class Intrinsic:
    """One instruction as a function; a call in a kernel's body traces it."""

    __signature__: Signature

    def __init__(self, name: str, doc: str, operands: Sequence[str], run: Callable[[InstructionOperands], None],
                 options: Mapping[str, object] = MappingProxyType({})) -> None:
        self.__name__ = name
        self.__qualname__ = f"ptoisa.{name}"
        self.__doc__ = doc
        self._run = run
        self.stores = name == "TSTORE"
        kind = Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = Signature([*(Parameter(operand, kind) for operand in operands),
                                        *(Parameter(option, kind, default=default) for option, default in options.items())])

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Trace the instruction.

        Raises: K105 outside a kernel; T101, T202 to T204, T207 to T213 and K106 for operands that do not fit.
        """
        if not is_active():
            raise OutsideTraceError(f"`ptoisa.{self.__name__}` was called outside a kernel", here(),
                                    help="write it in the body of a @ptoisa_kernel")
        self.trace(bind(self.__qualname__, self.__signature__, args, kwargs))

    def trace(self, values: Mapping[str, object]) -> BufferRef | None:
        """Trace the instruction on operands by name; return the destination if the instruction declares it, for `dst` NEW."""
        trace = current_kernel(self.__name__)
        operands = InstructionOperands(self.__name__, trace, values)
        with trace.instruction():
            if operands.values.get("tmp") is not None:
                operands.tile("tmp")
            self._run(operands)
        return operands.made[0] if operands.made else None

    def __repr__(self) -> str:
        return f"ptoisa.{self.__name__}{self.__signature__}"


class ValueForm:
    """An instruction that declares its destination and returns it: `y = ptoisa.texp(x)` for `y = ptoisa.Tile(…); ptoisa.TEXP(y, x)`.

    With a destination, `ptoisa.texp(y, x)`, it is the instruction itself. `ptoisa.tstore(out, t)` has a parameter as its destination.
    """

    def __init__(self, instruction: Intrinsic) -> None:
        self._instruction = instruction
        self.__name__ = instruction.__name__.lower()
        self.__qualname__ = f"ptoisa.{self.__name__}"
        self.__doc__ = instruction.__doc__
        dst, *sources = instruction.__signature__.parameters.values()
        self.__signature__ = Signature([dst, *sources] if instruction.stores else sources)

    def __call__(self, *args: object, **kwargs: object) -> BufferRef | None:
        """Trace the instruction and return its destination.

        Raises: K105 outside a kernel; T101 where the destination's type does not follow from the operands; those of the instruction.
        """
        if not is_active():
            raise OutsideTraceError(f"`{self.__qualname__}` was called outside a kernel", here(),
                                    help="write it in the body of a @ptoisa_kernel")
        whole = self._instruction.__signature__
        n_sources = sum(1 for p in self.__signature__.parameters.values() if p.default is Parameter.empty)
        if self._instruction.stores or "dst" in kwargs or len(args) > n_sources:
            values = bind(self.__qualname__, whole, args, kwargs)
            self._instruction.trace(values)
            return values["dst"] if isinstance(values["dst"], BufferRef) else None
        return self._instruction.trace({"dst": NEW, **bind(self.__qualname__, self.__signature__, args, kwargs)})

    def __repr__(self) -> str:
        return f"{self.__qualname__}{self.__signature__}"


_TMP: Mapping[str, object] = {"tmp": None}


@user_call("ptoisa.Tile")
def declare(rows: object, cols: object, dtype: object) -> BufferRef:
    """Declare a tile of the chip: `t = ptoisa.Tile(16, 128, DType.F32)`. Its contents are undefined until an instruction writes it."""
    if not is_active():
        raise OutsideTraceError("`ptoisa.Tile` was called outside a kernel", here(), help="declare tiles in the body of a @ptoisa_kernel")
    made = kernel_memory.alloc((rows, cols), dtype)
    return made if isinstance(made, BufferRef) else unreachable("a tile of more than two axes")


def instructions() -> Mapping[str, Intrinsic]:
    """Return every instruction by name."""
    by_name = {each.__name__: each for each in (*_from_table(), *_moves(), *_products(), *_choices(), *_fills())}
    return MappingProxyType(by_name)


def _from_table() -> list[Intrinsic]:
    """Return the instructions of ops with an NPU name, with their scalar and spread forms."""
    out: list[Intrinsic] = []
    for entry in ENTRIES:
        if entry.npu is None or entry.npu in ("TCMP", "TSEL"):
            continue
        tmp = _TMP if entry.npu in _WITH_TMP else {}
        match entry:
            case Elementwise(params=(_,)):
                out.append(Intrinsic(entry.npu, f"{entry.doc} dst = {entry.name}(src).", ("dst", "src"), _unary(entry), tmp))
            case Elementwise(params=(_, _)):
                out.append(Intrinsic(entry.npu, f"{entry.doc} dst = {entry.name}(src0, src1), tiles of one shape.",
                                       ("dst", "src0", "src1"), _binary(entry), tmp))
                out += _forms(entry, entry.npu)
            case RowReduce():
                out.append(Intrinsic(entry.npu, f"{entry.doc} dst [R, 1] = {entry.name}(src).", ("dst", "src"), _reduce(entry), _TMP))
            case ColReduce():
                out.append(Intrinsic(entry.npu, f"{entry.doc} dst [1, C] = {entry.name}(src).", ("dst", "src"), _reduce(entry), _TMP))
            case _:
                pass   # listed below, or no instruction
    return out


def _unary(entry: Elementwise) -> Callable[[InstructionOperands], None]:
    return lambda given: given.write(entry(given.alike("src")))


def _binary(entry: Elementwise) -> Callable[[InstructionOperands], None]:
    return lambda given: given.write(entry(given.alike("src0"), given.alike("src1")))


def _reduce(entry: RowReduce | ColReduce) -> Callable[[InstructionOperands], None]:
    return lambda given: given.write(entry(given.tile("src")))


def _forms(entry: Elementwise, npu: str) -> list[Intrinsic]:
    out: list[Intrinsic] = []
    if f"{npu}S" in _SCALAR_FORMS:
        out.append(Intrinsic(f"{npu}S", f"{entry.doc} dst = {entry.name}(src, scalar).", ("dst", "src", "scalar"),
                               lambda given: given.write(entry(given.alike("src"), given.scalar("scalar"))),
                               _TMP if f"{npu}S" in _WITH_TMP else {}))
    if npu in _SPREAD_FORMS:
        def spread_column(given: InstructionOperands) -> None:
            given.write(entry(given.alike("src0"), given.shaped("src1", given.extents[0], 1)))

        def spread_row(given: InstructionOperands) -> None:
            given.write(entry(given.alike("src0"), given.shaped("src1", 1, given.extents[1])))
        out.append(Intrinsic(f"TROWEXPAND{npu[1:]}", f"{entry.doc} dst = {entry.name}(src0, src1 [R, 1] along each row).",
                               ("dst", "src0", "src1"), spread_column, _TMP))
        out.append(Intrinsic(f"TCOLEXPAND{npu[1:]}", f"{entry.doc} dst = {entry.name}(src0, src1 [1, C] down each column).",
                               ("dst", "src0", "src1"), spread_row))
    return out


# -- loads and stores --------------------------------------------------------------------------------------------------

def _moves() -> tuple[Intrinsic, ...]:
    piece: Mapping[str, object] = {"at": None, "valid": None}
    return (
        Intrinsic("TLOAD", "Load a parameter, or its piece at (row, col), into dst; 0 outside the valid part.",
                    ("dst", "src"), _load, piece),
        Intrinsic("TSTORE", "Store a tile to a parameter, or to its piece at (row, col); only the valid part is written.",
                    ("dst", "src"), _store, piece),
        Intrinsic("TMOV", "Copy a tile.", ("dst", "src"), lambda given: given.write(given.trace.read(given.alike("src")))),
        Intrinsic("TTRANS", "Exchange rows and columns: dst [C, R] = src [R, C].", ("dst", "src"),
                    lambda given: given.write(movement.transpose(given.tile("src"))), _TMP),
        Intrinsic("TRESHAPE", "Take the elements of src, row by row, in the shape of dst.", ("dst", "src"),
                    lambda given: given.write(movement.reshape(given.tile("src"), given.tile("dst").shape))),
        Intrinsic("TCONCAT", "Put two tiles side by side: dst [R, C0 + C1].", ("dst", "src0", "src1"),
                    lambda given: given.write(movement.concat(given.tile("src0"), given.tile("src1"), axis=1))),
    )


def _load(given: InstructionOperands) -> None:
    source = given.values["src"]
    if not isinstance(source, TileParamRef | TensorParamRef):
        raise InstructionOperandError(f"`ptoisa.{given.name}`: src is not a parameter", here(), expected="an In or InOut parameter",
                                      found=repr(source), help="ptoisa.TMOV copies a tile")
    whole = isinstance(source, TileParamRef) and given.values["at"] is None
    at = None if whole else given.values["at"] or (0, 0)
    shape = source.param.type.shape if isinstance(source.param, k.TileParam) and whole else given.tile("dst").shape
    given.write(kernel_memory.load(source, at, shape=shape, valid=given.values["valid"]))


def _store(given: InstructionOperands) -> None:
    target = given.values["dst"]
    if not isinstance(target, TileParamRef | TensorParamRef):
        raise InstructionOperandError(f"`ptoisa.{given.name}`: dst is not a parameter", here(), expected="an Out or InOut parameter",
                                      found=repr(target), help="the destination comes first: ptoisa.TSTORE(out, t)")
    source = given.tile("src")
    if isinstance(target, TileParamRef) and given.values["at"] is None and target.shape != source.shape:
        raise OperandShapeError(f"`ptoisa.{given.name}`: src has another shape than parameter `{target.param.name}`", here(),
                                expected=repr(target.type), found=repr(source.type))
    kernel_memory.store(target, source, given.values["at"], given.values["valid"])


# -- products ----------------------------------------------------------------------------------------------------------

def _products() -> tuple[Intrinsic, ...]:
    return (
        Intrinsic("TMATMUL", "Multiply matrices: dst [M, N] = a [M, K] @ b [K, N], halves and bytes into a wider dst.", ("dst", "a", "b"),
                    lambda given: given.write(matmul.matmul(given.tile("a"), given.tile("b")))),
        Intrinsic("TMATMUL_ACC", "Multiply matrices and add: dst = acc + a @ b.", ("dst", "acc", "a", "b"),
                    lambda given: given.write(matmul.matmul(given.tile("a"), given.tile("b"), given.tile("acc")))),
        Intrinsic("TMATMUL_BIAS", "Multiply matrices and add a row: dst = a @ b + bias [1, N].", ("dst", "a", "b", "bias"), _bias),
    )


def _bias(given: InstructionOperands) -> None:
    product = matmul.matmul(given.tile("a"), given.tile("b"))
    given.write(elementwise.add(product, given.shaped("bias", 1, product.shape[1])))


# -- selections and conversions ----------------------------------------------------------------------------------------

def _choices() -> tuple[Intrinsic, ...]:
    return (
        Intrinsic("TCMP", "Compare element by element into a mask; mode: eq, ne, lt, le, gt, ge.", ("dst", "src0", "src1", "mode"),
                    lambda given: given.write(_compared(given, given.alike("src0"), given.alike("src1")))),
        Intrinsic("TCMPS", "Compare with a scalar into a mask; mode: eq, ne, lt, le, gt, ge.", ("dst", "src", "scalar", "mode"),
                    lambda given: given.write(_compared(given, given.alike("src"), given.scalar("scalar")))),
        Intrinsic("TSEL", "Choose src0 where the mask holds, else src1.", ("dst", "mask", "src0", "src1"),
                    lambda given: given.write(compare.where(given.alike("mask"), given.alike("src0"), given.alike("src1"))), _TMP),
        Intrinsic("TCVT", "Convert to the dtype of dst; mode and saturate as pto.cast takes them.", ("dst", "src"),
                    lambda given: given.write(cast(given.alike("src"), given.tile("dst").dtype, given.values["mode"],
                                                   given.values["saturate"])), {"mode": None, "saturate": None}),
    )


def _compared(given: InstructionOperands, lhs: BufferRef, rhs: object) -> Operand:
    by_mode = {op.name: op for op in compare.ENTRIES if op.to_mask}
    mode = given.values["mode"]
    if not isinstance(mode, str) or mode not in by_mode:
        raise InstructionOperandError(f"`ptoisa.{given.name}`: mode is no way to compare", here(), expected=f"one of {', '.join(by_mode)}",
                                      found=repr(mode))
    return by_mode[str(CmpMode(mode).value)](lhs, rhs)


# -- fills -------------------------------------------------------------------------------------------------------------

def _fills() -> tuple[Intrinsic, ...]:
    return (
        Intrinsic("TEXPANDS", "Fill dst with a scalar.", ("dst", "scalar"),
                    lambda given: given.write(create.full(given.tile("dst").shape, given.scalar("scalar"), given.tile("dst").dtype))),
        Intrinsic("TROWEXPAND", "Spread a column [R, 1] along each row of dst.", ("dst", "src"),
                    lambda given: given.write(create.expand(given.shaped("src", given.tile("dst").shape[0], 1), given.tile("dst").shape))),
        Intrinsic("TCOLEXPAND", "Spread a row [1, C] down each column of dst.", ("dst", "src"),
                    lambda given: given.write(create.expand(given.shaped("src", 1, given.tile("dst").shape[1]), given.tile("dst").shape))),
        Intrinsic("TCI", "Count along each row: dst[r, c] = start + c.", ("dst",),
                    lambda given: given.write(elementwise.add(create.iota(given.tile("dst").shape, given.tile("dst").dtype, 1),
                                                              given.scalar("start"))), {"start": 0}),
        Intrinsic("TAXPY", "Add a multiple: dst = dst + src * scalar.", ("dst", "src", "scalar"),
                    lambda given: given.write(elementwise.add(given.tile("dst"),
                                                              elementwise.mul(given.alike("src"), given.scalar("scalar"))))),
    )
