"""Test functions: which function of a file is the test that an id names."""

from __future__ import annotations

import ast
import codecs
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass

UTF_8 = ("utf-8", "utf-8-sig", "ascii")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A function that is a test, or one of several that may be, as one stands in each branch of an ``if``."""

    file: str
    functions: tuple[Function, ...]
    ids: tuple[str, ...]
    """The listed tests that it is: with each row of its parameters, and in each class that inherits it."""


def targets(texts: Mapping[str, bytes], ids: Iterable[str]) -> list[Target]:
    """Return the functions of tests; `texts` are files by name. A file that cannot be read has none."""
    by_file: dict[str, list[str]] = {}
    for id_ in ids:
        file, _, name = id_.partition("::")
        if name and file in texts:
            by_file.setdefault(file, []).append(id_)
    return [target for file, listed in by_file.items() for target in _of_file(file, texts[file], listed)]


def bare(id_: str) -> str:
    """Return the id of a test without its parameters."""
    return id_.partition("[")[0]


def _of_file(file: str, data: bytes, ids: Iterable[str]) -> Iterator[Target]:
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        module = ast.parse(data)
    except UNREADABLE:
        return
    if codecs.lookup(encoding).name not in UTF_8:  # columns would not count its bytes
        return
    found: dict[tuple[Function, ...], list[str]] = {}
    functions_of = _FunctionsByName(module).find
    for id_ in ids:
        _, *names = bare(id_).split("::")
        if functions := tuple(functions_of(module.body, names)):
            found.setdefault(functions, []).append(id_)
    for functions, listed in found.items():
        yield Target(file=file, functions=functions, ids=tuple(listed))


class _FunctionsByName:
    """The functions of a module, by the names that tests have; each body is looked through once."""

    def __init__(self, module: ast.Module) -> None:
        self._module = module
        self._named: dict[int, dict[str, list[Function | ast.ClassDef]]] = {}

    def find(self, body: Sequence[ast.stmt], names: Sequence[str], depth: int = 0) -> list[Function]:
        """Return the functions that may have a test's names; of a class that inherits it, the base's."""
        name, *rest = names
        there = self._of(body).get(name, ())
        if not rest:
            return [one for one in there if isinstance(one, FUNCTIONS)]
        found = []
        for one in there:
            if isinstance(one, ast.ClassDef) and depth < MOST_BASES:
                own = self.find(one.body, rest, depth)
                bases = [base.id for base in one.bases if isinstance(base, ast.Name)]
                inherited = (self.find(self._module.body, [base, *rest], depth + 1) for base in bases)
                found += own or next(filter(None, inherited), [])
        return found

    def _of(self, body: Sequence[ast.stmt]) -> Mapping[str, Sequence[Function | ast.ClassDef]]:
        """Return the functions and classes of a body of the module, by name."""
        if id(body) not in self._named:
            named = self._named[id(body)] = {}
            for one in _statements(body):
                if isinstance(one, (*FUNCTIONS, ast.ClassDef)):
                    named.setdefault(one.name, []).append(one)
        return self._named[id(body)]


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST_BASES = 8
"""How far a class may be from the base that it has a test of."""


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and, of those with a condition, what they hold."""
    for one in body:
        yield one
        if isinstance(one, ast.If | ast.Try | ast.With):
            yield from _statements(one.body)
            yield from _statements(getattr(one, "orelse", ()))
            for handler in getattr(one, "handlers", ()):
                yield from _statements(handler.body)
