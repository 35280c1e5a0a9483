"""The error tree: one class an error, each with its code, its cause, an example that fails and the fix.

`str(error)` is the whole report that a user sees; `code`, `span` and `notes` are there for programs. An error that is ours, not
the user's, is an `InternalError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NoReturn, Protocol


class Place(Protocol):
    """What an error needs of a source position (`source.Span` is one)."""

    def __str__(self) -> str: ...

    def excerpt(self) -> tuple[str, ...]:
        """Return the lines to show under the position, each with its gutter."""
        ...


class PtoError(Exception):
    """Base of every error that a user can cause. Subclasses carry a stable `code`."""

    code: ClassVar[str] = "E000"
    cause: ClassVar[str] = ""
    example: ClassVar[str] = ""
    fix: ClassVar[str] = ""

    def __init__(self, message: str, span: Place | None = None, *, expected: str | None = None, found: str | None = None,
                 help: str | None = None, notes: Sequence[str] = (), others: Sequence[PtoError] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.expected = expected
        self.found = found
        self.help = help
        self.notes = tuple(notes)
        self.others = tuple(others)

    def __str__(self) -> str:
        return "\n\n".join(error._one() for error in (self, *self.others))

    def _one(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.span is not None:
            lines.append(f"  --> {self.span}")
            lines.extend(f"  {line}" for line in self.span.excerpt())
        for label, text in (("expected", self.expected), ("found", self.found), ("help", self.help)):
            if text is not None:
                lines.append(f"   = {label + ':':9} {text}")
        lines.extend(f"   = note:     {note}" for note in self.notes)
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.span, self.expected, self.found, self.help, self.notes, self.others)


def _rebuild(kind: type[PtoError], message: str, span: Place | None, expected: str | None, found: str | None, help: str | None,
             notes: tuple[str, ...], others: tuple[PtoError, ...]) -> PtoError:
    return kind(message, span, expected=expected, found=found, help=help, notes=notes, others=others)


def raise_all(errors: Sequence[PtoError]) -> None:
    """Raise the first of several errors with the others attached, so that one report shows them all; nothing when empty."""
    if errors:
        first = errors[0]
        raise type(first)(first.message, first.span, expected=first.expected, found=first.found, help=first.help,
                          notes=first.notes, others=(*first.others, *errors[1:]))


class InternalError(Exception):
    """A mistake of ours: not the user's to mend."""

    def __init__(self, message: str, context: str = "") -> None:
        super().__init__(f"{message}\nthis is a bug in pto_wsp, not in your program: please report it with the text above"
                         + (f"\n{context}" if context else ""))


def unreachable(what: str) -> NoReturn:
    """Raise an `InternalError` for a state that a stage before should have refused."""
    raise InternalError(f"unexpected {what}")


class KernelSignatureError(PtoError):
    code = "K101"
    cause = ("A kernel's parameter has no annotation, or one that is not In, Out or InOut of Tile or Tensor, Scalar or "
             "Constexpr.")
    example = "@kernel\ndef k(x): ..."
    fix = "Annotate every parameter, e.g. x: In[Tile[16, 128, DType.F32]]."


class OutNeverStoredError(PtoError):
    code = "K102"
    cause = "An Out parameter is never stored, so its tensor would keep what it held."
    example = "@kernel\ndef k(x: In[Tile[4, 4, DType.F32]], y: Out[Tile[4, 4, DType.F32]]): x + 1"
    fix = "Store it with pto.store(y, value), or drop the parameter."


class SymbolicControlError(PtoError):
    code = "K103"
    cause = "Python asked a symbolic value for a concrete one (if, while, bool, int, float, index, hash, str, format, break)."
    example = "for i in P(n):\n    if i > 2: ..."
    fix = "The body is traced once, for all iterations: use pto.where, .where(a, b) or a loop bound."


class EscapedValueError(PtoError):
    code = "K104"
    cause = "A tile value made inside a loop is used after it."
    example = "for j in pto.range(4):\n    t = x * 2\npto.store(y, t)"
    fix = "Keep state in a buffer: acc = pto.alloc(shape, dtype, init=0), then acc[:] = ... in the loop."


class OutsideTraceError(PtoError):
    code = "K105"
    cause = "A kernel, or one of its operations, was called outside the place where it has a meaning."
    example = "rmsnorm(x_np)"
    fix = "Call kernels inside a @workload; for one tile's result at once use kernel.run(...)."


