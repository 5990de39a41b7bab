"""Copies of tests with another expected value: they fail beside a true fix, and pass beside a sham.

They see what no other canary does: an answer that equals everything, one that reads the expected value from
its caller, an assertion that does nothing. Only a change that must make a passing test fail is made: in a
statement that always runs, of one literal that something is compared with, of the exception that must be
raised, or of what is asserted into its opposite.
"""

from __future__ import annotations

import ast
import math
import secrets
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeAlias

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.harness.sandbox.paths import write_untrusted
from pytest_tfgrpo.harness.scoring.runners.canaries import random_word
from pytest_tfgrpo.harness.scoring.runners.protocol import SuiteRequest

MOST = 3
"""Tests that are copied for one run."""
NAMELESS = {"self", "tmp_path", "tmpdir", "capsys", "capfd", "caplog", "monkeypatch", "recwarn"}
"""Arguments that are the same whatever a test is called; a snapshot of another name is another one."""
WORDS = (
    "again", "alone", "also", "any", "both", "case", "each", "empty", "every", "few", "first", "last",
    "later", "many", "more", "none", "once", "one", "only", "other", "pair", "plain", "same", "short",
    "simple", "single", "small", "some", "text", "three", "twice", "two", "usual", "whole",
)  # fmt: skip
"""What the name of a copy has behind that of its test, as names of tests have."""
OTHER_ERRORS = ("GeneratorExit", "KeyboardInterrupt")
"""Exceptions that no error of a project is."""
EQUAL = {f"assert{kind}" for kind in ("Equal", "Equals", "ListEqual", "DictEqual", "TupleEqual", "SetEqual",
                                      "SequenceEqual", "MultiLineEqual", "CountEqual")}  # fmt: skip
OPPOSITE = {
    "assertTrue": "assertFalse", "assertIsNone": "assertIsNotNone", "assertIn": "assertNotIn",
    "assertIs": "assertIsNot", "assertIsInstance": "assertNotIsInstance",
}  # fmt: skip
OPPOSITE |= {other: one for one, other in OPPOSITE.items()}
RAISES = ("pytest.raises", "raises", "self.assertRaises")
NEGATED: dict[type[ast.cmpop], str] = {
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip

_random = secrets.SystemRandom()
_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


@dataclass(frozen=True, slots=True)
class _Edit:
    """Other text in the place of a node."""

    node: ast.expr
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedTest:
    """A copy of a test, in the same file."""

    copy: str
    """Its id, without parameters."""
    original: str


def write_changed(request: SuiteRequest) -> tuple[ChangedTest, ...]:
    """Add copies of some of the tests that a fix makes pass to their files; return them."""
    by_file: dict[str, set[str]] = {}
    for id_ in request.fail_to_pass:
        file, _, name = id_.partition("[")[0].partition("::")
        if name and file.endswith(".py"):
            by_file.setdefault(file, set()).add(name)
    names = [(file, name) for file, found in by_file.items() for name in found]
    _random.shuffle(names)
    made: list[ChangedTest] = []
    for file, name in names:
        if len(made) == MOST:
            break
        try:
            data = (request.tree / file).read_bytes()
            copied = with_changed_copy(data, name)
            if copied is not None:
                write_untrusted(request.tree, str(PurePosixPath(file)), copied[0])
                made.append(ChangedTest(copy=f"{file}::{copied[1]}", original=f"{file}::{name}"))
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
    return tuple(made)


def with_changed_copy(data: bytes, name: str) -> tuple[bytes, str] | None:
    """Return a file of Python with a changed copy of a test, and the copy's name.

    `name` is that of a function, or of a class and its method joined by ``::``. None where no change is sure
    to make it fail. Raises SyntaxError, ValueError, RecursionError.
    """
    module = ast.parse(data)
    function = _find(module, name.split("::"))
    if function is None or any(isinstance(node, ast.Return | ast.Yield) for node in ast.walk(function)):
        return None
    if not all(map(_is_mark, function.decorator_list)):  # it may run the test again, or take what it raises
        return None
    choices = list(_choices(function))
    if not choices:
        return None
    source = _Source(data)
    changed = [edits for edits, literal in choices if literal]
    if not changed and not _arguments(function) <= NAMELESS | _parameters(function):
        return None
    edits = _random.choice(changed or [edits for edits, _ in choices])
    taken = {
        node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    copy = _other_name(function.name, taken)
    text = source.copy(function, copy, edits)
    if text is None:
        return None
    *start, _ = name.split("::")
    return text, "::".join([*start, copy])


class _Source:
    """The bytes of a file, by the places of its nodes."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.splitlines(keepends=True)

    def _slice(self, start: int, end: int) -> bytes:
        return b"".join(self._lines[start:end])

    def copy(self, function: _Function, name: str, edits: Sequence[_Edit]) -> bytes | None:
        """Return the file with an edited copy of a function behind it; None where it shares a line."""
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)]) - 1
        last = function.end_lineno or 0
        defined = self._lines[function.lineno - 1]
        word = f"def {function.name}".encode()
        at = defined.find(word)
        below = last < len(self._lines) and self._lines[last].strip()
        if at < 0 or defined[: function.col_offset].strip() or (below and last == function.lineno):
            return None
        if not self._lines[last - 1].endswith((b"\n", b"\r")):
            self._lines[last - 1] += b"\n"
        lines = self._lines[first:last]
        places = [self._place(edit, first) for edit in edits]
        places.append(
            ((function.lineno - 1 - first, at), (function.lineno - 1 - first, at + len(word)), f"def {name}")
        )
        for (row, column), (last_row, last_column), text in sorted(places, reverse=True):
            rest = lines[last_row][last_column:]
            lines[row : last_row + 1] = [lines[row][:column] + text.encode() + rest]
        return b"".join([*self._lines[:last], b"\n", *lines, *self._lines[last:]])

    @staticmethod
    def _place(edit: _Edit, first: int) -> tuple[tuple[int, int], tuple[int, int], str]:
        node = edit.node
        end = ((node.end_lineno or 0) - 1 - first, node.end_col_offset or 0)
        return (node.lineno - 1 - first, node.col_offset), end, edit.text


def _find(module: ast.Module, names: Sequence[str]) -> _Function | None:
    """Return a test's function, unless another of its name is defined beside it."""
    body = module.body
    for name in names[:-1]:
        classes = [one for one in body if isinstance(one, ast.ClassDef) and one.name == name]
        if len(classes) != 1:
            return None
        body = classes[0].body
    functions = [
        one
        for one in body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == names[-1]
    ]
    return functions[0] if len(functions) == 1 else None


def _arguments(function: _Function) -> set[str]:
    named = function.args
    return {one.arg for one in (*named.posonlyargs, *named.args, *named.kwonlyargs)}


def _parameters(function: _Function) -> set[str]:
    """Return the arguments whose values stand in a decorator."""
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call) and one.args]
    return {
        name for call in calls if _last_name(call.func) == "parametrize" for name in _names_of(call.args[0])
    }


