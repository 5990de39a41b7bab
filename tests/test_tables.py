"""Tables of rows that are one test each where all tests run."""

import pytest
from support.tables import Tables

SUITE = """
import pytest
from hypothesis import given, strategies

rows = pytest.mark.parametrize("a, b", [(1, 1), (1, 2), (2, 2), (3, 4)], ids=list("wxyz"))

@rows
def test_table(a, b):
    with open("seen.txt", "a") as file:
        print(a, b, file=file)

class TestOf:
    @pytest.mark.parametrize("c", [True])
    @rows
    def test_table(self, a, b, c):
        self.kept = hasattr(self, "kept")
        assert not self.kept

@rows
def test_two_fail(a, b):
    with open("also.txt", "a") as file:
        print(a, b, file=file)
    assert a == b

@rows
def test_one_fails(a, b):
    assert a < 3

@rows
def test_one_says_so(a, b):
    a < 3 or pytest.fail("no")

@rows
def test_one_raises(a, b):
    assert [0, 1, 2][a]

@rows
def test_three_are_skipped(a, b):
    b == 4 or pytest.skip("no such program")

@rows
def test_three_are_skipped_and_one_fails(a, b):
    assert b != 4
    pytest.skip("no such program")

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

@pytest.fixture(autouse=True)
def near():
    pass
"""
INTERRUPTED = """
import pytest

@pytest.mark.parametrize("a", [1, 2, 3])
def test_table(a):
    with open("seen.txt", "a") as file:
        print(a, file=file, end="")
    if a == 2:
        raise KeyboardInterrupt
"""
ROWS = "1 1\n1 2\n2 2\n3 4\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_a_table_is_one_test_where_its_rows_need_nothing_else(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_suite=SUITE.rpartition("@pytest.fixture(autouse=True)")[0])
    done = pytester.runpytest_inprocess("-v", "-rs", plugins=[Tables()])
    names = [line.split("::", 1)[1].split("%")[0].split() for line in done.outlines if line.endswith("%]")]
    assert [" ".join(name[:2]) for name in names[:9]] == [
        "test_table PASSED",
        "TestOf::test_table PASSED",
        "test_two_fail FAILED",
        "test_one_fails FAILED",
        "test_one_says_so FAILED",
        "test_one_raises FAILED",
        "test_three_are_skipped SKIPPED",
        "test_three_are_skipped_and_one_fails FAILED",
        "test_with_a_folder[w] PASSED",
    ]
    done.assert_outcomes(passed=14, failed=5, skipped=1, xfailed=1)
    assert (pytester.path / "seen.txt").read_text() == ROWS
    assert (pytester.path / "also.txt").read_text() == ROWS
    two = [
        "*2 of 4 rows*",
        "*assert 1 == 2*",
        "*::test_two_fail?x?",
        "*assert 3 == 4*",
        "*::test_two_fail?z?",
    ]
    one = [">*assert a < 3", "E*assert 3 < 3", "E*::test_one_fails?z?", "*.py:*: AssertionError"]
    ended = ["E*Failed: no", "E*::test_one_says_so?z?", "E*IndexError*", "E*::test_one_raises?z?"]
    done.stdout.fnmatch_lines([*two, *one, *ended, "E*::test_three_are_skipped_and_one_fails?z?"])
    said = "; ".join(f"test_three_are_skipped?{row}?: no such program" for row in "wxy")
    done.stdout.fnmatch_lines([f"*3 of 4 rows, {said}*"])


def test_an_interrupt_ends_the_run_and_a_fixture_parts_the_rows(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_suite=SUITE.replace("print(a, b, file=file)", "assert a < 2", 1))
    done = pytester.runpytest_inprocess("-k", "test_table", plugins=[Tables()])
    done.assert_outcomes(passed=6, failed=2, deselected=37)
    pytester.makepyfile(test_suite=INTERRUPTED)
    with pytest.raises(KeyboardInterrupt):
        pytester.runpytest_inprocess(plugins=[Tables()])
    assert (pytester.path / "seen.txt").read_text() == "12"