class BufferMisuseError(PtoError):
    code = "K106"
    cause = "A buffer or parameter is used against its role: written though In, read before it was written."
    example = "pto.store(x, v)  # x: In"
    fix = "Store to an Out or InOut parameter; give pto.alloc an init."


class OwnBodyError(PtoError):
    code = "K107"
    cause = "A body of one's own, given to @kernel, cannot be used: two for one target, a missing file, brackets that do not match."
    example = "@kernel(c_path=\"no_such_file.c\")"
    fix = "Give one body a target: the text of a function's body, or the path of a file that holds it."


class MissingBodyError(PtoError):
    code = "K108"
    cause = "A kernel has no body for the target that needs one: its Python body does nothing, and its own ones are for other targets."
    example = "@kernel(cpp_src=\"...\")\ndef k(x: In[...], y: Out[...]): ...  # compiled for cpu_sim"
    fix = "Write the Python body, or give the target's own: c_src for cpu_sim."


class CarriedValueError(PtoError):
    code = "K109"
    cause = "A loop or branch reads a Python variable and then assigns to it, as if its body ran more than once while it is traced."
    example = "acc = pto.alloc((4, 8), DType.F32, init=0)\nfor j in pto.range(4):\n    acc = acc + x"
    fix = "Write the buffer in place: acc += x, or acc[:] = acc + x."


class CapacityError(PtoError):
    code = "K110"
    cause = "The tiles of a kernel need more of an on-chip memory than the arch has."
    example = "program().compile(arch=\"ascend_910b\")  # a kernel on Tile[512, 512, F32]"
    fix = "Use smaller tiles; the report says who takes how much, and what would fit."


class InstructionError(PtoError):
    code = "K110"
    cause = "A kernel of instructions uses an op that gives a value: an instruction writes a tile that was declared."
    example = "@ptoisa_kernel\ndef k(x: In[...], y: Out[...]): pto.store(y, x + 1)"
    fix = "Declare the tile: t = ptoisa.Tile(rows, cols, dtype), and write it: ptoisa.TADDS(t, t, 1)."


class ArityError(PtoError):
    code = "T101"
    cause = "A call has too few, too many, unknown or repeated arguments."
    example = "k[b](x=X[b])  # y is missing"
    fix = "Pass each parameter once, by name or by position."


class ArgumentDTypeError(PtoError):
    code = "T102"
    cause = "A tensor of one dtype is bound to a parameter of another."
    example = "k[b](x=X_f64[b], y=Y[b])"
    fix = "Wrap an array of the parameter's dtype, or change the annotation."


class ArgumentRankError(PtoError):
    code = "T103"
    cause = "A view of the wrong rank is bound to a parameter."
    example = "k[b](x=X[b], y=Y[b])  # X has four dimensions"
    fix = "Index more (or fewer) axes, e.g. X[b][t]."


class ArgumentShapeError(PtoError):
    code = "T201"
    cause = "A view's shape is not that of the Tile parameter it is bound to."
    example = "k[b](x=X[b], y=Y[b])  # X[b] is [32, 128], x is Tile[16, 128]"
    fix = "Slice the view, e.g. X[b, i*16:(i+1)*16], or change the Tile."


class OperandShapeError(PtoError):
    code = "T202"
    cause = "The shapes of an operation's operands do not fit."
    example = "x[16, 128] + y[8, 128]"
    fix = "Shapes broadcast [R,C] with [R,1], [1,C] and [1,1]; matmul takes [M,K] @ [K,N]."


class MixedDTypeError(PtoError):
    code = "T203"
    cause = "An operation's operands have different dtypes."
    example = "x_f32 + n_i32"
    fix = "Convert one of them: pto.cast(n, DType.F32)."


class UnsupportedDTypeError(PtoError):
    code = "T204"
    cause = "An operation does not support the dtype of its operand."
    example = "pto.exp(n_i32)"
    fix = "Convert with pto.cast first; the error lists the dtypes that the operation takes."


class ArgumentKindError(PtoError):
    code = "T205"
    cause = "A value of a kind that the place does not take."
    example = "k[b](x=3.0, y=Y[b])"
    fix = "The error says which kind is expected."


class ViewBoundsError(PtoError):
    code = "T301"
    cause = "A view reads or writes outside its tensor."
    example = "X[4]  # X has 4 rows"
    fix = "Keep indices in 0 .. extent; a tail wants .clip(rows, cols)."


