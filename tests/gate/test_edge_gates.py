"""Gates over runs at the edges: every rule with its message, advice and figures, as the report has them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest
from support.report.worlds import WORLDS, rounded, with_phase, with_rollouts
from support.sweeps import SETTINGS, Credits, evenly, make_run, rated

from pytest_tfgrpo.core.lessons import LeakedAnswer, Library
from pytest_tfgrpo.core.records import Reference, Run
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.gate.baseline import Baseline, compared_stamps, from_run
from pytest_tfgrpo.gate.by_domain import restricted
from pytest_tfgrpo.gate.config import NamedGate
from pytest_tfgrpo.gate.difference import Bar, can_be_seen, judge_difference, share_level
from pytest_tfgrpo.gate.looks import ALPHA, Look, looks_at
from pytest_tfgrpo.gate.named_gates import OpenGate, judge_named
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.sample_size import settling_advice
from pytest_tfgrpo.gate.verdict import judge, more_rollouts, planned_looks
from pytest_tfgrpo.metrics.comparison import Tally, compare
from pytest_tfgrpo.suite.families import sweeps_of

Golden = Callable[[str, str], None]


def told(results: tuple[RuleResult, ...]) -> list[str]:
    """Return what rules found, without those that are not set."""
    lines = []
    for one in results:
        if one.outcome != "skipped" or one.name in ("gain", "baseline"):
            figures = json.dumps(rounded(to_wire(one.figures)), sort_keys=True)
            lines += [f"{one.outcome:12} {one.name}: {one.message} | {one.advice}"]
            lines += [f"{'':12} {figures}"] if one.figures else []
    return lines


def stored(final: dict[str, Credits], **changes: Any) -> Baseline:
    return replace(from_run(make_run(None, final), "main"), **changes)


def partial() -> Run:
    return make_run(None, evenly(3, [1]), partial_selection=True, preflight={"partial": "-k says so"})


def against(kind: Any, *, same: bool, concurrent: bool = True) -> Run:
    """Return a run that asked a reference itself."""
    library = Library(hash=("b" if same else "d") * 64)
    reference = Reference(name="old", kind=kind, stamp="e" * 64, library=library, packs=())
    run = replace(make_run(evenly(12, [0, 1]), evenly(12, [1, 1])), reference=reference)
    phase = replace(run.phases[0].phase, concurrent=concurrent)
    return with_phase(run, 0, phase=phase, library_hash=("c" if same else "d") * 64)


MIXED = evenly(12, [1, 0])
LEAKS = (LeakedAnswer(experience_id="x", scenario_id="s1"), LeakedAnswer(experience_id="y", scenario_id="s2"))
RUNS: dict[str, tuple[Callable[[], Run], Baseline | None, dict[str, Any]]] = {
    "mean as required": (lambda: make_run(None, MIXED), None, {"gate_min_mean": 0.5}),
    "mean below": (lambda: make_run(None, {**MIXED, "s1": [0, 0]}), None, {"gate_min_mean": 0.5}),
    "mean with errors": (lambda: make_run(None, {**MIXED, "s1": [1, None]}), None, {"gate_min_mean": 0.51}),
    "errors as allowed": (lambda: make_run(None, {"a": [1, None]}), None, {"gate_max_errors": 1}),
    "errors none allowed": (lambda: make_run(None, {"a": [1, None]}), None, {"gate_max_errors": 0}),
    "cost as allowed": (
        lambda: make_run(None, {"a": [1, 0]}), None, {"gate_max_cost_per_success_usd": 0.002}
    ),
    "cost above": (lambda: make_run(None, {"a": [1, 0]}), None, {"gate_max_cost_per_success_usd": 0.001}),
    "cost unknown": (WORLDS["unpriced"], None, {"gate_max_cost_per_success_usd": 1.0}),
    "cost of nothing": (WORLDS["all-failed"], None, {"gate_max_cost_per_success_usd": 1.0}),
    "nothing": (
        make_run, None, {"gate_min_mean": 0.5, "gate_max_errors": 0, "gate_max_cost_per_success_usd": 1.0}
    ),
    "nothing with a baseline": (make_run, stored(MIXED), {"gate_strict": True}),
    "part of the suite": (partial, stored(MIXED), {"gate_min_mean": 0.5}),
    "interrupted": (WORLDS["interrupted"], stored(MIXED), {"gate_min_mean": 0.5, "gate_max_errors": 0}),
    "learned nothing": (WORLDS["learned-nothing"], None, {}),
    "as the baseline": (lambda: make_run(None, MIXED), stored(MIXED), {}),
    "above the baseline": (lambda: make_run(None, evenly(12, [1, 1])), stored(MIXED), {}),
    "below the baseline": (lambda: make_run(None, evenly(12, [0, 0])), stored(evenly(12, [1, 1])), {}),
    "few of the baseline": (lambda: make_run(None, evenly(3, [1, 1])), stored(evenly(3, [0, 1])), {}),
    "half of the baseline": (lambda: make_run(None, evenly(24, [1, 1])), stored(MIXED), {}),
    "unsigned and strict": (
        lambda: make_run(None, evenly(80, [1])), stored(evenly(80, [1]), unsigned=True), {"gate_strict": True}
    ),
    "another actor": (lambda: make_run(None, MIXED), stored(MIXED, actor="openai:x"), {}),
    "leaks": (lambda: make_run(None, MIXED), None, {"contamination": LEAKS}),
    "leaks that warn": (lambda: make_run(None, MIXED), None, {"contamination": LEAKS, "warn": True}),
    "a reference": (lambda: against("library", same=False), None, {}),
    "a reference before": (lambda: against("packs", same=False, concurrent=False), None, {}),
    "a reference that is the run": (lambda: against("library", same=True), None, {}),
}  # fmt: skip


def test_all_that_a_gate_says_of_runs_at_the_edge(golden: Golden) -> None:
    lines = []
    for name, (make, baseline, changes) in RUNS.items():
        changes = dict(changes)
        leaks = changes.pop("contamination", ())
        if changes.pop("warn", False):
            changes["contamination"] = "warn"
        found = judge(make(), baseline=baseline, settings={**SETTINGS, **changes}, contamination=leaks)
        lines += [f"=== {name}: {found.outcome}", *told(found.results)]
    golden("worlds/gates.txt", "\n".join(lines) + "\n")


def polite(final: dict[str, Credits], **ratings: Credits) -> Run:
    return rated(make_run(evenly(12, [0, 1]) | {f"date{n}": [0, 1] for n in range(3)}, final), ratings)


TWO = evenly(12, [1, 1]) | {f"date{n}": [0, 0] for n in range(3)}
RATED = {id_: [0.5, 1.0] for id_ in TWO}
GATES = {
    "all": NamedGate(name="g", min_mean=0.8, gain=True),
    "each domain": NamedGate(name="g", min_mean=0.8, gain=True, per_domain=True),
    "one domain": NamedGate(name="g", min_mean=0.8, domains=("dates",), max_errors=0),
    "no scenario": NamedGate(name="g", min_mean=0.8, tags=("slow",)),
    "a metric": NamedGate(name="g", metric="politeness", min_mean=0.75, gain=True),
    "a metric of each domain": NamedGate(
        name="g", metric="politeness", min_mean=0.75, gain=True, per_domain=True
    ),
    "a metric that nothing has": NamedGate(name="g", metric="warmth.x", min_mean=0.1),
    "a metric beside a baseline": NamedGate(name="g", metric="politeness", margin=0.1, baseline="main"),
    "a baseline of each domain": NamedGate(name="g", margin=0.1, per_domain=True, baseline="main"),
    "strict": NamedGate(name="g", baseline="main", strict=True, severity="warn"),
}


def test_all_that_named_gates_say_of_runs_at_the_edge(golden: Golden) -> None:
    run = polite(TWO, **RATED)
    before = polite(TWO, **{id_: [1.0, 1.0] for id_ in TWO})
    lines = []
    for name, gate in GATES.items():
        for known in (None, from_run(before, "main"), from_run(make_run(None, TWO), "main")):
            if known is not None and gate.baseline is None:
                continue
            found = judge_named(run, OpenGate(gate, known), SETTINGS)
            lines += [f"=== {name}: {found.outcome} {found.severity} {found.scenarios}", *told(found.results)]
    golden("worlds/named-gates.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("made", "asked", "stored_", "changes", "looks"),
    [
        (5, 5, False, {}, [(0, 1.0)]),
        (5, 5, True, {}, [(5, 0.8)]),
        (10, 5, False, {}, [(5, 0.8), (10, 0.1)]),
        (20, 5, True, {}, [(5, 0.8), (10, 0.1), (20, 0.1)]),
        (7, 5, True, {}, [(0, 1.0)]),
        (5, None, True, {}, [(5, 0.8)]),
        (5, 5, True, {"gate_extend": False}, [(0, 1.0)]),
    ],
)
def test_looks_are_those_at_once_twice_and_four_times_the_rollouts(
    made: int, asked: int | None, stored_: bool, changes: dict[str, Any], looks: list[tuple[int, float]]
) -> None:
    settings = {**SETTINGS, "eval_rollouts": asked, "gate_extend": True, **changes}
    run = make_run(evenly(2, [1] * made), evenly(2, [0] * made), settings=settings)
    found = looks_at(run, sweeps_of(run), stored=stored_)
    assert [(look.rollouts, round(look.level / ALPHA, 9)) for look in found] == looks
    assert {row.n for row in found[-1].after.values()} == {made}
    assert [{row.n for row in look.after.values()} for look in found[:-1]] == [{n} for n, _ in looks[:-1]]
    assert looks_at(replace(run, phases=()), sweeps_of(replace(run, phases=())), stored=stored_) == ()


def test_more_rollouts_are_planned_where_any_gate_has_a_baseline_and_made_while_they_may_decide() -> None:
    settings = {**SETTINGS, "eval_rollouts": 2, "gate_extend": True}
    noisy = make_run(None, evenly(12, [1, 0]), settings=settings)
    main = stored(evenly(12, [1, 1]))
    mine = OpenGate(NamedGate(name="g", baseline="main"), main)
    bare = OpenGate(NamedGate(name="g"))
    assert planned_looks(noisy, None, []) == planned_looks(noisy, None, [bare]) == (2,)
    assert planned_looks(noisy, main, []) == planned_looks(noisy, None, [bare, mine]) == (2, 4, 8)
    assert planned_looks(against("library", same=False), None, [])[1:] != ()
    drop = stored(evenly(12, [1, 0]))
    alarmed = {**settings, "gate_alarm": 0.05}
    assert more_rollouts(make_run(None, evenly(12, [1, 0]), settings=alarmed), drop, []) == 4
    whole = make_run(None, evenly(12, [1, 0] * 4), settings=alarmed)
    assert more_rollouts(whole, drop, []) == 0
    assert more_rollouts(make_run(None, evenly(12, [1, 1]), settings=settings), main, []) == 0
    incomplete = with_phase(make_run(None, evenly(12, [1, 0]), settings=alarmed), 0, status="incomplete")
    assert more_rollouts(incomplete, drop, []) == 0
    failed = make_run(
        None, {**evenly(11, [1, 0]), "s11": [None, 0]}, settings=alarmed | {"gate_max_errors": 0}
    )
    assert more_rollouts(failed, drop, []) == 0, "an error stays one"


@pytest.mark.parametrize(
    ("figures", "seen"),
    [
        ({"answer": "open", "noisy": True}, True),
        ({"answer": "unseen", "noisy": True}, True),
        ({"answer": "worse", "noisy": True}, False),
        ({"answer": "open", "noisy": False}, False),
        ({"answer": "open"}, False),
        ({"answer": "open", "noisy": True, "lost": ["a"]}, False),
        ({}, False),
    ],
)
def test_more_rollouts_decide_an_open_answer_of_rollouts_that_differ(
    figures: dict[str, Any], seen: bool
) -> None:
    assert can_be_seen(RuleResult(name="x", outcome="fail", message="", figures=figures)) is seen


def tally(n: int, passed: float, errors: int = 0, shared: bool = False) -> Tally:
    return Tally(stamp="s", domain="text", n=n, sum=passed, sum_sq=passed, errors=errors, shared=shared)


@pytest.mark.parametrize(
    ("before", "after", "noisy"),
    [
        ([tally(2, 2)] * 12, [tally(2, 2)] * 12, False),
        ([tally(2, 2)] * 12, [tally(2, 2)] * 11 + [tally(2, 1)], True),
        ([tally(2, 2)] * 12, [tally(2, 2)] * 11 + [tally(1, 1)], True),
        ([tally(2, 2)] * 12, [tally(2, 2)] * 11 + [tally(1, 1, errors=1)], True),
        ([tally(2, 2)] * 12, [tally(2, 2)] * 11 + [tally(2, 2, errors=1)], True),
        ([tally(2, 1, shared=True)] * 12, [tally(2, 1, shared=True)] * 12, False),
        ([tally(2, 1, shared=True)] * 12, [tally(2, 1)] * 12, True),
    ],
)
def test_rollouts_that_differ_or_are_too_few_to_know_say_that_more_may_tell(
    before: list[Tally], after: list[Tally], noisy: bool
) -> None:
    sides = [{f"s{n}": row for n, row in enumerate(rows)} for rows in (before, after)]
    look: Any = type("Look", (), {"after": sides[1], "before": None, "level": ALPHA, "rollouts": 0})
    found = judge_difference("x", sides[0], [look], Bar(margin=0.0001))
    assert found.figures["noisy"] is noisy


def test_the_advice_on_size_counts_answers_that_both_sides_share_as_one(golden: Golden) -> None:
    lines = []
    for name, odd in (("own", False), ("half", None), ("shared", True)):
        before, after = (
            {
                f"s{n}": tally(
                    4, (n + side) % 4, errors=n % 2, shared=odd or (odd is None and n % 2 == 0 and not side)
                )
                for n in range(20)
            }
            for side in (0, 1)
        )
        for as_zero in (False, True):
            advice, figures = settling_advice(
                compare(before, after, errors_as_zero=as_zero), before, after, 0.05, errors_as_zero=as_zero
            )
            lines += [f"=== {name}, errors as zero: {as_zero}", advice, json.dumps(rounded(figures))]
    golden("worlds/gate-sizes.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("truth", "split", "judged"),
    [("judge", "eval", True), ("judge", "train", False), ("checks", "eval", False)],
)
def test_the_judge_is_compared_where_it_scores_an_eval_scenario(truth: Any, split: Any, judged: bool) -> None:
    run = make_run(None, {"a": [1]})
    scenarios = tuple(replace(s, truth=truth, split=split) for s in run.scenarios)
    assert ("judge" in compared_stamps(replace(run, scenarios=scenarios))) is judged
    assert ("judge" in compared_stamps(replace(run, scenarios=(*run.scenarios, *scenarios)))) is judged


def test_unknown_costs_are_not_taken_for_none() -> None:
    run = with_rollouts(make_run(None, {"a": [1, 1]}), lambda r: replace(r, cost_usd=None))
    found = judge(run, baseline=None, settings={**SETTINGS, "gate_max_cost_per_success_usd": 0.1})
    assert found.outcome == "inconclusive"


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "inconclusive"),
        ({"p_worse": 0.99 * ALPHA}, "fail"),
        ({"errors_as_zero": None}, "fail"),
        ({"lost": ["a"]}, "fail"),
        ({"alarm": 0.1}, "fail"),
        ({"p_worse": None}, "fail"),
    ],
)
def test_both_readings_of_errors_share_the_level_of_one_comparison(
    changes: dict[str, Any], outcome: str
) -> None:
    figures = {
        **{"answer": "worse", "p_worse": 1.01 * ALPHA, "errors_as_zero": {}, "bounds": [-0.2, -0.01]},
        **{"alarm": 1.0, "margin": 0.05},
    }
    (found,) = share_level(
        [RuleResult(name="gain", outcome="fail", message="worse: by .1", figures=figures | changes)]
    )
    assert found.outcome == outcome


def passes(*solved: float, n: int = 1) -> dict[str, Tally]:
    rows = enumerate(solved)
    return {f"s{i}": Tally(stamp="x", n=n, sum=n * x, sum_sq=n * x, errors=0) for i, x in rows}


@pytest.mark.parametrize(
    ("before", "after", "alarm", "answer", "start"),
    [
        ([1.0], [0.0], 1.0, "open", "open: "),
        ([1.0], [0.0], 0.999, "unseen", "cannot see a drop of 0.999: "),
        ([0.0, 1.0] * 6, [1.0, 0.0] * 6, 0.9, "open", "open, as only a drop of 0.9 is excluded: "),
        ([0.0] * 12, [1.0] * 12, 0.9, "not worse", "not worse by more than 0.05: "),
        ([1.0] * 12, [0.0] * 12, 0.9, "worse", "worse: "),
    ],
)
def test_where_no_drop_need_be_excluded_the_largest_one_is_open(
    before: list[float], after: list[float], alarm: float, answer: str, start: str
) -> None:
    bar = Bar(margin=0.05, alarm=alarm)
    found = judge_difference("gain", passes(*before), [Look(passes(*after))], bar)
    assert found.figures["answer"] == answer
    assert found.message.startswith(start)


def test_drift_widens_each_bound_by_its_square_and_raises_the_p() -> None:
    before, after = passes(*([1.0, 0.0, 0.5, 1.0] * 10), n=2), passes(*([0.5, 0.0, 0.5, 1.0] * 10), n=2)
    plain, drifted = (
        judge_difference("gain", before, [Look(after)], Bar(margin=0.05, drift=drift)).figures
        for drift in (0.0, 0.05)
    )
    mean, far = plain["difference"], 1.959964 * 0.05
    widened = [
        mean - math.hypot(mean - plain["bounds"][0], far),
        mean + math.hypot(plain["bounds"][1] - mean, far),
    ]
    assert drifted["bounds"] == pytest.approx(widened, abs=1e-6)
    spread = compare(before, after).difference.std / math.sqrt(40)
    z = NormalDist().inv_cdf(1 - plain["p_worse"]) / math.hypot(1, 0.05 / spread)
    assert drifted["p_worse"] == pytest.approx(1 - NormalDist().cdf(z))
    assert plain["p_worse"] < 0.01 < drifted["p_worse"] < 0.5


def test_a_part_of_a_run_has_all_that_it_trained_on() -> None:
    run = make_run({"text0": [1]}, {"text0": [1], "date0": [1]}, {"t0": [1], "t1": [1]})
    part = restricted(run, lambda scenario: scenario.id == "date0")
    assert [s.id for s in part.scenarios if s.split == "eval"] == ["date0"]
    assert [s for s in part.scenarios if s.split != "eval"] == [s for s in run.scenarios if s.split != "eval"]
