"""Edits of a test after which it expects something else: with a true answer it surely fails.

Only a statement that always runs is edited: a literal that something is compared with, the exception that
must be raised, or what is asserted into its opposite. What is written could be a person's: who guesses by
its looks which value is the true one gains nothing.
"""

from __future__ import annotations

import ast
import builtins
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.scoring.runners.edits.edit import Edit, end_of, lines_of, replaced, start_of
from pytest_tfgrpo.scoring.runners.edits.literal_edits import LiteralEdits, is_literal
from pytest_tfgrpo.scoring.runners.edits.other_words import Words
from pytest_tfgrpo.scoring.runners.edits.test_functions import Function

COMMON_ERRORS = (AttributeError, IndexError, KeyError, NotImplementedError, OSError, TypeError, ValueError)
"""Exceptions that are expected in the place of another one of Python's."""
OTHER_ERRORS = (BrokenPipeError, FloatingPointError, InterruptedError, IsADirectoryError, ZeroDivisionError)
"""Exceptions that hardly any error of a project is."""
LAYOUTS = (*COMMON_ERRORS, ImportError, StopIteration, SyntaxError, UnicodeDecodeError, UnicodeEncodeError)
"""Exceptions that no class can all be derived from."""
RARE = (*OTHER_ERRORS, StopIteration, UnicodeDecodeError, UnicodeEncodeError)
"""Exceptions that another right answer does not derive from; no class can be derived from all."""
OTHER_SUMS = ("+ 1", "- 1", "* 2", "* 3")
"""What makes another value of one."""
EQUAL = {f"assert{kind}" for kind in ("Equal", "Equals", "ListEqual", "DictEqual", "TupleEqual", "SetEqual",
                                      "SequenceEqual", "MultiLineEqual", "CountEqual")}  # fmt: skip
WHOLE = ("assertEqual", "assertEquals")
"""Those of which a value and a container of it are not the same."""
OPPOSITE = {
    "assertTrue": "assertFalse", "assertIsNone": "assertIsNotNone", "assertIn": "assertNotIn",
    "assertIs": "assertIsNot", "assertIsInstance": "assertNotIsInstance",
}  # fmt: skip
OPPOSITE |= {other: one for one, other in OPPOSITE.items()}
CLOSE = ("isclose", "allclose", "assert_allclose", "assert_array_equal", "assert_equal", "assertAlmostEqual")
"""Functions that compare their two arguments, of libraries; a third may be a tolerance."""
CALLED = ("assert_called_with", "assert_called_once_with", "assert_awaited_once_with")
"""Methods of mocks that compare their arguments with those of calls."""
COMMON_TYPES = ("bytes", "dict", "float", "list", "set", "str", "tuple")
OTHER_TYPES = ("memoryview", "slice")
"""Types that nothing of a project is."""
BUILTIN = {"bool", "int", *COMMON_TYPES}
VALUES = {"Decimal", "Path", "PurePath", "bytes", "call", "dict", "frozenset", "list", "set", "str", "tuple"}
"""What makes other values of other arguments."""
SWALLOWING = re.compile(r"raises|warns|suppress|subTest|assert\w+|ExitStack|deprecated_call", re.IGNORECASE)
"""Contexts that may take what is raised in them."""
RAISES = ("pytest.raises", "raises", "self.assertRaises")
NEGATED: dict[type[ast.cmpop], tuple[bytes, bytes]] = {
    ast.Is: (rb"\bis\b", b"is not"), ast.IsNot: (rb"\bis\s+not\b", b"is"), ast.In: (rb"\bin\b", b"not in"),
    ast.NotIn: (rb"\bnot\s+in\b", b"in"), ast.Eq: (rb"==", b"!="), ast.NotEq: (rb"!=", b"=="),
    ast.Lt: (rb"<", b">="), ast.GtE: (rb">=", b"<"), ast.Gt: (rb">", b"<="), ast.LtE: (rb"<=", b">"),
}  # fmt: skip
"""How an operator is written, and its opposite."""
ASSIGNED_MARK = re.compile(rb"^(\w+)\s*=\s*pytest\.mark\.", re.MULTILINE)
HARMLESS = re.compile(r"(?:pytest\.)?mark\..*|(?:unittest\.)?skip(?:If|Unless)?|(?:.*\.)?patch(?:\.\w+)?")
"""Decorators that leave a test what it is, those of mocks among them."""
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_random = secrets.SystemRandom()


