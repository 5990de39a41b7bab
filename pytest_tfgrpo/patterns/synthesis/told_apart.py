"""Code by which a change could pass its tests without a fix: it asks who calls it, or replaces other code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from pytest_tfgrpo.patterns.synthesis.blanked_code import FunctionNode, parsed, stem_of

CALLERS = frozenset(
    {
        *("_getframe", "_getframemodulename", "_current_frames", "currentframe", "f_back"),
        *("getouterframes", "extract_stack", "format_stack", "walk_stack"),
    }
)
"""Names by which code sees who calls it."""
TESTED = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "_pytest"})
"""Texts by which code sees that it is tested."""


def told_apart(
    before: Mapping[str, bytes], after: Mapping[str, bytes], changed: Iterable[str]
) -> tuple[str, ...]:
    """Return what changed Python sources newly do of this kind, each with its file."""
    paths = [path for path in changed if path.endswith(".py") and path in after]
    defined = {stem_of(path): names for path, data in before.items() if (names := _defined(path, data))}
    found = dict[str, None]()
    for path in paths:
        known = {*_told(before.get(path, b""), defined)}
        found |= {f"{what} in {path}": None for what in _told(after[path], defined) if what not in known}
    return tuple(found)


def _told(data: bytes, defined: Mapping[str, frozenset[str]]) -> Iterator[str]:
    tree = parsed(data)
    if tree is None:
        return
    imported = dict(_imported(tree, defined))
    for node in ast.walk(tree):
        name = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name"}.get(type(node))
        if name and getattr(node, name) in CALLERS:
            yield f"`{getattr(node, name)}`"
        elif isinstance(node, ast.Constant):
            yield from (f"`{one}`" for one in TESTED if one == node.value)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if node.attr in imported.get(_root(node), ()):
                yield f"another `{ast.unparse(node)}`"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr" and len(node.args) > 1:
            named = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            behind = imported.get(_root(node.args[0]), ())
            yield from (f"another `{ast.unparse(node.args[0])}.{one}`" for one in behind if one == named)


def _imported(tree: ast.AST, defined: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the names that a module imports from the project, with what is defined behind each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = (getattr(node, "module", None) or "").rpartition(".")[2]
            for one in node.names:
                behind = defined.get(one.name.rpartition(".")[2]) or defined.get(origin)
                if behind:
                    yield one.asname or one.name.partition(".")[0], behind


def _defined(path: str, data: bytes) -> frozenset[str]:
    """Return the functions and classes of a module of the project."""
    tree = parsed(data) if path.endswith(".py") else None
    nodes = () if tree is None else ast.walk(tree)
    return frozenset(
        node.name
        for node in nodes
        if isinstance(node, FunctionNode | ast.ClassDef) and not isinstance(node, ast.Lambda)
    )


def _root(node: ast.AST) -> str:
    """Return the name with which a dotted name begins."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