def _other_name(name: str, taken: set[str]) -> str:
    """Return another name that a project's pattern finds where it finds this one; none of those `taken`."""
    behind = not name.endswith("_test") or name.startswith("test")
    words = [f"{name}_{word}" if behind else f"{word}_{name}" for word in WORDS]
    return _random.choice([word for word in words if word not in taken] or [f"{name}_{random_word()}"])


def _choices(function: _Function) -> Iterator[tuple[list[_Edit], bool]]:
    """Yield edits of which each makes a passing test fail, and whether it changes an expected value."""
    for node in function.body:
        if isinstance(node, ast.Assert):
            yield from _of_assert(function, node.test)
        elif isinstance(node, ast.Expr):
            call = node.value.value if isinstance(node.value, ast.Await) else node.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                yield from _of_call(function, call, call.func)
        elif isinstance(node, ast.With) and len(node.items) == 1:
            yield from _of_raises(node.items[0].context_expr)


def _of_assert(function: _Function, test: ast.expr) -> Iterator[tuple[list[_Edit], bool]]:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right, operator = test.left, test.comparators[0], test.ops[0]
        if isinstance(operator, ast.Eq):
            yield from _of_equal(function, left, right)
        if type(operator) in NEGATED:
            said = f"{ast.unparse(left)} {NEGATED[type(operator)]} {ast.unparse(right)}"
            yield [_Edit(test, said)], False
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield [_Edit(test, f"({ast.unparse(test.operand)})")], False
    elif isinstance(test, ast.Call | ast.Name | ast.Attribute):
        yield [_Edit(test, f"not {ast.unparse(test)}")], False