def edits_of(function: Function, data: bytes) -> list[list[Edit]]:
    """Return edits of which each makes a passing test fail; `data` is its file.

    They are those that show most: of an expected value, else of another, else into the opposite, else one
    that fails before all others; of these the least odd. There is none where a decorator may run the test
    again, or take what it raises.
    """
    if not all(_is_mark(decorator, _marks(data)) for decorator in function.decorator_list):
        return []
    choices = Choices(function, data)
    drawn = [*choices.find(function.body)]
    highest = max((level(told) for _, told in drawn), default=None)
    telling = [(edits, told) for edits, told in drawn if level(told) == highest]
    if len(telling) == 1:
        return [telling[0][0]]
    found = [EditChoice(edits, told, choices.literals.odd(edits)) for edits, told in telling]
    best = min((_rank(choice) for choice in found), default=None)
    return [choice.edits for choice in found if _rank(choice) == best] or _first(function, data)


FIRST, OPPOSITES, OTHERS, COMPUTED, LITERALS, ASSERTED, EXPECTED = range(7)
"""How much edits show of an answer: what fails before all others, what is asserted into its opposite, another
value, what is compared and computed, any literal, a literal in what is asserted, an expected value."""
DRAWS = 6
"""How often another value is drawn for each place."""
FIRST_TRIED = {LITERALS: 5, OTHERS: 2}
"""How many of each kind are tried before more of one; of others one."""
RAISED = re.compile(rb"\b(?:raises|assertRaises)\(\s*(?:\w+\.)*(\w+)")
"""An exception that is expected."""
Errors: TypeAlias = Sequence[type[Exception]]
ToldEdits: TypeAlias = tuple[list[Edit], int]
"""Edits that belong together, and how much they show."""


class EditChoice(NamedTuple):
    """Edits that belong together."""

    edits: list[Edit]
    told: int
    """How much they show of an answer."""
    odd: int = 0
    """How plainly they are not a person's; 0: not at all."""


