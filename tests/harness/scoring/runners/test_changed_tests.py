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
    ("ends", "doubt"),
    [
        ({"test_a": F, "test_b": P}, ""),
        ({"test_a": CaseOutcome.HUNG}, ""),
        ({"test_a[1]": F, "test_a[2]": CaseOutcome.SKIPPED}, ""),
        ({"test_a": P}, "does not fail"),
        ({"test_a[1]": F, "test_a[2]": P}, "does not fail"),
        ({"test_a": CaseOutcome.SKIPPED}, "does not fail"),
        ({}, "does not fail"),
    ],
)
def test_each_must_fail_where_it_expects_something_else(ends: dict[str, CaseOutcome], doubt: str) -> None:
    changed = change_tests({"tests/x.py": TEST}, [A])
    assert changed is not None
    run = SuiteRun(outcomes=outcomes(**ends))
    said = changed.doubt(run, {A})
    assert said == (f"tampered: {A!r} does not fail where it expects something else" if doubt else "")
    assert changed.unfailed(run) == ((A,) if doubt else ())
    assert changed.doubt(run, ()) == ""  # one that did not pass needs no doubt


def test_a_run_that_is_tampered_with_or_out_of_time_says_so() -> None:
    changed = change_tests({"tests/x.py": TEST}, [A])
    assert changed is not None
    for problem, said in (
        (RunProblem.TAMPERED, "tampered: why"),
        (RunProblem.TIMEOUT, "why where they expect something else"),
    ):
        assert changed.doubt(SuiteRun(outcomes={}, problem=problem, detail="why"), {A}) == said
