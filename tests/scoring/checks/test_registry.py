"""The table of check kinds, and how broken checks are told from checks that did not pass."""

import threading
from dataclasses import replace

import pytest
from support.builders import make_frame

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.errors import CheckError, ScenarioError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, Task
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks import patterns
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, CheckKind, TooSlow
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate, is_blocking, may_look


def test_the_kinds_are_those_of_the_packaged_schema():
    assert set(KINDS) == set(load_schema("scenario")["$defs"])
    assert all(kind.name == name for name, kind in KINDS.items())


def context(tmp_path, answer=""):
    return CheckContext(
        answer=answer,
        frames=(),
        workspace=Workspace(tmp_path / "w"),
        task=Task(id="a", domain="d", prompt="p"),
    )


def kind_of(evaluate):
    return {"own": CheckKind(name="own", params={}, evaluate=evaluate)}


def test_every_planned_check_gives_one_result_in_order(tmp_path):
    checks = [Check(kind="exact", params={"value": v}, weight=w) for v, w in [("x", 1.0), ("y", 2.0)]]
    results = evaluate(checks, context(tmp_path, "x"), KINDS)
    assert [(r.kind, r.weight, r.credit) for r in results] == [("exact", 1.0, 1.0), ("exact", 2.0, 0.0)]


def test_a_check_that_raises_is_a_broken_check(tmp_path):
    def broken(check, context):
        raise KeyError("value")

    with pytest.raises(CheckError, match=r"check 'own' raised KeyError\('value'\)"):
        evaluate([Check(kind="own")], context(tmp_path), kind_of(broken))


@pytest.mark.parametrize(
    "result",
    [
        None,
        True,
        CheckResult(kind="own", weight=1, credit=1.5),
        CheckResult(kind="own", weight=1, credit=float("nan")),
    ],
)
def test_a_check_that_returns_something_else_is_a_broken_check(tmp_path, result):
    with pytest.raises(CheckError, match="must return a CheckResult with credit in"):
        evaluate([Check(kind="own")], context(tmp_path), kind_of(lambda check, context: result))


def test_only_checks_of_files_programs_and_plugins_may_look_at_the_workspace():
    looking = {name for name in KINDS if may_look([Check(kind="exact"), Check(kind=name)], KINDS)}
    assert looking == {"file", "command", "tests", "python"}
    own = kind_of(lambda check, context: None)["own"]
    assert may_look([Check(kind="own")], {"own": own})
    assert may_look([Check(kind="exact")], {"exact": own})
    assert not may_look([], KINDS)


def test_checks_of_what_a_conversation_leaves_stand_at_its_end():
    assert {name for name, kind in KINDS.items() if not kind.after_turn} == {"file", "command", "tests"}


def test_only_quick_checks_of_the_answer_do_without_a_thread():
    assert {name for name in KINDS if not is_blocking([Check(kind=name)], KINDS)} == {
        "exact",
        "contains",
        "number",
        "json",
        "limits",
    }
    assert is_blocking([Check(kind="exact"), Check(kind="command")], KINDS)
    assert is_blocking([Check(kind="own")], kind_of(lambda check, context: None))
    assert not is_blocking([], KINDS)


def test_checks_that_need_no_workspace_do_not_make_one(tmp_path):
    for kind, params in [("exact", {"value": "x"}), ("regex", {"pattern": "x"}), ("json", {"value": 1})]:
        evaluate([Check(kind=kind, params=params)], context(tmp_path, "x"), KINDS)
    assert not (tmp_path / "w").exists()


def test_checks_can_be_evaluated_on_many_threads_at_once(tmp_path):
    checks = [Check(kind="regex", params={"pattern": "a+b"}), Check(kind="exact", params={"value": "aab"})]
    credited = []

    def work():
        for _ in range(20):
            credited.extend(r.credit for r in evaluate(checks, context(tmp_path, "aab"), KINDS))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert credited == [1.0] * 320


def test_not_passes_what_the_kind_fails(judge):
    assert judge("contains", "all is well", value="sorry", **{"not": True}).passed
    assert judge("file", path="secret.txt", contains="key", **{"not": True}).passed