class ViewIndexError(PtoError):
    code = "T302"
    cause = "A tensor is indexed with something that has no meaning there."
    example = "X[1.5]"
    fix = "Index with ints, loop variables, scalar expressions, slices, ... or .T."


class TensorDataError(PtoError):
    code = "D101"
    cause = "An array's dtype or shape is not what the Tensor says."
    example = "Tensor(data=a_f64, shape=(4, 4), dtype=DType.F32)"
    fix = "Give the array's own shape and dtype, or convert the array."


class DTypeNameError(PtoError):
    code = "D102"
    cause = "A value names no dtype."
    example = "DType.from_numpy('complex64')"
    fix = "Use a member of DType."


class UnboundSymbolError(PtoError):
    code = "W101"
    cause = "A Symbol has no value when the program runs."
    example = "program.execute()  # n was never given"
    fix = "Pass it by name: program.execute(n=4)."


class WorkloadStructureError(PtoError):
    code = "W102"
    cause = "A workload is put together in a way that has no meaning."
    example = "P(3.5)"
    fix = "The error says what stands there instead."


class LoopVariableError(PtoError):
    code = "W103"
    cause = "A loop variable or task handle is used where it does not exist."
    example = "for b in P(4): ...\nk[b](x=X[b])"
    fix = "Move the use into the loop."


class DataDependentError(PtoError):
    code = "W104"
    cause = "A scalar is read from a tensor that a task of the same workload writes."
    example = "k[b](x=X[b], out=lens); P(lens[0])"
    fix = "Compute the lengths before the program, or split the work into two programs."


class DirectiveError(PtoError):
    code = "S101"
    cause = "A schedule directive that this version or this target does not enforce."
    example = ".streams(4)"
    fix = "Use a directive that the target enforces; pass strict=False to record it instead."


class PolicyValueError(PtoError):
    code = "S102"
    cause = "A value that a schedule policy does not take."
    example = "DispatchPolicy.round_robin(0)"
    fix = "The error says which values are taken."


class KeyTraceError(PtoError):
    code = "S103"
    cause = "A key function cannot be traced, or names a loop that the workload does not have."
    example = "DispatchPolicy.dispatch_by(lambda t: lookup[t.b])"
    fix = "Use arithmetic on t.<loop variable>, t.params and Symbols."


class NoCompilerError(PtoError):
    code = "C101"
    cause = "No C compiler was found."
    example = "CC=/nonexistent python model.py"
    fix = "Install gcc or clang, or set CC; target='interp' needs none."


class CompilerFailedError(PtoError):
    code = "C102"
    cause = "The C compiler refused the generated code."
    example = "a compiler too old for the flags"
    fix = "The report shows the compiler's message."


class CacheCorruptError(PtoError):
    code = "C103"
    cause = "An entry of the artifact cache does not match its manifest."
    example = "a file in the cache was edited"
    fix = "Remove the folder that the report names; it is built again."


class CompileOptionError(PtoError):
    code = "C104"
    cause = "compile() was given an unknown keyword, or a value that it does not take."
    example = ".compile(thread=2)"
    fix = "The error names the nearest keyword."


class AbiMismatchError(PtoError):
    code = "C105"
    cause = "A library was built against another version of the interface."
    example = "an artifact of an older version"
    fix = "Remove it from the cache; it is built again."


class ArtifactFolderError(PtoError):
    code = "C107"
    cause = "An artifact was to be saved where that cannot be done."
    example = "program.save('/folder/with/files')"
    fix = "Name a folder that is new or empty."


class CommandError(PtoError):
    code = "C108"
    cause = "A command was given a file, a folder or a name that it can do nothing with."
    example = "pto-wsp compile model.py --workload attentoin"
    fix = "The error says what the file or folder has."


class MissingDataError(PtoError):
    code = "C109"
    cause = "A package needs the elements of a tensor that has no data."
    example = "lens = Tensor.empty((4,), DType.I64), read as the length of a ragged axis"
    fix = "Give lengths, offsets and indices as Tensor(array)."


class CacheFolderError(PtoError):
    code = "C106"
    cause = "The folder of the artifact cache cannot be written."
    example = "PTO_WSP_CACHE_DIR=/read-only python model.py"
    fix = "Set PTO_WSP_CACHE_DIR to a folder that can be written, or make room there; target='interp' needs none."


