"""The package as syntax trees, for the rules of the house."""

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support import ROOT

PACKAGE = "pytest_tfgrpo"


class Import(NamedTuple):
    """One import statement, with the module that it names."""

    target: str
    line: int
    lazy: bool
    """Inside a function."""
    typing_only: bool
    """Under ``if TYPE_CHECKING``."""


class Module(NamedTuple):
    """One file of the package."""

    path: str
    name: str
    tree: ast.Module
    lines: int
    imports: tuple[Import, ...]

    @property
    def part(self) -> str:
        """First name below the package; empty for the package itself."""
        return self.name.removeprefix(PACKAGE).removeprefix(".").partition(".")[0]


@cache
def modules() -> dict[str, Module]:
    """Return the modules of the package by name."""
    files = sorted((ROOT / PACKAGE).rglob("*.py"))
    names = {name_of(file): file for file in files}
    found = {}
    for name, file in names.items():
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        path = file.relative_to(ROOT / PACKAGE).as_posix()
        found[name] = Module(path, name, tree, text.count("\n"), tuple(imports_of(tree, names.keys())))
    return found


def name_of(file: Path) -> str:
    """Return the name of the module in a file of the package."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.Module, known: Collection[str]) -> Iterator[Import]:
    """Yield every import; ``from a import b`` names a.b where that is a module, else a."""

    def visit(node: ast.AST, lazy: bool, typing_only: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, lazy, typing_only)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: imports are absolute here"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                target = whole if whole in known else str(node.module)
                yield Import(target, node.lineno, lazy, typing_only)
        for field, value in ast.iter_fields(node):
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            guarded = (
                isinstance(node, ast.If) and field == "body" and ast.unparse(node.test) == "TYPE_CHECKING"
            )
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, lazy or inside, typing_only or guarded)

    yield from visit(tree, lazy=False, typing_only=False)


def ours(target: str) -> bool:
    """Return whether a module is the package's."""
    return target == PACKAGE or target.startswith(PACKAGE + ".")


def each() -> Iterator[tuple[Module, Import]]:
    """Yield every import of the package, with the module that holds it."""
    return ((module, found) for module in modules().values() for found in module.imports)
