"""Tests that expect something else, and what their run says of those that passed."""

import pytest

from pytest_tfgrpo.harness.scoring.runners.changed_tests import change_tests
from pytest_tfgrpo.harness.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRun

TEST = b"def test_a():\n    assert f() == 3\n\n\ndef test_b(): f()\n"
A = "tests/x.py::test_a"


def outcomes(**by_name: CaseOutcome) -> dict[str, CaseOutcome]:
    return {f"tests/x.py::{name}": outcome for name, outcome in by_name.items()}


def test_the_tests_that_can_be_are_edited_in_their_file() -> None:
    changed = change_tests(
        {"tests/x.py": TEST, "tests/y.py": TEST}, [f"{A}[1]", f"{A}[2]", "tests/x.py::test_b"]
    )
    assert changed is not None
    assert changed.ids == (A,)
    (text,) = changed.files.values()
    assert text.startswith(b"def test_a():\n    assert f() == ")
    assert text.endswith(TEST.partition(b" == 3")[2])
    assert text != TEST


@pytest.mark.parametrize(
    "text",
    [
        b"def test_a(): f()\n",
        b"def test_a(:\n",
        b"\0",
        b"def test_b():\n    assert f() == 3\n",
        TEST + TEST,
        b"# coding: latin-1\n" + TEST,
        b"# coding: none\n" + TEST,
        b"def test_a():\n    assert f() == " + b"-" * 3000 + b"1\n",
        b"class A:\n    def test_a(self):\n        assert f() == 3\n",
    ],
)
def test_where_no_test_can_be_edited_there_is_no_second_form(text: bytes) -> None:
    assert change_tests({"tests/x.py": text}, [A]) is None


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"# coding: utf8\n", b"# coding: ascii\r\n"])
def test_a_file_of_any_name_of_utf_8_is_edited(start: bytes) -> None:
    assert change_tests({"tests/x.py": start + TEST}, [A]) is not None


@pytest.mark.parametrize("id_", ["tests/z.py::test_a", "tests/x.py", "tests.x::test_a"])
def test_a_test_of_no_file_is_not_edited(id_: str) -> None:
    assert change_tests({"tests/x.py": TEST}, [id_]) is None


P, F = CaseOutcome.PASSED, CaseOutcome.FAILED


@pytest.mark.parametrize(
    ("ends", "right"),
    [
        ({"test_a": F, "test_b": P}, True),
        ({"test_a": CaseOutcome.HUNG}, True),
        ({"test_a[1]": F, "test_a[2]": CaseOutcome.SKIPPED}, True),
        ({"test_a": P}, False),
        ({"test_a[1]": F, "test_a[2]": P}, False),
        ({"test_a": CaseOutcome.SKIPPED}, False),
        ({}, False),
    ],
)
def test_each_must_fail_where_it_expects_something_else(ends: dict[str, CaseOutcome], right: bool) -> None:
    changed = change_tests({"tests/x.py": TEST}, [A])
    assert changed is not None
    run = SuiteRun(outcomes=outcomes(**ends))
    said = changed.doubt(SuiteRun(outcomes={A: P}), run)
    assert said == ("" if right else f"tampered: {A!r} does not fail where it expects something else")
    assert changed.unfailed(run) == (() if right else (A,))
    assert changed.doubt(SuiteRun(outcomes={A: F}), run) == ""  # one that did not pass needs no doubt


TWO = TEST.replace(b"def test_b(): f()", b"def test_b():\n    assert f() == 4")
B = "tests/x.py::test_b"


def test_where_one_test_alone_is_edited_the_others_must_pass() -> None:
    seen = set()
    for _ in range(50):
        changed = change_tests({"tests/x.py": TWO}, [A, B, "tests/y.py::test_c"], alone=True)
        assert changed is not None
        (one,), (other,) = changed.ids, changed.others
        seen.add(one)
        assert {one, other} == {A, B}
        first = SuiteRun(outcomes={A: P, B: P})
        assert changed.doubt(first, SuiteRun(outcomes={one: F, other: P})) == ""
        assert "does not pass" in changed.doubt(first, SuiteRun(outcomes={one: F, other: F}))
        assert "does not fail" in changed.doubt(first, SuiteRun(outcomes={one: P, other: P}))
        assert (
            changed.doubt(SuiteRun(outcomes={one: P, other: F}), SuiteRun(outcomes={one: F, other: F})) == ""
        )
    assert seen == {A, B}


def test_all_rows_of_a_test_that_is_edited_alone_must_fail_but_those_that_are_skipped() -> None:
    rows = (
        b"@pytest.mark.parametrize('x', [0, 1])\n"
        b"@pytest.mark.parametrize('n, m', [(1, 2), pytest.param(3, 4, marks=skip)])\n"
        b"def test_a(n, m, x):\n    assert f(n) == m\n"
    )
    changed = change_tests({"tests/x.py": rows}, [A, B], alone=True)
    assert changed is not None
    (text,) = changed.files.values()
    assert b"(1, 2)" not in text
    assert b"param(3, 4," not in text
    first = SuiteRun(outcomes=outcomes(**{"test_a[0]": P, "test_a[1]": P, "test_a[2]": CaseOutcome.SKIPPED}))
    for end, right in ((F, True), (P, False)):
        ends = {"test_a[0]": F, "test_a[1]": end, "test_a[2]": CaseOutcome.SKIPPED}
        assert (changed.doubt(first, SuiteRun(outcomes=outcomes(**ends))) == "") is right


def test_a_run_that_is_tampered_with_or_out_of_time_says_so() -> None:
    changed = change_tests({"tests/x.py": TEST}, [A])
    assert changed is not None
    for problem, said in (
        (RunProblem.TAMPERED, "tampered: why"),
        (RunProblem.TIMEOUT, "why where they expect something else"),
    ):
        run = SuiteRun(outcomes={}, problem=problem, detail="why")
        assert changed.doubt(SuiteRun(outcomes={A: P}), run) == said
