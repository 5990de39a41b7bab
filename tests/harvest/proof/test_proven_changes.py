"""Changes of tests that are proven by runs with the true fix."""

import ast
import re
import unittest
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any
from unittest import mock

import pytest

from pytest_tfgrpo.harvest.proof.proven_changes import ENOUGH, MOST, ROUNDS, proven_changes
from pytest_tfgrpo.scoring.runners.edits.changed_tests import LineChange, with_lines
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, SuiteRun

A, B = "t.py::test_a", "t.py::test_b"
TRUE: dict[str, Any] = {"double": lambda x: x * 2, "fail": lambda x: int(f"no {x}")}


class Equal(int):
    """Compares as anybody wants."""

    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = lambda *_: True  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def ran(texts: Mapping[str, bytes], answers: Mapping[str, Any]) -> SuiteRun:
    """Run the tests of files as pytest would, with what they test."""
    outcomes, messages = {}, {}
    for file, text in texts.items():
        space: dict[str, Any] = {"pytest": pytest, "unittest": unittest, "mock": mock, "re": re, **answers}
        exec(text, space)
        for id_, test in cases_of(space):
            try:
                test()
                outcomes[f"{file}::{id_}"] = CaseOutcome.PASSED
            except (Exception, pytest.fail.Exception) as error:
                outcomes[f"{file}::{id_}"] = CaseOutcome.FAILED
                said = f"{type(error).__name__}: {error}"
                messages[f"{file}::{id_}"] = "assert 1 == 2" if said == "AssertionError: " else said
    return SuiteRun(outcomes=outcomes, messages=messages)


def cases_of(space: Mapping[str, Any]) -> list[tuple[str, Callable[[], object]]]:
    found: list[tuple[str, Callable[[], object]]] = []
    for name, value in space.items():
        if name.startswith("Test"):
            made = value("run") if issubclass(value, unittest.TestCase) else value()
            methods = [one for one in dir(made) if one.startswith("test_")]
            found += [(f"{name}::{one}", getattr(made, one)) for one in methods]
        elif name.startswith("test_"):
            marks = getattr(value, "pytestmark", [])
            rows = [dict(zip(m.args[0].split(","), row, strict=True)) for m in marks for row in m.args[1]]
            found += [
                (f"{name}[{at}]", lambda row=row, value=value: value(**row)) for at, row in enumerate(rows)
            ] or [(name, value)]
    return found


def changes_of(text: str, fixed: list[str] | None = None) -> tuple[LineChange, ...]:
    """Return the proven changes of a file; all its tests pass."""
    texts = {"t.py": text.encode()}
    listed = [*ran(texts, TRUE).outcomes]
    assert {*ran(texts, TRUE).outcomes.values()} == {CaseOutcome.PASSED}
    wanted = listed if fixed is None else fixed
    kept = [id_ for id_ in listed if id_ not in wanted]
    return proven_changes(texts, {}, wanted, kept, lambda changed: ran({**texts, **changed}, TRUE)).changes


BODIES = [
    "for x, y in [(1, 2), (3, 6)]:\n        assert double(x) == y",
    "check(double, 4, 8)",
    "if double(1):\n        assert double(2) == 4",
    "assert double(2) >= 4",
    "assert 3 < double(2) < 5",
    "assert double(1) and double(2) == 4",
    "assert double(2) == pytest.approx(4, abs=.5)",
    "pytest.raises(ValueError, fail, 1)",
    "with pytest.raises(ValueError, match='no 3'):\n        fail(3)",
    "assert all(double(x) == y for x, y in [(1, 2), (2, 4)])",
    "spy = mock.Mock()\n    spy(double(2))\n    spy.assert_has_calls([mock.call(4)])",
    "def inner(x):\n        assert double(x) == 6\n    inner(3)",
    "try:\n        assert double(2) == 4\n    except ValueError:\n        raise",
    "assert str(double(4)) in 'xx8'",
    "assert double(2) == double(1) + 2",
    "assert all(double(n) == n * 2 for n in range(3))",
    "for n in (1, 2):\n        assert double(n) == n + n",
]
HELPER = "def check(f, given, wanted):\n    assert f(given) == wanted\n\n\n"


