"""Start the reporter: read the request and load the scripts; a script of its own, for any Python from 3.8 on.

It runs in the interpreter of the project's environment, before anything of the workspace can be loaded. The
scripts come compiled with the request, where it is of the same Python as the one that compiled them; else
they are compiled here.
"""

# ruff: noqa: UP006, UP035, PTH118, PTH123 - Python 3.8

from __future__ import annotations

import fcntl
import gc
import json
import marshal
import os
import struct
import sys
import types
from binascii import a2b_base64
from typing import Any, Dict

HEADER = struct.Struct("<q")
LEAST_DESCRIPTOR = 64


def main() -> None:
    """Read the request, and have the reporter run it."""
    sys.dont_write_bytecode = True
    gc.disable()  # until the guard is open: what is made before then stays
    number = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    with open(number, "rb", closefd=False) as stream:
        request = json.loads(stream.read(HEADER.unpack(stream.read(HEADER.size))[0]))
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    compiled = request.pop("scripts")
    same = request.pop("python") == python()
    scripts = {
        name: _script(name, os.path.join(here, name + ".py"), text if same else "")
        for name, text in compiled.items()
    }
    parts = [scripts["pytest_" + name] for name in ("guard", "kept", "returns")]
    scripts["pytest_reporter"].report(number, request, here, *parts)


def python() -> str:
    """Return what Pythons have in common that can run each other's compiled code."""
    magic: bytes = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
    return f"{sys.implementation.cache_tag} {magic.hex()}"


def _script(name: str, path: str, compiled: str) -> types.ModuleType:
    module = types.ModuleType(name)
    space: Dict[str, Any] = module.__dict__
    space["__file__"] = path
    if compiled:
        code = marshal.loads(a2b_base64(compiled))
    else:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, space)
    return module


if __name__ == "__main__":
    main()
