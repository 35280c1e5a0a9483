"""Errors of kernels: their signatures, bodies, types, and what fits on chip."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class KernelSignatureError(PtoError):
    code = "K101"
    cause = ("A kernel's parameter has no annotation, or one that is not In, Out or InOut of Tile or Tensor, Acc of a Tile of numbers, "
             "Scalar or Constexpr.")
    example = "@kernel\ndef k(x): ..."
    fix = "Annotate every parameter, e.g. x: In[Tile[16, 128, DType.F32]]."


class OutNeverStoredError(PtoError):
    code = "K102"
    cause = "An Out or Acc parameter is never stored, so its tensor would keep what it held."
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
    cause = "A buffer or parameter is used against its role: written though In, read before it was written, an Acc stored twice."
    example = "pto.store(x, v)  # x: In"
    fix = "Store to an Out or InOut parameter; give pto.alloc an init; sum up in a buffer and store to an Acc parameter once."


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
    """`kernel`: the name of the kernel, "" where no bytes are counted; `memory`: the on-chip memory that is too small."""

    code = "K110"
    kernel: str = ""
    memory: str = ""
    needed_bytes: int = 0
    limit_bytes: int = 0
    cause = "The tiles of a kernel need more of an on-chip memory than the arch has."
    example = "program().compile(arch=\"ascend_910b\")  # a kernel on Tile[512, 512, F32]"
    fix = "Use smaller tiles; the report says who takes how much, and what would fit."


class InstructionError(PtoError):
    code = "K111"
    cause = "A kernel of instructions uses an op that gives a value: an instruction writes a tile that was declared."
    example = "@ptoisa_kernel\ndef k(x: In[...], y: Out[...]): pto.store(y, x + 1)"
    fix = "Declare the tile: t = ptoisa.Tile(rows, cols, dtype), and write it: ptoisa.TADDS(t, t, 1)."


class DepthError(PtoError):
    code = "K112"
    cause = "A kernel's body goes too deep: a function that calls itself without end, or too many loops and branches in each other."
    example = "def f(x):\n    return f(x + 1)"
    fix = "The body is traced once: end a recursion by a Python number, and compute several indices from one loop."


class LoopBoundError(PtoError):
    code = "K114"
    cause = "The number of iterations of a loop in a kernel comes from data, by pto.item, and nothing says how large it may be."
    example = "n = pto.item(counts, 0, 0)\nfor j in pto.range(n): ..."
    fix = "Say the most that it can be: pto.range(n.min(64)), or pto.range(n.min(table.shape[1])). Cycles are counted for that many."


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


class ValueUseError(ArgumentKindError):
    code = "T206"
    cause = ("A value that is known only when the program runs (a scalar, a view, a tile) is asked for what it does not have: an operator, "
             "an element, a truth value, a NumPy function, a number now; or it is used in a kernel that it does not belong to.")
    example = "b = Symbol(\"b\")\nb ** 2"
    fix = "Use what the error names as expected: the operators of scalars, a view's indices, the ops of pto on tiles."


class OptionValueError(ArgumentKindError):
    code = "T207"
    cause = "An option of an operation (axis, shape, dtype, mode, widths, columns) is missing, or has a value that it does not take."
    example = "pto.load(T, (0, 0))  # T: In[Tensor[...]], and no shape="
    fix = "The error names the values that the operation takes; shapes and columns are known when the kernel is traced."


class InstructionOperandError(ArgumentKindError):
    code = "T208"
    cause = "An instruction of ptoisa is given an operand of another kind: a number or a parameter for a tile, a tile for a scalar."
    example = "ptoisa.TADD(t, x, t)  # x is a parameter"
    fix = "Declare tiles with ptoisa.Tile, fill them with ptoisa.TLOAD, and store them with ptoisa.TSTORE."


class NumberError(ArgumentKindError):
    code = "T209"
    cause = "A number is expected, and the value is none, is not whole, is not known yet, or does not fit its dtype or its place."
    example = "x_i8 + 300"
    fix = "The error says which numbers fit; a wider dtype holds larger numbers: pto.cast(x, DType.I32)."


class ConditionError(ArgumentKindError):
    code = "T210"
    cause = "A condition is no comparison of scalars that are known only when the program runs, or a choice has no dtype."
    example = "with pto.when(x > 0): ...  # x is a tile"
    fix = "Compare scalars: pto.when(n > 2), P.when(lens[b] > 0); choose between elements of tiles with pto.where(mask, a, b)."


class UnknownNameError(ArgumentKindError, AttributeError):
    """A value has no attribute of that name. Also an AttributeError, so that `hasattr` and `getattr` with a default work."""

    code = "T211"
    cause = "A value, or the module pto or ptoisa, has no attribute of that name."
    example = "pto.rowsums(x)"
    fix = "The error names the nearest name, or what the value has."


class ExpressionSizeError(ArgumentKindError):
    code = "T212"
    cause = "A scalar expression, or the formula of a kernel's cost, has more operations or iterations than are evaluated."
    example = "total = lens[0]\nfor i in range(1, 10_000):\n    total = total + lens[i]"
    fix = "Keep long sums in a Tensor and read its elements, or join the parts in pairs: (a + b) + (c + d)."


class OperandKindError(ArgumentKindError):
    code = "T213"
    cause = "An operation of a kernel takes a tile, a parameter or a number there, and is given something else."
    example = "pto.exp(x)  # x: In[Tensor[DType.F32, 64, 64]]"
    fix = "Load a piece of a Tensor parameter with pto.load; make a tile of a number with pto.full."


class TileAxisError(ArgumentKindError):
    code = "T214"
    cause = ("A reduction by NumPy's or torch's name does not keep both dimensions of the tile, names an axis that a tile does not have, "
             "or an option of which NumPy and torch mean different things.")
    example = "x.sum(axis=1)"
    fix = "A tile has two dimensions: x.sum(axis=1, keepdims=True) gives [R, 1], axis=0 gives [1, C], no axis [1, 1]."


class LeadingAxesError(OperandShapeError):
    code = "T215"
    cause = ("Leading axes of tiles of rank 3 and more do not fit each other, have too many positions, or are indexed or written "
             "in another way than tile by tile.")
    example = "x[0:2] + x[0:3]  # x: In[Tile[4, 16, 64, DType.F32]]"
    fix = "Leading axes broadcast as NumPy's; an index is known when the kernel is traced, and rows and columns stay within their tile."


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
