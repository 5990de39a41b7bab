import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_scenario
from support.sweeps import SETTINGS, evenly, make_result, make_run, with_placebo

from pytest_tfgrpo.core.lessons import Library, Operation, Refusal, Revision
from pytest_tfgrpo.core.records import Reference, Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.gate.named_gates import NamedVerdict
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


def refusal(code: str, text: str = "Count.", reason: str = "") -> Refusal:
    operation = Operation(kind="add", experience=make_experience(summary32=text))
    return Refusal(operation=operation, code=code, reason=reason)


def epochs(*revisions: Revision) -> Run:
    run = make_run(train={"t": [1, 0]})
    (result,) = run.phases
    return replace(
        run,
        phases=tuple(
            replace(result, phase=replace(result.phase, epoch=revision.epoch), revision=revision)
            for revision in revisions
        ),
    )


def test_what_was_learned_is_summed_over_all_epochs() -> None:
    found = report(
        epochs(
            Revision(
                epoch=1,
                library=Library(),
                informative_groups=1,
                lesson_groups=2,
                failures={"call": 1},
                refused=(refusal("leak"),),
            ),
            Revision(
                epoch=2,
                library=Library(),
                informative_groups=4,
                lesson_groups=8,
                failures={"call": 2, "malformed": 1},
                refused=(refusal("leak"), refusal("duplicate")),
            ),
        )
    )["library"]
    assert (found["groups"], found["informative_groups"], found["lesson_groups"]) == (2, 5, 10)
    assert found["refused"] == {"duplicate": 1, "leak": 2}
    assert found["failures"] == {"call": 3, "malformed": 1}


def test_a_refused_lesson_is_listed_once_with_its_first_epoch_and_repetitions_last() -> None:
    first = Revision(epoch=2, library=Library(), refused=(refusal("duplicate", "A."), refusal("leak", "B.")))
    more = (refusal("leak", "B."), refusal("leak", "B.", "also"), refusal("leak", "C."), refusal("cap", "B."))
    rows = report(epochs(first, Revision(epoch=3, library=Library(), refused=more)))["library"]["refusals"]
    assert [tuple(row.values()) for row in rows] == [
        ("leak", "B.", "", 2, 2),
        ("leak", "B.", "also", 3, 1),
        ("leak", "C.", "", 3, 1),
        ("cap", "B.", "", 3, 1),
        ("duplicate", "A.", "", 2, 1),
    ]


def test_refused_lessons_are_shown_short_without_secrets_and_at_most_twenty() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    many = [refusal("leak", f"Lesson {n}.") for n in range(25)]
    refused = (refusal("secret", f"Use {key}.", f"it has {key}"), refusal("cap", "word " * 400), *many)
    rows = report(trained(Revision(epoch=1, library=Library(), refused=refused)))["library"]["refusals"]
    assert len(rows) == 20
    assert key not in json.dumps(rows)
    assert rows[0]["text"].startswith("Use [redacted:")
    assert rows[0]["reason"].startswith("it has [redacted:")
    assert 500 < len(rows[1]["text"]) < 700
    assert "refusals" not in report(RUN)["library"]


def test_errors_of_either_sweep_are_also_told_as_0() -> None:
    for before, after in (([1, None], [1, 1]), ([1, 1], [1, None])):
        gain = report(make_run({"a": before}, {"a": after}))["gain"]
        assert gain["difference"] == 0
        assert gain["errors_as_zero"]["difference"] == (0.5 if None in before else -0.5)


def test_the_control_says_when_the_baseline_sweep_ran() -> None:
    run = make_run({"a": [0]}, {"a": [1]})
    assert report(run)["gain"]["control"] == {"asked": "concurrent", "shared": 0, "drift": None}
    before = replace(run.phases[0], phase=replace(run.phases[0].phase, concurrent=False))
    assert report(replace(run, phases=(before, *run.phases[1:])))["gain"]["control"]["asked"] == "early"


def test_losses_within_the_spread_of_a_scenario_come_last_and_are_marked() -> None:
    before = {"wild": [1, 1, 1, 0, 0, 0], "small": [1] * 6}
    after = {"wild": [1, 0, 0, 0, 0, 0], "small": [0.9] * 6}
    rows = report(make_run(before, after))["regressions"]
    assert [(row["scenario"], row["flaky"]) for row in rows] == [("small", False), ("wild", True)]


def with_dev(*sweeps: dict[str, Any]) -> Run:
    """Return a run whose training epoch has these sweeps of the dev split."""
    known = (make_scenario("t", stamp="1" * 64), make_scenario("d", split="dev", stamp="2" * 64))
    run = make_run(train={"t": [1, 0]}, scenarios=known)
    dev = tuple(group for one in sweeps for group in make_result(one, mode="dev", scenarios=known).groups)
    return replace(run, phases=(replace(run.phases[0], dev=dev),))


