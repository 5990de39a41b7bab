"""The words of a row in the scenario table."""

from dataclasses import replace

import pytest
from support.builders import make_scenario
from support.sweeps import make_run

from pytest_tfgrpo.core.records import CheckResult, Failure, Run
from pytest_tfgrpo.core.scenarios import Check, Criterion, Scenario, SimulatedUser
from pytest_tfgrpo.report.page.grid import grid
from pytest_tfgrpo.report.page.previews import Preview, expected, previews
from pytest_tfgrpo.report.value import build


def said(run: Run) -> list[Preview]:
    return previews(grid(build(run, None), run), run)


def checked(*checks: Check, **changes: object) -> Scenario:
    return replace(make_scenario("s"), checks=checks, **changes)  # type: ignore[arg-type]


def test_a_row_quotes_its_worst_rollout_at_the_end() -> None:
    (row,) = said(make_run({"a": [0, 0]}, {"a": [1, 0.5, 0.5]}))
    assert row.rollout == 1
    assert row.failed != ""


def test_a_row_that_passed_has_no_failed_check() -> None:
    (row,) = said(make_run(final={"a": [1, 1]}))
    assert (row.rollout, row.failed) == (0, "")


def test_an_error_is_quoted_only_where_nothing_was_scored() -> None:
    mixed, broken = said(make_run(final={"a": [None, 1], "b": [None, None]}))
    assert (mixed.rollout, broken.rollout) == (1, 0)
    assert broken.failed != ""


def test_a_failure_of_the_agent_stands_before_its_checks() -> None:
    run = make_run(final={"a": [0]})
    (group,) = run.phases[0].groups
    rollout = replace(
        group.rollouts[0],
        status="failed",
        failure=Failure(code="timeout", message="no answer in 2 s"),
        checks=(CheckResult(kind="exact", weight=1, credit=0),),
    )
    changed = replace(run.phases[0], groups=(replace(group, rollouts=(rollout,)),))
    (row,) = said(replace(run, phases=(changed,)))
    assert row.failed == "timeout: no answer in 2 s"


@pytest.mark.parametrize(
    ("scenario", "text"),
    [
        (checked(Check(kind="exact", params={"value": "42"})), "42"),
        (checked(Check(kind="exact", params={"value": "42"}, negated=True)), "not exact 42"),
        (checked(Check(kind="regex", params={"pattern": "a+"})), "regex a+"),
        (checked(*[Check(kind="contains", params={"value": n}) for n in range(5)]),
         "contains 0; contains 1; contains 2; and 2 more"),
        (checked(rubric=(Criterion(text="is polite"),)), "is polite"),
        (checked(checker="tests/test_a.py::test_sum"), "test_sum passes"),
        (checked(), ""),
    ],
)  # fmt: skip
def test_what_is_expected_is_told_in_a_few_words(scenario: Scenario, text: str) -> None:
    assert expected(scenario) == text


def test_a_conversation_is_all_that_its_user_says_and_wants() -> None:
    run = make_run(final={"a": [1]})
    user = SimulatedUser(goal="A window table.", persona="In a hurry.")
    turns = ("A table, please.", "For four.")
    (row,) = said(replace(run, scenarios=(replace(run.scenarios[0], prompt=turns[0], turns=turns),)))
    assert row.task == "A table, please. / For four."
    talk = replace(run.scenarios[0], prompt=turns[0], turns=turns[:1], user=user)
    (row,) = said(replace(run, scenarios=(talk,)))
    assert row.task == "A table, please. / (a model plays the user: A window table.)"


def test_secrets_and_long_texts_are_cut() -> None:
    secret = "sk-" + "a1B2c3D4e5F6g7H8" * 3
    run = make_run(final={"a": [1]})
    run = replace(run, scenarios=(replace(run.scenarios[0], prompt=f"use {secret} " + "word " * 400),))
    (row,) = said(run)
    assert secret not in row.task
    assert len(row.task) <= 240


def test_a_scenario_that_did_not_run_has_a_task_alone() -> None:
    run = make_run(final={"a": [1]})
    run = replace(run, scenarios=(*run.scenarios, replace(run.scenarios[0], id="b", prompt="Why?")))
    row = said(run)[1]
    assert (row.task, row.answer, row.rollout) == ("Why?", "", -1)


def test_a_row_that_failed_its_checks_quotes_the_first_and_says_how_many_more() -> None:
    def fault(*checks: CheckResult) -> str:
        run = make_run(final={"a": [0]})
        result = run.phases[-1]
        (group,) = result.groups
        rollout = replace(group.rollouts[0], checks=checks, failure=None)
        group = replace(group, rollouts=(rollout,))
        (row,) = said(replace(run, phases=(*run.phases[:-1], replace(result, groups=(group,)))))
        return row.failed

    missed = CheckResult(kind="exact", weight=1.0, credit=0.0, reason="not 7")
    assert fault(missed) == "exact: not 7"
    assert (
        fault(replace(missed, credit=1.0), missed, replace(missed, kind="json"))
        == "exact: not 7 (and 1 more)"
    )
    assert fault(replace(missed, reason="")) == "exact: not passed"
    assert fault(replace(missed, credit=1.0)) == "a rewarder scored below 1"
