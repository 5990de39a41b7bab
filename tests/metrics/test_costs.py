import json
from dataclasses import replace
from math import fsum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_frame, make_rollout
from support.jobs import ScriptedActor, make_job, run_job, three_or_not
from support.metrics.costs import asked, call, with_calls, with_rollouts
from support.sweeps import SETTINGS, make_result, make_run

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.core.records import Frame, PriceUse, Rollout, Trajectory
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.metrics.costs import Sums, of_run
from pytest_tfgrpo.metrics.paid import is_paid, loose
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.report.cost import cost_lines
from pytest_tfgrpo.runs.journal.journal_contents import load_run


def test_what_was_asked_is_summed_by_epoch_and_purpose() -> None:
    run = make_run({"a": [1, 0]}, {"a": [1, 1]}, {"t": [1, 0]})
    judged = call("e2.judge.a", purpose="judge", epoch=2, model="openai:judge", cost_usd=0.5)
    cost = of_run(with_calls(run, call(), judged))
    baseline, train, final = cost["epochs"]
    assert train["learning"] == {"calls": 1, "failed": 0, "unknown": 0, "tokens": 120, "usd": 0.02}
    assert baseline["learning"] == {"calls": 0, "failed": 0, "unknown": 0, "tokens": 0, "usd": 0.0}
    assert final["judge"]["usd"] == 0.5
    assert [row["rollouts"]["usd"] for row in cost["epochs"]] == [0.002, 0.002, 0.002]
    assert cost["usd"] == pytest.approx(0.526)
    assert [(row["model"], row["usd"]) for row in cost["models"]] == [
        ("openai:judge", 0.5),
        ("openai:teacher", 0.02),
    ]


@pytest.mark.parametrize("name", ["openai:m-1", "openai:m-1@lab"])
def test_a_model_that_answers_and_teaches_is_one_row(name: str) -> None:
    run = with_rollouts(make_run({"a": [1]}, {"a": [1]}, {"t": [1]}), [asked()])
    taught = call(epoch=run.phases[0].phase.epoch, model=name)
    run = with_calls(replace(run, identities={"actor": {"name": name, "identity": {}}}), taught)
    assert [(row["model"], row["calls"]) for row in of_run(run)["models"]] == [(name, 2)]
    other = replace(run, identities={"actor": {"name": "openai:m-12", "identity": {}}})
    assert [row["model"] for row in of_run(other)["models"]] == ["m-1", name]


@pytest.mark.parametrize(
    ("frame", "paid"),
    [
        (asked(cost_usd=None, tokens=0, usage=None), True),  # it may have cost something
        (asked(cost_usd=0.0, tokens=0, usage=None), False),
        (asked(cost_usd=0.0), True),
        (make_frame(cost_usd=None, tokens=0), False),
        (make_frame(cost_usd=0.01, tokens=0), True),
    ],
)
def test_an_attempt_is_paid_where_a_model_was_called_at_an_unknown_cost(frame: Frame, paid: bool) -> None:
    assert is_paid(make_rollout(frames=(make_frame(tokens=0), frame))) == paid


def test_attempts_that_are_in_no_group_come_by_their_ids_and_those_abandoned_last() -> None:
    (group,) = make_run(final={"a": [1]}).phases[-1].groups
    first, second, third, last = (make_rollout(n, None) for n in range(4))
    assert loose([group], [*group.rollouts, last, second], [third, first]) == (second, last, first, third)


def test_an_unknown_cost_is_counted_and_never_0() -> None:
    run = with_rollouts(
        make_run(final={"a": [1, 1]}), [asked(cost_usd=None)], [asked(cost_usd=None), asked(cost_usd=None)]
    )
    cost = of_run(run)
    assert (cost["usd"], cost["unknown"], cost["calls"]) == (None, 3, 3)
    assert cost["solved"]["usd_each"] is None
    assert cost["models"][0]["usd"] is None


def test_a_partly_known_cost_is_the_sum_of_what_is_known_and_no_quotient_is_made_of_it() -> None:
    cost = of_run(with_rollouts(make_run(final={"a": [1, 1]}), [asked()], [asked(), asked(cost_usd=None)]))
    assert (cost["usd"], cost["unknown"]) == (0.02, 1)
    assert cost["solved"] == {"scenarios": 1, "usd_each": None, "gained": None, "usd_each_gained": None}


