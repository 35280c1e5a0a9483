"""What a parsed `.pto` file must satisfy: every value is known where it is used, with the type that is written there, and every
operation is given what it takes.

>>> check_pto(text)
"""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.errors import InternalError
from pto_wsp.npu.isa.instructions import FormOperand, Kind, find_instruction
from tests.npu.mlir.grammar import Fault, Function, MemoryType, Op, TileType, Type, parse

_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "ui8": 1, "ui16": 2, "ui32": 4, "ui64": 8}
_SPACES = {"vector": {"vec"}, "cube": {"mat", "left", "right", "acc"}}
_PLACES = {"left": "left", "right": "right"}
_LAYOUTS = {"vec": {("row_major", "none_box", 512), ("col_major", "none_box", 512)},
            "mat": {("col_major", "row_major", 512), ("row_major", "col_major", 512)},
            "left": {("row_major", "row_major", 512), ("col_major", "row_major", 512)},
            "right": {("row_major", "col_major", 512)}, "acc": {("col_major", "row_major", 1024)}}
_CASTS = {"arith.index_cast": ("index", ("i8", "i16", "i32", "i64")), "arith.index_castui": ("i1", ("index",)),
          "arith.sitofp": ("i64", ("f32",)), "arith.truncf": ("f32", ("f16", "bf16")), "arith.trunci": ("i64", ("i1",))}
_ROW_REDUCTIONS = frozenset(f"pto.trow{name}" for name in ("sum", "max", "min", "prod"))
_WHOLE = frozenset(f"arith.{name}" for name in ("addi", "subi", "muli", "minsi", "maxsi", "floordivsi"))
_BITS = frozenset(f"arith.{name}" for name in ("andi", "ori", "xori"))
_REAL = frozenset(f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "minimumf", "maximumf"))


def check_pto(text: str) -> Function:
    """Return the function of a `.pto` file.

    Raises: Fault naming line and column of the first thing that is wrong.
    """
    made = parse(text)
    _Checker(made).run()
    return made