def _of_equal(function: _Function, one: ast.expr, other: ast.expr) -> Iterator[tuple[list[_Edit], bool]]:
    """Yield changes of either side of an equation that is a literal, or a parameter whose values are."""
    for side, beside in ((one, other), (other, one)):
        if isinstance(side, ast.Call) and _last_name(side.func) == "approx":
            if len(side.args) != 1 or side.keywords:  # a tolerance may hold for another value too
                continue
            side = side.args[0]
        if _is_literal(beside):
            continue
        if _is_literal(side):
            edit = _changed(side)
            if edit is not None:
                yield [edit], True
        elif isinstance(side, ast.Name):
            edits = list(_of_parameter(function, side.id))
            if edits:
                yield edits, True


def _of_parameter(function: _Function, name: str) -> Iterator[_Edit]:
    """Yield a change of each value of a parameter that has no other use; nothing if one is no literal."""
    if sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function)) != 1:
        return
    for decorator in function.decorator_list:
        if not (isinstance(decorator, ast.Call) and _last_name(decorator.func) == "parametrize"):
            continue
        if len(decorator.args) != 2 or not isinstance(decorator.args[1], ast.List | ast.Tuple):
            continue
        names = _names_of(decorator.args[0])
        if name not in names:
            continue
        edits = []
        for row in decorator.args[1].elts:
            cells = _cells(row, len(names))
            cell = cells[names.index(name)] if cells is not None else None
            edit = _changed(cell) if cell is not None and _is_literal(cell) else None
            if edit is None:
                return
            edits.append(edit)
        yield from edits
        return


def _names_of(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [str(one.value) for one in node.elts if isinstance(one, ast.Constant)]
    return []


def _cells(row: ast.expr, count: int) -> list[ast.expr] | None:
    if isinstance(row, ast.Call) and _last_name(row.func) == "param":
        return row.args if len(row.args) == count else None
    if count == 1:
        return [row]
    return row.elts if isinstance(row, ast.List | ast.Tuple) and len(row.elts) == count else None


def _of_call(function: _Function, call: ast.Call, named: ast.Attribute) -> Iterator[tuple[list[_Edit], bool]]:
    """Yield changes of a call of unittest's assertions."""
    if not (isinstance(named.value, ast.Name) and named.value.id == "self"):
        return
    if named.attr in EQUAL and len(call.args) >= 2:
        yield from _of_equal(function, call.args[0], call.args[1])
    elif named.attr in OPPOSITE:
        yield [_Edit(named, f"self.{OPPOSITE[named.attr]}")], False


def _of_raises(call: ast.expr) -> Iterator[tuple[list[_Edit], bool]]:
    if isinstance(call, ast.Call) and ast.unparse(call.func) in RAISES and call.args:
        wanted = call.args[0]
        if isinstance(wanted, ast.Name | ast.Attribute) and _last_name(wanted) not in (
            "Exception",
            "BaseException",
        ):
            yield [_Edit(wanted, _random.choice([e for e in OTHER_ERRORS if e != _last_name(wanted)]))], True


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _changed(literal: ast.expr) -> _Edit | None:
    """Return another value in the place of a literal, far from the old one: answers may be lenient.

    A container has one value more, as what it holds may be compared with something that equals everything.
    """
    value = ast.literal_eval(literal)
    other = _other(value)
    return None if other is None else _Edit(literal, other)


def _other(value: object) -> str | None:
    """Return a literal of another value of the same kind."""
    number = _random.randint(1000, 9999)
    if value is None:
        return repr(number)
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, int):
        return repr(value + number)
    if isinstance(value, float):
        return repr(round(value * 1.5 + number, 2)) if math.isfinite(value) else None
    if isinstance(value, str):
        return repr(_other_text(value))
    if isinstance(value, bytes):
        return repr(_other_text(value.decode("latin-1")).encode("latin-1"))
    if isinstance(value, list | tuple):
        return repr(type(value)((*value, number)))
    if isinstance(value, set):
        return repr(value | {number})
    if isinstance(value, dict):
        return repr(value | {number: number})
    return None


def _other_text(text: str) -> str:
    """Return a text that begins otherwise."""
    start = "".join(_random.choice("bdfgkmpw") for _ in range(3))
    return f"{start.upper() if text[:1].isupper() else start}{text[1:] or text}"


def _is_mark(node: ast.expr) -> bool:
    """Return whether a decorator leaves a test what it is."""
    named = ast.unparse(node.func if isinstance(node, ast.Call) else node)
    return named.startswith(("pytest.mark.", "mark."))
