"""What a proposal rests on in words, how a patch names files, and which changes of checks there are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.review.lines import _grounds
from pytest_tfgrpo.review.patch import _lines, _quoted
from pytest_tfgrpo.review.proposals import _why_not
from pytest_tfgrpo.review.variants import _pattern, is_exact, looser


def proposal(**changes: Any) -> Any:
    own = {"agreed": 0, "not_tried": (), "by_heart": False, "now_failed": (), "now_passed": ()}
    return SimpleNamespace(**own | changes)


def test_a_proposal_says_what_it_rests_on_and_what_it_would_change() -> None:
    assert _grounds(proposal()) == "choose the wording and weight yourself"
    assert _grounds(proposal(agreed=1)) == "tried on 1 marked answer, and agrees with people on all"
    text = _grounds(
        proposal(
            agreed=2,
            not_tried=("command", "files"),
            by_heart=True,
            now_failed=("r1",),
            now_passed=("r2", "r3"),
        )
    )
    assert text.startswith("tried on 2 marked answers, and agrees with people on all; not tried again, with ")
    assert "results in the run: command, files; it says nothing about other answers, so write a " in text
    assert "; 1 answer without a mark would fail: " in text
    assert "; 2 answers without a mark would pass: " in text


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("a/b.yaml", "a/b.yaml"),
        ("a b.yaml", "a b.yaml\t"),
        ("ä.yaml", '"\\303\\244.yaml"'),
        ('a"b', '"a\\042b"'),
        ("a\\b", '"a\\134b"'),
        ("a\nb", '"a\\012b"'),
        ("a\x7fb", '"a\\177b"'),
    ],
)
def test_a_patch_names_a_file_as_git_writes_it(name: str, quoted: str) -> None:
    assert _quoted(name) == quoted


def test_lines_of_a_patch_end_at_line_feeds_alone() -> None:
    assert _lines("a\r\nb\x0cc\u2028d\ne") == ["a\r\n", "b\x0cc\u2028d\n", "e"]
    assert _lines("a\n") == ["a\n"]
    assert _lines("") == []


def test_why_checks_cannot_be_changed_by_the_program() -> None:
    off: Any = [SimpleNamespace(is_false_pass=True)]
    none: Any = [SimpleNamespace(is_false_pass=False)]
    exact = make_scenario("a", checks=(Check(kind="exact", params={"value": "3"}),))
    judged = make_scenario("a", truth="judge")
    assert _why_not(judged, off) == "its score is an estimate by judge; change its rubric, or add checks"
    assert _why_not(exact, off).startswith("it expects just one answer, which is not what people call right")
    assert not _why_not(exact, none).startswith("it expects")
    negated = make_scenario("a", checks=(Check(kind="exact", params={"value": "3"}, negated=True),))
    assert not _why_not(negated, off).startswith("it expects")


@pytest.mark.parametrize(
    ("check", "pattern"),
    [
        ({"kind": "exact", "value": " 3 ", "ignore_case": True}, "(?i)"),
        ({"kind": "exact", "value": "3", "strip": False}, None),
        ({"kind": "contains", "value": ""}, None),
        ({"kind": "contains", "value": "a.b"}, r"a\.b"),
        ({"kind": "regex", "pattern": "x|y"}, "(?:x|y)"),
        ({"kind": "regex", "pattern": "x", "flags": "i"}, None),
        ({"kind": "number", "value": 3}, None),
    ],
)
def test_a_pattern_matches_what_a_check_passes_where_there_is_one(check: Any, pattern: str | None) -> None:
    found = _pattern(check)
    assert found == "" if pattern is None else found.startswith(pattern)


def test_a_check_that_must_fail_is_not_made_wider_and_is_no_exact_one() -> None:
    negated: Any = [{"kind": "exact", "value": "3", "not": True}]
    assert list(looser(negated, 0, ["4"], ["4"], replace=True)) == []
    plain: Any = [{"kind": "exact", "value": "3"}]
    assert list(looser(plain, 0, ["4"], ["4"], replace=True))
    assert (is_exact(plain), is_exact(negated), is_exact([])) == (True, False, False)
