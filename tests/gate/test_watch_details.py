"""Details of the watch over a final sweep: pairs with a control, orders, and what it is opened with."""

from dataclasses import replace
from typing import Any

import pytest
from support.gate.sequential import ids, row, tallies, watch
from support.jobs import suite
from support.sweeps import SETTINGS, evenly, make_run

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Reference, Run
from pytest_tfgrpo.gate.baseline import from_run
from pytest_tfgrpo.gate.sequential import (
    Bars,
    Watch,
    WatchedBar,
    WatchedRule,
    obstacle,
    order_of,
    watch_for,
    watched,
)
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.suite.families import families_of

ON = {**SETTINGS, "gate_sequential": True}
DROP = WatchedBar(at=0.05, difference=True)


def paired(n: int, **bars: Any) -> Watch:
    """Return the watch over a sweep beside its control."""
    return Watch(ids(n), [WatchedRule("gain", None, dict.fromkeys(ids(n), "s"), bar=DROP)], Bars(**bars))


def opened(run: Run, baseline: Any = None, **changes: Any) -> Watch:
    """Return the watch that an engine opens over the final sweep of a run."""
    last = run.phases[-1]
    phase = replace(last.phase, **changes)
    found: Any = watch_for(run, baseline)(phase, run.phases[:-1], last.library_hash)
    return found  # type: ignore[no-any-return]


def test_a_pair_counts_once_both_are_finished_whichever_comes_first() -> None:
    watching = paired(60)
    assert watching.feed({}, {"s0": row(0.5), "s1": row(0.0)}) is False
    assert watching.feed({"s0": row(1.0)}, {}) is False
    assert watching.seen == 1
    watching.feed({"s2": row(1.0), "s1": row(0.5)})
    assert watching.seen == 2
    watching.feed({}, {"s2": row(0.25)})
    (reading,) = watching.rules[0].readings
    assert (watching.seen, reading.before, reading.after) == (3, 0.25, pytest.approx(2.5 / 3))


def test_an_error_of_a_control_is_read_both_ways() -> None:
    watching = paired(60)
    watching.feed({"s0": row(1.0)}, {"s0": row(1.0, errors=1)})
    assert [reading.before for reading in watching.rules[0].readings] == [1.0, 0.5]
    watching.feed({"s1": row(1.0, errors=1)}, {"s1": row(1.0)})
    assert [reading.after for reading in watching.rules[0].readings] == [1.0, 0.75]


@pytest.mark.parametrize(("every", "finding"), [(3, "open"), (6, "fail")])
def test_a_scenario_without_a_score_is_no_part_of_the_means_and_of_what_is_enough(
    every: int, finding: str
) -> None:
    known = tallies([1.0] * 90)
    (rule,) = watch(known).rules
    for n, id_ in enumerate(known):
        rule.feed(id_, row(None, errors=1) if n % every == 0 else row(0.0 if n % 2 else 0.5))
    excluded = rule.readings[0]
    assert (excluded.before, excluded.finding, excluded.high < 0) == (1.0, finding, True)
    assert excluded.after == pytest.approx(0.25 if every == 3 else 0.2)


def test_all_errors_of_a_scenario_count_towards_the_limit() -> None:
    watching = watch(tallies([1.0] * 60), max_errors=3)
    for n, settled in enumerate((False, True)):
        assert watching.feed({f"s{n}": row(1.0, errors=2)}) is settled
    assert (watching.outcome, watching.seen) == ("fail", 2)
    assert watching.feed({"s2": row(1.0)}) is False
    assert watching.seen == 2


def test_a_sweep_that_is_fed_whole_and_undecided_is_not_settled() -> None:
    watching = watch(tallies([1.0] * 30))
    assert watching.feed(tallies([1.0] * 30)) is False
    assert (watching.seen, watching.settled) == (30, False)


def test_bounds_are_those_that_a_difference_can_have_from_the_first_scenario_on() -> None:
    watching = watch(tallies([1.0] * 60))
    watching.feed({"s0": row(0.0)})
    (reading,) = watching.rules[0].readings
    assert -1.0 <= reading.low <= reading.high <= 1.0


def test_a_scenario_that_was_all_errors_before_is_not_paired() -> None:
    before = {**tallies([1.0] * 50), "s0": row(None, errors=1)}
    sizes = [reading.size for reading in watch(before).rules[0].readings]
    assert sizes == [49, 50]
    changed = {**tallies([1.0] * 50), "s0": replace(row(1.0, errors=1), stamp="another")}
    rule = WatchedRule("gain", changed, dict.fromkeys(changed, "s"), bar=DROP)
    assert [reading.size for reading in rule.readings] == [49]


# the order


