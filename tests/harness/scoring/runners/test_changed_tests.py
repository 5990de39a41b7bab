"""Copies of tests that expect something else."""

import unittest
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.harness.scoring.runners.changed_tests import with_changed_copy


def run_both(source: str, name: str, function: object) -> None:
    """Run a test, which passes, and its copy, which does not."""
    found = with_changed_copy(source.encode(), name)
    assert found is not None
    text, copy = found
    assert text.decode().startswith(source)
    space: dict[str, Any] = {"f": function, "pytest": pytest, "unittest": unittest}
    exec(text, space)
    _call(space, name)
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        _call(space, copy)


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
def test_whatever_literal_is_expected_the_copy_expects_another(value: object, turned: bool) -> None:
    reached("a container" if isinstance(value, list | tuple | dict) else "a scalar")
    sides = ["f()", repr(value)]
    left, right = reversed(sides) if turned else sides
    run_both(f"def test_a():\n    assert {left} == {right}\n", "test_a", lambda: value)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("assert f() == pytest.approx(1.5)", 1.5),
        ("assert f()", 1),
        ("assert not f()", 0),
        ("assert f() is None", None),
        ("assert 'a' in f()", "a"),
        ("assert f() != f()", float("nan")),
        ("assert [f()] == [f()]", 1),
    ],
)
def test_an_assertion_is_turned_into_one_that_fails(body: str, value: object) -> None:
    run_both(f"def test_a():\n    x = 'é'\n    {body}  # why\n", "test_a", lambda: value)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("self.assertEqual(f(), 3)", 3),
        ("self.assertEqual(\n            'abc',\n            f())", "abc"),
        ("self.assertTrue(f())", 1),
        ("self.assertIsNone(f())", None),
        ("self.assertIn(f(), [1])", 1),
    ],
)
def test_a_method_of_unittest_has_its_copy_in_its_class(body: str, value: object) -> None:
    source = f"class TestA(unittest.TestCase):\n    def test_a(self):\n        {body}"
    run_both(f"{source}\n", "TestA::test_a", lambda: value)


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
    run_both(source, name, fails)


def test_every_value_of_a_parameter_is_another() -> None:
    rows = "[(1, 'one'), (2, 'two')]"
    source = f"@pytest.mark.parametrize('a,b', {rows})\ndef test_a(a, b):\n    assert f(a) == b\n"
    run_both(source, "test_a", {1: "one", 2: "two"}.get)


@pytest.mark.parametrize(
    "body",
    [
        "if f():\n        assert f() == 1",
        "for _ in f():\n        assert f() == 1",
        "assert f() < 3",
        "f()",
        "return f() == 1",
        "assert f() == 1\n    return None",
        "with pytest.raises(Exception):\n        f()",
        "assert 1 == 1.0",
    ],
)
def test_what_is_not_sure_to_fail_has_no_copy(body: str) -> None:
    found = with_changed_copy(f"def test_a():\n    {body}\n".encode(), "test_a")
    assert found is None or b" != " in found[0]


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n):\n    assert f(n) == n\n",
        "@pytest.mark.parametrize('n', [1])\ndef test_a(n):\n    e = max(n, 0)\n    assert n == e\n",
        "def test_a():\n    assert f() == pytest.approx(3, abs=5)\n",
        "def test_a():\n    assert f() == pytest.approx([3], rel=1)\n",
        "@retry\ndef test_a():\n    assert f() == 1\n",
        "def test_a(snapshot):\n    assert f() == snapshot\n",
        "def test_a():\n    with h.raises(ValueError):\n        f()\n",
    ],
)
def test_what_may_pass_with_another_value_has_no_copy(source: str) -> None:
    found = with_changed_copy(source.encode(), "test_a")
    assert found is None or b" != " in found[0]


class Lenient:
    """An answer that equals more than itself."""

    def __init__(self, equal: Callable[[Any], bool]) -> None:
        self.equal = equal

    def __eq__(self, other: object) -> bool:
        return self.equal(other)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("literal", "equal"),
    [
        ("200", lambda other: other // 100 == 2),
        ("'1.2'", lambda other: "1.2.3".startswith(other)),
        ("'<b> x'", lambda other: "".join(other.split()).lower() == "<b>x"),
        ("{'a': 1}", lambda other: {**other, "a": 1, "b": 2} == {"a": 1, "b": 2}),
        ("{'id': 7}", lambda other: other == {"id": ANY}),
        ("[7, 8]", lambda other: other == [ANY, ANY]),
    ],
)
def test_a_lenient_answer_does_not_equal_what_the_copy_expects(
    literal: str, equal: Callable[[Any], bool]
) -> None:
    run_both(f"def test_a():\n    assert f() == {literal}\n", "test_a", lambda: Lenient(equal))


@pytest.mark.parametrize("name", ["test_b", "TestA::test_a", "test_a::test_b"])
def test_a_test_that_is_not_there_or_there_twice_has_no_copy(name: str) -> None:
    twice = "def test_b():\n    assert f() == 1\n" * 2
    assert with_changed_copy(f"def test_a():\n    assert f() == 1\n{twice}".encode(), name) is None


def test_a_copy_is_found_by_the_pattern_that_finds_the_test() -> None:
    for name, start, end in (
        ("test_a", "test_a_", ""),
        ("a_test", "", "_a_test"),
        ("should_a", "should_a_", ""),
    ):
        found = with_changed_copy(f"def {name}():\n    assert f() == 1\n".encode(), name)
        assert found is not None
        assert found[1].startswith(start)
        assert found[1].endswith(end)