@pytest.mark.parametrize("body", BODIES)
def test_a_test_is_changed_so_that_it_fails_with_the_truth(body: str) -> None:
    text = f"{HELPER}def test_a():\n    {body}\n"
    found = changes_of(text)
    assert found
    for change in found:
        assert change.fails == (A,)
        changed = with_lines(text.encode(), change.lines)
        assert ran({"t.py": changed}, TRUE).outcomes == {A: CaseOutcome.FAILED}
        assert changed.startswith(f"{HELPER}def test_a():\n    ".encode())
        assert b"assert len([])" not in changed  # not before all others


@pytest.mark.parametrize("body", [b for b in BODIES if "raises" not in b and "str(" not in b])
def test_an_answer_that_equals_everything_is_seen_by_most_of_them(body: str) -> None:
    text = f"{HELPER}def test_a():\n    {body}\n"
    cheat = {**TRUE, "double": lambda x: Equal(x * 2)}
    assert ran({"t.py": text.encode()}, cheat).outcomes == {A: CaseOutcome.PASSED}
    ends = [ran({"t.py": with_lines(text.encode(), c.lines)}, cheat).outcomes[A] for c in changes_of(text)]
    assert CaseOutcome.PASSED in ends


def test_an_error_before_the_answer_is_looked_at_is_no_change_while_there_is_another() -> None:
    for _ in range(3):
        for change in changes_of("def test_a():\n    [7][0]\n    assert double(2) >= 4\n"):
            assert change.lines[0].row == 3


def test_where_one_place_tells_nothing_others_are_tried_before_it_is_again() -> None:
    first = "assert [[[[[double(len(str(double)[:5]))][0]][0]][0]][0]][0] == 10"  # no other index is one
    found = changes_of(f"def test_a():\n    (1, 2, 3, 10, 10)\n    {first}\n")
    assert len(found) == ENOUGH
    assert all("][0]][0]][0]][0]][0] == " in change.lines[0].text for change in found)


def test_a_value_that_a_lenient_comparison_takes_too_is_left() -> None:
    text = "def test_a():\n    assert round(double(1.5) + .01) == pytest.approx(3, abs=2)\n"
    for _ in range(5):
        for change in changes_of(text):
            changed = ran({"t.py": with_lines(text.encode(), change.lines)}, TRUE)
            assert changed.outcomes == {A: CaseOutcome.FAILED}


def test_rows_of_one_test_are_changed_by_themselves() -> None:
    text = (
        "@pytest.mark.parametrize('x,y', [(1, 2), (2, 4), (3, 6)])\ndef test_a(x, y):\n"
        "    assert double(x) == y + 0\n"
    )
    seen = {change.fails for _ in range(8) for change in changes_of(text)}
    assert any(len(fails) < 3 for fails in seen)
    old = changes_of(text, [f"{A}[2]"])
    assert old
    assert {id_ for change in old for id_ in change.fails} <= {f"{A}[{n}]" for n in range(3)}


CLASSES = (
    "class Base:\n    def test_a(self):\n        assert double(self.x) == self.y * 2\n\n\n"
    "if True:\n    class TestA(Base):\n        x = y = 2\n\n\n"
    "class TestB(Base):\n    x = y = 3\n\n    @staticmethod\n    def test_b(): assert double(2) == 4\n"
)


def test_a_test_that_is_inherited_or_static_or_under_a_condition_is_changed() -> None:
    fails = {change.fails for change in changes_of(CLASSES)}
    assert ("t.py::TestB::test_b",) in fails
    assert ("t.py::TestA::test_a", "t.py::TestB::test_a") in fails


def test_a_test_beside_which_another_fails_where_it_is_changed_is_left_as_it_is() -> None:
    state = "seen = []\n\n\n"
    first = "def test_a():\n    assert double(2) == 4\n    seen.append(1)\n\n\n"
    text = f"{state}{first}def test_b():\n    assert double(1) == 2\n    assert seen\n"
    assert {change.fails for change in changes_of(text)} == {(B,)}
    assert {change.fails for change in changes_of(text.replace("    assert seen\n", ""))} == {(A,), (B,)}