class Choices:
    """What can be edited in one test."""

    def __init__(self, function: Function, data: bytes, *, proven: bool = False) -> None:
        """`proven`: a run will say what fails by an edit, so that it need not be sure."""
        self._function = function
        lines = lines_of(data)
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        own = b"".join(lines[first - 1 : function.end_lineno]).decode(errors="replace")
        self.literals = LiteralEdits(lines, Words(data, own))
        self._raised = _expected_errors(data) if proven else ()
        self._proven = proven
        self._may_return = "return" in own or "yield" in own
        self._lenient = "ANY" in own and any(_last_name(node) == "ANY" for node in ast.walk(function))

    def find(self, body: Iterable[ast.stmt]) -> Iterator[ToldEdits]:
        """Yield what can be edited in statements that always run."""
        for node in body:
            if isinstance(node, ast.Assert):
                yield from self._of_assert(node.test)
            elif isinstance(node, ast.Expr):
                call = node.value.value if isinstance(node.value, ast.Await) else node.value
                if isinstance(call, ast.Call):
                    yield from self._of_call(call, _last_name(call.func))
            elif isinstance(node, ast.With | ast.AsyncWith):
                contexts = [one.context_expr for one in node.items]
                if len(contexts) == 1:
                    yield from self._of_raises(contexts[0], (COMMON_ERRORS, OTHER_ERRORS))
                if not any(map(_may_swallow, contexts)):
                    yield from self.find(node.body)
            elif isinstance(node, ast.Try) and not node.handlers:
                yield from self.find(node.body)
            if self._may_return and any(map(_returns, _within(node))):
                return

    def everywhere(self) -> Iterator[ToldEdits]:
        """Yield what can be edited in all statements, those too that may not run; each literal by itself."""
        unused = {id(one) for node in ast.walk(self._function) for one in _unused(node)}
        asserted = {id(one) for node in ast.walk(self._function) if _asserts(node) for one in ast.walk(node)}
        for node in ast.walk(self._function):
            if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Compare):
                yield from self._of_assert(node.test)
            elif isinstance(node, ast.Call):
                yield from self._of_call(node, _last_name(node.func))
                yield from self._of_raises(node, (LAYOUTS, RARE))
            elif isinstance(node, ast.Compare) and id(node) in asserted:
                yield from self._of_assert(node)
                yield from self._of_computed(node)
            elif isinstance(node, ast.Constant) and id(node) not in unused:
                told = ASSERTED if id(node) in asserted else LITERALS
                yield from (([edit], told) for edit in [self.literals.of(node)] if edit)
        yield from self._of_rows()

    def _of_computed(self, node: ast.Compare) -> Iterator[ToldEdits]:
        """Yield another value of each side that is computed, rather of one that calls nothing."""
        sides = [side for side in (node.left, *node.comparators) if not is_literal(side)]
        quiet = [side for side in sides if not any(isinstance(one, ast.Call) for one in ast.walk(side))]
        for side in quiet or sides:
            said = self.literals.text(start_of(side), end_of(side)).decode()
            yield [replaced(side, f"({said}) {_random.choice(OTHER_SUMS)}")], COMPUTED

    def _of_rows(self) -> Iterator[ToldEdits]:
        """Yield other values of a parameter, in half of its rows."""
        for cells in self._columns().values():
            edits = [edit for cell in cells if is_literal(cell) and (edit := self.literals.of(cell))]
            _random.shuffle(edits)
            half = (len(edits) + 1) // 2
            yield from ((some, ASSERTED) for some in (edits[:half], edits[half:]) if some)

    def _of_assert(self, test: ast.expr) -> Iterator[ToldEdits]:
        start = start_of(test)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right, operator = test.left, test.comparators[0], test.ops[0]
            if isinstance(operator, ast.Eq):
                yield from self._of_equal(left, right, whole=True)
            elif isinstance(operator, ast.In) and _is_long(left):
                found = self.literals.of(left) if self._proven else self.literals.with_letter(left)
                if found is not None and not self._lenient:
                    yield [found], EXPECTED
            edit = self._negated(left, right, operator)
            if edit is not None:
                yield [edit], OPPOSITES
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield [Edit(start, (start[0], start[1] + len("not")), b"")], OPPOSITES
        elif isinstance(test, ast.Call | ast.Name | ast.Attribute):
            yield [Edit(start, start, b"not ")], OPPOSITES
            if isinstance(test, ast.Call):
                yield from self._of_call(test, _last_name(test.func))

    def _negated(self, left: ast.expr, right: ast.expr, operator: ast.cmpop) -> Edit | None:
        """Return the edit of an operator; None where it is not alone between its sides."""
        if type(operator) not in NEGATED:
            return None
        written, opposite = NEGATED[type(operator)]
        start, end = end_of(left), start_of(right)
        between = self.literals.text(start, end)
        changed, count = re.subn(written, opposite, between)
        return Edit(start, end, changed) if count == 1 and b"#" not in between else None

    def _of_equal(self, one: ast.expr, other: ast.expr, *, whole: bool) -> Iterator[ToldEdits]:
        """Yield changes of either side of an equation; `whole`: nothing equals it that contains it."""
        for side, beside in ((one, other), (other, one)):
            if isinstance(side, ast.Call) and _last_name(side.func) == "approx":
                if len(side.args) != 1 or side.keywords:  # a tolerance may hold for another value too
                    continue
                side = side.args[0]
            if is_literal(beside) or self._lenient:
                continue
            if is_literal(side):
                edit = self.literals.of(side)
                edits = [edit] if edit is not None else []
            else:
                edits = self._of_name(side.id) if isinstance(side, ast.Name) else self._of_made(side)
            if edits:
                yield edits, EXPECTED
            elif whole and not isinstance(side, ast.Starred):
                before, behind = _random.choice((("[", "]"), ("(", ",)")))
                said = self.literals.text(start_of(side), end_of(side)).decode()
                yield [replaced(side, f"{before}{said}{behind}")], OTHERS

    def _of_name(self, name: str) -> list[Edit]:
        """Return a change of a name's value that has no other use: of a parameter, or assigned before."""
        nodes = ast.walk(self._function)
        used = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
        if len(used) == 1:
            return self._of_parameter(name)
        for node in self._function.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and node.targets[0] in used:
                return self._of_made(node.value) if len(used) == 2 else []
        return []

    def _of_made(self, node: ast.expr) -> list[Edit]:
        """Return a change of a literal, or of one argument of what makes a value of literals."""
        made = isinstance(node, ast.Call) and _last_name(node.func) in VALUES
        parts = [*node.args, *(word.value for word in node.keywords)] if made else [node]  # type: ignore[attr-defined]
        edits = [edit for part in parts if is_literal(part) and (edit := self.literals.of(part)) is not None]
        return [_random.choice(edits)] if edits else []

    def _of_parameter(self, name: str) -> list[Edit]:
        """Return a change of each value of a parameter; none if one is no literal."""
        cells = self._columns().get(name, [])
        edits = [self.literals.of(cell) for cell in cells if is_literal(cell)]
        found = [edit for edit in edits if edit is not None]
        return found if len(found) == len(cells) else []

    def _columns(self) -> dict[str, list[ast.expr]]:
        """Return the values of each parameter, where they are written in the decorator."""
        found: dict[str, list[ast.expr]] = {}
        for decorator in self._function.decorator_list:
            if not (isinstance(decorator, ast.Call) and _last_name(decorator.func) == "parametrize"):
                continue
            if len(decorator.args) != 2 or not isinstance(decorator.args[1], ast.List | ast.Tuple):
                continue
            names = _names_of(decorator.args[0])
            rows = [_cells(row, len(names)) for row in decorator.args[1].elts]
            if all(row is not None for row in rows):
                found |= {name: [row[at] for row in rows if row] for at, name in enumerate(names)}
        return found

    def _of_call(self, call: ast.Call, name: str) -> Iterator[ToldEdits]:
        """Yield changes of a call that asserts, or whose result is asserted."""
        method = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(method, ast.Name) and method.id == "self":
            if name in EQUAL and len(call.args) >= 2:
                yield from self._of_equal(call.args[0], call.args[1], whole=name in WHOLE)
            elif name in OPPOSITE:
                end = end_of(call.func)
                yield [Edit((end[0], end[1] - len(name)), end, OPPOSITE[name].encode())], OPPOSITES
        if name in CLOSE and len(call.args) == 2 and not call.keywords:
            yield from self._of_equal(call.args[0], call.args[1], whole=False)
        elif name in CALLED:
            values = [*call.args, *(word.value for word in call.keywords)]
            for edit in [self.literals.of(value) for value in values if is_literal(value)]:
                if edit is not None:
                    yield [edit], EXPECTED
        elif name == "isinstance" and len(call.args) == 2 and not is_literal(call.args[0]):
            wanted = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
            names = {_last_name(kind) for kind in wanted}
            others = [kind for kind in COMMON_TYPES if kind not in names] if names <= BUILTIN else OTHER_TYPES
            yield [replaced(call.args[1], _random.choice(others))], EXPECTED

    def _of_raises(self, call: ast.expr, drawn: tuple[Errors, Errors]) -> Iterator[ToldEdits]:
        """Yield another exception: of the first where the wanted one is Python's, else of the second."""
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) in RAISES and call.args):
            return
        wanted = call.args[0]
        kinds = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
        errors = [getattr(builtins, _last_name(kind), None) for kind in kinds]
        known = tuple(error for error in errors if isinstance(error, type))
        others = [
            error.__name__
            for error in drawn[len(known) < len(kinds)]
            if not any(issubclass(error, one) or issubclass(one, error) for one in known)
        ]
        if not all(map(_last_name, kinds)):
            return
        names = {_last_name(kind) for kind in kinds}
        for drawn_from in (others, [name for name in self._raised if name not in names]):
            if drawn_from:
                yield [self._of_name_of(wanted, _random.choice(drawn_from))], EXPECTED

    @staticmethod
    def _of_name_of(wanted: ast.expr, name: str) -> Edit:
        """Return another name in the place of one, behind the same module's."""
        end = end_of(wanted)
        if hasattr(builtins, name) or not isinstance(wanted, ast.Attribute):
            return replaced(wanted, name)
        return Edit((end[0], end[1] - len(wanted.attr)), end, name.encode())


