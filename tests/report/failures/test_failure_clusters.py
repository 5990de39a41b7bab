"""Clusters of failures: what failed alike is one cluster, and every failure is in one."""

import random
import sys
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_frame
from support.reached import reached, reaches
from support.sweeps import SETTINGS, Credits, evenly, make_result, make_run

from pytest_tfgrpo.core.records import CheckResult, Failure, Group, Rollout, Run, with_shared
from pytest_tfgrpo.core.report_blocks import FailureCluster, FailuresBlock
from pytest_tfgrpo.report.failures.failure_clusters import (
    MOST,
    cluster_lines,
    cluster_rows,
    cluster_text,
    failures_report,
)

VIEWS = ("reason", "check", "tools", "exception")


def block_of(run: Run) -> FailuresBlock:
    block = failures_report(run)
    assert block is not None
    return block


def reasons(run: Run) -> list[FailureCluster]:
    return block_of(run)["views"]["reason"]["clusters"]


def rewritten(run: Run, texts: dict[str, str]) -> Run:
    """Return the run with another reason for the failed check of some scenarios."""

    def changed(rollout: Rollout) -> Rollout:
        checks = tuple(
            check if check.passed else replace(check, reason=texts.get(rollout.scenario_id, check.reason))
            for check in rollout.checks
        )
        return replace(rollout, checks=checks)

    def whole(group: Group) -> Group:
        return replace(group, rollouts=tuple(map(changed, group.rollouts)))

    phases = (replace(phase, groups=tuple(map(whole, phase.groups))) for phase in run.phases)
    return replace(run, phases=tuple(phases))


def told(texts: list[str]) -> list[str]:
    """Return the labels of a sweep in which one rollout of each scenario fails with one of the texts."""
    run = make_run(final=evenly(len(texts), [0.0]))
    return [row["label"] for row in reasons(rewritten(run, {f"s{i}": text for i, text in enumerate(texts)}))]


def test_failures_that_differ_in_values_are_one_cluster() -> None:
    texts = [f"expected '{n}', got 'word{n * 17}'" for n in range(5)]
    assert told(texts) == ["check exact: expected a number, got a word"]


def test_a_value_that_recurs_in_many_scenarios_stays() -> None:
    texts = [f"expected '{n}', got 'I cannot help'" for n in range(5)] + [
        "expected '7', got 'no idea at all'"
    ]
    assert told(texts) == [
        "check exact: expected a number, got 'I cannot help'",
        "check exact: expected '7', got 'no idea at all'",
    ]


def test_labels_that_are_confused_are_told_pair_by_pair() -> None:
    texts = ["expected 'spam', got 'ham'"] * 4 + ["expected 'ham', got 'spam'"] * 3
    assert told(texts) == [
        "check exact: expected 'spam', got 'ham'",
        "check exact: expected 'ham', got 'spam'",
    ]


def test_small_numbers_that_recur_by_chance_do_not_split_a_cluster() -> None:
    texts = [f"expected {n % 10}, found no finite number in 'w{n}'" for n in range(60)]
    assert told(texts) == ["check exact: expected N, found no finite number in a word"]


def test_a_message_of_one_scenario_keeps_its_values() -> None:
    run = rewritten(make_run(final={"a": [0.0, 0.0]}), {"a": "KeyError: 'city' in row 12"})
    assert [row["label"] for row in reasons(run)] == ["check exact: KeyError: 'city' in row 12"]


def test_a_rollout_that_reaches_the_minimum_of_its_scenario_is_no_failure() -> None:
    run = make_run(final={"a": [0.5, 0.25], "b": [0.5, 1.0]})
    lenient = tuple(replace(s, min_score=0.5) if s.id == "a" else s for s in run.scenarios)
    assert block_of(run)["failed"] == 3
    assert block_of(replace(run, scenarios=lenient))["failed"] == 2
    assert failures_report(replace(run, settings={**SETTINGS, "min_score": 0.25})) is None  # type: ignore[typeddict-unknown-key]


def test_a_cluster_says_how_often_the_baseline_sweep_failed_so() -> None:
    run = make_run({"a": [0, 0, 1], "b": [1, 1, 1]}, {"a": [0, 1, 1], "b": [-1, -1, 1]})
    found = {row["label"]: (row["n"], row.get("before")) for row in reasons(run)}
    assert found == {"timeout: no answer in 2 s": (2, 0), "check exact: expected '3', got '4'": (1, 2)}
    assert block_of(run)["failed_before"] == 2


