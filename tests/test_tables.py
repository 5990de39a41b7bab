"""Tables of rows that are one test each where all tests run."""

import pytest
from support.tables import Tables

SUITE = """
import asyncio
import pytest
from hypothesis import given, strategies

rows = pytest.mark.parametrize("a, b", [(1, 1), (1, 2), (2, 2), (3, 4)], ids=list("wxyz"))

@rows
def test_table(a, b):
    with open("seen.txt", "a") as file:
        print(a, b, file=file)
    %s

class TestOf:
    @pytest.mark.parametrize("c", [True])
    @rows
    def test_table(self, a, b, c):
        self.kept = hasattr(self, "kept")
        assert not self.kept

@rows
def test_with_a_folder(tmp_path, a, b):
    pass

@pytest.mark.parametrize("a", [1, 2], indirect=True)
@pytest.mark.parametrize("b", [1])
def test_with_a_fixture_in_its_table(a, b):
    pass

@pytest.fixture(params=[1, 2])
def a(request):
    return request.param

def test_of_a_fixture_with_parameters(a):
    pass

@pytest.mark.parametrize("b", [1, pytest.param(2, marks=pytest.mark.xfail(strict=True))])
def test_with_marks(b):
    assert b == 1

@pytest.mark.parametrize("b", [1])
def test_of_one_row(b):
    pass

@pytest.mark.parametrize("b", [1, 2])
@given(c=strategies.integers())
def test_property(b, c):
    pass
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    pytester.makepyfile(test_suite=SUITE % body)
    return pytester.runpytest_inprocess("-rs", *args, plugins=[Tables()])


def test_a_table_is_one_test_where_its_rows_need_nothing_else(pytester: pytest.Pytester) -> None:
    done = run(pytester, "assert a <= b", "-v")
    done.assert_outcomes(passed=14, xfailed=1)
    names = [line.split("::", 1)[1].split()[0] for line in done.outlines if "%]" in line]
    assert names[:3] == ["test_table", "TestOf::test_table", "test_with_a_folder[w]"]
    assert (pytester.path / "seen.txt").read_text() == "1 1\n1 2\n2 2\n3 4\n"


def test_all_rows_run_and_those_that_fail_are_named(pytester: pytest.Pytester) -> None:
    done = run(pytester, "assert a == b", "-k", "test_table and not TestOf")
    done.assert_outcomes(failed=1, deselected=14)
    done.stdout.fnmatch_lines(
        ["*2 of 4 rows*", "*assert 1 == 2*", "*::test_table?x?", "*assert 3 == 4*", "*::test_table?z?"]
    )
    assert (pytester.path / "seen.txt").read_text().count("\n") == 4
    alone = run(pytester, "assert a < 3", "-k", "test_table and not TestOf")
    alone.stdout.fnmatch_lines(
        [">*assert a < 3", "E*assert 3 < 3", "E*::test_table?z?", "*.py:11: AssertionError"]
    )


@pytest.mark.parametrize("ends", ["pytest.fail('no')", "raise KeyError('no')"])
def test_a_row_that_ends_in_any_way_is_a_failure(pytester: pytest.Pytester, ends: str) -> None:
    run(pytester, f"a < 3 or {ends}" if "fail" in ends else f"if a == 3: {ends}").assert_outcomes(
        passed=13, failed=1, xfailed=1
    )


def test_rows_that_are_skipped_are_told_and_hide_no_failure(pytester: pytest.Pytester) -> None:
    done = run(pytester, "b == 4 or pytest.skip('no such program')")
    done.assert_outcomes(passed=13, skipped=1, xfailed=1)
    done.stdout.fnmatch_lines(
        ["*3 of 4 rows, test_table?w?: no such program; test_table?x?: no such program*"]
    )
    failed = run(pytester, "assert b != 4; pytest.skip('no such program')")
    failed.assert_outcomes(passed=13, failed=1, xfailed=1)


def test_an_interrupt_ends_the_run(pytester: pytest.Pytester) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(pytester, "if a == 2: raise KeyboardInterrupt")
    assert (pytester.path / "seen.txt").read_text().count("\n") == 3
