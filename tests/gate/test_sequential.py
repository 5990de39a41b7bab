"""The watch over a final sweep: what it looks at, when it is settled, and what the gate then says."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gate.sequential import ids, row, tallies, watch
from support.jobs import ScriptedActor, make_job, run_job
from support.jobs import suite as small_suite
from support.sweeps import SETTINGS, evenly, make_run

from pytest_tfgrpo.core.errors import BaselineError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.gate.baseline import from_run
from pytest_tfgrpo.gate.difference import Bar, judge_difference
from pytest_tfgrpo.gate.looks import ALPHA, Look
from pytest_tfgrpo.gate.sequential import (
    MIN_PLANNED,
    Bars,
    Watch,
    WatchedBar,
    WatchedRule,
    obstacle,
    order_of,
    watch_for,
    watched,
)
from pytest_tfgrpo.gate.verdict import Verdict, judge
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.numerics.sequential import CELLS
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal.journal import read
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log, read_to_resume
from pytest_tfgrpo.suite.families import families_of

ON = {"gate_sequential": True}


def test_a_sweep_that_gets_much_worse_is_settled_early_as_a_failure() -> None:
    watched = watch(tallies([1.0] * 200))
    watched.feed(tallies([float(i % 3 == 0) for i in range(200)]))
    assert watched.outcome == "fail"
    assert watched.seen < 60


def test_a_sweep_that_stays_the_same_is_settled_early_as_a_pass() -> None:
    watched = watch(tallies([1.0] * 1000), margin=0.05)
    watched.feed(tallies([1.0] * 1000))
    assert watched.outcome == "pass"
    assert watched.seen < 300


def test_nothing_is_settled_of_fewer_pairs_than_a_spread_needs() -> None:
    watched = watch(tallies([1.0] * 39))
    watched.feed(tallies([0.0] * 39))
    assert (watched.outcome, watched.seen) == ("open", 39)


def test_what_finishes_out_of_order_waits_for_what_comes_before_it() -> None:
    watched = watch(tallies([1.0] * 100))
    done = tallies([0.0] * 100)
    first = done.pop("s0")
    assert not watched.feed(done)
    assert watched.seen == 0
    assert watched.feed({"s0": first})


@given(st.randoms(use_true_random=False), st.integers(1, 7))
@settings(max_examples=25)
def test_the_order_in_which_groups_finish_changes_nothing(random: Any, batch: int) -> None:
    credited = [float(i % 4 > 0) for i in range(60)]
    direct, shuffled = watch(tallies([1.0] * 60)), watch(tallies([1.0] * 60))
    done = tallies(credited)
    direct.feed(done)
    finished = ids(60)
    random.shuffle(finished)
    for at in range(0, 60, batch):
        shuffled.feed({id_: done[id_] for id_ in finished[at : at + batch]})
    assert (shuffled.outcome, shuffled.seen) == (direct.outcome, direct.seen)
    for one, other in zip(shuffled.rules[0].readings, direct.rules[0].readings, strict=True):
        assert (one.low, one.high) == (other.low, other.high)


def test_errors_are_read_both_ways_and_the_worse_reading_counts() -> None:
    before = tallies([1.0] * 400)
    after = {id_: row(None, errors=1) if i % 4 == 0 else row(1.0) for i, id_ in enumerate(before)}
    watched = watch(before)
    watched.feed(after)
    excluded, as_zero = watched.rules[0].readings
    assert excluded.finding != "fail"
    assert as_zero.finding == "fail"
    assert watched.outcome == "fail"


def test_a_limit_of_errors_keeps_a_pass_open_and_settles_a_failure() -> None:
    passing = watch(tallies([1.0] * 600), needs_end="whether gate_max_errors holds is known at the end")
    passing.feed(tallies([1.0] * 600))
    assert (passing.rules[0].finding, passing.outcome, passing.seen) == ("pass", "open", 600)
    failing = watch(tallies([1.0] * 600), max_errors=2, needs_end="...")
    failing.feed({id_: row(None, errors=1) for id_ in ids(600)})
    assert (failing.outcome, failing.seen) == ("fail", 3)


def test_a_minimum_is_settled_by_the_mean_of_the_whole_sweep() -> None:
    zeros = {id_: row(0.0) for id_ in ids(300)}
    for credit, finding in ((1.0, "pass"), (0.0, "fail")):
        rule = WatchedRule(
            "minimum mean", zeros, dict.fromkeys(zeros, "s"), bar=WatchedBar(at=0.5, difference=False)
        )
        watched = Watch(ids(300), [rule], Bars())
        watched.feed({id_: row(credit) for id_ in ids(300)})
        assert watched.outcome == finding
        assert watched.seen < 40


def test_all_rules_must_pass_and_one_may_fail() -> None:
    same, worse = tallies([1.0] * 400), tallies([0.0] * 400)
    rules = [WatchedRule(n, b, dict.fromkeys(same, "s"), bar=WatchedBar(at=0.05, difference=True))
             for n, b in (("gain", same), ("baseline", worse))]  # fmt: skip
    both = Watch(ids(400), rules, Bars())
    both.feed(same)
    assert both.outcome == "pass"
    assert both.seen == max(rule.readings[0].mean.fed for rule in rules)


def test_too_small_an_intersection_settles_nothing() -> None:
    before = tallies([1.0] * 100)
    planned = dict.fromkeys(ids(150), "s")
    watched = Watch(
        ids(150), [WatchedRule("baseline", before, planned, bar=WatchedBar(at=0.05, difference=True))], Bars()
    )
    watched.feed(tallies([0.0] * 150))
    assert watched.outcome == "open"


def test_the_order_follows_from_the_seed_and_what_the_scenarios_are() -> None:
    known = small_suite(0, 50)
    assert order_of(1, known) == order_of(1, reversed(known))
    assert order_of(1, known) != order_of(2, known)
    assert sorted(order_of(1, known)) == sorted(s.id for s in known)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {**SETTINGS, "gates": "gates.yaml"}}, "named gates"),
        ({"settings": {**SETTINGS, "record": "r.jsonl"}}, "a recording"),
        ({"foreign_rules": True}, "rules of plugins"),
        ({"partial": True}, "only part"),
        ({"scenarios": [replace(small_suite(0, 1)[0], checker="t.py::f")]}, "test functions"),
        ({}, ""),
    ],
)
def test_what_judges_the_whole_sweep_keeps_it_whole(changes: dict[str, Any], said: str) -> None:
    fields: dict[str, Any] = {"scenarios": small_suite(), "foreign_rules": False, "partial": False}
    fields |= changes
    found = obstacle(fields.pop("settings", SETTINGS), fields.pop("scenarios"), **fields)
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("changes", "settings", "bars", "said"),
    [
        ({}, {}, ["minimum mean", "baseline"], ""),
        ({"temperature": 0.5}, {}, ["minimum mean"], "the baseline was made at temperature 0.5"),
        ({"unsigned": True}, {}, ["minimum mean"], "the baseline is no longer valid"),
        ({}, {"gate_max_errors": 0}, ["minimum mean", "baseline"], "gate_max_errors can only"),
        ({}, {"gate_max_cost_per_success_usd": 1.0}, ["minimum mean", "baseline"], "gate_max_cost_per"),
        ({"unsigned": True}, {"gate_min_mean": None}, None, "there is nothing to compare with"),
    ],
)
def test_what_a_watch_cannot_know_before_the_end_keeps_a_pass_open(
    changes: dict[str, Any], settings: dict[str, Any], bars: list[str] | None, said: str
) -> None:
    wanted = {**SETTINGS, **ON, "gate_min_mean": 0.5, **settings}
    run = make_run(final=evenly(200, [1.0, 1.0]), settings=wanted)
    stored = replace(from_run(make_run(final=evenly(200, [1.0, 1.0])), "main"), **changes)
    found = watched(run, Sweeps(run), stored, foreign_rules=False)
    if isinstance(found, str):
        assert (found, bars) == (said, None)
        return
    assert [one.name for one in found.rules] == bars
    assert (found.needs_end.startswith(said), bool(found.needs_end)) == (True, bool(said))
    assert found.outcome == ("open" if said else "pass")


def in_families(scenarios: list[Scenario], size: int) -> list[Scenario]:
    return [replace(s, family=f"family {n // size}") for n, s in enumerate(scenarios)]


@pytest.mark.parametrize("seed", [1, 2])
def test_families_run_whole_one_after_the_other(seed: int) -> None:
    known = in_families(small_suite(0, 60), 5)
    family = families_of(known)
    order = order_of(seed, reversed(known), family)
    blocks = [{family[id_] for id_ in order[at : at + 5]} for at in range(0, 60, 5)]
    assert all(len(block) == 1 for block in blocks)
    assert order == order_of(seed, known, family)


def test_large_families_come_no_earlier_than_small_ones() -> None:
    known = [replace(s, family=f"f{min(n, 20)}") for n, s in enumerate(small_suite(0, 60))]
    first = [order_of(seed, known, families_of(known))[0] for seed in range(200)]
    assert (
        sum(families_of(known)[id_] == "text f20" for id_ in first) < 30
    )  # 200 / 21, and six standard errors


def test_fewer_than_forty_effective_families_settle_nothing() -> None:
    before = tallies([1.0] * 390)
    rules = [
        WatchedRule(
            "gain", before, dict.fromkeys(before, "s"), bar=WatchedBar(at=0.05, difference=True),
            families={id_: f"f{n // size}" for n, id_ in enumerate(before)},
        )
        for size in (10, 9)
    ]  # fmt: skip
    for rule in rules:
        for id_ in before:
            rule.feed(id_, row(0.0))
    assert [rule.finding for rule in rules] == ["open", "fail"]


# A whole run


def wrong_once_learned(call: ActorCall) -> str:
    return "4" if "<experiences" in call.prompt.system or call.seed % 16 == 0 else "3"


def suite(sweep: int = 80, least: tuple[int, ...] = ()) -> list[Scenario]:
    return [
        replace(s, min_score=0.0) if s.id in {f"eval-{n}" for n in least} else s
        for s in small_suite(4, sweep)
    ]


def job(work: Path, actor: Any = None, **changes: Any) -> Any:
    settings: dict[str, Any] = (
        {"concurrency": 4, "epochs": 2, "acceptance": "off", "lesson_dropout": 0.0} | ON | changes
    )
    return make_job(actor or ScriptedActor(wrong_once_learned), work, **{"scenarios": suite()} | settings)


def verdict_of(run: Run) -> Verdict:
    return judge(run, baseline=None, settings=run.settings)


def gain_of(run: Run) -> Any:
    return next(result for result in verdict_of(run).results if result.name == "gain")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    root = tmp_path_factory.mktemp("stopped")
    folder = root / "demo" / "runs" / "run1"
    run, _ = run_job(job(root, scenarios=suite(least=(3, 70, 77))), folder)
    return run, folder


def test_a_settled_sweep_leaves_out_what_has_not_begun(stopped: tuple[Run, Path]) -> None:
    run, _ = stopped
    sweep = Sweeps(run).after
    assert sweep is not None
    assert run.status == "complete"
    assert len(sweep.settled) > 20
    done = {group.scenario_id for group in sweep.groups}
    assert done | set(sweep.settled) == set(sweep.phase.scenarios)
    assert done.isdisjoint(sweep.settled)
    assert all(len(group.rollouts) == 4 for group in sweep.groups)


def test_scenarios_with_a_minimum_of_their_own_always_run(stopped: tuple[Run, Path]) -> None:
    sweep = Sweeps(stopped[0]).after
    assert sweep is not None
    assert {"eval-3", "eval-70", "eval-77"} <= {group.scenario_id for group in sweep.groups}


def test_the_gate_says_what_the_watch_found_with_its_bounds(stopped: tuple[Run, Path]) -> None:
    result = gain_of(stopped[0])
    assert result.outcome == "fail"
    assert "of 80 scenarios in random order; the whole sweep" in result.message
    assert result.figures["ci95"] is None
    assert result.figures["after"] - result.figures["before"] == pytest.approx(result.figures["difference"])
    (reading,) = result.figures["sequential"]
    assert reading["interval"][1] < 0
    assert reading["interval"][0] <= reading["set"][0] <= reading["set"][1] <= reading["interval"][1]
    assert result.figures["n"] < 60


def test_what_was_left_out_is_no_reason_to_call_the_run_incomplete(stopped: tuple[Run, Path]) -> None:
    assert [r.outcome for r in verdict_of(stopped[0]).results if r.name == "complete"] == ["pass"]


def test_the_journal_tells_the_same_run_and_verdict(stopped: tuple[Run, Path]) -> None:
    run, folder = stopped
    again = load_run(folder)
    assert Sweeps(again).after.settled == Sweeps(run).after.settled  # type: ignore[union-attr]
    assert gain_of(again) == gain_of(run)


def test_the_report_counts_what_was_saved(stopped: tuple[Run, Path]) -> None:
    run, _ = stopped
    found = build(run, verdict_of(run))["sequential"]
    assert found["rollouts_saved"] == 2 * 4 * found["left_out"] > 0  # of both sweeps
    assert found["asked"] + found["left_out"] == found["scenarios"] == 80
    assert found["reason"] == ""


def test_a_stopped_sweep_makes_no_baseline(stopped: tuple[Run, Path]) -> None:
    with pytest.raises(BaselineError, match="without gate_sequential"):
        from_run(stopped[0], "main")


@pytest.mark.parametrize("n", [MIN_PLANNED - 1, MIN_PLANNED])
def test_a_sweep_that_ran_whole_is_checked_by_the_watch_where_it_could_have_been_stopped(n: int) -> None:
    settings = {**SETTINGS, "gate_sequential": True, "gate_min_mean": 0.5}
    run = make_run(final=evenly(n, [1.0, 1.0]), settings=settings)
    base = from_run(make_run(final=evenly(n, [1.0, 1.0])), "main")
    found = {result.name: result for result in judge(run, baseline=base, settings=settings).results}
    assert ("sequential" in found["baseline"].figures) == (n >= MIN_PLANNED)
    assert "sequential" not in found["minimum mean"].figures


def test_without_a_final_sweep_there_is_nothing_to_watch() -> None:
    settings = {**SETTINGS, "gate_sequential": True}
    run = make_run(evenly(40, [1.0, 1.0]), settings=settings)
    base = from_run(make_run(final=evenly(40, [1.0, 1.0])), "main")
    found = {r.name: r.outcome for r in judge(run, baseline=base, settings=settings).results}
    assert found["baseline"] == "fail"


def test_off_by_default_a_sweep_runs_whole_and_says_nothing(tmp_path: Path) -> None:
    run, _ = run_job(job(tmp_path, gate_sequential=False, scenarios=suite(45)))
    assert Sweeps(run).after.settled == ()  # type: ignore[union-attr]
    assert "sequential" not in build(run, verdict_of(run))
    assert gain_of(run).figures["ci95"] is not None


def test_a_run_cut_after_it_was_settled_asks_nothing_new(stopped: tuple[Run, Path], tmp_path: Path) -> None:
    whole, original = stopped
    lines = (original / JOURNAL).read_bytes().splitlines(keepends=True)
    cut = next(n for n, event in enumerate(read(original / JOURNAL)) if event.event == "settled") + 1
    folder = tmp_path / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    (folder / JOURNAL).write_bytes(b"".join(lines[:cut]))
    actor = ScriptedActor(wrong_once_learned)
    begun = {r.scenario_id for r in read_log(folder).rollouts.values() if r.mode == "eval"}
    again = job(tmp_path, actor, scenarios=suite(least=(3, 70, 77)), job_resumed=read_to_resume(folder))
    resumed, _ = run_job(again, folder)
    assert {call.scenario.id for call in actor.calls} <= begun | {"eval-3", "eval-70", "eval-77"}
    assert resumed.status == "complete"
    before, after = gain_of(whole), gain_of(resumed)
    assert (before.outcome, before.figures) == (after.outcome, after.figures)


def test_a_run_cut_before_it_was_settled_comes_to_the_same_verdict(
    stopped: tuple[Run, Path], tmp_path: Path
) -> None:
    whole, original = stopped
    journal = (original / JOURNAL).read_bytes()
    folder = tmp_path / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    (folder / JOURNAL).write_bytes(journal[: int(len(journal) * 0.7)])
    log = read_log(folder)
    assert not log.settled
    again = job(tmp_path, scenarios=suite(least=(3, 70, 77)), job_resumed=read_to_resume(folder))
    resumed, _ = run_job(again, folder)
    assert gain_of(resumed).figures == gain_of(whole).figures


def test_an_interrupted_sweep_is_cancelled_and_not_settled(tmp_path: Path) -> None:
    async def slow(call: ActorCall) -> str:
        await asyncio.sleep(0.05)
        return wrong_once_learned(call)

    async def cut() -> Run:
        planned = job(tmp_path, ScriptedActor(slow))
        engine = Engine(planned, folder=None, observe=lambda record: None, watch=watch_for(planned))
        task = asyncio.create_task(engine.run())
        await asyncio.sleep(0.3)
        task.cancel()
        return await task

    run = asyncio.run(cut())
    assert run.status == "cancelled"
    assert verdict_of(run).outcome == "fail"


def test_a_watched_sweep_that_is_not_settled_keeps_its_figures_and_is_open() -> None:
    before = evenly(30, [1.0], "a") | evenly(30, [0.0], "b")
    after = evenly(28, [1.0], "a") | {"a28": [0.0], "a29": [0.0]} | evenly(30, [0.0], "b")
    run = make_run(before, after, settings={**SETTINGS, **ON})
    result = gain_of(run)
    assert result.outcome == "inconclusive"
    assert result.figures["sequential"][0]["looked_at"] == 60
    assert build(run, verdict_of(run))["sequential"]["reason"] == "nothing was decided before the end"


def test_a_bound_gives_away_one_step_of_the_grid_at_most() -> None:
    assert 2 / CELLS <= 0.002


def test_p_at_a_look_with_a_part_of_the_level_counts_for_that_part() -> None:
    before, after = tallies([1.0] * 30), tallies([1.0] * 24 + [0.0] * 6)
    bar = Bar(margin=0.05, alarm=0.1)
    alone, shared = (
        judge_difference("baseline", before, [Look(after, level=ALPHA / parts)], bar).figures["p_worse"]
        for parts in (1, 4)
    )
    assert 0 < alone < 0.05
    assert shared == pytest.approx(4 * alone)


@pytest.mark.parametrize(
    ("difference", "bounds", "state"),
    [
        (False, (0.8, 1.0), "pass"),
        (False, (0.0, 0.8), "open"),
        (False, (0.0, 0.79), "fail"),
        (True, (-0.79, 0.5), "pass"),
        (True, (-0.8, 0.0), "open"),
        (True, (-0.9, -0.01), "fail"),
    ],
)
def test_a_bound_on_the_bar_decides_as_the_whole_sweep_would(
    difference: bool, bounds: tuple[float, float], state: str
) -> None:
    assert WatchedBar(at=0.8, difference=difference).judge(*bounds) == state


def test_bounds_and_p_of_several_looks_are_the_tightest_of_each() -> None:
    before = tallies([1.0] * 15 + [0.0] * 15)
    sweeps = [
        tallies([1.0] * 6 + [0.0] * 24),
        tallies([1.0] * 15 + [0.0] * 15),
        tallies([1.0] * 20 + [0.0] * 10),
    ]
    looks = [Look(after, level=ALPHA / 3) for after in sweeps]
    bar = Bar(margin=0.05, alarm=0.1)
    one_by_one = [judge_difference("gain", before, [look], bar).figures for look in looks]
    for places in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        found = judge_difference("gain", before, [looks[n] for n in places], bar).figures
        assert found["bounds"] == [
            max(one["bounds"][0] for one in one_by_one),
            min(one["bounds"][1] for one in one_by_one),
        ]
        assert found["p_worse"] == min(one["p_worse"] for one in one_by_one)


@pytest.mark.parametrize("better", [True, False])
def test_a_bound_that_was_reached_is_not_lost_again(better: bool) -> None:
    first, then = ([0.0] * 60, [1.0] * 140) if better else ([1.0] * 60, [0.0] * 140)
    watched = watch(tallies(first + then), margin=0.0)
    reading = watched.rules[0].readings[0]
    lows, highs = list[float](), list[float]()
    for id_, after in tallies([1.0 - value for value in first + then]).items():
        reading.feed(id_, after.mean(errors_as_zero=False))
        lows.append(reading.low)
        highs.append(reading.high)
    assert max(lows) > 0 if better else min(highs) < 0
    assert lows == sorted(lows)
    assert highs == sorted(highs, reverse=True)


def test_bounds_that_drift_widens_stay_differences_of_two_scores() -> None:
    for before, after in ((1.0, 0.0), (0.0, 1.0)):
        bar = Bar(margin=0.05, drift=0.5)
        figures = judge_difference("gain", tallies([before] * 30), [Look(tallies([after] * 30))], bar).figures
        assert -1.0 <= figures["bounds"][0] < figures["bounds"][1] <= 1.0


def test_errors_of_the_sweep_before_are_read_both_ways_from_the_start() -> None:
    before = {id_: row(1.0, errors=1) for id_ in ids(40)}
    watched = watch(before)
    watched.feed({"s0": row(1.0)})
    assert [reading.before for reading in watched.rules[0].readings] == [1.0, 0.5]