def test_hidden_tests_cannot_be_turned_around(load, folder):
    (folder / "h.tar.gz").write_bytes(b"")
    with pytest.raises(ScenarioError, match="#/checks/0/not: a check of kind 'tests' cannot be turned"):
        load(
            "tests",
            runner="pytest",
            hidden="h.tar.gz",
            fail_to_pass=["tests/test_a.py::test_x"],
            **{"not": True},
        )


@pytest.mark.parametrize("wrong", ["true", 1, None])
def test_not_is_true_or_false(load, wrong):
    with pytest.raises(ScenarioError, match="#/checks/0/not: "):
        load("exact", value="x", **{"not": wrong})


def test_a_check_with_not_has_no_answer_that_a_lesson_could_leak(load):
    check = load("contains", value="as an AI", **{"not": True})
    assert KINDS["contains"].expected(check) == ()
    assert KINDS["contains"].expected(load("contains", value="as an AI")) == ("as an AI",)


def test_a_pattern_is_searched_at_once_and_on_a_thread_where_that_takes_long(tmp_path, monkeypatch):
    checks = [Check(kind="regex", params={"pattern": "(x+x+)+y"})]
    monkeypatch.setattr(patterns, "AT_ONCE_S", 100.0)
    for answer in ("xxy", "b"):
        seen = context(tmp_path, answer)
        assert evaluate(checks, seen, KINDS, at_once=True) == evaluate(checks, seen, KINDS)
    monkeypatch.setattr(patterns, "AT_ONCE_S", 0.002)
    with pytest.raises(TooSlow):
        evaluate(checks, context(tmp_path, "x" * 100_000), KINDS, at_once=True)


def test_a_pattern_that_is_searched_at_once_has_its_flags(tmp_path):
    for flags in ("", "i"):
        check = Check(kind="regex", params={"pattern": "rome", "flags": flags})
        (found,) = evaluate([check], context(tmp_path, "ROME"), KINDS, at_once=True)
        assert found.passed is (flags == "i")


def test_checks_that_need_a_thread_are_not_begun_without_one(tmp_path):
    begun = []
    own = CheckKind(name="own", params={}, evaluate=lambda check, _: begun.append(check), blocking=False)
    with pytest.raises(TooSlow):
        evaluate(
            [Check(kind="own"), Check(kind="command")], context(tmp_path), {**KINDS, "own": own}, at_once=True
        )
    assert not begun


def test_a_check_of_a_turn_sees_what_the_agent_did_in_it_and_names_it(tmp_path):
    frames = (
        make_frame("user", kind=USER, output="hello"),
        make_frame("search", latency_ms=100.0),
        make_frame("user", kind=USER, input="one", output="and now?"),
        make_frame("open", latency_ms=20.0),
        make_frame("open", latency_ms=30.0),
    )
    talk = replace(context(tmp_path, "two"), frames=frames, latency_ms=900.0)

    def reasons(kind, params, **changes):
        checks = [Check(kind=kind, params=params, turn=turn, **changes) for turn in (1, 2, 3, None)]
        return [result.reason for result in evaluate(checks, talk, KINDS)]

    gone = "turn 3 was not reached"
    assert reasons("exact", {"value": "one"}) == [
        "",
        "turn 2: expected 'one', got 'two'",
        gone,
        "expected 'one', got 'two'",
    ]
    assert reasons("tool_calls", {"allowed": ["open"]}) == [
        "turn 1: called 'search', allowed are ['open']",
        "",
        gone,
        "called 'search', allowed are ['open']",
    ]
    assert reasons("limits", {"latency_ms": 60}) == [
        "turn 1: took too much: latency_ms 100 of at most 60",
        "",
        gone,
        "took too much: latency_ms 900 of at most 60",
    ]


def test_the_opposite_of_a_part_is_the_rest_and_says_what_was_found(tmp_path):
    def part(check, context):
        return CheckResult(kind="own", weight=1.0, credit=0.25, reason="a quarter")

    (found,) = evaluate([Check(kind="own", negated=True)], context(tmp_path), kind_of(part))
    assert (found.kind, found.credit) == ("not own", 0.75)
    assert found.reason == "expected not own {}: a quarter"
