"""Keep cffi's parsed form of the interface between Python and C as data: a start reads the data instead of parsing two headers.

cffi keeps a parsed interface as the arguments of one call, which cffi would write as a Python module. The same arguments stand here in
JSON, so that nothing of the kept file is executed. A wheel carries the file; a checkout writes it beside the runtime library. The build of
a wheel runs this module by its path, so this module imports nothing of the package.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import _cffi_backend  # the part of cffi that parses nothing

HEADERS = ("pto_abi.h", "pto_library.h")
_NAME = "pto_abi"


def abi_text(csrc: Path) -> str:
    """Return the text of the interface between Python and C, as cffi reads it."""
    return "".join((csrc / "include" / name).read_text(encoding="utf-8") for name in HEADERS)


def parse_abi(text: str) -> str:
    """Have cffi parse the text of the interface, and return the parsed form as JSON: its bytes as Latin-1 strings."""
    import cffi  # brings a C parser, and only building a wheel or the runtime library needs it

    ffi = cffi.FFI()
    ffi.cdef(text)
    ffi.set_source(_NAME, None)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):   # it tells what it does
        ffi.emit_python_code(str(Path(folder) / "module.py"))
        tree = ast.parse((Path(folder) / "module.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    arguments = {part.arg: ast.literal_eval(part.value) for part in calls[0].keywords}
    return json.dumps(arguments, default=_as_text, separators=(",", ":"), sort_keys=True)


def read_abi(text: str | bytes) -> Any:
    """Return the cffi.FFI of what `parse_abi` wrote.

    Raises: ValueError or TypeError for what it did not write.
    """
    arguments = {name: _as_bytes(value) for name, value in json.loads(text).items()}
    return _cffi_backend.FFI(_NAME, **arguments)


def _as_text(value: object) -> str:
    assert isinstance(value, bytes)
    return value.decode("latin-1")


def _as_bytes(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_as_bytes, value))
    return value.encode("latin-1") if isinstance(value, str) else value
