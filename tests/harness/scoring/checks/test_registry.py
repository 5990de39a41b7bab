"""The table of check kinds, and how broken checks are told from checks that did not pass."""

import threading

import pytest

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, Task
from pytest_tfgrpo.core.schema import load_schema
from pytest_tfgrpo.harness.sandbox.workspace import Workspace
from pytest_tfgrpo.harness.scoring.checks.protocol import CheckContext, CheckKind
from pytest_tfgrpo.harness.scoring.checks.registry import KINDS, evaluate, is_blocking


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


def test_only_quick_checks_of_the_answer_do_without_a_thread():
    assert {name for name in KINDS if not is_blocking([Check(kind=name)], KINDS)} == {
        "exact",
        "contains",
        "number",
        "json",
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
    credits = []

    def work():
        for _ in range(20):
            credits.extend(r.credit for r in evaluate(checks, context(tmp_path, "aab"), KINDS))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert credits == [1.0] * 320
