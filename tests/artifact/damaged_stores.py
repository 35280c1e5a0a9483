"""Stores with one thing wrong in each, and what compiles and runs a program from every one of them, each in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.artifact.small_program import ROOT, SCRIPT, finish, start
from tests.artifact.test_toolchain import script
from tests.caches import with_runtime

NOBODY = 65534

# Forks a child for each store, so that the package is imported once; a child that hangs is ended.
_CHILDREN = '''
import io, json, os, signal, sys, traceback
import numpy as np
from pto_wsp import PtoError
import pto_wsp.targets.cpu_sim_build, pto_wsp.api.program
source = compile(sys.stdin.read(), "model.py", "exec")
for store in sys.argv[1:]:
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.environ["PTO_WSP_CACHE_DIR"] = store
        sys.stdout = io.StringIO()
        try:
            exec(source, {"__name__": "model", "sys": sys})
            said = ["right", ""]
        except PtoError as error:
            said = [error.code, str(error)]
        except BaseException:
            said = ["raw", traceback.format_exc()]
        os.write(there, json.dumps(said).encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    print(text.decode() or json.dumps(["crash", f"status {status}"]), flush=True)
'''


@dataclass(frozen=True)
class Outcome:
    """How a program did: "right", the code of an error, "raw" or "crash"; and what it said."""

    kind: str
    text: str


@dataclass(frozen=True)
class FilledStore:
    """A store that holds the runtime library and a program, and a compiler that is quick to give both once more."""

    root: Path
    environment: Mapping[str, str]

    def entries(self) -> tuple[str, ...]:
        """Return every file and folder of the store by its path in it, "." for the store."""
        return (".", *sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*")))

    def run(self, stores: Sequence[Path]) -> list[Outcome]:
        """Compile and run the program from each of several stores."""
        done = subprocess.run([sys.executable, "-c", _CHILDREN, *map(str, stores)], env=self.environment, cwd=self.root.parent, text=True,
                              capture_output=True, input=SCRIPT.replace("sys.argv[1:2]", "()"), check=False)
        assert done.returncode == 0, done.stderr
        return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]

    def copy(self, to: Path) -> Path:
        """Return a copy of the store."""
        shutil.copytree(self.root, to)
        return to


def filled_store(folder: Path) -> FilledStore:
    """Build a program and the runtime library into a store, and return it."""
    built = folder / "built"
    model = folder / "model.py"
    model.write_text(SCRIPT)
    program = finish(start(model, with_runtime(built)))
    runtime = next((built / "artifacts").glob("pto_runtime-*"))
    compiler = script(folder / "compiler", f"""while [ $# -gt 0 ]; do
    case "$1" in
    --version) echo quick; exit ;;
    -o) case "$2" in objects/*) ;; libpto_runtime.so) cp {runtime}/"$2" . ;; *) cp {program}/"$2" . ;; esac; exit ;;
    esac
    shift
done""")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CC": compiler, "PTO_WSP_CACHE_DIR": str(folder / "store")}
    store = FilledStore(folder / "store", environment)
    assert store.run([store.root]) == [Outcome("right", "")]
    return store


# ---- what can be wrong with a file or folder ----

def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _swap(path: Path) -> None:
    """Exchange a file with another one of its folder, or with one beside that."""
    others = [other for folder in (path.parent, path.parent.parent) for other in sorted(folder.rglob("*"))
              if other.is_file() and other.read_bytes() != path.read_bytes()]
    mine, theirs = path.read_bytes(), others[0].read_bytes()
    others[0].write_bytes(mine)
    path.write_bytes(theirs)


def _away(path: Path) -> Path:
    """Move what is at a path out of the store, and return where it is now."""
    outside = Path(f"{path}-outside".replace("store", "elsewhere", 1))
    outside.parent.mkdir(parents=True, exist_ok=True)
    path.rename(outside)
    return outside


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        _remove(path)
        make(path)
    return replace


CONTENT: Mapping[str, Callable[[Path], object]] = {
    "empty": lambda path: os.truncate(path, 0),
    "half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "flip": _flip,
    "swap": _swap,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
}
PLACE: Mapping[str, Callable[[Path], object]] = {
    "remove": _remove,
    "link": lambda path: path.symlink_to(_away(path)),            # the right contents, elsewhere
    "dead link": _replaced(lambda path: path.symlink_to("/dev/null/nothing")),
    "folder": _replaced(lambda path: path.mkdir()),
    "file": _replaced(lambda path: path.write_text("text")),
    "pipe": _replaced(os.mkfifo),
}
RIGHTS: Mapping[str, Callable[[Path], object]] = {
    "writable": lambda path: path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o022),
    **({"another owner": lambda path: os.chown(path, NOBODY, NOBODY)} if os.geteuid() == 0 else {}),
}


def damages_of(path: Path) -> tuple[str, ...]:
    """Return what can be done to a file or folder."""
    kept = "folder" if path.is_dir() else "file"
    return (*(CONTENT if path.is_file() and path.stat().st_size > 1 else ()), *(name for name in PLACE if name != kept), *RIGHTS)


def damage(store: Path, entry: str, name: str) -> None:
    """Do it to an entry of a store."""
    {**CONTENT, **PLACE, **RIGHTS}[name](store / entry)