def _may_swallow(context: ast.expr) -> bool:
    """Return whether a context may take what is raised in it."""
    return not isinstance(context, ast.Call) or SWALLOWING.search(ast.unparse(context.func)) is not None


def _returns(node: ast.AST) -> bool:
    return isinstance(node, ast.Return | ast.Yield | ast.YieldFrom)


def _within(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield a statement and what is in it, but not what is in functions within."""
    left: list[ast.AST] = [node]
    for one in left:
        yield one
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(one)


def _asserts(node: ast.AST) -> bool:
    """Return whether a statement asserts, or calls what may."""
    if isinstance(node, ast.With | ast.AsyncWith):
        return any(_may_swallow(item.context_expr) for item in node.items)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return re.search("assert|check|expect|verify", _last_name(node.value.func), re.IGNORECASE) is not None
    return isinstance(node, ast.Assert)


def _unused(node: ast.AST) -> Iterator[ast.AST]:
    """Yield parts that no test depends on, or that cannot be written otherwise: comments, parts of texts."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        unread = [*node.decorator_list, *([node.returns] if node.returns is not None else [])]
        yield from (one for part in unread for one in ast.walk(part))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
        yield from node.comparators
    elif isinstance(node, ast.JoinedStr):
        yield from node.values
    elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield from ast.walk(node.annotation)
    elif isinstance(node, ast.Assert) and node.msg is not None:
        yield from ast.walk(node.msg)


def _is_long(node: ast.expr) -> bool:
    """Return whether a node is a text that with another letter in it is hardly found where it was."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 4


def _names_of(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [str(one.value) for one in node.elts if isinstance(one, ast.Constant)]
    return []


def _cells(row: ast.expr, count: int) -> Sequence[ast.expr] | None:
    if isinstance(row, ast.Call) and _last_name(row.func) == "param":
        return row.args if len(row.args) == count else None
    if count == 1:
        return [row]
    return row.elts if isinstance(row, ast.List | ast.Tuple) and len(row.elts) == count else None


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_mark(node: ast.expr, marks: Collection[str]) -> bool:
    """Return whether a decorator leaves a test what it is; `marks` are names of such."""
    dotted = ast.unparse(node.func if isinstance(node, ast.Call) else node)
    return dotted in marks or HARMLESS.fullmatch(dotted) is not None


@lru_cache(maxsize=16)
def _marks(data: bytes) -> frozenset[str]:
    """Return the names that a file gives marks of pytest."""
    return frozenset(found.decode() for found in ASSIGNED_MARK.findall(data))


@lru_cache(maxsize=16)
def _expected_errors(data: bytes) -> tuple[str, ...]:
    """Return the names of the exceptions that tests of a file expect."""
    return tuple(sorted({one.decode() for one in RAISED.findall(data)}))


def choices_of(function: Function, data: bytes) -> list[EditChoice]:
    """Return edits of a test; only a run says which of them a true answer fails."""
    choices = Choices(function, data, proven=True)
    drawn = (choice for _ in range(DRAWS) for choice in choices.everywhere())
    found = [EditChoice(edits, told, choices.literals.odd(edits)) for edits, told in drawn]
    return in_turns([*found, *(EditChoice(edits, FIRST) for edits in _first(function, data))])


def in_turns(choices: Iterable[EditChoice]) -> list[EditChoice]:
    """Return choices in a drawn order: most of literals, the least odd first, then some of others."""
    found = list(choices)
    _random.shuffle(found)
    once = {tuple(choice.edits): choice for choice in sorted(found, key=_rank, reverse=True)}
    kinds: dict[int, list[EditChoice]] = {}
    for choice in sorted(once.values(), key=_rank):
        kinds.setdefault(level(choice.told), []).append(choice)
    counts = {told: FIRST_TRIED.get(told, 1) for told in kinds}
    firsts = [choice for told, kind in kinds.items() for choice in kind[: counts[told]]]
    return firsts + [choice for told, kind in kinds.items() for choice in kind[counts[told] :]]


def level(told: int) -> int:
    """Return how much edits show; any literal shows the same once a run has failed by an assertion."""
    return min(told, LITERALS)


def _rank(choice: EditChoice) -> tuple[int, int, int]:
    """Return what is smaller for a better choice; of any literal it is least sure that it is looked at."""
    return -level(choice.told), choice.odd + (choice.told == LITERALS), -choice.told


def _first(function: Function, data: bytes) -> list[list[Edit]]:
    """Return an edit that makes a test fail at its start; none where that is in the row of its name."""
    first = function.body[1 if ast.get_docstring(function) is not None and function.body[1:] else 0]
    lines, row = lines_of(data), first.lineno - 1
    start = lines[row][: first.col_offset]
    if start.strip() or (isinstance(first, NAMED) and first.decorator_list):
        return []
    said = _random.choice(("assert len([]) == 1", "assert [] == [0]", "assert not str(7)", "assert '1' == 1"))
    return [[Edit((row, first.col_offset), (row, first.col_offset), said.encode() + _ending(lines) + start)]]


def _ending(lines: Sequence[bytes]) -> bytes:
    return b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
