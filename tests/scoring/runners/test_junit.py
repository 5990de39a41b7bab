"""JUnit XML of many runners is read test by test; hostile XML is refused."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.scoring.runners import junit
from pytest_tfgrpo.scoring.runners.junit import MAX_DEPTH, JunitProblem, read_junit
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome

TREE = Path("/tree")


def suite(*cases: str, attributes: str = 'name="all"') -> bytes:
    return f"<testsuites><testsuite {attributes}>{''.join(cases)}</testsuite></testsuites>".encode()


def outcomes(data: bytes) -> dict[str, str]:
    return {case.id: case.outcome.value for case in read_junit(data, TREE)}


def test_each_test_has_an_outcome_under_its_file_and_names() -> None:
    data = suite(
        '<testcase file="t/a.rb" classname="Cart" name="adds" time="0.25"/>',
        '<testcase file="t/a.rb" classname="Cart" name="pays"><failure message="no"/></testcase>',
        '<testcase file="t/a.rb" classname="Cart" name="sends"><error>boom</error></testcase>',
        '<testcase file="t/a.rb" classname="Cart" name="waits"><skipped/></testcase>',
    )
    assert outcomes(data) == {
        "t/a.rb::Cart::adds": "passed",
        "t/a.rb::Cart::pays": "failed",
        "t/a.rb::Cart::sends": "failed",
        "t/a.rb::Cart::waits": "skipped",
    }
    assert read_junit(data, TREE)[0].seconds == 0.25


@pytest.mark.parametrize("file", ["/tree/t/a.rb", "t/a.rb", "./t/a.rb", "t\\a.rb"])
def test_a_file_is_relative_to_the_tree(file: str) -> None:
    assert set(outcomes(suite(f'<testcase file="{file}" name="x"/>'))) == {"t/a.rb::x"}


def test_a_suites_file_counts_for_its_tests() -> None:
    data = suite('<testcase classname="C" name="x"/>', attributes='name="s" file="/tree/t/a.php"')
    assert set(outcomes(data)) == {"t/a.php::C::x"}


def test_without_a_file_the_class_or_the_suites_name_the_test() -> None:
    assert set(outcomes(suite('<testcase classname="pkg/cart" name="TestAdd"/>'))) == {"pkg/cart::TestAdd"}
    assert set(outcomes(suite('<testcase name="TestAdd"/>', attributes='name="cart"'))) == {"cart::TestAdd"}


def nested(case: str) -> bytes:
    inner = f'<testsuite name="inner" file="near.rb">{case}</testsuite>'
    outer = f'<testsuite name="outer" file="far.rb">{inner}</testsuite>'
    return f'<testsuites name="all">{outer}</testsuites>'.encode()


def test_the_nearest_suite_that_has_a_file_counts_and_all_suites_name_a_test_without() -> None:
    assert set(outcomes(nested('<testcase name="x"/>'))) == {"near.rb::x"}
    without = nested('<testcase name="x"/>').replace(b"file=", b"id=")
    assert set(outcomes(without)) == {"all::outer::inner::x"}


def test_a_file_may_be_called_a_path_and_a_class_that_is_the_name_is_not_said_twice() -> None:
    data = suite('<testcase filepath="t/a.rb" classname="x" name="x"/>')
    assert set(outcomes(data)) == {"t/a.rb::x"}
    drive = suite('<testcase file="C:\\t/a.rb" name="x"/>')
    assert set(outcomes(drive)) == {"C:/t/a.rb::x"}


def test_a_tree_behind_a_link_is_the_same_tree(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    data = suite(f'<testcase file="{tmp_path.resolve()}/real/a.rb" name="x"/>')
    assert [case.id for case in read_junit(data, tmp_path / "link")] == ["a.rb::x"]


@pytest.mark.parametrize("tag", ["failure", "error", "rerunFailure", "rerunError"])
def test_each_kind_of_failure_fails_a_test_with_its_first_message(tag: str) -> None:
    data = suite(f'<testcase name="x"><{tag} message="one"/><{tag} message="two"/></testcase>')
    (case,) = read_junit(data, TREE)
    assert (case.outcome, case.message) == (CaseOutcome.FAILED, "one")
    data = suite(f'<testcase name="x"><{tag} message=" ">said</{tag}></testcase>')
    assert read_junit(data, TREE)[0].message == "said"


def test_what_a_test_prints_fails_it_not_and_its_time_may_have_groups_of_digits() -> None:
    data = suite('<testcase name="x" time="1,000.5"><system-out><failure/></system-out></testcase>')
    (case,) = read_junit(data, TREE)
    assert (case.outcome, case.seconds) == (CaseOutcome.PASSED, 1000.5)


def test_as_many_tests_and_levels_as_there_may_be_are_read() -> None:
    assert len(read_junit(suite('<testcase name="x"/>' * 3), TREE, max_cases=3)) == 3
    deep = b"<testsuite>" * MAX_DEPTH + b"</testsuite>" * MAX_DEPTH
    assert read_junit(deep, TREE) == ()
    with pytest.raises(JunitProblem, match=f"more than {MAX_DEPTH} deep"):
        read_junit(b"<testsuite>" + deep + b"</testsuite>", TREE)


def test_a_failure_after_which_a_test_was_skipped_is_a_failure() -> None:
    data = suite('<testcase name="x"><failure/><skipped/></testcase>')
    assert outcomes(data) == {"all::x": "failed"}


def test_the_message_is_the_first_line_with_words() -> None:
    data = suite('<testcase name="x"><failure>\n  Expected 3\n  got 4</failure></testcase>')
    assert read_junit(data, TREE)[0].message == "Expected 3"
    case = suite('<testcase name="x"><error message="&#10; no cart&#10;more">text</error></testcase>')
    assert read_junit(case, TREE)[0].message == "no cart"


def test_system_output_is_not_a_failures_message() -> None:
    data = suite('<testcase name="x"><failure/><system-out>PASS</system-out></testcase>')
    assert read_junit(data, TREE)[0].message == ""


def test_namespaces_and_a_single_suite_are_read() -> None:
    data = b'<testsuite xmlns="http://junit.org" name="s"><testcase name="x"/></testsuite>'
    assert outcomes(data) == {"s::x": "passed"}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not XML"),
        (b"PASS all", "not XML"),
        (b"<testsuites><testsuite>", "not XML"),
        (b"<html/>", "its root is 'html'"),
        (b"<testsuites/><testsuites/>", "not XML"),
        (b"<testsuites><testcase><testcase/></testcase></testsuites>", "within another"),
        (b'<?xml version="1.0" encoding="klingon"?><testsuites/>', "it "),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuites/>', "a document type"),
        (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><testsuites>&b;</testsuites>', "declares"),
        (b"<testsuites>" + b"<testsuite>" * 100 + b"</testsuite>" * 100 + b"</testsuites>", "deep"),
        (b"\xff\xfe\x00", "not XML"),
    ],
)
def test_what_is_no_report_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(JunitProblem, match=says):
        read_junit(data, TREE)


def test_a_bomb_of_entities_is_refused_before_it_grows() -> None:
    layers = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    data = f'<!DOCTYPE a [<!ENTITY l0 "x">{layers}]><testsuites>&l11;</testsuites>'
    with pytest.raises(JunitProblem, match="declares"):
        read_junit(data.encode(), TREE)


def test_too_many_tests_are_refused() -> None:
    with pytest.raises(JunitProblem, match="more than 2 tests"):
        read_junit(suite('<testcase name="x"/>' * 3), TREE, max_cases=2)


def test_a_report_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = suite('<testcase name="x"/>')
    monkeypatch.setattr(junit, "MAX_BYTES", len(data))
    assert len(read_junit(data, TREE)) == 1
    with pytest.raises(JunitProblem, match=f"it has {len(data) + 1} bytes, more than {len(data)}"):
        read_junit(data + b" ", TREE)


def test_a_long_name_stays_one_tests_and_control_characters_are_written_out() -> None:
    long = "x" * 5_000
    data = suite(f'<testcase name="{long}a"/><testcase name="{long}b"/>', '<testcase name="a&#10;b"/>')
    ids = list(outcomes(data))
    assert len(set(ids)) == 3
    assert all(len(name) <= 1_000 for name in ids)
    assert ids[2] == r"all::a\x0ab"


@given(
    st.lists(
        st.tuples(
            st.text(
                st.characters(
                    min_codepoint=32, exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"
                )
            ),
            st.sampled_from(["", "<failure/>", "<error/>", "<skipped/>"]),
            st.sampled_from(["", "1", "nan", "-3", "1,000.5", "inf", "x"]),
        ),
        max_size=20,
    )
)
def test_every_test_of_a_report_is_read_with_finite_seconds(tests: list[tuple[str, str, str]]) -> None:
    data = suite(
        *(f'<testcase name={quoteattr(name)} time="{time}">{end}</testcase>' for name, end, time in tests)
    )
    cases = read_junit(data, TREE)
    wanted = {"": CaseOutcome.PASSED, "<skipped/>": CaseOutcome.SKIPPED}
    assert [case.outcome for case in cases] == [wanted.get(end, CaseOutcome.FAILED) for _, end, _ in tests]
    assert all(0 <= case.seconds < float("inf") for case in cases)


WHOLE = [b'<testcase name="b" time="x"/>', b"<testsuite/>", b"<!-- -->"]
BROKEN = [
    b"<testsuite>",
    b"</testsuite>",
    b'<testcase name="a">',
    b"</testcase>",
    b"<failure/>",
    b"&#0;",
    b"\xff",
]
marks = st.lists(st.sampled_from(WHOLE), max_size=3) | st.lists(st.sampled_from(WHOLE + BROKEN), max_size=3)


@reaches("read", "refused")
@given(st.binary(max_size=200) | marks.map(lambda drawn: b"".join(drawn) + b"</testsuites>"))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        read_junit(b"<testsuites>" + data, TREE)
        reached("read")
    except JunitProblem:
        reached("refused")