def test_failures_of_a_baseline_that_shares_its_attempts_were_there_before() -> None:
    alone = make_run({"b": [1, 1]}, {"a": [0, 0], "b": [1, 1]})
    before, after = alone.phases
    before = replace(before, phase=replace(before.phase, scenarios=after.phase.scenarios))
    groups = tuple(replace(group, shared=group.scenario_id == "a") for group in after.groups)
    run = replace(alone, phases=with_shared([before, replace(after, groups=groups)]))
    assert [(row["n"], row.get("before")) for row in reasons(run)] == [(2, 2)]


def test_without_a_baseline_sweep_nothing_is_new() -> None:
    block = block_of(make_run(final={"a": [0]}))
    assert block["failed_before"] is None
    assert "before" not in block["views"]["reason"]["clusters"][0]


def test_a_run_that_ended_early_has_the_failures_of_its_last_phase() -> None:
    run = make_run({"a": [0, 1]}, None, {"t": [0, 0, 1]})
    assert (block_of(run)["sweep"], block_of(run)["failed"]) == ("epoch1", 2)
    assert failures_report(replace(run, phases=())) is None


def test_a_sequence_of_tools_says_how_often_it_led_to_a_pass() -> None:
    run = make_run(final={"a": [0, 1, 1], "b": [0]})
    (row,) = block_of(run)["views"]["tools"]["clusters"]
    assert (row["label"], row["n"], row.get("passed")) == ("count_words", 2, 2)


def test_what_most_of_a_cluster_shares_is_said_unless_all_failures_share_it() -> None:
    run = make_run(final={"date-1": [-1, -1, -1], "count-1": [0, 0, 0, 0, 0]})
    shared = {row["label"]: row["common"] for row in reasons(run)}
    assert shared["timeout: no answer in 2 s"] == ["domain dates"]
    alone = make_run(final={"count-1": [0, 0, 0]})
    assert [row["common"] for row in reasons(alone)] == [[]]


def test_that_no_tool_was_called_is_said_of_answers_alone() -> None:
    def without_tools(rollout: Rollout) -> Rollout:
        return rollout if rollout.scenario_id == "d" else replace(rollout, frames=())

    run = make_run(final={"a": [0, 0], "b": [0.5, 0.5], "c": [-1, -1], "d": [0, 0, 0]})
    run = rewritten(run, {"a": "no unit", "b": "no unit"})
    final = run.phases[-1]
    groups = tuple(replace(g, rollouts=tuple(map(without_tools, g.rollouts))) for g in final.groups)
    shared = {
        row["label"]: row["common"] for row in reasons(replace(run, phases=(replace(final, groups=groups),)))
    }
    assert shared["check exact: no unit"] == ["no tool"]
    assert shared["timeout: no answer in 2 s"] == []


def test_the_example_is_the_first_rollout_and_the_scenarios_are_all_of_them() -> None:
    (row,) = reasons(make_run(final={"b": [0, 0], "a": [1, 0]}))
    assert row["example"] == {"rollout": "run1.e2.a.r1", "scenario": "a", "index": 1}
    assert row["scenarios"] == ["a", "b"]


