"""What tests are, as compiled before the workspace is imported, and whether they still are that.

A part of the script `pytest_reporter`, loaded by `pytest_start`: for any Python from 3.8 on. What
is looked at may belong to an agent, so nothing of it is called: only exact types are read.
"""

# ruff: noqa: UP006, UP035, UP045, PTH118, PTH123 - Python 3.8

from __future__ import annotations

import ast
import marshal
import os
import sys
import types
from _blake2 import blake2b  # hashlib would load OpenSSL for it
from binascii import a2b_base64, b2a_base64
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

MARKS = ("pytest.mark.", "mark.")
"""Starts of decorators that leave a function what it is."""
WITHIN = "<generic parameters of "
"""Start of the name of the code around a function or class with type parameters."""
NEWLOCALS = 0x2
"""Flag of the code of a function; that of a class lacks it."""
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_compile, _TREE = compile, ast.PyCF_ONLY_AST


class KeptTests:
    """The codes of test files, and of what lies beside them that no agent wrote."""

    def __init__(
        self,
        tree: str,
        listed: List[str],
        beside: List[str],
        installed: Any,
        compiled: Optional[Dict[str, str]],
    ) -> None:
        """Read files of `tree`: those with tests, which are compiled as pytest does, and others.

        `compiled` are codes of earlier runs; None where none are kept.
        """
        self._tree, self.installed = tree, installed
        self._compiled = compiled
        self.fresh: Dict[str, str] = {}
        """What was compiled here, as `compiled` has it."""
        self._texts: Dict[str, bytes] = {}
        self._handed: Dict[str, Any] = {}
        self._names: Dict[str, Dict[str, List[Any]]] = {}
        self._plain: Dict[str, Dict[str, List[Any]]] = {}
        self._modules: Dict[str, Any] = {}
        self._changed: Dict[str, Set[str]] = {}
        self._imported: Dict[str, Dict[str, Any]] = {}
        for name in beside:
            self._read(os.path.join(tree, name))
        every = any(b"register_assert_rewrite" in t or b"pytest_plugins" in t for t in self._texts.values())
        tests = {os.path.join(tree, name) for name in listed}
        for path in tests:
            self._read(path)
        for path in self._texts:
            if every or path in tests or path.endswith("/conftest.py") or self._is_imported_test(path):
                self._rewrite(path)
        self._hand()

    def _read(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                self._texts[path] = file.read()
        except OSError:
            return

    def _is_imported_test(self, path: str) -> bool:
        """Return whether pytest compiles a file as one with tests, where another imports it as it may."""
        stem = os.fsencode(Path(path).stem)
        return b"test" in (stem[:4], stem[-4:]) and any(stem in text for text in self._texts.values())

    def _rewrite(self, path: str) -> None:
        if self._compiled is None:
            code = self.rewritten(path)
        else:
            key = blake2b(b"%b\0%b" % (os.fsencode(path), self._texts[path])).hexdigest()
            held = self._compiled.get(key)
            code = self.rewritten(path) if held is None else marshal.loads(a2b_base64(held))
            if code is not None and held is None:
                self.fresh[key] = b2a_base64(marshal.dumps(code), newline=False).decode()
        if code is not None:
            self._handed[path] = code
            named = any(name in self._texts[path] for name in (b"pytest", b"unittest"))
            self._imported[path] = _imported(self._module(path)) if named else {}

    @staticmethod
    def rewritten(path: str) -> Any:
        """Return the code of a file as pytest compiles it; None where that fails, as pytest will report."""
        try:
            return sys.modules["_pytest.assertion.rewrite"]._rewrite_test(Path(path), None)[1]
        except (*UNREADABLE, OSError, TypeError, AttributeError):
            return None

    def _hand(self) -> None:
        """Let pytest import what was compiled here."""
        rewrite: Any = sys.modules["_pytest.assertion.rewrite"]
        compiled, handed = rewrite._rewrite_test, self._handed

        def _rewrite_test(fn: Any, config: Any) -> Any:
            code = handed.get(str(fn))
            return compiled(fn, config) if code is None else (None, code)

        rewrite._rewrite_test = _rewrite_test

    def _codes(self, path: str) -> Dict[str, List[Any]]:
        """Return the codes of a file's functions by name, as pytest compiles it, else plainly."""
        if path not in self._names:
            handed = self._handed.get(path)
            self._names[path] = self._plainly(path) if handed is None else _by_name(handed)
        return self._names[path]

    def _plainly(self, path: str) -> Dict[str, List[Any]]:
        """Return the codes of a file's functions by name, as Python compiles it; none where it cannot."""
        if path not in self._plain:
            try:
                self._plain[path] = _by_name(_compile(self._texts[path], path, "exec", dont_inherit=True))
            except UNREADABLE:
                self._plain[path] = {}
        return self._plain[path]

    def _is_of(self, code: Any, path: str, name: str) -> bool:
        """Return whether code is what a file has under a name, compiled in either way."""
        return _is_one(code, self._codes(path).get(name, ())) or (
            path in self._handed and _is_one(code, self._plainly(path).get(name, ()))
        )

    def _module(self, path: str) -> Any:
        """Return the tree of a file, without code that somebody could replace."""
        if path not in self._modules:
            try:
                self._modules[path] = _compile(self._texts[path], path, "exec", _TREE, True)
            except UNREADABLE:
                self._modules[path] = ast.Module([], [])
        return self._modules[path]

    def _may_differ(self, path: str) -> Set[str]:
        """Return names of a file in whose place something else may be put."""
        if path not in self._changed:
            self._changed[path] = _changed(self._module(path))
        return self._changed[path]

    def has(self, code: Any) -> bool:
        """Return whether code is of one of the files, which it names."""
        path = code.co_filename
        return path in self._texts and (
            any(_is_one(code, codes) for codes in self._codes(path).values())
            or (path in self._handed and any(_is_one(code, c) for c in self._plainly(path).values()))
        )

    def fault(self, nodeid: str, path: str, function: Any) -> str:
        """Return what is wrong with the function of a test; ``?`` where a decorator hides it, else nothing.

        `path` is the test's file, `nodeid` as pytest has it.
        """
        if path not in self._texts:
            return "?"
        if type(function) is types.MethodType:
            function = function.__func__
        wrong = f"the test {nodeid!r} was replaced"
        names, name = self._codes(path), ".".join(nodeid.partition("[")[0].split("::")[1:])
        if type(function) is not types.FunctionType:
            return "?" if name in self._may_differ(path) else wrong
        space = function.__globals__
        for imported, value in self._imported.get(path, {}).items():
            if space.get(imported, value) is not value:
                return f"{imported} of pytest was replaced in {path[len(self._tree) + 1 :]}"
        code = function.__code__
        if name in names:
            if self._is_of(code, path, name):
                return ""
            return "?" if name in self._may_differ(path) or self.is_of_conftest(function) else wrong
        if self.has(code):  # inherited, or made by a function
            last = name.split(".")[-1]
            ends = [(p, one) for p, of in self._names.items() for one in of if one.split(".")[-1] == last]
            if code.co_name == last or not ends:
                return ""
            decorated = any(one in self._may_differ(p) for p, one in ends)
            return "?" if decorated and self._is_nested(code) else wrong
        return "?" if b"exec(" in self._texts[path] or self._may_wrap(code, name) else wrong

    def _is_nested(self, code: Any) -> bool:
        """Return whether code is of a function within another, as decorators put in the place of a test."""
        path = code.co_filename
        return any(".<locals>." in one and self._is_of(code, path, one) for one in self._codes(path))

    def _may_wrap(self, code: Any, name: str) -> bool:
        """Return whether code may be what a decorator put in the place of a test.

        It is of an installed file; or of none, as Hypothesis makes it, but called as of that of the test.
        """
        if code.co_filename not in self._texts:
            return bool(self.installed.is_genuine(code))
        last, differ = name.split(".")[-1], self._may_differ(code.co_filename)
        return self.has(code) or any(one.split(".")[-1] == last for one in differ)

    def is_of_tests(self, function: Any) -> bool:
        """Return whether something is a function of one of the files."""
        return type(function) is types.FunctionType and self.has(function.__code__)

    def is_of_conftest(self, function: Any) -> bool:
        """Return whether something is a function of a conftest.py, which may wrap tests."""
        return self.is_of_tests(function) and function.__code__.co_filename.endswith("/conftest.py")

    def fault_of_modules(self) -> str:
        """Return which function of the loaded modules beside the agent's is not what its file says."""
        modules: List[Any] = list(sys.modules.values())
        for module in modules:
            if type(module) is not types.ModuleType:
                continue
            space = object.__getattribute__(module, "__dict__")
            path = space.get("__file__")
            if type(path) is str and path in self._texts:
                fault = self._of_space(path, "", space, set())
                if fault:
                    return fault
        return ""

    def _of_space(self, path: str, start: str, space: Any, seen: Set[int]) -> str:
        names = self._codes(path)
        for name, value in list(space.items()):
            qualified = start + str(name)
            if type(value) in (staticmethod, classmethod):
                value = value.__func__
            if qualified in names:
                code = value.__code__ if type(value) is types.FunctionType else None
                if (
                    not _is_one(code, names[qualified])
                    and qualified not in self._may_differ(path)
                    and not self._is_of(code, path, qualified)
                ):
                    return f"{qualified} of {path[len(self._tree) + 1 :]} was replaced"
            elif type(value) is type and id(value) not in seen and value.__module__ == space.get("__name__"):
                seen.add(id(value))
                fault = self._of_space(path, f"{qualified}.", type.__dict__["__dict__"].__get__(value), seen)
                if fault:
                    return fault
        return ""


def _is_one(code: Any, kept: Any) -> bool:
    """Return whether code is one of those kept; file names do not count."""
    return any(code is one or code == one for one in kept)


def _by_name(module: Any) -> Dict[str, List[Any]]:
    """Return the codes of functions in that of a module, by their names in it."""
    found: Dict[str, List[Any]] = {}
    for name, code in _named(module):
        found.setdefault(name, []).append(code)
    return found


def _named(module: Any) -> List[Tuple[str, Any]]:
    """Return the codes of functions in that of a module, with their names in it, those in functions too.

    The module's own and those of classes have names that no function has.
    """
    found: List[Tuple[str, Any]] = [("<module>", module)]
    left = [("", module)]
    for start, outer in left:
        for code in outer.co_consts:
            if type(code) is not types.CodeType:
                continue
            if code.co_name.startswith(WITHIN):
                left.append((start, code))
            elif code.co_flags & NEWLOCALS:
                name = start + code.co_name
                found.append((name, code))
                left.append((f"{name}.<locals>.", code))
            else:
                found.append((f"<class {start}{code.co_name}>", code))
                left.append((f"{start}{code.co_name}.", code))
    return found


def _imported(module: ast.Module) -> Dict[str, Any]:
    """Return what a module imports of pytest and unittest at its top level, by the name that it has there."""
    found: Dict[str, Any] = {}
    for node in module.body:
        if isinstance(node, ast.Import):
            found.update(
                (one.asname or one.name, sys.modules[one.name])
                for one in node.names
                if one.name in ("pytest", "unittest")
            )
        elif isinstance(node, ast.ImportFrom) and node.module in ("pytest", "unittest") and not node.level:
            space = vars(sys.modules[node.module])
            found.update((one.asname or one.name, space[one.name]) for one in node.names if one.name in space)
    return found


def _changed(module: ast.Module) -> Set[str]:
    """Return the names of functions and classes with decorators, or that are assigned too."""
    found: Set[str] = set()
    left: List[Tuple[str, bool, Any]] = [("", False, one) for one in module.body]
    for start, within, node in left:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = start + node.name
            changed = within or not all(map(_is_mark, node.decorator_list))
            if changed:
                found.add(name)
            if isinstance(node, ast.ClassDef):
                left += [(f"{name}.", changed, one) for one in node.body]
            continue
        for part in ("body", "orelse", "finalbody"):
            left += [(start, within, one) for one in getattr(node, part, None) or ()]
        left += [(start, within, one) for part in getattr(node, "handlers", ()) for one in part.body]
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            found |= {start + one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {start + (one.asname or one.name) for one in node.names}
    return found


def _is_mark(node: Any) -> bool:
    dotted: Optional[str] = _dotted(node.func if isinstance(node, ast.Call) else node)
    return dotted is not None and dotted.startswith(MARKS)


def _dotted(node: Any) -> Optional[str]:
    """Return the text of names joined by dots, None for another expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        start = _dotted(node.value)
        return None if start is None else f"{start}.{node.attr}"
    return None
