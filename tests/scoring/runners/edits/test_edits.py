"""Edits of tests, after which they expect something else."""

import ast
import builtins
import math
import re
import unittest
from contextlib import nullcontext
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.scoring.runners.edits.edit import Edit, edited
from pytest_tfgrpo.scoring.runners.edits.edits import OTHER_ERRORS, edits_of

FAILS = (AssertionError, ValueError, TypeError, pytest.fail.Exception)


def edits(source: str, name: str = "test_a") -> list[bytes]:
    """Return the file with each edit of a test."""
    module = ast.parse(source)
    last = name.rpartition(":")[2]
    function = next(one for one in ast.walk(module) if isinstance(one, ast.FunctionDef) and one.name == last)
    return [edited(source.encode(), one) for one in edits_of(function, source.encode())]


def run_each(source: str, name: str, function: object) -> list[str]:
    """Run a test, which passes, and each edit of it, which does not; return these."""
    _call(_space(source.encode(), function), name)
    found = edits(source, name)
    assert found
    for text in found:
        with pytest.raises(FAILS):
            _call(_space(text, function), name)
    return [text.decode() for text in found]


def _space(text: bytes, function: object) -> dict[str, Any]:
    space: dict[str, Any] = {
        "f": function,
        "pytest": pytest,
        "unittest": unittest,
        "math": math,
        "Decimal": Decimal,
        "nullcontext": nullcontext,
    }
    exec(text, space)
    return space


def _call(space: dict[str, Any], name: str) -> None:
    start, _, method = name.rpartition("::")
    if start:
        getattr(space[start](method), method)()
        return
    rows = [mark.args for mark in getattr(space[name], "pytestmark", ())]
    if not rows:
        space[name]()
    for names, values in rows:
        for value in values:
            cells = value if isinstance(value, tuple) else (value,)
            space[name](**dict(zip(names.split(","), cells, strict=True)))


def called(*args: object, **kwargs: object) -> Mock:
    """Return what was called."""
    mock = Mock()
    mock(*args, **kwargs)
    return mock


def fails() -> None:
    raise ValueError


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 10**9), st.floats(-1e6, 1e6), st.text(max_size=5),
    st.binary(max_size=5),
)  # fmt: skip
LITERALS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(SCALARS, inner, max_size=2)
    ),
    max_leaves=5,
)


@reaches("a scalar", "a container")
@given(LITERALS, st.booleans())
def test_whatever_literal_is_expected_its_edit_expects_another(value: object, turned: bool) -> None:
    reached("a container" if isinstance(value, list | tuple | dict) else "a scalar")
    sides = ["f()", repr(value)]
    left, right = reversed(sides) if turned else sides
    run_each(f"def test_a():\n    assert {left} == {right}\n", "test_a", lambda: value)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("assert f() == pytest.approx(1.5)", 1.5),
        ("assert f()", 1),
        ("assert not f()", 0),
        ("assert f() < 2", 1),
        ("assert f() <= 1", 1),
        ("assert f() > 0", 1),
        ("assert f() >= 1", 1),
        ("assert f() is None", None),
        ("assert 'a' in f()", "a"),
        ("assert f() != f()", float("nan")),
        ("assert f() == 1e999", math.inf),
        ("assert [f()] == [f()]", 1),
        ("assert f() == {'a': 1, 'a': 2, 'b': {1, 2}}", {"a": 2, "b": {1, 2}}),
        ("assert math.isclose(f(), 0.5)", 0.5),
        ("assert 'ab cd' in f()", "x ab cd"),
        ("wanted = 3\n    assert f() == wanted", 3),
        ("wanted = {'a': [3]}\n    assert f() == wanted", {"a": [3]}),
        ("assert f() == Decimal('3.00')", Decimal(3)),
        ("with nullcontext():\n        assert f() == 3\n    return None", 3),
        ("try:\n        assert f() == 3\n    finally:\n        f()", 3),
        ("def inner():\n        return 7\n    assert f() == 3", 3),
        ("assert isinstance(f(), (float, range))", 0.5),
        ("f.assert_called_once_with(1, key='x')", called(1, key="x")),
    ],
)
def test_an_assertion_is_turned_into_one_that_fails(body: str, value: object) -> None:
    function = value if isinstance(value, Mock) else lambda: value
    run_each(f"def test_a():\n    x = 'é'\n    {body}  # why\n", "test_a", function)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("self.assertEqual(f(), 3)", 3),
        ("self.assertAlmostEqual(f(), 3.25)", 3.25),
        ("self.assertEqual(\n            'abc',\n            f())", "abc"),
        ("self.assertTrue(f())", 1),
        ("self.assertIsNone(f())", None),
        ("self.assertIn(f(), [1])", 1),
    ],
)
def test_a_method_of_unittest_is_edited(body: str, value: object) -> None:
    source = f"class TestA(unittest.TestCase):\n    def test_a(self):\n        {body}"
    run_each(f"{source}\n", "TestA::test_a", lambda: value)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def test_a():\n    with pytest.raises(ValueError):\n        f()\n", "test_a"),
        (
            "class TestA(unittest.TestCase):\n    def test_a(self):\n"
            "        with self.assertRaises(ValueError):\n            f()\n",
            "TestA::test_a",
        ),
    ],
)
def test_another_exception_is_expected(source: str, name: str) -> None:
    run_each(source, name, fails)


def test_every_value_of_a_parameter_is_another() -> None:
    rows = "[(1, 'one'), (2, 'two')]"
    source = f"@pytest.mark.parametrize('a,b', {rows})\ndef test_a(a, b):\n    assert f(a) == b\n"
    run_each(source, "test_a", {1: "one", 2: "two"}.get)
    alone = "@pytest.mark.parametrize('b', [30, 30])\ndef test_a(b):\n    assert f() == b\n"
    for text in run_each(alone, "test_a", lambda: 30):
        assert "30" not in text