def test_the_order_is_that_of_what_scenarios_ask_and_not_of_their_ids() -> None:
    known = suite(0, 30)
    renamed = [replace(s, id=f"z{29 - n}") for n, s in enumerate(known)]
    name = {s.id: other.id for s, other in zip(known, renamed, strict=True)}
    assert order_of(1, renamed) == tuple(name[id_] for id_ in order_of(1, known))


def test_the_scenarios_of_a_family_come_in_a_random_order_too() -> None:
    known = [replace(s, family="one") for s in suite(0, 30)]
    orders = {order_of(seed, known, families_of(known)) for seed in (1, 2, 3)}
    assert len(orders) == 3
    assert tuple(s.id for s in known) not in orders


def test_a_watch_keeps_families_together_and_knows_the_scenarios_of_its_sweep_alone() -> None:
    run = make_run(None, evenly(60, [1.0]), settings={**ON, "gate_min_mean": 0.5})
    scenarios = tuple(replace(s, family=f"f{n % 20}") for n, s in enumerate(run.scenarios))
    part = run.phases[-1].phase.scenarios[:40]
    watching = opened(replace(run, scenarios=scenarios), scenarios=part)
    assert sorted(watching.order) == sorted(part)
    family = {s.id: s.family for s in scenarios}
    assert all(
        family[one] == family[other]
        for one, other in zip(watching.order[::2], watching.order[1::2], strict=True)
    )


# what it is opened with


def test_a_test_function_of_the_train_split_leaves_the_sweep_to_the_watch() -> None:
    (one,) = suite(0, 1)
    train = replace(one, split="train", checker="t.py::f")
    assert obstacle(SETTINGS, [train], foreign_rules=False, partial=False) == ""


@pytest.mark.parametrize("same", [True, False])
def test_a_reference_is_watched_as_the_baseline_even_with_the_library_of_the_run(same: bool) -> None:
    library = ("c" if same else "d") * 64
    run = make_run(evenly(60, [1.0]), evenly(60, [1.0]), settings=ON)
    before, after = run.phases
    run = replace(run, phases=(replace(before, library_hash=library), replace(after, library_hash="c" * 64)))
    reference = Reference(name="old", kind="library", stamp="e" * 64, library=Library(hash=library), packs=())
    held = replace(run, reference=reference)
    assert [rule.name for rule in opened(held).rules] == ["baseline"]
    found = watched(held, Sweeps(held), None, foreign_rules=False)
    assert isinstance(found, Watch)
    assert ([rule.name for rule in found.rules], found.seen) == (["baseline"], 60)
    own = watched(run, Sweeps(run), None, foreign_rules=False)
    assert (own if isinstance(own, str) else own.rules[0].name) == (
        "there is nothing to compare with" if same else "gain"
    )


@pytest.mark.parametrize("mode", ["train", "dev", "placebo"])
def test_no_other_sweep_than_the_final_one_is_watched(mode: Any) -> None:
    run = make_run(None, evenly(60, [1.0]), settings={**ON, "gate_min_mean": 0.5})
    assert opened(run) is not None
    assert opened(run, mode=mode) is None


def test_a_final_sweep_that_did_not_end_was_not_watched() -> None:
    run = make_run(None, evenly(60, [1.0]), settings={**ON, "gate_min_mean": 0.5})
    cut = replace(run, phases=(replace(run.phases[0], status="cancelled"),))
    assert watched(cut, Sweeps(cut), None, foreign_rules=False) == "the final sweep did not end"
    rules = watched(run, Sweeps(run), None, foreign_rules=True)
    assert rules == "rules of plugins need the whole sweep"


def test_a_baseline_that_another_judge_scored_keeps_a_watch_open() -> None:
    def judged(name: str) -> Run:
        run = make_run(None, evenly(60, [1.0]), settings={**ON, "gate_min_mean": 0.5})
        run = replace(run, identities={"judge": {"name": name, "identity": {"votes": 3}}})
        return replace(run, scenarios=tuple(replace(s, truth="judge") for s in run.scenarios))

    stored = from_run(judged("openai:x"), "main")
    for name, needed in (("openai:x", False), ("openai:y", True)):
        run = judged(name)
        found = watched(run, Sweeps(run), stored, foreign_rules=False)
        assert isinstance(found, Watch)
        for watching in (found, opened(run, stored)):
            assert ("another judge" in watching.needs_end) is needed


def test_the_first_reason_to_wait_for_the_end_is_the_one_that_is_told() -> None:
    run = make_run(None, evenly(60, [1.0]), settings={**ON, "gate_min_mean": 0.5, "gate_max_errors": 1})
    stored = from_run(run, "main")
    other = replace(stored, temperature=1.0, unsigned=True)
    assert opened(run, other).needs_end == "the baseline was made at temperature 1, the sweep at 0.3"
    assert opened(run, replace(stored, unsigned=True)).needs_end == "the baseline is no longer valid"
