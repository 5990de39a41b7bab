"""The two forms of tests, and what their runs say of those that passed."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.scoring.runners.edits import test_functions
from pytest_tfgrpo.scoring.runners.edits.changed_tests import (
    ChangedTests,
    LineChange,
    OtherLines,
    as_lines,
    drawn_changes,
    further_forms,
    two_forms,
    with_lines,
)
from pytest_tfgrpo.scoring.runners.edits.edit import Edit, edited
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRun

TEST = b"def test_a():\n    assert f() == 3\n\n\ndef test_b(): f()\n"
A, B, C = (f"tests/x.py::test_{name}" for name in "abc")


def drawn(text: bytes, *ids: str) -> list[LineChange]:
    return drawn_changes({"tests/x.py": text}, ids or [A], ids[:1] or [A])


@pytest.mark.parametrize("indent", ["", "    "])
def test_of_a_large_file_each_test_is_parsed_alone(indent, monkeypatch):
    one = "def test_{}(self=0):\n    assert f({}) == 3\n\n"
    tests = "".join(one.format(n, n) for n in range(50)).replace("\n", f"\n{indent}")
    text = ("class TestX:\n" * bool(indent) + indent + tests).encode()
    parsed, parse = [], ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *a, **k: parsed.append(len(text)) or parse(text, *a, **k))
    start = "tests/x.py::" + "TestX::" * bool(indent)
    ids = [f"{start}test_{n}" for n in range(50)]
    assert len({change.fails for change in drawn_changes({"tests/x.py": text}, ids, ids)}) == 50
    assert sum(parsed) < 10 * len(text)


def test_a_large_file_is_looked_through_once_for_all_its_tests(monkeypatch):
    class Text(bytes):
        def splitlines(self, keepends: bool = False) -> list[bytes]:
            looks.append("rows")
            return super().splitlines(keepends)

    def counted(body):
        looks.append("functions")
        return statements(body)

    looks, statements = [], test_functions._statements
    monkeypatch.setattr(test_functions, "_statements", counted)
    text = Text(b"".join(b"def test_%d():\n    assert f(%d) == 3\n\n" % (n, n) for n in range(20)))
    ids = [f"tests/x.py::test_{n}" for n in range(20)]
    assert len({change.fails for change in drawn_changes({"tests/x.py": text}, ids, ids)}) == 20
    assert sorted(looks) == ["functions", "rows"]


def test_the_tests_that_can_be_are_changed_in_their_file() -> None:
    texts = {"tests/x.py": TEST, "tests/y.py": TEST}
    (change,) = drawn_changes(texts, [f"{A}[1]", f"{A}[2]", B, "tests/y.py::test_a"], [f"{A}[1]", B])
    assert (change.file, change.fails) == ("tests/x.py", (f"{A}[1]", f"{A}[2]"))
    (line,) = change.lines
    assert (line.row, line.end) == (2, 2)
    assert line.text.startswith("    assert f() == ")
    text = with_lines(TEST, change.lines)
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
        b"if f:\n    def test_a():\n        assert f() == 3\nelse:\n    def test_a(): pass\n",
    ],
)
def test_where_no_test_can_be_changed_nothing_is_drawn(text: bytes) -> None:
    assert drawn(text) == []


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"# coding: utf8\n", b"# coding: ascii\r\n"])
def test_a_file_of_any_name_of_utf_8_is_changed(start: bytes) -> None:
    (change,) = drawn(start + TEST)
    assert with_lines(start + TEST, change.lines).startswith(start)


@pytest.mark.parametrize("id_", ["tests/z.py::test_a", "tests/x.py", "tests.x::test_a"])
def test_a_test_of_no_file_is_not_changed(id_: str) -> None:
    assert drawn(TEST, id_) == []


def test_a_test_of_a_class_is_changed_for_all_that_inherit_it() -> None:
    text = (
        b"class Base:\n    def test_a(self):\n        assert f() == 3\n\n\nif True:\n"
        b"    class TestA(Base):\n        pass\n\n\nclass TestB(other.Base, TestA):\n    pass\n"
    )
    ids = [f"tests/x.py::{name}::test_a" for name in ("TestA", "TestB", "TestC")]
    (change,) = drawn(text, *ids)
    assert change.fails == tuple(ids[:2])
    loop = b"class TestA(TestB): pass\nclass TestB(TestA): pass\n"
    assert drawn(loop, ids[0]) == []


def made(name: str, row: int, rows: str = "1") -> LineChange:
    """Return a change of some rows of a test."""
    fails = tuple(f"tests/x.py::test_{name}[{one}]" for one in rows)
    return LineChange(file="tests/x.py", lines=(OtherLines(row=row, text=f"new {row}"),), fails=fails)


TEXTS = {"tests/x.py": b"".join(b"old %d\n" % row for row in range(1, 9))}


@pytest.mark.parametrize(
    ("changes", "both"),
    [
        ([made("a", 1)], False),
        ([made("a", 1), made("a", 2)], False),
        ([made("a", 1, "12"), made("a", 2, "34")], True),
        ([made("a", 1), made("b", 2)], True),
        ([made("a", 1), made("b", 2), made("c", 3)], True),
        ([made("a", 1, "1"), made("a", 1, "2"), made("b", 2)], True),
    ],
)
def test_each_test_is_changed_in_one_form_at_most_and_some_in_each(changes, both) -> None:
    seen = set()
    for _ in range(60):
        forms = two_forms(TEXTS, changes)
        assert all(form.fails for form in forms) is both
        assert forms[0].fails.isdisjoint(forms[1].fails)
        for form in forms:
            text = form.files.get("tests/x.py", b"")
            made = {id_ for one in changes if b"new %d\n" % one.lines[0].row in text for id_ in one.fails}
            assert form.fails <= made
            assert (text == b"") is (form.fails == frozenset())
        seen.add(forms[0].fails)
    assert len(seen) > 1


def test_two_changes_of_one_row_are_never_made_together() -> None:
    other = LineChange(file="tests/x.py", lines=made("a", 1).lines, fails=(B,))
    for _ in range(20):
        for form in two_forms(TEXTS, [made("a", 1), other, made("c", 3, "1234")]):
            assert form.files.get("tests/x.py", b"").count(b"new 1") <= 1
            assert not {*made("a", 1).fails, B} <= form.fails


@pytest.mark.parametrize(
    ("changes", "each"),
    [
        ([made("a", 1)], []),
        ([made("a", 1), made("a", 2)], [{"a"}]),
        ([made("a", row) for row in (1, 2, 3, 4)], [{"a"}, {"a"}]),
        ([made(name, row) for row, name in enumerate("aaabbb", 1)], [{"a", "b"}, {"a", "b"}]),
        ([made("a", 1), made("b", 2), made("b", 3)], [{"b"}]),
        ([made(name, row) for row, name in enumerate("aaabbbcc", 1)], []),
    ],
)
def test_where_few_tests_are_changed_there_are_further_forms_of_other_changes(changes, each) -> None:
    seen = set()
    for _ in range(20):
        forms = two_forms(TEXTS, changes)
        further = further_forms(TEXTS, changes, forms)
        assert [{id_[len("tests/x.py::test_")] for id_ in form.fails} for form in further] == each
        rows = [change.lines[0].row for form in (*forms, *further) for change in form.made]
        assert len(rows) == len({*rows})
        seen.add(tuple(rows))
        for form in further:
            assert form.files["tests/x.py"].count(b"new") == len(form.made) > 0
    assert len(seen) > 1 or len(changes) == 1


def test_a_check_without_changes_draws_some_of_each_test_where_its_form_has_them() -> None:
    texts = {"tests/x.py": b"def test_a():\n" + b"    assert f() == 3\n" * 5}
    found = drawn_changes(texts, [A], [A])
    assert len({change.lines for change in found}) == len(found) == 3
    assert {change.fails for change in found} == {(A,)}


ROWS = (f"{A}[1-a]", f"{A}[2-b]")


@pytest.mark.parametrize(
    ("ends", "doubted"),
    [
        ({f"{A}[1-c]": "failed", f"{A}[2-d]": "failed"}, False),
        ({f"{A}[1-c]": "failed", f"{A}[2-d]": "skipped"}, False),
        ({f"{A}[1-c]": "failed", f"{A}[2-d]": "passed"}, True),
        ({f"{A}[1-c]": "failed", ROWS[1]: "failed"}, False),
        ({f"{A}[1-c]": "failed", ROWS[1]: "passed"}, True),
        ({ROWS[1]: "failed"}, True),
        ({B: "failed", f"{B}[1-c]": "failed"}, True),
        ({}, True),
    ],
)
def test_tests_that_change_their_ids_with_their_parameters_must_fail_by_their_new_ones(
    ends: dict[str, str], doubted: bool
) -> None:
    form = ChangedTests(files={}, fails=frozenset(ROWS))
    run = SuiteRun(outcomes={id_: CaseOutcome(end) for id_, end in ends.items()})
    assert bool(form.doubt(run, ROWS)) is doubted


@pytest.mark.parametrize("row", [9, 100])
def test_a_change_of_a_row_that_is_not_there_is_refused(row: int) -> None:
    with pytest.raises(ValueError, match=f"there are 8 rows, no row {row}"):
        two_forms(TEXTS, [made("a", row)])
    with pytest.raises(ValueError, match="there are 0 rows"):
        two_forms({}, [made("a", 1)])


@reaches("several rows", "edits in one row", "another end of rows")
@given(st.data())
def test_the_lines_of_edits_make_what_the_edits_make(data: st.DataObject) -> None:
    end = data.draw(st.sampled_from([b"\n", b"\r\n"]))
    rows = data.draw(st.lists(st.binary(min_size=3, max_size=6).map(bytes.hex), min_size=1, max_size=5))
    text = end.join(row.encode() for row in rows) + data.draw(st.sampled_from([b"", end]))
    places = st.tuples(st.integers(0, len(rows) - 1), st.integers(0, 3))
    spots = sorted(data.draw(st.lists(places, min_size=2, max_size=6, unique=True)))
    pairs = list(zip(spots[::2], spots[1::2], strict=False))
    edits = [Edit(start, stop, b"new") for start, stop in pairs]
    lines = as_lines(text, edits)
    reached("several rows", any(one.end > one.row for one in lines))
    reached("edits in one row", len(lines) < len(edits))
    reached("another end of rows", end == b"\r\n")
    assert with_lines(text, lines) == edited(text, edits)


P, F = CaseOutcome.PASSED, CaseOutcome.FAILED
FORM = ChangedTests(files={}, fails=frozenset({A, B}))


@pytest.mark.parametrize(
    ("ends", "right"),
    [
        ({A: F, B: CaseOutcome.HUNG, C: P}, True),
        ({A: F, B: P}, True),  # it did not pass as it was
        ({A: P, B: F}, False),
        ({A: CaseOutcome.SKIPPED, B: F}, False),
        ({B: F}, False),
    ],
)
def test_what_passed_must_fail_where_it_expects_something_else(
    ends: dict[str, CaseOutcome], right: bool
) -> None:
    said = FORM.doubt(SuiteRun(outcomes=ends), {A, C})
    assert said == ("" if right else f"tampered: {A!r} does not fail where it expects something else")


def test_a_run_that_is_out_of_time_says_so() -> None:
    run = SuiteRun(outcomes={}, problem=RunProblem.TIMEOUT, detail="it took long")
    assert FORM.doubt(run, {A}) == "it took long where tests expect something else"
    assert FORM.doubt(run, {C}) == ""


def test_what_is_drawn_is_python() -> None:
    for _ in range(30):
        for change in drawn(
            TEST.replace(b"def test_b(): f()", b"def test_b():\n    assert f() in (4,)"), A, B
        ):
            ast.parse(with_lines(TEST, change.lines))