CREDITS = st.lists(st.sampled_from([1.0, 0.5, 0.0, None, -1.0]), min_size=1, max_size=4)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Return runs whose failures have messages, tools and exceptions of many kinds."""
    ids = [f"s{n}" for n in range(draw(st.integers(1, 8)))]
    final: dict[str, Credits] = {id_: draw(CREDITS) for id_ in ids}
    baseline: dict[str, Credits] = {id_: draw(CREDITS) for id_ in ids}
    rng = random.Random(draw(st.integers(0, 1000)))
    word = draw(st.text(max_size=8))

    def changed(rollout: Rollout) -> Rollout:
        text = rng.choice([f"expected {rng.randrange(9)}, got '{word}'", f"{word} {rng.random()}", "no"])
        checks = tuple(
            c if c.passed else CheckResult(kind="exact", weight=1, credit=0, reason=text)
            for c in rollout.checks
        )
        failure = None if rollout.failure is None else Failure(code=rollout.failure.code, message=text)
        frames = tuple(
            make_frame(rng.choice("abc"), error=rng.choice([None, text])) for _ in range(rng.randrange(4))
        )
        return replace(rollout, checks=checks, failure=failure, frames=frames)

    run = make_run(baseline, final)
    phases = (
        replace(p, groups=tuple(replace(g, rollouts=tuple(map(changed, g.rollouts))) for g in p.groups))
        for p in run.phases
    )
    return replace(run, phases=tuple(phases))


def failed(run: Run) -> int:
    return sum(s.gt_score is None or s.gt_score < 1 for g in run.phases[-1].groups for s in g.scores)


@reaches("failures", "none")
@given(runs())
def test_every_failed_rollout_is_in_exactly_one_cluster_of_each_view(run: Run) -> None:
    block = failures_report(run)
    if block is None:
        reached("none")
        assert failed(run) == 0
        return
    reached("failures")
    assert block["failed"] == failed(run)
    for name in VIEWS:
        view = block["views"][name]
        assert sum(row["n"] for row in view["clusters"]) + view["more_rollouts"] == block["failed"]
        keys = [row["key"] for row in view["clusters"]]
        assert len(set(keys)) == len(keys)


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_groups_and_rollouts_does_not_matter(run: Run, rng: random.Random) -> None:
    def shuffled(group: Group) -> Group:
        pairs = list(zip(group.rollouts, group.scores, strict=True))
        rng.shuffle(pairs)
        return replace(group, rollouts=tuple(r for r, _ in pairs), scores=tuple(s for _, s in pairs))

    phases = []
    for phase in run.phases:
        groups = [shuffled(group) for group in phase.groups]
        rng.shuffle(groups)
        phases.append(replace(phase, groups=tuple(groups)))
    assert failures_report(replace(run, phases=tuple(phases))) == failures_report(run)


def test_a_view_keeps_the_largest_clusters_and_counts_the_rest() -> None:
    kinds = [f"kind{chr(97 + n)}" for n in range(26)]
    run = make_run(final={kind: [0.0] * (1 + n // 13) for n, kind in enumerate(kinds)})
    view = block_of(rewritten(run, {kind: f"it is {kind}" for kind in kinds}))["views"]["reason"]
    assert (len(view["clusters"]), view["more"], view["more_rollouts"]) == (MOST, 6, 6)
    assert view["clusters"][0]["n"] == 2


def test_twice_the_failures_take_no_more_than_about_twice_the_work() -> None:
    def calls(n: int) -> int:
        texts = {
            f"s{i}": f"'{n}{'x' * 90}{i}\"" + "'{" * 90 for i in range(n)
        }  # no text is known from before
        run = rewritten(make_run(final=evenly(n, [0.0])), texts)
        count = 0

        def watch(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(watch)
        try:
            failures_report(run)
        finally:
            sys.setprofile(None)
        return count

    assert calls(400) < 2.5 * calls(200)


def test_the_terminal_names_the_three_largest_with_an_id_each() -> None:
    run = make_run(
        {"a": [0, 0, 1], "b": [1, 1, 1]},
        {"a": [0, 0, 0], "b": [-1, -1, 1], "c": [None, 1, 1], "d": [0.5, 0.5, 1]},
    )
    run = rewritten(run, {"d": "no JSON"})
    assert cluster_rows(failures_report(run), 80, kept=True) == [
        "failures  8 of 12 rollouts of epoch2-eval (2 before); tfgrpo show ID:",
        "    3 (2)  exact: expected '3', got '4'                                  e2.a.r0",
        "  2 (new)  exact: no JSON                                                e2.d.r0",
        "  2 (new)  timeout: no answer in 2 s                                     e2.b.r0",
    ]
    assert cluster_lines(failures_report(run), 80, kept=True)[:4] == [
        "failures  8 of 12 rollouts of epoch2-eval (2 in the baseline sweep), in 4",
        "          scenarios",
        "  3 rollouts of 1 scenario, 2 before: check exact: expected '3', got '4'",
        "    tfgrpo show run1.e2.a.r0",
    ]
    for lines in (cluster_lines, cluster_rows):
        assert lines(None, 80, kept=True) == []
        assert not any("show" in text for text in lines(failures_report(run), 80, kept=False))


def test_a_long_reason_takes_two_lines_of_the_terminal_at_most() -> None:
    run = rewritten(make_run(final={"a": [0, 0]}), {"a": "a word and another one " * 40})
    _, first, second = cluster_rows(failures_report(run), 80, kept=True)
    assert max(len(first), len(second)) <= 80
    assert first.endswith(" e2.a.r0")
    assert second.endswith("...")


def test_a_hostile_message_stays_one_plain_line() -> None:
    hostile = "\x1b]0;x\x07 \u202e </script> ::error::x\n##[group]"
    run = rewritten(make_run(final={"a": [0, 0]}), {"a": hostile})
    (row,) = reasons(run)
    assert cluster_text(row).isprintable()
    for lines in (cluster_lines, cluster_rows):
        shown = lines(failures_report(run), 80, kept=True)
        assert not any(text.lstrip().startswith("::") for text in shown)


def test_a_training_epoch_beside_a_final_sweep_counts_for_nothing() -> None:
    train = make_result({"t": [0, 0, 0]}, mode="train")
    run = make_run(final={"a": [0, 1]})
    with_train = make_run(final={"a": [0, 1]}, train={"t": [0, 0, 0]})
    assert train.groups
    assert block_of(with_train) == block_of(run)