class _Checker:
    """Follows the values of a function through its regions."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.ever: set[str] = set()
        if function.kind not in _SPACES:
            raise Fault(f"a kernel is for the vector or the cube core, not {function.kind!r}")
        if function.arch not in ("a2a3", "a5"):
            raise Fault(f"there is no arch {function.arch!r}")

    def run(self) -> None:
        known: dict[str, Type] = {}
        for name, type in self.function.arguments:
            if isinstance(type, TileType) or (isinstance(type, MemoryType) and type.kind != "ptr"):
                raise Fault(f"argument {name} is neither a pointer nor a number")
            if name in known:
                raise Fault(f"argument {name} is there twice")
            known[name] = type
        self.ever |= known.keys()
        self.region(self.function.body, known, outermost=True)

    def region(self, body: list[Op], outer: Mapping[str, Type], *, outermost: bool = False) -> None:
        known = dict(outer)
        for at, op in enumerate(body):
            if (op.name == "return") != (outermost and at == len(body) - 1):
                raise self.fault(op, "return ends the function, and nothing else does")
            type = self.operation(op, known)
            for inner in op.regions:
                self.region(inner, {**known, op.attributes["variable"]: "index"} if op.name == "scf.for" else known)
            if (op.result is None) != (type is None):
                raise self.fault(op, "a result where there is none" if type is None else "no name for its result")
            if op.result is not None and type is not None:
                self.define(op, op.result)
                known[op.result] = type

    def define(self, op: Op, name: str) -> None:
        if name in self.ever:
            raise self.fault(op, f"{name} is there twice")
        self.ever.add(name)

    def fault(self, op: Op, message: str) -> Fault:
        return Fault(f"{op.token.line}:{op.token.column}: {op.name}: {message}")

    def asked(self, op: Op, name: str, known: Mapping[str, Type]) -> Type:
        if name not in known:
            raise self.fault(op, f"{name} is not known here")
        return known[name]

    def is_index(self, op: Op, names: list[str], known: Mapping[str, Type]) -> None:
        for name in names:
            if self.asked(op, name, known) != "index":
                raise self.fault(op, f"{name} is no index")

    # ---- operations ----

    def operation(self, op: Op, known: Mapping[str, Type]) -> Type | None:
        """Return the type of the result, None where there is none."""
        match op.name:
            case "return":
                return None
            case "scf.if":
                if self.asked(op, op.ins[0], known) != "i1":
                    raise self.fault(op, f"{op.ins[0]} is no condition")
                return None
            case "scf.for":
                self.is_index(op, op.ins, known)
                self.define(op, op.attributes["variable"])
                return None
            case "pto.make_tensor_view":
                return self.view(op, known)
            case "pto.partition_view":
                return self.part(op, known)
            case "pto.alloc_tile":
                return self.alloc(op, known)
            case "pto.tload" | "pto.tstore":
                self.moved(op, known)
                return None
            case _ if op.name.startswith("pto."):
                self.instruction(op, known)
                return None
            case _:
                return self.arithmetic(op, known)

    def arithmetic(self, op: Op, known: Mapping[str, Type]) -> Type:
        if op.name == "arith.constant":
            type, value = op.out_types[0], op.attributes["value"]
            real, truth = value.startswith("0x") or "." in value, value in ("true", "false")
            if (type in ("f32", "f16", "bf16"), type == "i1") != (real, truth):
                raise self.fault(op, f"{value} is no {type}")
            return type
        held, (written,) = [self.asked(op, name, known) for name in op.ins], op.in_types
        if op.name == "arith.select":
            if len(held) != 3 or held[0] != "i1" or held[1:] != [written, written]:
                raise self.fault(op, "it takes a condition and two of the type")
            return written
        if any(type != written for type in held):
            raise self.fault(op, f"it is written for {written}, and given {', '.join(map(str, held))}")
        if op.name in _CASTS:
            source, targets = _CASTS[op.name]
            pair = written, op.out_types[0] if op.out_types else ""
            back = op.name == "arith.index_cast" and pair[1] == source and pair[0] in targets
            if not back and (pair[0] != source or pair[1] not in targets):
                raise self.fault(op, f"it does not make {pair[1]} of {pair[0]}")
            return pair[1]
        allowed = {**dict.fromkeys(_WHOLE, ("index",)), **dict.fromkeys(_BITS, ("index", "i1")), **dict.fromkeys(_REAL, ("f32",)),
                   "arith.cmpi": ("index",), "arith.cmpf": ("f32",), "arith.negf": ("f32",)}
        if op.name not in allowed or written not in allowed[op.name] or len(held) != (1 if op.name == "arith.negf" else 2):
            raise self.fault(op, f"there is no such operation on {len(held)} of {written}")
        predicates = {"arith.cmpi": ("eq", "ne", "slt", "sle", "sgt", "sge"), "arith.cmpf": ("oeq", "une", "olt", "ole", "ogt", "oge")}
        if op.name in predicates:
            if op.attributes["predicate"] not in predicates[op.name]:
                raise self.fault(op, f"it has no predicate {op.attributes['predicate']}")
            return "i1"
        return written

    def view(self, op: Op, known: Mapping[str, Type]) -> Type:
        type, source = op.out_types[0], self.asked(op, op.ins[0], known)
        for name in ("shape", "strides"):
            self.is_index(op, op.lists[name], known)
        if not isinstance(source, MemoryType) or source.kind != "ptr" or type != MemoryType("tensor_view", source.dtype, (None, None)):
            raise self.fault(op, "a view of a pointer has its element, and two dimensions")
        if len(op.lists["shape"]) != 2 or len(op.lists["strides"]) != 2:
            raise self.fault(op, "a view has two dimensions")
        return type

    def part(self, op: Op, known: Mapping[str, Type]) -> Type:
        source, type = op.in_types[0], op.out_types[0]
        if self.asked(op, op.ins[0], known) != source or not isinstance(source, MemoryType) or source.kind != "tensor_view":
            raise self.fault(op, f"{op.ins[0]} is no view of that type")
        if not isinstance(type, MemoryType) or (type.kind, type.dtype) != ("partition_tensor_view", source.dtype):
            raise self.fault(op, "a part of a view has the view's element")
        for name in ("offsets", "sizes"):
            self.is_index(op, op.lists[name], known)
            if len(op.lists[name]) != 2:
                raise self.fault(op, "a part has two dimensions")
        return type

    def alloc(self, op: Op, known: Mapping[str, Type]) -> Type:
        type = op.out_types[0]
        if not isinstance(type, TileType):
            raise self.fault(op, "it makes a tile")
        for name, extent, most in (("valid_row", type.v_row, type.rows), ("valid_col", type.v_col, type.cols)):
            if (extent is None) != (name in op.lists):
                raise self.fault(op, f"{name} is given where the type has ?")
            self.is_index(op, op.lists.get(name, []), known)
            if extent is not None and not 1 <= extent <= most:
                raise self.fault(op, f"{name} {extent} of {most}")
        if type.loc not in _SPACES[self.function.kind]:
            raise self.fault(op, f"a {self.function.kind} core has no {type.loc}")
        if (type.blayout, type.slayout, type.fractal) not in _LAYOUTS[type.loc]:
            raise self.fault(op, f"a tile in {type.loc} does not lie so")
        if type.loc == "left" and (type.blayout == "col_major") != (self.function.arch == "a5"):
            raise self.fault(op, "left operands lie otherwise on this arch")
        size = _BYTES[type.dtype]
        line = type.rows if type.blayout == "col_major" and type.loc == "vec" else type.cols
        if type.loc == "vec" and line * size % 32:
            raise self.fault(op, "its lines are no multiples of 32 bytes")
        if type.loc != "vec" and (type.rows % 16 or type.cols % (32 // size if type.loc != "acc" else 16)):
            raise self.fault(op, "it is no multiple of its blocks")
        return type

    def moved(self, op: Op, known: Mapping[str, Type]) -> None:
        self.operands(op, known)
        if len(op.ins) != 1 or len(op.outs) != 1:
            raise self.fault(op, "it moves one thing to another")
        memory, tile = (op.in_types[0], op.out_types[0]) if op.name == "pto.tload" else (op.out_types[0], op.in_types[0])
        if not isinstance(memory, MemoryType) or memory.kind != "partition_tensor_view" or not isinstance(tile, TileType):
            raise self.fault(op, "it moves between a tile and a part of a view")
        if memory.dtype != tile.dtype or memory.extents != (tile.v_row, tile.v_col):
            raise self.fault(op, "part and tile have different elements or extents")
        if tile.loc not in (("vec", "mat") if op.name == "pto.tload" else ("vec", "acc")):
            raise self.fault(op, f"it does not move {tile.loc}")

    def operands(self, op: Op, known: Mapping[str, Type]) -> None:
        for names, types in ((op.ins, op.in_types), (op.outs, op.out_types)):
            for name, type in zip(names, types, strict=True):
                if self.asked(op, name, known) != type:
                    raise self.fault(op, f"{name} has another type than is written")

    def instruction(self, op: Op, known: Mapping[str, Type]) -> None:
        """Check against the instruction table: outputs first, in order; an accumulator is input and output."""
        self.operands(op, known)
        try:
            found = find_instruction(op.name.removeprefix("pto.").upper().replace(".", "_"))
        except InternalError:
            raise self.fault(op, "there is no such instruction") from None
        if not all(isinstance(type, TileType) for type in op.out_types):
            raise self.fault(op, "an instruction writes tiles")
        tiles = [type for type in (*op.in_types, *op.out_types) if isinstance(type, TileType)]
        if op.name == "pto.treshape":
            if len(tiles) != 2 or len({(type.rows * type.cols * _BYTES[type.dtype], type.loc) for type in tiles}) != 1:
                raise self.fault(op, "it sees the same bytes as another tile")
            return
        if op.name == "pto.tsubview" and (len(tiles) != 2 or {type.loc for type in tiles} != {"vec"} or tiles[1].rows > tiles[0].rows
                                          or tiles[1].cols > tiles[0].cols):
            raise self.fault(op, "it is a part of a larger tile")
        if not any(self.fits(op, form) for form in found.forms):
            raise self.fault(op, "it is given other operands than it takes")
        if op.name == "pto.textract" and (op.out_types[0].loc, tiles[0].loc) not in (("left", "mat"), ("right", "mat")):   # type: ignore[union-attr]
            raise self.fault(op, "it moves from L1 to the operands of products")
        if op.name in _ROW_REDUCTIONS and (op.out_types[0].v_row, op.out_types[0].v_col) != (tiles[0].v_row, 1):   # type: ignore[union-attr]
            raise self.fault(op, "it gives one number a row")
        if op.name.startswith("pto.tmatmul"):
            left, right = (type for type in tiles if type.loc in ("left", "right"))
            acc = next(type for type in tiles if type.loc == "acc")
            if (left.rows, right.cols, left.cols) != (acc.rows, acc.cols, right.rows) \
                    or (left.v_row, right.v_col, left.v_col) != (acc.v_row, acc.v_col, right.v_row):
                raise self.fault(op, "rows, columns and the inner dimension do not fit")

    def fits(self, op: Op, form: tuple[FormOperand, ...]) -> bool:
        ins, outs = list(op.in_types), list(op.out_types)
        words = len(op.attributes)
        dtypes: set[str] = set()
        for at, operand in enumerate(form):
            if operand.kind is Kind.WORD:
                words -= 1
                continue
            if operand.access.writes and (at == 0 or not operand.access.reads):
                if not outs:
                    return False
                type = outs.pop(0)
                if operand.access.reads and not (ins and ins.pop(0) == type):
                    return False
            else:
                if not ins:
                    return False
                type = ins.pop(0)
            if operand.kind.is_tile != isinstance(type, TileType):
                return False
            if isinstance(type, TileType):
                if operand.name in _PLACES and type.loc != _PLACES[operand.name]:
                    return False
                if operand.kind is Kind.DATA:
                    dtypes.add(type.dtype)
        patterns = 1 if "maskPattern" in op.attributes else 0
        return not ins and not outs and words == patterns and len(dtypes) <= 1
