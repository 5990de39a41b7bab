"""Modules that a setting names: imported from the root folder first, stamped by their files."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path, PurePath
from types import ModuleType

from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.python.import_path import importable
from pytest_tfgrpo.core.python.named_callable import home_of
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.wire.stamp import stamp_bytes

SRC = "src"
"""Folder of the modules of a project that is to be installed."""


def import_module(name: str, root: Path, spec: str) -> ModuleType:
    """Return the module `name`, looked for in `root` first; raises ActorError naming `spec`."""
    with importable(root):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name + ".").startswith(error.name + "."):
                raise ActorError(f"{spec!r}: importing {name!r} failed: {error}") from error
            hint = (
                _in_src(name, root)
                or meant(name, spec.rpartition(":")[2], root)
                or nearest(name, sorted(path.stem for path in root.glob("*.py")))
            )
            raise ActorError(f"{spec!r}: no module {name!r} in {root} or on the path{hint}") from None
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ActorError(f"{spec!r}: importing {name!r} failed: {reason}") from error


def meant(name: str, attribute: str, root: Path) -> str:
    """Return a hint at the spec of what `name` seems to be, a Python file, module or program; else empty."""
    path = PurePath(name)
    if _is_module(name, root) or _is_module(name, root / SRC):
        return f"; did you mean 'python:{name}:{attribute or '<callable>'}'?"
    if path.suffix in ("", ".py") and (root / path).with_suffix(".py").is_file() and not path.is_absolute():
        module = ".".join(path.with_suffix("").parts)
        return f"; did you mean 'python:{module}:{attribute or '<callable>'}'?"
    return f"; did you mean 'command:./{path}'?" if (root / path).is_file() else ""


def _in_src(name: str, root: Path) -> str:
    where = f"; it is in {SRC}/: set pythonpath = {SRC} in pytest's ini file, or run pip install -e ."
    return where if _is_module(name, root / SRC) else ""


def _is_module(name: str, folder: Path) -> bool:
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return False
    path = folder.joinpath(*parts)
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def stamps_of_sources(module: ModuleType, functions: Iterable[object], root: Path) -> dict[str, str]:
    """Return the sha256 of each file in `root` that a module or one of its callables is from, by its path."""
    modules = {module, *(home for function in functions if (home := home_of(function)))}
    files = {Path(file) for one in modules if (file := getattr(one, "__file__", None))}
    return {
        file.relative_to(root).as_posix(): stamp_bytes(file.read_bytes())
        for file in sorted(files)
        if file.is_relative_to(root)
    }
