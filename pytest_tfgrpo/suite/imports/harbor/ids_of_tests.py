"""The ids of the tests in a file, read from its text: nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.suite.imports.harbor.task_folder import TaskProblem

UNITTEST = frozenset({"TestCase", "unittest.TestCase"})
CHOOSING = ("parametrize", "skip", "skipif", "xfail", "usefixtures")
"""Marks that make several tests of one, or none."""


def ids_in(file: str, text: str) -> list[str]:
    """Return the ids that pytest gives the tests of a file; raises TaskProblem where only a run could say."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TaskProblem(f"{file} is no Python that can be read here: {type(error).__name__}") from None
    found = dict.fromkeys(f"{file}::{name}" for name in _names(tree.body, file))
    return list(found)


def _names(body: Sequence[ast.stmt], file: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            _require_one(node, file)
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from _methods(node, file)
        elif isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test"):
            raise TaskProblem(f"{file} has the asynchronous test {node.name}, which needs a plugin")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _require_no_tests_of_others(node, file)
        elif not isinstance(node, ast.FunctionDef):
            _require_no_tests(node, file)
        if isinstance(node, ast.FunctionDef):
            _require_plain(node, file)


def _methods(node: ast.ClassDef, file: str) -> Iterator[str]:
    bases = [ast.unparse(base) for base in node.bases]
    of_unittest = bool(UNITTEST.intersection(bases))
    if not of_unittest and not node.name.startswith("Test"):
        return
    if [base for base in bases if base not in UNITTEST and base != "object"]:
        raise TaskProblem(f"{file} has the class {node.name}, which may inherit tests")
    _require_unmarked(node, file)
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test"):
            _require_one(item, file)
            yield f"{node.name}::{item.name}"


def _require_one(node: ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> None:
    if isinstance(node, ast.AsyncFunctionDef):
        raise TaskProblem(f"{file} has the asynchronous test {node.name}, which needs a plugin")
    _require_unmarked(node, file)


def _require_unmarked(node: ast.FunctionDef | ast.ClassDef, file: str) -> None:
    for mark in node.decorator_list:
        text = ast.unparse(mark)
        if any(word in text for word in CHOOSING):
            raise TaskProblem(f"{file}: only a run says which tests `@{text[:60]}` makes of {node.name}")


def _require_plain(node: ast.FunctionDef, file: str) -> None:
    """Raise TaskProblem for a hook of pytest, and a fixture that makes several tests of one."""
    if node.name.startswith("pytest_"):
        raise TaskProblem(f"{file} has the hook {node.name}, which may change the tests")
    if any("fixture" in (text := ast.unparse(mark)) and "params" in text for mark in node.decorator_list):
        raise TaskProblem(f"{file}: only a run says which tests the fixture {node.name} makes")


def _require_no_tests(node: ast.stmt, file: str) -> None:
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name.startswith("test"):
            raise TaskProblem(f"{file}: only a run says whether there is a test {inner.name}")
        if isinstance(inner, ast.Name) and inner.id.startswith("test"):
            raise TaskProblem(f"{file}: only a run says whether {inner.id} is a test")
        if isinstance(inner, ast.Name) and inner.id in ("pytestmark", "pytest_plugins"):
            raise TaskProblem(f"{file} sets {inner.id}, which may change the tests")


def _require_no_tests_of_others(node: ast.Import | ast.ImportFrom, file: str) -> None:
    for alias in node.names:
        name = alias.asname or alias.name
        if isinstance(node, ast.ImportFrom) and (name == "*" or name.lower().startswith("test")):
            raise TaskProblem(f"{file}: only a run says whether {name} of {node.module} is a test")
