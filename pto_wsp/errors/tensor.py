"""Errors of functions on whole tensors: their parameters, bodies, shapes and axes."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class TensorSignatureError(PtoError):
    code = "J101"
    cause = "A parameter of a function on tensors, its annotation, or what is given for it, is none that such a function takes."
    example = "@jit\ndef f(x: Out[Tensor[\"t\", 64, DType.F32]]): ..."
    fix = ("Annotate arrays as Tensor[\"t\", 64, DType.F32] or InOut[Tensor[...]], numbers of each call as Scalar[DType.F32]; return what "
           "is made.")


class TensorWriteError(PtoError):
    code = "J102"
    cause = "A body writes a tensor that it may only read: an In parameter, a constant, or a view of one."
    example = "@jit\ndef f(x: Tensor[4, DType.F32]):\n    x[0] = 1.0"
    fix = "Write a copy, made by out = tt.zeros(x.shape), or declare the parameter as InOut[...]."


class LostWriteError(PtoError):
    code = "J103"
    cause = "An InOut parameter is never written: its name was only bound to something else, or not used."
    example = "@jit\ndef f(x: InOut[Tensor[4, DType.F32]]):\n    x = x + 1.0"
    fix = "Write it in place: x[:] = x + 1.0, or x += 1.0."


class TensorResultError(PtoError):
    code = "J104"
    cause = "A function returns what is no tensor of its own, nor a tuple, list or dict of them."
    example = "@jit\ndef f(x: InOut[Tensor[4, DType.F32]]):\n    x += 1.0\n    return x"
    fix = "Return tensors that the body made; an InOut parameter is there already, with its new elements."


class TensorBodyError(PtoError):
    code = "J105"
    cause = "A body does what belongs to another level, or takes in more than it may: a kernel's call, Tensor.empty, a large constant."
    example = "@jit\ndef f(x: Tensor[4, DType.F32]):\n    return Tensor.empty((4,), DType.F32)"
    fix = "Make state with tt.empty, pass large arrays as parameters, and call kernels in a workload."


class StaleValueError(PtoError):
    code = "J106"
    cause = "A reshape, a broadcast or an element is used after the tensor that it was taken of has been written."
    example = "flat = acc.reshape(-1)\nacc[0] = 1.0\ny = flat * 2.0"
    fix = "Take it again after the write: acc.reshape(-1) * 2.0."


class TableWriteError(PtoError):
    code = "J107"
    cause = "A write through a table of places might write one place twice: nothing says that its entries are different."
    example = "@jit\ndef f(x: Tensor[4, DType.F32], t: Tensor[4, DType.I32]):\n    out = tt.zeros((8,))\n    out[t] = x"
    fix = "Declare the table as Injective[Tensor[...]], or add in the order of its entries: np.add.at(out, t, x)."


class TensorFunctionError(PtoError):
    code = "J108"
    cause = "A function of NumPy or torch, or one of its arguments, has no meaning on traced tensors."
    example = "np.linalg.inv(x)"
    fix = "The error names the nearest function that has one; dir(tt) lists them."


class TensorTypeMismatchError(PtoError):
    code = "J109"
    cause = "An argument is not of the dtype, the rank or the extents that the parameter's Tensor[...] says."
    example = "f(np.zeros((4, 65), np.float32))  # x: Tensor[\"t\", 64, DType.F32]"
    fix = "Pass an array of that type, or change the annotation."


class JitOptionError(PtoError):
    code = "J121"
    cause = "plan=, out=, sizes=, passes= or an option of jit has a value of another kind, or out= another number of arrays than results."
    example = "f(x, plan=\"f.910b.json\")"
    fix = "Pass what the error expects: TilePlan.load(path) reads a plan, out= takes an array, or a tuple of one for each result."


class WrittenArrayError(PtoError):
    code = "J122"
    cause = "An array that a call writes cannot be written: it is read-only, shares memory, or is no array of the result's shape and dtype."
    example = "f(x, out=x)"
    fix = "Give an array of its own for each result and InOut parameter: np.empty(shape, dtype)."


class ExtentError(PtoError):
    code = "J201"
    cause = "Extents that must be equal are not, or cannot be proved to be: a symbol is one number a call, and never broadcasts."
    example = "@jit\ndef f(x: Tensor[\"m\", DType.F32], y: Tensor[\"n\", DType.F32]):\n    return x + y"
    fix = "Give both the same name, or promise it: tt.assume(x.shape[0] == y.shape[0])."


class TensorIndexError(PtoError):
    code = "J202"
    cause = "A tensor is indexed with what has no meaning there."
    example = "x[table, other]"
    fix = "Index with whole numbers, slices, None, ... and one table; take element by element with np.take_along_axis."


class TensorAxisError(PtoError):
    code = "J203"
    cause = "An axis that the tensor does not have, is named twice, or is named by a word that means something else in another library."
    example = "x.sum(axis=2)  # of two dimensions"
    fix = "Axes are -rank .. rank - 1."


class TensorReshapeError(PtoError):
    code = "J204"
    cause = "A shape does not fit the elements: another number of them, or parts that do not divide."
    example = "@jit\ndef f(x: Tensor[\"t\", DType.F32]):\n    return x.reshape(-1, 4)"
    fix = "Say the shape in extents of the tensor: x.reshape(x.shape[0] * 2, -1); a -1 needs an exact division."


class UnboundedAxisError(PtoError):
    code = "J205"
    cause = "An operation needs a whole axis at once, and nothing says how long the axis can be."
    example = "@jit\ndef f(x: Tensor[\"t\", DType.F32]):\n    return tt.topk(x, 4)"
    fix = "Promise a bound, which each call checks: tt.assume(x.shape[0] <= 4096)."


class TensorRankError(PtoError):
    code = "J206"
    cause = "A tensor has more dimensions than 8, or an operation meets fewer than it works on."
    example = "x[None, None, None, None, None, None, None, None, None]"
    fix = "Join dimensions with reshape."


class EinsumError(PtoError):
    code = "J207"
    cause = "The text of an einsum is none that is known here."
    example = "np.einsum(\"ii->i\", x)"
    fix = "One or two operands, each letter once in each, no ...: np.einsum(\"thd,hdc->thc\", q, w)."


class TensorOptionError(PtoError):
    code = "J208"
    cause = "An option of a function on tensors has a value that it does not take: a count, a step, a width, a label."
    example = "np.repeat(x, 2.5)"
    fix = "The error names the values that the function takes; counts and steps are known when the body is traced."


class TensorOperandError(PtoError):
    code = "J209"
    cause = "A function on tensors is given something that is no tensor, or of a kind that it does not work on."
    example = "tt.exp(3.0)"
    fix = "The error says what is expected; tt.cast(n, DType.F32) makes a tensor of a number."


class TensorControlError(PtoError):
    code = "J110"
    cause = "A loop or branch of a body on tensors is not written as it can be traced: its bounds, its variables, the place of a side."
    example = "for i in tt.loop(0, n, 0): ..."
    fix = "for i in tt.loop(start, stop, step), the step a number >= 1; for i, j in tt.each(n, m); otherwise directly behind its when."