def test_calls_that_failed_are_counted_with_what_they_cost() -> None:
    run = with_rollouts(make_run(final={"a": [1, None]}), [asked()], [asked(error="timeout")])
    failed = call(epoch=2, error="timeout: none in 2 s", cost_usd=None, usage=None)
    cost = of_run(with_calls(run, failed))
    assert (cost["calls"], cost["failed"], cost["unknown"], cost["usd"]) == (3, 2, 1, 0.02)


def test_tokens_are_told_by_kind_where_servers_told_them() -> None:
    run = with_rollouts(make_run(final={"a": [1, 1]}), [asked()], [asked(usage=None)])
    cost = of_run(run)
    assert cost["usage"] == {"prompt": 100, "completion": 20, "reasoning": 5, "cached": 40}
    assert of_run(make_run(final={"a": [1]}))["usage"] is None


def test_a_lesson_costs_its_share_of_the_calls_for_learning() -> None:
    run = with_calls(make_run(train={"t": [1, 0]}), call("a"), call("b"))
    assert of_run(run)["lesson"] == {"lessons": 2, "usd_each": 0.02}
    revision = run.phases[0].revision
    assert revision is not None
    fewer = replace(revision, applied=(*revision.applied[:1], Operation(kind="remove", targets=("a",))))
    run = replace(run, phases=(replace(run.phases[0], revision=fewer),))
    assert of_run(run)["lesson"] == {"lessons": 1, "usd_each": 0.04}
    assert of_run(make_run(train={"t": [1, 0]}))["lesson"] is None


def test_a_solved_scenario_costs_its_share_of_the_final_sweep() -> None:
    run = make_run({"a": [1, 0], "b": [0, 0]}, {"a": [1, 1], "b": [1, None]})
    assert of_run(run)["solved"] == {
        "scenarios": 2.0,
        "usd_each": pytest.approx(0.002),
        "gained": 1.5,
        "usd_each_gained": pytest.approx(0.008 / 1.5),
    }
    before, after = run.phases
    both = replace(before, groups=before.groups[1:], shared=(replace(after.groups[0], shared=True),))
    assert of_run(replace(run, phases=(both, after)))["solved"]["gained"] == 1.0
    worse = of_run(make_run({"a": [1]}, {"a": [0]}))["solved"]
    assert (worse["usd_each"], worse["gained"], worse["usd_each_gained"]) == (None, -1.0, None)


def test_what_is_left_of_a_budget_and_what_is_over_it_is_told() -> None:
    settings = SETTINGS | {"budget_usd": 0.0015, "budget_tokens": 1000}
    cost = of_run(make_run(final={"a": [1, 0]}, settings=settings))
    assert cost["budget"] == {
        "usd": {"limit": 0.0015, "used": 0.002, "left": 0, "over": pytest.approx(0.0005)},
        "tokens": {"limit": 1000, "used": 201, "left": 799, "over": 0},
    }
    assert of_run(make_run(final={"a": [1]}))["budget"] is None


def journaled(folder: Path) -> tuple[float, int]:
    """Return the cost and the number of all attempts and calls in a journal, read line by line."""
    costs = []
    for text in (folder / JOURNAL).read_text().splitlines():
        event = json.loads(text)
        if event["event"] in ("rollout", "abandoned", "call"):
            costs.append(event["data"]["cost_usd"])
    return fsum(cost or 0.0 for cost in costs), len(costs)


def test_the_sums_are_those_of_the_journal_also_of_a_run_that_a_budget_ended(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        job_budget=Budget({"budget_usd": 0.25}),
        budget_usd=0.25,
        concurrency=3,
    )
    run, _ = run_job(job, folder)
    assert run.status == "incomplete"
    assert any(result.loose for result in run.phases)
    cost = of_run(run)
    assert (cost["usd"], cost["calls"]) == (pytest.approx(journaled(folder)[0]), journaled(folder)[1])
    assert of_run(load_run(folder)) == cost