def test_a_dev_scenario_has_the_mean_of_its_last_sweep_and_its_faults_are_counted() -> None:
    found = report(with_dev({"d": [0, 0]}, {"d": [1, None]}))
    (row,) = [scenario for scenario in found["scenarios"] if scenario["id"] == "d"]
    assert row["epochs"] == [{"epoch": 1, "mode": "dev", "mean": 1.0, "n": 1, "errors": 1}]
    assert found["faults"] == {"errors": {"provider": 1}, "failed": {}}


def test_only_scenarios_that_ran_are_told_as_estimates() -> None:
    known = estimated("judge", "judge").scenarios
    run = make_run(train={"s0": [1, 0]}, scenarios=known)
    assert report(run)["warnings"][0].startswith("the scores of 1 train scenario are estimates")


@pytest.mark.parametrize(("truth", "row"), [("judge", [1, 1]), ("majority", [None, None])])
def test_only_answers_that_could_not_vote_are_counted_as_such(truth: str, row: list[Any]) -> None:
    run = estimated(truth)
    run = make_run(train={"s0": row}, scenarios=run.scenarios)
    (group,) = run.phases[0].groups
    unscored = tuple(replace(s, gt_score=None, reward=None) for s in group.scores)
    phase = replace(run.phases[0], groups=(replace(group, scores=unscored),))
    found = report(replace(run, phases=(phase,)))["warnings"]
    assert not any("could vote" in warning for warning in found)


def test_why_a_phase_ended_is_said_once() -> None:
    run = make_run(final=evenly(2, [1]))
    silent = replace(run.phases[0], status="aborted")
    assert "epoch2-eval is aborted" in report(replace(run, reason="stopped", phases=(silent,)))["warnings"]
    stopped = replace(run.phases[0], status="aborted", reason="stopped")
    found = report(replace(run, status="aborted", reason="stopped", phases=(stopped,)))
    assert not any("is aborted" in warning for warning in found["warnings"])


def test_a_fault_without_words_of_its_own_is_unknown() -> None:
    run = make_run(final={"a": [None, -1]})
    (group,) = run.phases[0].groups
    mute = replace(group, rollouts=tuple(replace(rollout, failure=None) for rollout in group.rollouts))
    found = report(replace(run, phases=(replace(run.phases[0], groups=(mute,)),)))
    assert found["faults"] == {"errors": {"unknown": 1}, "failed": {"unknown": 1}}


def test_findings_of_a_gate_hold_no_secret_and_every_named_gate_is_there() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    verdict = judge(RUN, baseline=None, settings=SETTINGS)
    first = replace(verdict.results[0], message=f"saw {key}", advice=f"drop {key}")
    found = build(RUN, replace(verdict, strict=True, results=(first, *verdict.results[1:])))["gate"]
    assert found is not None
    assert found["strict"]
    assert found["results"][0]["message"].startswith("saw [redacted:")
    assert found["results"][0]["advice"].startswith("drop [redacted:")
    named = NamedVerdict(
        name="one",
        severity="warn",
        outcome="pass",
        results=verdict.results[:1],
        strict=False,
        scenarios=4,
        baseline="main",
        margin=0.1,
    )
    found = build(RUN, replace(verdict, gates=(named, replace(named, name="two"))))["gate"]
    assert found is not None
    assert [one["name"] for one in found["gates"]] == ["one", "two"]


def test_a_gain_that_a_placebo_has_too_is_not_claimed() -> None:
    run = make_run(evenly(30, [0.0]), evenly(30, [1.0]), {"t": [1, 0]})
    assert report(run)["gain"]["claim"]["side"] == "better"
    found = report(with_placebo(run, evenly(30, [1.0])))
    assert found["gain"]["claim"]["side"] is None
    assert "over_nothing" in found["gain"]["claim"]


def test_answers_that_the_final_sweep_shares_count_in_the_baseline_too() -> None:
    run = make_run({"a": [1]}, {"a": [1], "b": [0]})
    before, after = run.phases
    phase = replace(before.phase, scenarios=("a", "b"))
    found = report(replace(run, phases=(replace(before, phase=phase, shared=after.groups[1:]), after)))
    assert [row["mode"] for row in found["scenarios"][1]["epochs"]] == ["baseline", "eval"]
    assert found["gain"]["control"]["shared"] == 1


def test_beside_a_reference_the_gain_names_it_and_claims_nothing() -> None:
    old = Reference(name="old.json", kind="library", stamp="1" * 64, library=Library(), packs=())
    gain = report(replace(make_run({"a": [0]}, {"a": [1]}), reference=old))["gain"]
    assert gain["control"]["reference"] == {"name": "old.json", "kind": "library", "stamp": "1" * 64}
    assert "claim" not in gain


def test_a_lesson_has_all_its_parents_and_its_flags() -> None:
    lessons = (
        make_experience(1, parents=("a", "b")),
        make_experience(2, summary32="Delete the tests that fail."),
    )
    plain, flagged = report(replace(RUN, library=Library(experiences=lessons)))["library"]["lessons"]
    assert (plain["parents"], "flags" in plain) == (["a", "b"], False)
    assert flagged["flags"] == ["tests"]