def test_of_a_test_that_asserts_nothing_there_is_a_change_before_all_others() -> None:
    for text in ("def test_a():\n    double(n)\n", "def test_a():\n    # nothing\n    double(n)\n"):
        (change,) = changes_of(f"n = 1\n{text}")
        changed = ast.parse(with_lines(f"n = 1\n{text}".encode(), change.lines))
        (function,) = [node for node in changed.body if isinstance(node, ast.FunctionDef)]
        first, second = function.body
        assert isinstance(first, ast.Assert)
        assert ast.unparse(second) == "double(n)"


def test_of_a_test_of_one_row_that_asserts_nothing_there_is_no_change() -> None:
    assert changes_of("def test_a(): double('x')\n") == ()


@pytest.mark.parametrize("body", ["assert double(2) == 4", "assert double(2) == n + 1"])
def test_a_test_that_an_answer_passes_whatever_it_expects_is_lenient(body: str) -> None:
    texts = {
        "t.py": f"n = 3\n\n\ndef test_a():\n    {body}\n\n\ndef test_b():\n    assert double(1)\n".encode()
    }

    def lenient(**answers: Any) -> tuple[str, ...]:
        def run(changed: Mapping[str, bytes]) -> SuiteRun:
            return ran({**texts, **changed}, answers)

        return proven_changes(texts, {}, [A, B], [], run).lenient

    assert lenient(**TRUE) == ()
    found = {lenient(double=lambda x: Equal(x * 2)) for _ in range(16)}  # values are drawn
    assert (A,) in found
    assert found <= {(A,), ()}


SCRIPT = b"""test('adds', () => {
  assert.equal(sum(2), 2);
});
test('adds two', () => {
  const given = 0.5;
  expect(sum(given, '1')).toBe("07");
});
"""


def test_of_a_file_that_is_no_python_one_line_is_changed_the_new_ones_first() -> None:
    before = SCRIPT.replace(b"0.5", b"7").replace(b'"07"', b"8")
    one, two = "t.js::adds", "t.js::adds two"

    def run(changed: Mapping[str, bytes]) -> SuiteRun:
        text = changed.get("t.js", SCRIPT)
        ends = {one: b"sum(2), 2)" in text, two: b"given, '1')).toBe(\"07\")" in text}
        named = {id_: CaseOutcome("passed" if right else "failed") for id_, right in ends.items()}
        return SuiteRun(outcomes=named if b"'adds two'" in text else {})

    found = proven_changes({"t.js": SCRIPT}, {"t.js": before}, [two], [one], run).changes
    assert {(change.fails, change.lines[0].row) for change in found} == {((two,), 6)}
    assert all(change.lines[0].text.startswith("  expect(sum(given, '1')).toBe(\"") for change in found)
    assert proven_changes({"t.js": b"\xff" + SCRIPT}, {}, [two], [one], run).changes == ()


def test_runs_and_tests_are_bounded() -> None:
    tests = "\n\n".join(f"def test_{n}():\n    assert double({n}) == {2 * n}\n" for n in range(MOST + 9))
    runs = count()
    texts = {"t.py": tests.encode()}
    listed = [*ran(texts, TRUE).outcomes]

    def run(changed: Mapping[str, bytes]) -> SuiteRun:
        next(runs)
        return ran({**texts, **changed}, TRUE)

    found = proven_changes(texts, {}, listed, (), run).changes
    assert len({change.fails for change in found}) == MOST
    assert len(found) <= MOST * ENOUGH
    assert next(runs) <= ROUNDS + 2
    asked = count()

    def tampered(changed: Mapping[str, bytes]) -> SuiteRun:
        next(asked)
        return SuiteRun(outcomes={})

    assert proven_changes(texts, {}, listed, (), tampered) == ((), ())
    assert next(asked) <= ROUNDS
