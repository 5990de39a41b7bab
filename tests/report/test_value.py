import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_scenario
from support.sweeps import SETTINGS, evenly, make_run

from pytest_tfgrpo.core.lessons import Library, Operation, Refusal, Revision
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.metrics.epochs import per_epoch
from pytest_tfgrpo.report.value import build


def report(run: Run, **changes: Any) -> dict[str, Any]:
    return build(run, judge(run, baseline=None, settings=SETTINGS), **changes)


RUN = make_run(
    {"a": [1, 0], "b": [1, 1], "date1": [0, 0], "date2": [0, None]},
    {"a": [1, 1], "b": [0, 0.5], "date1": [1, -1], "date2": [1, 1]},
    {"t": [1, 0]},
)


def test_a_report_fits_its_schema_and_is_plain_json() -> None:
    value = report(RUN, sections=["extra"], files="out/demo/runs/run1")
    assert violations("report", value) == []
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    assert value["epochs"] == per_epoch(RUN)["epochs"]


def test_equal_runs_give_equal_reports_but_for_ids_and_times() -> None:
    phases = {"baseline": {"a": [1, None]}, "final": {"a": [0.5, -1]}, "train": {"t": [1, 0]}}
    one = report(make_run(**phases))
    two = report(make_run(**phases, run_id="run2", started_at="x", finished_at="y"))
    again = json.loads(json.dumps(two).replace("run2", "run1"))
    assert again | {key: one[key] for key in ("started_at", "finished_at")} == one


def test_the_gain_is_paired_and_also_told_with_errors_as_0() -> None:
    gain = report(RUN)["gain"]
    assert (gain["n"], gain["before"], gain["after"]) == (4, 0.375, 0.6875)
    assert gain["errors_as_zero"]["difference"] == gain["difference"] == 0.3125
    assert report(make_run({"a": [0]}, {"a": [1]}))["gain"]["errors_as_zero"] is None


@pytest.mark.parametrize(
    "run", [make_run({"a": [1]}), make_run(final={"a": [1]})], ids=["no-end", "no-start"]
)
def test_without_both_sweeps_there_is_no_gain(run: Run) -> None:
    assert report(run)["gain"] is None
    assert violations("report", report(run)) == []


def test_domains_have_their_own_means_and_gains() -> None:
    dates, text = report(RUN)["domains"]
    assert (dates["domain"], dates["scenarios"], dates["mean"]) == ("dates", 2, 0.75)
    assert (text["domain"], text["gain"]["difference"]) == ("text", -0.125)


def test_the_five_largest_regressions_come_worst_first() -> None:
    before = {f"s{i}": [1] for i in range(8)}
    after = {f"s{i}": [i / 8] for i in range(7)} | {"s7": [1]}
    rows = report(make_run(before, after))["regressions"]
    assert [row["scenario"] for row in rows] == ["s0", "s1", "s2", "s3", "s4"]
    assert rows[0] == {"scenario": "s0", "domain": "text", "before": 1, "after": 0, "difference": -1} | {
        "flaky": False
    }


def test_scenarios_are_followed_through_the_phases() -> None:
    rows = {row["id"]: row for row in report(RUN)["scenarios"]}
    assert [(p["epoch"], p["mean"], p["errors"]) for p in rows["date2"]["epochs"]] == [(0, 0, 1), (2, 1, 0)]
    assert [(p["epoch"], p["mode"]) for p in rows["t"]["epochs"]] == [(1, "train")]


def test_faults_are_counted_by_whose_they_are() -> None:
    assert report(RUN)["faults"] == {"errors": {"provider": 1}, "failed": {"timeout": 1}}


def test_the_library_tells_how_many_groups_carried_a_lesson() -> None:
    library = report(RUN)["library"]
    assert (library["groups"], library["informative_groups"], library["lesson_groups"]) == (1, 1, 1)
    assert [lesson["polarity"] for lesson in library["lessons"]] == ["do", "avoid"]


def trained(revision: Revision) -> Run:
    run = make_run(train={"t": [1, 1]})
    return replace(run, phases=(replace(run.phases[0], revision=revision),))


def test_refusals_are_counted_by_code() -> None:
    operation = Operation(kind="add", experience=make_experience())
    refused = tuple(Refusal(operation=operation, code=c, reason="") for c in ("leak", "duplicate", "leak"))
    found = report(trained(Revision(epoch=1, library=Library(), refused=refused)))
    assert found["library"]["refused"] == {"duplicate": 1, "leak": 2}


def test_what_a_phase_has_to_say_is_a_warning() -> None:
    noted = report(trained(Revision(epoch=1, library=Library(), note="no group had mixed results")))
    assert noted["warnings"] == ["epoch1: no group had mixed results"]
    run = make_run(final=evenly(2, [1]), warnings=("3 experiences were left out",))
    aborted = replace(run.phases[0], status="aborted", reason="a rewarder hung", excluded=("x",))
    assert report(replace(run, phases=(aborted,)))["warnings"] == [
        "3 experiences were left out",
        "epoch2-eval is aborted: a rewarder hung",
        "1 of 2 scenarios of epoch2-eval was skipped by their test function (x), with 1 rollout: they "
        "do not count",
    ]


def estimated(*truths: str, split: str = "train") -> Run:
    """Return a run of one scenario per truth, in which two of three rollouts agree."""
    scenarios = tuple(
        make_scenario(f"s{n}", split=split, truth=truth, stamp=f"{n:064x}") for n, truth in enumerate(truths)
    )
    phase = {s.id: [1, 1, 0] for s in scenarios}
    phases = {"train": phase} if split == "train" else {"final": phase}
    return make_run(**phases, scenarios=scenarios)


def test_scores_without_ground_truth_are_told_as_estimates() -> None:
    found = report(estimated("majority", "judge", "checks", "majority"))
    assert found["warnings"][0] == (
        "the scores of 3 train scenarios are estimates without ground truth: 1 by the judge, 2 by majority"
    )
    assert [row.get("truth") for row in found["scenarios"]] == ["majority", "judge", None, "majority"]
    assert violations("report", found) == []
    assert "1 eval scenario are estimates" in report(estimated("judge", split="eval"))["warnings"][0]
    assert not any("estimates" in warning for warning in report(RUN)["warnings"])


def test_groups_that_could_not_vote_are_counted() -> None:
    run = estimated("majority")
    (group,) = run.phases[0].groups
    unscored = tuple(replace(s, gt_score=None, reward=None) for s in group.scores)
    phase = replace(run.phases[0], groups=(replace(group, scores=unscored),))
    assert (
        "1 group has no score: fewer than two answers of a group could vote"
        in report(replace(run, phases=(phase,)))["warnings"]
    )


credited = st.lists(st.sampled_from([1.0, 0.5, 0.0, None, -1]), min_size=2, max_size=2)
cohorts = st.dictionaries(st.sampled_from([f"s{i}" for i in range(12)] + ["date1"]), credited)


@given(cohorts | st.none(), cohorts | st.none(), st.booleans())
def test_every_report_fits_the_schema(before, after, trained: bool) -> None:
    assert violations("report", report(make_run(before, after, {"t": [1, 0]} if trained else None))) == []


def test_failures_of_the_optimizer_are_counted_and_warned_about() -> None:
    first = Revision(epoch=1, library=Library(), failures={"malformed": 2, "call": 1})
    found = report(trained(first))
    assert found["library"]["failures"] == {"call": 1, "malformed": 2}
    assert found["warnings"] == ["failed in learning: call 1, malformed 2"]
    assert report(RUN)["library"]["failures"] == {}
