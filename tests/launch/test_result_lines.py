"""What a run came to in lines and rows, from its report and its records alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_rollout
from support.sweeps import evenly, make_run, rated

from pytest_tfgrpo.core.records import CheckResult, Failure, Run
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.launch.result_lines import SHOWN, faults, headline, html_of, result_lines
from pytest_tfgrpo.launch.result_rows import rows_of
from pytest_tfgrpo.report.value import build


def report(run: Run, **changes: Any) -> Any:
    return {**build(run, None), **changes}


def gate(name: str, outcome: str, *rules: tuple[str, str], gates: Any = ()) -> dict[str, Any]:
    results = [{"name": rule, "outcome": found, "message": f"{rule} is\nso"} for rule, found in rules]
    return {"name": name, "outcome": outcome, "results": results, "gates": [*gates]}


@pytest.mark.parametrize(
    ("changes", "passed", "said"),
    [
        ({"status": "killed", "reason": ""}, True, "KILLED: run run1: not all of it ran"),
        ({"status": "aborted", "reason": "no\nkey"}, True, "ABORTED: run run1: no key"),
        ({"epochs": []}, True, "NOTHING RAN: run run1: no scenario of the eval split was selected"),
        ({}, True, "complete: run run1, without a gate"),
        ({}, False, "FAILED: run run1: a replay lacks answers; see problems"),
        ({"gate": gate("", "pass", ("a", "pass"))}, True, "passed: run run1"),
        ({"gate": gate("", "inconclusive", ("a", "inconclusive"))}, True, "inconclusive: run run1"),
        (
            {
                "gate": gate(
                    "",
                    "fail",
                    ("a", "fail"),
                    ("b", "pass"),
                    gates=[gate("x", "pass", ("c", "fail")), gate("y", "fail", ("d", "fail"))],
                )
            },
            False,
            "FAILED: run run1: a: a is so; d: d is so",
        ),
    ],
)
def test_the_headline_says_how_a_run_ended(changes: Any, passed: bool, said: str) -> None:
    assert headline(report(make_run(final={"a": [1]}), **changes), passed) == said


def test_a_gain_is_told_with_its_interval_where_there_is_one() -> None:
    def gain(run: Run, **changes: Any) -> str:
        value = report(run)
        value["gain"] = value["gain"] and {**value["gain"], **changes}
        return result_lines(value, True, "")[2]

    few = make_run({"a": [0]}, {"a": [1]})
    assert gain(few) == "gain     +1.000 (0.000 to 1.000), too few for an interval, 1 scenario"
    many = make_run(evenly(12, [1, 0]), {**evenly(6, [1, 1]), **{f"s{n}": [0, 1] for n in range(6, 12)}})
    low = gain(many).split("95 % interval ")[1]
    assert gain(many).startswith("gain     +0.250 (0.500 to 0.750), 95 % interval +0.")
    assert low.endswith(", 12 scenarios")
    for lacks in ("difference", "before", "after"):
        assert gain(few, **{lacks: None}) == "gain     not measured"
    assert gain(make_run(final={"a": [1]})) == "gain     not measured"


def test_the_cost_is_told_as_far_as_it_is_known() -> None:
    def cost(value: Any) -> str:
        return result_lines(report(make_run(final={"a": [1]}), cost=value), True, "out/x")[4]

    assert cost({"usd": 0.5, "tokens": 1200}) == "cost     $0.50, 1.2k tokens"
    assert cost({"usd": None, "tokens": 7}) == "cost     unknown, 7 tokens"
    assert cost(None) == "cost     unknown"
    value = report(make_run(final={"a": [1, 0]}), cost=None)
    assert result_lines(value, True, "out/x")[5] == "files    out/x"
    assert result_lines(value, True, "")[5] == "files    none were written"
    assert result_lines(value, True, "")[3].startswith("score    0.500 mean of 2 rollouts of 1 scenario, ")
    assert result_lines({**value, "epochs": []}, True, "")[3] == "score    none"
    assert all(len(text) < 215 for text in result_lines({**value, "run_id": "x" * 999}, True, ""))


def test_a_table_has_the_worst_answer_of_each_scenario_and_agent() -> None:
    run = make_run(final={"a": [1, 0.25, 0.5], "b": [None, 0.5], "date": [1, -1]})
    other = make_run(final={"a": [1]})
    (group, *rest) = run.phases[-1].groups
    answers = ("first", "worst", "middle")
    rollouts = tuple(replace(r, answer=text) for r, text in zip(group.rollouts, answers, strict=True))
    last = replace(run.phases[-1], groups=(replace(group, rollouts=rollouts), *rest))
    run = replace(run, phases=(*run.phases[:-1], last))
    shown = html_of(["<b>"], {"x": run, "y": other})
    assert "<pre>&lt;b&gt;</pre>" in shown
    heads = ("scenario", "domain", "x: score", "x: answer", "y: score", "y: answer")
    assert "".join(f"<th>{head}</th>" for head in heads) in shown
    cells = [
        ("a", "text", "0.583 (1 of 3 passed)", "worst", "1.000 (1 of 1 passed)", "3"),
        ("b", "text", "0.500 (0 of 2 passed)", "4", "-", ""),
        ("date", "dates", "0.500 (1 of 2 passed)", "timeout: no answer in 2 s", "-", ""),
    ]
    for row in cells:
        assert "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" in shown
    assert "more scenario" not in shown
    assert "<th>score</th><th>answer</th>" in html_of([], {"x": run})
    assert "<table>" not in html_of(["nothing"], {"x": make_run()})


def test_rows_have_what_was_scored_and_at_last_what_nothing_scored() -> None:
    run = rated(make_run(final={"a": [1, 0]}), {"a": [0.5, 0.25]}, name="zeal")
    run = rated(run, {"a": [0.1, 0.2]}, name="status")
    lost = make_rollout(
        7, None, scenario_id="gone", epoch=2, failure=Failure(code="timeout", message="late"), tokens=9
    )
    dev = make_run(final={"a": [1]}).phases[-1].groups
    last = replace(run.phases[-1], loose=(lost,), dev=dev)
    rows = rows_of(replace(run, phases=(*run.phases[:-1], last)), "me")
    assert [(row["scenario"], row["rollout"], row["score"], row["reward"]) for row in rows] == [
        ("a", 0, 1.0, 1.0),
        ("a", 1, 0.0, 0.0),
        ("a", 0, 1.0, 1.0),
        ("gone", 7, None, None),
    ]
    assert [row["passed"] for row in rows] == [True, False, True, None]
    assert [*rows[0]][-3:] == ["check.exact", "metric.status", "zeal"]
    assert [row["zeal"] for row in rows] == [0.5, 0.25, None, None]
    assert (rows[0]["status"], rows[0]["metric.status"], rows[0]["agent"]) == ("ok", 0.1, "me")
    assert [rows[3][name] for name in ("split", "domain", "tags", "prompt", "error", "tokens")] == [
        None,
        None,
        "",
        None,
        "timeout: late",
        9,
    ]
    assert (rows[0]["split"], rows[0]["error"], rows[1]["reason"]) == ("eval", None, "expected '3', got '4'")


def test_a_row_has_each_figure_of_its_own_rollout() -> None:
    checks = tuple(
        CheckResult(kind=kind, weight=1.0, credit=0.5, reason=reason)
        for kind, reason in (("exact", "no number"), ("regex", ""), ("contains", "password=hunter2hunter2"))
    )
    own = make_rollout(
        1,
        scenario_id="a",
        epoch=2,
        mode="eval",
        checks=checks,
        experiences=("l1", "l2"),
        latency_ms=12.5,
        tokens=70,
        cost_usd=None,
        run_id="own",
    )
    run = make_run(final={"a": [1, 1]}, identities={"actor": {"name": "x"}, "judge": {"name": "j"}})
    (group,) = run.phases[-1].groups
    scores = (group.scores[0], replace(group.scores[1], gt_score=0.995, reward=0.25))
    failed = replace(group.rollouts[0], status="failed", failure=Failure(code="timeout", message="late"))
    group = replace(group, rollouts=(failed, own), scores=scores)
    prompt = "How many words are in a line that is longer than others?"
    scenario = replace(run.scenarios[0], prompt=prompt, rubric=(Criterion(text="It is kind."),))
    last = replace(run.phases[-1], groups=(group,))
    lost, row = rows_of(replace(run, phases=(last,), scenarios=(scenario,)), "me")
    assert row["reason"] == "no number; password=[redacted:named]"
    assert (row["passed"], row["score"], row["reward"]) == (False, 0.995, 0.25)
    assert (row["latency_ms"], row["tokens"], row["cost_usd"], row["lessons"]) == (12.5, 70, None, 2)
    assert (row["epoch"], row["rollout"], row["run_id"], row["prompt"]) == (2, 1, "own", prompt)
    assert {name: lost[name] for name in lost if name.startswith("judge.")} == {"judge.it-is-kind": 0.0}


def test_faults_are_counted_over_all_codes_and_the_most_frequent_is_told() -> None:
    many = make_run(final={"a": [-1, -1, -1, 1], "b": [None, None, 1]})
    few = make_run(final={"a": [-1, 1], "b": [None, None, 1]})
    assert faults(report(many)).startswith("3 without an answer, 2 errors (timeout: no answer in 2 s")
    assert faults(report(few)).startswith("1 without an answer, 2 errors (provider: 503 from the provider")


def test_a_table_of_agents_has_the_scenarios_of_any_of_them_and_no_line_is_endless() -> None:
    long = "z" * 100
    failing = make_run(final={"date1": [1], long: [-1]})
    (one, other) = failing.phases[-1].groups
    told = Failure(code="crash", message="no " * 200)
    other = replace(other, rollouts=(replace(other.rollouts[0], failure=told),))
    failing = replace(failing, phases=(replace(failing.phases[-1], groups=(one, other)),))
    shown = html_of([], {"x": make_run(final={"a": [1]}), "y": failing})
    assert "<td>date1</td><td>dates</td><td>-</td><td></td>" in shown
    assert long not in shown
    assert f"<td>{'z' * 70}" in shown
    assert "no " * 100 not in shown
    many = make_run(final={f"s{n}": [1] for n in range(SHOWN + 1)})
    assert "<p>1 more scenario: <code>rows()</code> has all</p>" in html_of([], {"x": many})


def test_a_table_counts_the_answers_that_the_last_sweep_shares() -> None:
    run = make_run(final={"a": [1], "b": [0]})
    last = run.phases[-1]
    shared = replace(last, groups=last.groups[:1], shared=last.groups[1:])
    assert html_of([], {"x": replace(run, phases=(shared,))}) == html_of([], {"x": run})