class TaskFailedError(PtoError):
    code = "R101"
    cause = "A task failed while it ran."
    example = "pto.load(T, (row, 0), shape=(8, 8)) with row past the end"
    fix = "The report names the task: kernel and indices."


class BindingError(PtoError):
    code = "R102"
    cause = "A binding does not fit the program: unknown or ambiguous name, wrong rank, dtype, size or stride."
    example = "program.execute(X=array_of_another_rank)"
    fix = "Bind arrays of the declared rank and dtype."


class ProgramStateError(PtoError):
    code = "R103"
    cause = "A program was used out of order."
    example = "program.execute(); program.execute()"
    fix = "Call synchronize() between two execute()."


class RunBoundsError(PtoError):
    code = "R104"
    cause = "With the values bound now, a task would reach outside its tensor or its tile."
    example = "program.execute(lens=longer_than_the_tensor)"
    fix = "Bind tensors that are large enough."

class NotFiniteError(PtoError):
    code = "R105"
    cause = "With check_finite=True: an operation made a NaN or an infinity out of finite numbers, or a task loaded a NaN."
    example = "y = pto.log(x)  # x holds -1"
    fix = "The report names the task, the operation, the element and what it was made from."


class DeviceLimitError(PtoError):
    code = "N101"
    cause = "A plan asks for more than the NPU's runtime has: tensors or scalars of a task, dimensions of a tensor, kernels."
    example = "k[b](x0=X0[b], ..., x39=X39[b])  # compiled for ascend_npu"
    fix = "The report names the limit; pack arguments into one tensor, or split the kernel."


class MixedKernelError(PtoError):
    code = "N102"
    cause = "A kernel mixes products and vector work in a way that no order of tasks on one core each can give."
    example = "for t in pto.range(n):\n    state[:] = pto.tanh(state @ w)"
    fix = "Loop in the workload, with P.seq, and keep the state in a tensor; or unroll with Python's range."


class NpuOpError(PtoError):
    code = "N103"
    cause = "A kernel for the NPU holds an op, or an op on a dtype, that the arch has no instructions for."
    example = 'y = x * 2  # x: Tile[16, 16, DType.F64], compiled for ascend_910b'
    fix = "The report names op, dtype and arch: cast to a dtype that the arch computes on, or give the kernel a body of its own (cpp_src)."


class CubeError(PtoError):
    code = "N104"
    cause = "A kernel asks the cube core for what it cannot do: it multiplies loaded tiles, adds products up, and stores the sums."
    example = "acc = pto.alloc((64, 64), DType.F32, init=1)\nacc += a @ b"
    fix = "The report says what the cube core does instead."


class DialectError(PtoError):
    code = "N105"
    cause = "A kernel for target=\"pto\" holds what the text format has no form for."
    example = "pto.gather(table, rows)  # compiled with target=\"pto\""
    fix = "Compile for ascend_npu, which emits C++; the report names the form."


class FlagError(PtoError):
    code = "N201"
    cause = "In a tile program a flag is set that nothing awaits, or awaited where it is not set: pipes would hang, or run apart."
    example = "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);  // in one side of a branch, its wait behind the branch"
    fix = "Kernels of tile operations get their flags from the compiler: please report the program. In a body of one's own, pair them."


class PipeHazardError(PtoError):
    code = "N202"
    cause = "In a tile program a pipe uses memory that another one may not have done with."
    example = "TLOAD(x, gm); TADD(y, x, x);  // without a flag from PIPE_MTE2 to PIPE_V"
    fix = "Kernels of tile operations get their flags from the compiler: please report the program. In a body of one's own, add the flag."


class TilePlaceError(PtoError):
    code = "N203"
    cause = "A tile lies across the end of its room or memory, off the alignment that its core moves, or on another one that still lives."
    example = "TASSIGN(x, 0x10); TASSIGN(y, 0x20);  // x takes 512 bytes"
    fix = "Kernels of tile operations get their addresses from the compiler: please report the program."


class TileFormError(PtoError):
    code = "N204"
    cause = "A tile, or what an instruction is given, has a shape, dtype or layout that the core does not take."
    example = "Tile<TileType::Vec, float, 16, 7, BLayout::RowMajor>  // rows of 28 bytes"
    fix = "Pad the columns to 32 bytes; the report names the rule."


def catalog() -> tuple[type[PtoError], ...]:
    """Return every error class, by code."""
    return tuple(sorted(PtoError.__subclasses__(), key=lambda kind: kind.code))
