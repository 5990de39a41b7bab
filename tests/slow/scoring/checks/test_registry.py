"""The table of check kinds, and how broken checks are told from checks that did not pass."""

import pytest
from support import ROOT

PASSED = [
    ("exact", "yes", {"value": "yes"}),
    ("contains", "yes", {"values": ["y", "s"]}),
    ("regex", "yes", {"pattern": "^y"}),
    ("similar", "yes", {"value": "yes"}),
    ("number", "it is 42", {"value": 42}),
    ("math", "1/2", {"value": "0.5"}),
    ("json", '{"a": 1, "b": 2}', {"value": {"a": 1}}),
    ("json_schema", '{"a": 1}', {"schema": {"type": "object"}}),
    ("tool_calls", "", {"calls": [], "order": "exact"}),
    ("limits", "", {"steps": 0}),
    ("command", "", {"run": "true"}),
    ("python", "yes", {"target": "judges_for_tests:length"}),
]


@pytest.mark.parametrize(("kind", "answer", "params"), PASSED, ids=[kind for kind, *_ in PASSED])
def test_not_turns_the_credit_of_a_kind_around(judge, monkeypatch, kind, answer, params):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "scoring" / "checks"))
    plain, opposite = judge(kind, answer, **params), judge(kind, answer, **params, **{"not": True})
    assert plain.credit > 0
    assert opposite.credit == 1 - plain.credit
    assert (plain.kind, opposite.kind) == (kind, f"not {kind}")
    assert opposite.reason.startswith(f"expected not {kind} ")


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("command", {"run": "sleep 600", "timeout_s": 0.05}),
        ("file", {"path": "link.txt", "contains": "key"}),
        ("file", {"path": "utf16.txt", "contains": "key"}),
    ],
)
def test_an_attempt_that_keeps_a_check_from_deciding_has_no_credit_either_way(judge, workspace, kind, params):
    (workspace / "link.txt").symlink_to("/etc/hostname")
    (workspace / "utf16.txt").write_text("key", encoding="utf-16")
    plain, opposite = judge(kind, **params), judge(kind, **params, **{"not": True})
    assert (plain.credit, opposite.credit) == (0, 0)
    assert plain.reason == opposite.reason
