"""Workloads made at random: loops of both kinds, sides, lengths from data, handles, tasks of one and two parts, on a few tensors.

They are source text, so that a case that fails can be read; `workload_of` runs it.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from pto_wsp import Dense, Deps, DType, P, Sparse, Tensor, Workload, combine, workload
from tests.npu.package import Array
from tests.npu.tasks import grow, mix, move

F32 = DType.F32
BETWEEN = ("Z", "small")     # of the tensors below those that are allocated, where tasks read and write them


def arrays() -> dict[str, Array]:
    """Return the tensors that tasks work on, and the lengths of loops."""
    return {**{name: np.ones((12, 4, 8), np.float32) for name in "XYZ"}, **{name: np.ones((20, 4, 8), np.float32) for name in "QR"},
            **{name: np.ones((12, 16, 16), np.float32) for name in "AB"}, "small": np.ones((4, 8), np.float32),
            "lens": np.array([0, 1, 3], np.int64), "indptr": np.array([0, 2, 2, 5], np.int32),
            "indices": np.array([0, 3, 1, 2, 3], np.int32)}


class Source:
    """The text of one random body. `dynamic`: with branches and sparse walks."""

    def __init__(self, seed: int, *, dynamic: bool = False) -> None:
        self.random = random.Random(seed)
        self.dynamic = dynamic
        self.lines: list[str] = []
        self.n_names = 0
        self.block(1, (), (), 0)

    @property
    def text(self) -> str:
        """A function named body."""
        return "\n".join(("def body():", *self.lines, ""))

    def block(self, indent: int, loops: tuple[str, ...], handles: tuple[str, ...], depth: int) -> tuple[str, ...]:
        """Write one to three statements; return the handles that they make."""
        made: tuple[str, ...] = ()
        pad = "    " * indent
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if self.dynamic and depth < 3 and self.random.random() < 0.4:
                made = (*made, *(self.choice if kind < 0.65 else self.walk)(indent, loops, (*handles, *made), depth))
            elif kind < 0.55 or depth >= 3:
                made = (*made, self.task(pad, loops, (*handles, *made)))
            elif kind < 0.9:
                var, loop = self.name("v"), self.random.choice(("P", "P", "P.seq"))
                extent = self.random.choice(("2", "3", "2", "lens[0]", "lens[1]", "lens[2]", "2" if depth else "20"))
                self.lines.append(f"{pad}for {var} in {loop}({extent}):")
                if extent == "20":
                    made = (*made, self.name("h"))
                    self.lines.append(f"{pad}    {made[-1]} = move[{var}](Q[{var}], R[{var}])")
                else:
                    made = (*made, *self.block(indent + 1, (*loops, var), (*handles, *made), depth + 1))
            else:
                sides = self.name("side"), self.name("side")
                for side in sides:
                    self.lines += [f"{pad}@workload", f"{pad}def {side}():"]
                    self.block(indent + 1, loops, (), depth + 1)
                self.lines.append(f"{pad}combine({', '.join(f'{side}()' for side in sides)})")
        return made

    def choice(self, indent: int, loops: tuple[str, ...], handles: tuple[str, ...], depth: int) -> tuple[str, ...]:
        """Write a branch, perhaps with others behind it; return the handles that they make."""
        pad, made = "    " * indent, list[str]()
        words = ["when", *["elif_"] * self.random.choice((0, 0, 1)), *["otherwise"] * self.random.choice((0, 1))]
        for word in words:
            condition = "" if word == "otherwise" else self.condition(loops)
            self.lines.append(f"{pad}with P.{word}({condition}):")
            made += self.block(indent + 1, loops, handles, depth + 1)
        return tuple(made)

    def condition(self, loops: tuple[str, ...]) -> str:
        """Return what holds in some turns, or in some runs."""
        known = f"lens[{self.random.randrange(3)}] > {self.random.randrange(3)}"
        if not loops or self.random.random() < 0.3:
            return known
        var = self.random.choice(loops)
        return self.random.choice((f"{var} > 0", f"{var} % 2 == 0", f"({var} == 1) | ({known})", f"{var} > 40"))

    def walk(self, indent: int, loops: tuple[str, ...], handles: tuple[str, ...], depth: int) -> tuple[str, ...]:
        """Write a walk along a sparse row; return the handles that it makes."""
        var, row = self.name("e"), self.random.choice(("0", "1", "2", "lens[1]"))
        self.lines.append(f"{'    ' * indent}for {var} in {self.random.choice(('P.sel', 'P.sel', 'P.sel.seq'))}(routing[{row}]):")
        return self.block(indent + 1, (*loops, var), handles, depth + 1)

    def task(self, pad: str, loops: tuple[str, ...], handles: tuple[str, ...]) -> str:
        """Write a task; return its handle."""
        name, kind = self.name("h"), self.random.random()
        after = f", after=[{self.random.choice(handles)}]" if handles and self.random.random() < 0.4 else ""
        brackets = f"[{', '.join(loops)}]" if loops else ""
        one, other = (f"{self.random.choice('XYZ')}[{self.index(loops)}]" for _ in range(2))
        if kind < 0.6:
            call = f"move{brackets}({one}, {other}{after})"
        elif kind < 0.75:
            call = f"grow{brackets}({one}{after})"
        elif kind < 0.85:
            call = f"move{brackets}({one}, small{after})"
        else:
            call = f"mix{brackets}(A[{self.index(loops)}], B[{self.index(loops)}]{after})"
        self.lines.append(f"{pad}{name} = {call}")
        return name

    def index(self, loops: tuple[str, ...]) -> str:
        """Return a place in a tensor, inside it whatever the loops are at."""
        if not loops or self.random.random() < 0.3:
            return str(self.random.randrange(6))
        return self.random.choice(("{v}", "{v}", "{v} + 1", "4 - {v}", "{v} * 2", "{v} // 2")).format(v=self.random.choice(loops))

    def name(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        self.n_names += 1
        return f"{stem}{self.n_names}"


def workload_of(source: Source, folder: Path, *, structure: bool) -> Workload:
    """Return the workload of a text, with edges from program order or from data alone; its lines stand in a file of `folder`."""
    path = folder / "case.py"
    path.write_text(source.text)
    known: dict[str, object] = {name: Tensor(value, name=name) for name, value in arrays().items()}
    known |= {name: Tensor.empty(arrays()[name].shape, F32, name) for name in BETWEEN}
    known |= {"move": move, "grow": grow, "mix": mix, "P": P, "combine": combine, "workload": workload}
    known["routing"] = Sparse(Dense[3](), known["indptr"], known["indices"])
    exec(compile(source.text, str(path), "exec"), known)
    made: Workload = workload(known["body"])()   # type: ignore[arg-type]
    return made if structure else made.task_graph(deps=Deps.infer_bytes_overlap())