@pytest.mark.parametrize(
    "body",
    [
        "if f():\n        assert f() == 1",
        "for _ in f():\n        assert f() == 1",
        "assert 2 < f() < 4",
        "f()",
        "return f() == 1",
        "if f():\n        return\n    assert f() == 1",
        "with suppress(Exception):\n        assert f() == 1",
        "with f:\n        assert f() == 1",
        "try:\n        assert f() == 1\n    except ValueError:\n        pass",
        "with pytest.raises(Exception):\n        f()",
    ],
)
def test_what_is_not_sure_to_fail_is_left_and_the_test_fails_before(body: str) -> None:
    for start in ("", "'''Why.'''\n    "):
        (text,) = edits(f"def test_a():\n    {start}{body}\n")
        said, _, rest = text.decode().removeprefix(f"def test_a():\n    {start}").partition("\n")
        assert rest == f"    {body}\n"
        with pytest.raises(AssertionError):
            exec(said)


@pytest.mark.parametrize(
    "source",
    [
        "@retry\ndef test_a():\n    f()\n",
        "@unittest.expectedFailure\ndef test_a():\n    f()\n",
        "def test_a(): f()\n",
        "def test_a():\n    @f\n    def inner(): pass\n    inner()\n",
    ],
)
def test_what_may_pass_all_the_same_is_not_edited(source: str) -> None:
    assert edits(source) == []


@pytest.mark.parametrize(
    "decorator",
    [
        "@pytest.mark.slow",
        "@unittest.skipIf(False, 'x')",
        "@mock.patch.object(f, 'x')",
        "@patch('x')",
        "@crypto",
    ],
)
def test_a_decorator_that_leaves_a_test_what_it_is_does_not_matter(decorator: str) -> None:
    source = f"crypto = pytest.mark.skipif(x)\n{decorator}\ndef test_a():\n    assert f() == 3\n"
    (text,) = edits(source)
    assert text.startswith(source.encode()[:-2])


@pytest.mark.parametrize(
    ("source", "edited_forms"),
    [
        ("def test_a():\n    assert {'a': f(), 'b': mock.ANY} == {'a': 1, 'b': 2}\n", 1),
        ("def test_a():\n    with h.raises(ValueError):\n        f()\n", 1),  # at its start
        ("def test_a():\n    assert f() == pytest.approx(3, abs=5)\n", 1),  # what it gives in a container
        ("@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n):\n    assert f(n) == n\n", 2),
        ("@pytest.mark.parametrize('n', [1, x])\ndef test_a(n):\n    assert f() == n\n", 2),
        ("def test_a():\n    assert (1) == 1.0  # is\n", 1),
        ("class T:\n    def test_a(self):\n        self.assertAlmostEqual(f(), 3, delta=9)\n", 1),
    ],
)
def test_a_value_that_may_pass_as_well_is_not_put_in_the_place_of_another(source, edited_forms) -> None:
    assert len(edits(source)) == edited_forms


def test_what_tells_most_is_edited() -> None:
    source = "def test_a():\n    assert f()\n    assert f() == f()\n    assert f() == 7\n"
    for text in run_each(source, "test_a", lambda: 7):
        assert "    assert f() == f()\n    assert f() ==" in text


@pytest.mark.parametrize(
    "literal", ["'a\\\\n b'", "'a b'", '"a b"', 'b"a-7"', '"""it\'s"""', "r'x'", "'é7'", "{'k': ['v']}"]
)
def test_an_edit_is_written_as_its_test_is(literal: str) -> None:
    (text,) = run_each(
        f"def test_a():\n    assert f() == {literal}\n", "test_a", lambda: ast.literal_eval(literal)
    )
    written = text.partition(" == ")[2].rstrip("\n")
    words, others = (re.findall(r"[a-z]+|\d+|.", one) for one in (literal, written))
    assert len(words) == len(others)
    assert sum(one != other for one, other in zip(words, others, strict=True)) == 1


def test_of_an_exception_of_the_project_it_is_not_known_what_it_is() -> None:
    source = "def test_a():\n    with pytest.raises((h.Odd, KeyError)):\n        f()\n"
    drawn = set()
    for _ in range(20):
        (text,) = edits(source)
        drawn.add(text.partition(b"raises(")[2].partition(b")")[0].decode())
    assert drawn <= {error.__name__ for error in OTHER_ERRORS}
    (text,) = edits("def test_a():\n    with pytest.raises((h[0], KeyError)):\n        f()\n")
    assert b"raises((h[0], KeyError))" in text


def test_edits_are_made_in_any_order_over_one_line_or_several() -> None:
    made = [Edit((0, 1), (0, 2), b"XX"), Edit((1, 2), (2, 1), b"-"), Edit((0, 3), (1, 1), b"+")]
    for order in (made, made[::-1]):
        assert edited(b"abcd\nefg\nhi\n", order) == b"aXXc+f-i\n"


@pytest.mark.parametrize("base", [ArithmeticError, OSError, ImportError, NameError, RuntimeError])
def test_no_exception_is_expected_that_is_of_the_one_before(base: type[Exception]) -> None:
    source = f"def test_a():\n    with pytest.raises(({base.__name__}, KeyError)):\n        f()\n"
    for _ in range(20):
        (text,) = edits(source)
        wanted = getattr(builtins, text.partition(b"raises(")[2].partition(b")")[0].decode())
        assert not issubclass(wanted, (base, KeyError))
