from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_frame, make_rollout, make_scenario
from support.sweeps import evenly, make_result, make_run

from pytest_tfgrpo.core.lessons import Library, Operation, Revision
from pytest_tfgrpo.core.records import Frame, PhaseResult, Reference
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.metrics.epochs import MadeRows, epoch_row, metric_lines, per_epoch, percentile
from pytest_tfgrpo.scoring.rewarders.scoring import group_of, score


def revised(*operations: Operation) -> Revision:
    return Revision(epoch=1, library=Library(experiences=(make_experience(),)), applied=operations)


def test_gt_score_counts_scenarios_and_leaves_errors_out() -> None:
    row = epoch_row(make_result({"a": [1, 0, None], "b": [1, 1, 1], "c": [None, None, None]}), 0)
    assert row["gt_score"] == {"n": 2, "sum": 1.5, "mean": 0.75, "ci95": None}
    assert (row["rollouts"], row["errors"], row["groups"], row["informative_groups"]) == (9, 4, 3, 1)


def test_the_interval_is_over_scenarios() -> None:
    row = epoch_row(make_result(evenly(10, [1, 0])), 0)
    low, high = row["gt_score"]["ci95"]
    assert low < 0.5 < high


def test_scenarios_of_a_family_widen_the_interval() -> None:
    run = make_run({f"s{n}": [float(n // 4 % 2)] for n in range(96)})
    shared = replace(
        run, scenarios=tuple(replace(s, family=f"f{n // 4}") for n, s in enumerate(run.scenarios))
    )
    (low, high), (wide_low, wide_high) = (
        per_epoch(r)["epochs"][0]["gt_score"]["ci95"] for r in (run, shared)
    )
    assert wide_high - wide_low > 1.7 * (high - low)  # the root of 4 if scores within a family are equal


def test_pass_at_1_and_g_come_from_groups_with_enough_scored_rollouts() -> None:
    row = epoch_row(make_result({"a": [1, 0, 0], "b": [0, 0, 0], "c": [1, None, None], "d": [None] * 3}), 0)
    assert row["pass_at_1"] == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert row["pass_at_g"] == pytest.approx(1 / 2)


def test_partial_credit_is_no_pass() -> None:
    assert epoch_row(make_result({"a": [0.99, 0.5]}), 0)["pass_at_g"] == 0


def test_what_failed_through_the_agent_counts_as_0() -> None:
    row = epoch_row(make_result({"a": [1, -1]}), 0)
    assert (row["gt_score"]["mean"], row["errors"]) == (0.5, 0)


def test_an_unknown_cost_is_null_and_never_0() -> None:
    result = make_result({"a": [1, 1]})
    group = result.groups[0]

    def priced(*costs: float | None) -> PhaseResult:
        rollouts = tuple(replace(r, cost_usd=c) for r, c in zip(group.rollouts, costs, strict=True))
        return replace(result, groups=(replace(group, rollouts=rollouts),))

    assert epoch_row(priced(None, None), 0)["cost_usd"] == {"n": 0, "sum": None, "mean": None}
    assert epoch_row(priced(0.5, None), 0)["cost_usd"] == {"n": 1, "sum": 0.5, "mean": 0.5}
    assert epoch_row(priced(0.0, 0.0), 0)["cost_usd"] == {"n": 2, "sum": 0.0, "mean": 0.0}


def test_latency_leaves_errors_out_and_tokens_do_not() -> None:
    row = epoch_row(make_result({"a": [1, 0, None]}), 0)
    assert row["latency_ms"] == {"n": 2, "sum": 30.0, "mean": 15.0, "p50": 15.0, "p95": pytest.approx(19.5)}
    assert row["tokens"] == {"n": 3, "sum": 303, "mean": 101}


def test_an_empty_phase_has_a_row_without_means() -> None:
    row = epoch_row(make_result({}), 3)
    assert (row["gt_score"]["mean"], row["pass_at_1"], row["latency_ms"]["p95"]) == (None, None, None)
    assert row["experiences"] == {"added": 0, "updated": 0, "removed": 0, "in_force": 3}


def test_changes_of_the_library_add_up() -> None:
    new = make_experience(9)
    revision = revised(
        Operation(kind="add", experience=new),
        Operation(kind="add", experience=new),
        Operation(kind="update", experience=new, targets=("a",)),
        Operation(kind="merge", experience=new, targets=("b", "c", "d")),
        Operation(kind="remove", targets=("e",)),
    )
    row = epoch_row(make_result({"a": [1]}, mode="train", revision=revision), 10)
    assert row["experiences"] == {"added": 2, "updated": 2, "removed": 3, "in_force": 10}


def test_tools_are_summed_by_name() -> None:
    frames = (
        make_frame("b", tokens=1, cost_usd=None, latency_ms=2),
        make_frame("a"),
        make_frame("b", tokens=3, cost_usd=0.5, latency_ms=4),
    )
    scenario = make_scenario("a")
    rollouts = [make_rollout(scenario_id="a", frames=frames)]
    group = group_of(rollouts, score(rollouts, {"a": scenario}), scenario)
    tools = epoch_row(replace(make_result({"a": [1]}), groups=(group,)), 0)["tools"]
    assert [tool["tool"] for tool in tools] == ["a", "b"]
    assert tools[1] == {
        "tool": "b",
        "calls": 2,
        "tokens": {"n": 2, "sum": 4, "mean": 2},
        "cost_usd": {"n": 1, "sum": 0.5, "mean": 0.5},
        "latency_ms": {"n": 2, "sum": 6, "mean": 3},
    }


def test_metric_lines_tell_each_call_and_then_its_rollout() -> None:
    group = make_result({"a": [1, 0]}).groups[0]
    lines = list(metric_lines(group))
    assert [(line["rollout_id"][-2:], line["tool"]) for line in lines] == [
        ("r0", "count_words"),
        ("r0", None),
        ("r1", "count_words"),
        ("r1", None),
    ]
    assert lines[1] == {
        "epoch": 1,
        "mode": "eval",
        "group_id": "run1.e1.a",
        "rollout_id": "run1.e1.a.r0",
        "tool": None,
        "tokens": 100,
        "cost_usd": 0.001,
        "latency_ms": 10.0,
    }


def test_a_row_is_made_again_only_where_its_phase_is_another_now() -> None:
    run, made = make_run({"e": [1, 0]}, {"e": [1, 1]}, {"t": [1, 0]}), MadeRows()
    begun = replace(run, phases=run.phases[:2])
    first = per_epoch(begun, made)["epochs"]
    changed = replace(run, phases=(run.phases[0], *make_run(train={"t": [0, 0]}).phases, run.phases[2]))
    second = per_epoch(changed, made)["epochs"]
    assert second[0] is first[0]
    assert second == per_epoch(changed)["epochs"]
    assert second[1]["gt_score"]["mean"] == 0


def test_the_file_follows_the_library_from_phase_to_phase() -> None:
    run = make_run({"e": [1, 0]}, {"e": [1, 1]}, {"t": [1, 0]})
    value = per_epoch(run)
    assert violations("per-epoch", value) == []
    assert [(row["epoch"], row["mode"]) for row in value["epochs"]] == [
        (0, "baseline"),
        (1, "train"),
        (2, "eval"),
    ]
    assert [row["experiences"]["in_force"] for row in value["epochs"]] == [0, 2, 2]
    assert value["updated_at"] == run.finished_at


def test_the_schema_refuses_what_is_not_in_the_format() -> None:
    value = per_epoch(make_run({"e": [1, 0]}))
    value["epochs"][0]["surprise"] = 1
    assert [v.pointer for v in violations("per-epoch", value)] == ["/epochs/0/surprise"]


credited = st.lists(st.sampled_from([1.0, 0.5, 0.0, None, -1]), min_size=3, max_size=3)


@given(st.lists(credited, max_size=12))
def test_every_row_fits_the_public_schema(cohort: list[list[float | None]]) -> None:
    run = make_run(final={f"s{k}": row for k, row in enumerate(cohort)})
    assert violations("per-epoch", per_epoch(run)) == []


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.sampled_from([0.5, 0.95]))
def test_a_percentile_is_that_of_numpy(values: list[float], share: float) -> None:
    assert percentile(values, share) == float(np.percentile(values, 100 * share))


def test_answers_that_serve_two_sweeps_are_counted_as_shared_where_they_were_not_asked() -> None:
    after = make_result({"b": [1, 1, 0]}, epoch=2)
    before = make_result({"a": [1, 0]}, epoch=0, mode="baseline")
    phase = replace(before.phase, scenarios=("a", "b"))
    row = epoch_row(replace(before, phase=phase, shared=(replace(after.groups[0], shared=True),)), 0)
    assert (row["shared"], row["shared_rollouts"], row["rollouts"]) == (1, 3, 2)
    assert row["gt_score"]["n"] == 2


def test_only_a_run_with_a_final_sweep_names_its_variant() -> None:
    assert "variant" in per_epoch(make_run({"a": [1]}, {"a": [1]}))
    assert "variant" not in per_epoch(make_run({"a": [1]}))


def test_a_control_has_the_lessons_of_the_reference_and_the_final_sweep_those_of_the_run() -> None:
    old = Library(experiences=(make_experience(1), make_experience(2), make_experience(3)))
    reference = Reference(name="old", kind="library", stamp="4" * 64, library=old, packs=())
    start = Library(experiences=(make_experience(1),))
    run = make_run({"a": [1]}, {"a": [1]}, {"t": [1]}, reference=reference, library_start=start)
    assert [row["experiences"]["in_force"] for row in per_epoch(run)["epochs"]] == [3, 2, 2]
    run = replace(run, reference=None, finished_at=None)
    assert [row["experiences"]["in_force"] for row in per_epoch(run)["epochs"]] == [1, 2, 2]
    assert per_epoch(run)["updated_at"] == run.started_at


def test_the_dev_split_of_an_epoch_is_counted_apart() -> None:
    dev = make_result({"d": [1, None], "e": [1, 0]}, mode="dev").groups
    row = epoch_row(replace(make_result({"a": [1, 0]}, mode="train"), dev=dev), 0)
    assert row["dev"] == {
        "rollouts": 4,
        "errors": 1,
        "groups": 2,
        "tokens": {"n": 4, "sum": 402, "mean": 100.5},
        "cost_usd": {"n": 4, "sum": 0.004, "mean": 0.001},
    }
    assert (row["rollouts"], row["groups"], row["tokens"]["n"]) == (2, 1, 2)
    assert violations("per-epoch", per_epoch(make_run()) | {"epochs": [row]}) == []


def test_of_attempts_made_elsewhere_rewards_count_and_nothing_was_used() -> None:
    row = epoch_row(make_result({"a": [1, 0, 0.5]}, mode="evidence"), 0)
    assert (row["rollouts"], row["groups"], row["informative_groups"], row["errors"]) == (3, 1, 1, 0)
    assert (row["tokens"]["n"], row["latency_ms"]["n"], row["tools"]) == (0, 0, [])
    assert row["total_reward"]["mean"] == 0.5
    assert "metrics" not in row
    assert list(metric_lines(make_result({"a": [1]}, mode="evidence").groups[0])) == []


def test_a_row_is_made_again_where_any_part_of_its_phase_is_another_now() -> None:
    run, made = make_run(train={"t": [1, 0]}), MadeRows()
    (result,) = run.phases
    first = per_epoch(run, made)["epochs"][0]
    dev = make_result({"d": [1, 0]}, mode="dev").groups
    extra = (replace(make_result({"u": [1]}).groups[0], shared=True),)
    (operation, _) = result.revision.applied if result.revision else ()
    for changes in (
        {"phase": replace(result.phase, temperature=0.1)},
        {"phase": replace(result.phase, scenarios=("t", "u")), "shared": extra},
        {"revision": revised(operation)},
        {"dev": dev},
    ):
        changed = replace(run, phases=(replace(result, **changes),))
        again = per_epoch(changed, MadeRows(made))["epochs"][0]
        assert again == per_epoch(changed)["epochs"][0]
        assert again != first
    shared = replace(run, phases=(replace(result, phase=replace(result.phase, scenarios=("t", "u"))),))
    made = MadeRows()
    per_epoch(shared, made)
    (begun,) = shared.phases
    later = replace(run, phases=(replace(begun, shared=extra),))
    assert per_epoch(later, made)["epochs"][0]["shared"] == 1


def test_what_a_simulated_user_says_is_no_line_and_no_tool() -> None:
    result = make_result({"a": [1]})
    (group,) = result.groups
    said = make_rollout(scenario_id="a", frames=(Frame(kind="user", name="user"), make_frame("b")))
    group = replace(group, rollouts=(said,))
    assert [line["tool"] for line in metric_lines(group)] == ["b", None]
    row = epoch_row(replace(result, groups=(group,)), 0)
    assert [tool["tool"] for tool in row["tools"]] == ["b"]