def test_an_attempt_that_the_budget_ended_counts(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    frame = Frame(kind="model", name="m", cost_usd=0.03, tokens=7)

    def answer(ask: ActorCall) -> str:
        if ask.scenario.id == "eval-1":
            raise ProviderError("no more", "budget", frames=(frame,))
        return "3"

    run, _ = run_job(make_job(ScriptedActor(answer), tmp_path), folder)
    lost = [r for result in run.phases for r in result.loose if r.failure and r.failure.code == "budget"]
    assert lost
    assert of_run(run)["usd"] == pytest.approx(journaled(folder)[0])
    assert of_run(load_run(folder)) == of_run(run)


# the bill


def test_nothing_is_shown_when_nothing_cost_anything() -> None:
    free = with_rollouts(make_run(final={"a": [1, 1]}), [asked(cost_usd=0.0)], [asked(cost_usd=0.0)])
    assert cost_lines(of_run(free), 80) == []
    silent = with_rollouts(make_run(final={"a": [1, 1]}), [], [])
    assert cost_lines(of_run(silent), 80) == []


def test_a_bill_tells_purposes_models_and_what_is_unknown() -> None:
    run = make_run({"a": [0, 0]}, {"a": [1, 1]}, {"t": [1, 0]}, settings=SETTINGS | {"budget_usd": 1.0})
    unknown = call("b", cost_usd=None, error="timeout: none in 2 s", usage=None)
    assert cost_lines(of_run(with_calls(run, call("a"), unknown)), 80) == [
        "purpose   calls  failed  tokens     cost",
        "rollouts      6       0     603  $0.0060",
        "learning      2       1     120   $0.02+",
        "total         8       1     723   $0.03+",
        "model           calls  prompt  cached  completion  reasoning    cost",
        "openai:teacher      2     100      40          20          5  $0.02+",
        "calls without a known cost: 1 (openai:teacher 1); sums marked + leave them out",
        "per solved scenario $0.0020 (1 in the final sweep); per scenario gained ? (1",
        "  more than before, at the cost of the whole run)",
        "per lesson ? (2 learned)",
        "budget_usd  at least $0.03 of $1.00 used, $0.97 left",
    ]


def test_a_bill_says_which_tables_it_counted_by_and_a_journal_keeps_it(tmp_path: Path) -> None:
    run = make_run(final={"a": [1, 1]})
    uses = (
        PriceUse(model="a", table="the packaged table of 2026-08"),
        PriceUse(model="b", table="models.yaml"),
    )
    paid = with_rollouts(run, [asked(cost_usd=0.5)], [asked(cost_usd=0.5)])
    (one,) = [t for t in cost_lines(of_run(replace(paid, prices=uses[:1])), 80) if t.startswith("prices")]
    assert one == "prices of the packaged table of 2026-08"
    (two,) = [t for t in cost_lines(of_run(replace(paid, prices=uses)), 80) if t.startswith("prices")]
    assert two == "prices a of the packaged table of 2026-08; b of models.yaml"
    folder = tmp_path / "demo" / "runs" / "run1"
    actor = ScriptedActor(three_or_not)
    model = SimpleNamespace(
        name="scripted", paid=True, price=Price(input=1.0, output=1.0, table="models.yaml")
    )
    made, _ = run_job(replace(make_job(actor, tmp_path), models={"scripted": model}), folder)
    assert made.prices == (PriceUse(model="scripted", table="models.yaml"),)
    assert load_run(folder).prices == made.prices


def test_a_model_whose_price_is_unknown_has_a_bill_without_a_sum() -> None:
    run = with_rollouts(make_run(final={"a": [1, 1]}), [asked(cost_usd=None)], [asked(cost_usd=None)])
    lines = cost_lines(of_run(run), 80)
    assert lines[1].split() == ["rollouts", "2", "0", "240", "?"]
    assert "calls without a known cost: 2 (m-1 2); sums marked + leave them out" in lines


def test_a_name_of_a_model_cannot_break_out_of_its_line() -> None:
    run = with_rollouts(make_run(final={"a": [1, 1]}), [asked("\x1b[2J" + "x" * 99)], [asked("a\nb")])
    for line in cost_lines(of_run(run), 80):
        assert line.isprintable()
        assert len(line) <= 100


def test_a_rollout_outside_of_groups_is_no_part_of_the_sweeps_that_are_compared() -> None:
    run = make_run(final={"a": [1, 0]})
    lost: Rollout = make_rollout(7, None, epoch=2, cost_usd=0.5)
    cost = of_run(replace(run, phases=(replace(run.phases[0], loose=(lost,)),)))
    assert cost["usd"] == pytest.approx(0.502)
    assert cost["solved"]["scenarios"] == 0.5


def test_a_tool_without_a_cost_costs_nothing_beside_what_is_known() -> None:
    tool = Frame(kind="tool", name="count")
    model = Frame(kind="model", name="m", cost_usd=0.5)
    assert Trajectory(answer="3", frames=(tool, model)).cost_usd == 0.5
    assert (
        Trajectory(answer="3", frames=(tool, Frame(kind="tool", name="paid", cost_usd=0.1))).cost_usd == 0.1
    )
    assert Trajectory(answer="3", frames=(tool, Frame(kind="model", name="m"))).cost_usd is None
    assert Trajectory(answer="3", frames=(tool,)).cost_usd is None


def test_the_bill_names_the_models_whose_cost_is_unknown() -> None:
    frames = (Frame(kind="tool", name="count"), Frame(kind="model", name="house-model"))
    run = with_rollouts(make_run(final={"a": [1, 1]}), frames, [])
    told = " ".join(cost_lines(of_run(run), 200))
    assert "calls without a known cost: 2 (house-model 1, rollouts that report no model call 1)" in told


def _model(**fields: Any) -> Frame:
    return Frame(kind="model", name="m", **fields)


@pytest.mark.parametrize(
    ("fields", "calls", "failed", "unknown", "costs"),
    [
        ({"frames": (), "cost_usd": 0.0}, 1, 0, 0, [0.0]),
        ({"frames": (), "cost_usd": None}, 1, 0, 1, []),
        ({"frames": (), "cost_usd": None, "status": "failed"}, 1, 1, 1, []),
        ({"frames": (_model(cost_usd=0.0), _model()), "cost_usd": None}, 2, 0, 1, [0.0]),
        ({"frames": (_model(), _model(error="x")), "cost_usd": None}, 2, 1, 2, []),
        ({"frames": (_model(cost_usd=0.1), _model(cost_usd=0.2)), "cost_usd": None}, 2, 0, 1, [0.1, 0.2]),
        ({"frames": (_model(), _model()), "cost_usd": 0.0, "status": "failed"}, 2, 0, 0, [0.0]),
        ({"frames": (Frame(kind="tool", name="t", cost_usd=0.3),), "cost_usd": None}, 1, 0, 1, [0.3]),
    ],
)
def test_a_rollout_adds_what_is_known_of_it_and_counts_what_is_not(
    fields: Any, calls: int, failed: int, unknown: int, costs: list[float]
) -> None:
    sums = Sums()
    sums.add_rollout(make_rollout(0, 1.0, tokens=0, **fields))
    assert (sums.calls, sums.failed, sums.unknown, sums.costs) == (calls, failed, unknown, costs)
    sums.merge(sums)
    assert (sums.calls, sums.failed, sums.unknown, sums.costs) == (
        2 * calls,
        2 * failed,
        2 * unknown,
        2 * costs,
    )


def test_calls_of_the_user_have_a_row_of_their_own_and_those_of_no_known_purpose_count_as_learning() -> None:
    run = make_run(final={"a": [1]})
    alone = of_run(with_calls(run, call("a", epoch=2, purpose="summary")))["epochs"][0]
    assert alone["learning"]["calls"] == 1
    assert "user" not in alone
    both = of_run(with_calls(run, call("a", epoch=2, purpose="user"), call("b", epoch=2, purpose="judge")))
    (row,) = both["epochs"]
    assert (row["user"]["usd"], row["judge"]["calls"], row["learning"]["calls"]) == (0.02, 1, 0)
    assert both["lesson"] is None
    assert both["calls"] == 3


@pytest.mark.parametrize(
    ("set_", "rows"),
    [
        ({}, None),
        ({"budget_usd": 0.002}, {"usd": {"limit": 0.002, "used": 0.002, "left": 0, "over": 0}}),
        ({"budget_tokens": 200}, {"tokens": {"limit": 200, "used": 201, "left": 0, "over": 1}}),
    ],
)
def test_only_a_budget_that_is_set_has_a_row(set_: dict[str, float], rows: Any) -> None:
    assert of_run(make_run(final={"a": [1, 0]}, settings=SETTINGS | set_))["budget"] == rows


def test_where_nothing_was_known_of_the_cost_a_budget_counts_none_of_it_used() -> None:
    run = with_rollouts(make_run(final={"a": [1]}), [asked(cost_usd=None)])
    found = of_run(replace(run, settings=SETTINGS | {"budget_usd": 1.0}))
    assert (found["usd"], found["budget"]["usd"]["used"], found["budget"]["usd"]["left"]) == (None, 0.0, 1.0)


def test_attempts_made_elsewhere_cost_this_run_nothing_and_those_of_the_dev_split_do() -> None:
    run = make_run(final={"a": [1]})
    given = make_result({"e": [1, 1]}, epoch=1, mode="evidence")
    dev = make_result({"d": [1, 1]}, epoch=1, mode="dev").groups
    found = of_run(replace(run, phases=(replace(given, dev=dev), *run.phases)))
    assert [row["rollouts"]["calls"] for row in found["epochs"]] == [2, 1]
