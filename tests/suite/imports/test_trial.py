"""After an import it is known which checks can fail."""

import pytest

from pytest_tfgrpo.suite.imports import trial
from pytest_tfgrpo.suite.imports.formats import write_scenarios
from pytest_tfgrpo.suite.imports.imported import Imported


def told(tmp_path, *checks, **fields):
    found = Imported()
    found.add("a", {"prompt": "p", "checks": list(checks), **fields}, "a.csv:2")
    done = trial.CheckTrial()
    write_scenarios(found, tmp_path, "a", force=False, trial=done)
    return list(done.report())


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "exact", "value": "x"},
        {"kind": "contains", "value": "x"},
        {"kind": "regex", "pattern": "a|b"},
        {"kind": "number", "value": 3},
        {"kind": "json", "value": {"a": 1}},
        {"kind": "json_schema", "schema": {}},
        {"kind": "tool_calls", "calls": [{"name": "search"}]},
        {"kind": "contains", "value": "As an AI", "not": True},
        {"kind": "regex", "pattern": "as\\ an\\ AI|sorry", "flags": "i", "not": True},
        {"kind": "regex", "pattern": r"\A(?=[\s\S]*red)(?=[\s\S]*big\ blue)", "not": True},
        {"kind": "regex", "pattern": r"\ASorry\,", "not": True},
        {"kind": "json_schema", "schema": {}, "not": True},
        {"kind": "json_schema", "schema": {"const": {"a": 1}}, "not": True},
    ],
)
def test_a_check_that_fails_on_some_answer_can_fail(tmp_path, check):
    assert told(tmp_path, check) == ["1 of 1 check can fail"]


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "regex", "pattern": "|x"},
        {"kind": "regex", "pattern": ".*"},
        {"kind": "regex", "pattern": r"\A", "weight": 2},
    ],
)
def test_a_check_that_passes_everything_is_named_with_its_row(tmp_path, check):
    assert told(tmp_path, {"kind": "exact", "value": "x"}, check) == [
        "1 of 2 checks can fail; 1 passes both an empty and a wrong answer",
        f"passes both an empty and a wrong answer: a, check 2 `{check['kind']}` (a.csv:2)",
    ]


def test_what_cannot_be_tried_is_counted_apart(tmp_path):
    limit = {"kind": "limits", "latency_ms": 3}
    unknown = {"kind": "regex", "pattern": "[a-f]{9}", "not": True}
    file = {"kind": "file", "path": "a.txt", "contains": "x"}
    (line,) = told(tmp_path, limit, limit, file, unknown, rubric=["It is kind."])
    assert line == (
        "no check was tried; not tried: 1 `file` check, 2 `limits` checks, 1 `not regex` check, 1 rubric"
    )


def test_of_many_checks_that_cannot_fail_the_first_are_named(tmp_path):
    lines = told(tmp_path, *[{"kind": "regex", "pattern": f"|{n}"} for n in range(25)])
    assert (len(lines), lines[-1]) == (22, "... and 5 more")


def test_checks_that_come_after_the_time_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "LONGEST_S", -1.0)
    assert told(tmp_path, {"kind": "exact", "value": "x"}) == [
        "no check was tried; not tried: 1 after -1 s of trials"
    ]
