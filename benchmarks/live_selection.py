"""Measure how well the selector of live RL chooses, and how well its guard tells harm from chance.

    python benchmarks/live_selection.py [--seeds 20] [--streams 1000]

Selection: 600 runs whose arms succeed with known probabilities, by the code that production runs use: draws,
rewards, updates every 8 runs, a tenth of control. Printed is what the last 100 runs under the selector are
expected to score, as a share of the best arm's, against Thompson sampling by category, which learns after
each run and pays for no control. Guard: streams of 2,000 runs, where control and selector are equal (a hold
is false), or the selector is worse by .4; and where its runs fail as often as those of the control, or
more often. Speed: a choice, and an update.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import timeit
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_tfgrpo.production.live.records import ArmChoice, LiveRollout, LiveStatus, RunTrace
from pytest_tfgrpo.production.live.selection.control import MORE_FAILURES, NEEDED, NEEDED_OF_FAILURES, bet
from pytest_tfgrpo.production.live.selection.rewards import OutcomeReward
from pytest_tfgrpo.production.live.selection.selector import CONTROL_SHARE, is_control, open_selector
from pytest_tfgrpo.production.live.selection.update import Learning, PolicyAlgorithm, compute

RUNS, LAST, INTERVAL = 600, 100, 8
STREAM = 2000
Rates = Mapping[str, Mapping[str, float]]
"""Chance of success by category and arm."""


class Environment(NamedTuple):
    """A service; at half of its runs its rates may change."""

    early: Rates
    late: Rates
    bar: float | None
    """Share of Thompson sampling's score that is asked for; None: shown only."""

    def rates(self, run: int) -> Rates:
        """Return the chances in a run."""
        return self.early if run < RUNS // 2 else self.late


def _table(*rows: Sequence[float]) -> Rates:
    return {f"c{c}": {f"arm{a}": p for a, p in enumerate(row)} for c, row in enumerate(rows)}


_ONE = _table(*[(0.45, 0.8, 0.2)] * 3)
_OWN = _table((0.8, 0.4, 0.5), (0.4, 0.8, 0.5), (0.5, 0.4, 0.8), (0.45, 0.8, 0.4))
_CLOSE = _table(*[(0.4, 0.45, 0.5, 0.55, 0.6, 0.75)] * 3)
_MANY = _table(*[tuple(0.8 if arm == c % 3 else 0.4 for arm in range(3)) for c in range(16)])
_BEFORE, _AFTER = _table(*[(0.75, 0.5, 0.3)] * 2), _table(*[(0.4, 0.5, 0.8)] * 2)
ENVIRONMENTS: Mapping[str, Environment] = {
    "one arm is best everywhere": Environment(_ONE, _ONE, 0.93),
    "each category has its own best arm": Environment(_OWN, _OWN, 0.93),
    "6 arms close to each other": Environment(_CLOSE, _CLOSE, 0.93),
    "16 categories, each its own best arm": Environment(_MANY, _MANY, None),
    "the best arm changes at half": Environment(_BEFORE, _AFTER, None),
}


def by_selector(environment: Environment, seed: int, algorithm: PolicyAlgorithm = "ppo") -> float:
    """Return the expected score of the last runs under the selector, as a share of the best arm's."""
    rng, namespace = random.Random(seed), f"bench-{seed}"
    stamps = {arm: f"stamp of {arm}" for arm in environment.early["c0"]}
    learning = Learning(points={"config": stamps}, strategy="outcome_v1", algorithm=algorithm)
    state, document, due = open_selector(0, None, learning.points), None, 0
    waiting: list[LiveRollout] = []
    shares = []
    for number in range(RUNS):
        rates = environment.rates(number)
        category = rng.choice(list(rates))
        if is_control(namespace, str(number)):
            continue
        choice = state.draw(namespace, str(number), 1, "config", 0, category=category)
        chance = rates[category][choice.arm]
        shares.append(chance / max(rates[category].values()))
        waiting.append(_run(number, category, float(rng.random() < chance), choice))
        due += 1
        if due == INTERVAL:
            due, offered = 0, waiting[: learning.limit]
            report, document = compute(offered, state.number, document, learning=learning, now=0.0)
            waiting = [one for one in waiting if one.id not in report.spent]
            state = open_selector(report.selector_after, document, learning.points)
    return statistics.mean(shares[-LAST:])


def _run(number: int, category: str, score: float, choice: ArmChoice) -> LiveRollout:
    trace = RunTrace(
        prompt_chars=1, reply_chars=1, completed=True, turns=1, tool_errors=0, blocked=False, score=score
    )
    return LiveRollout(
        id=str(number),
        sequence=number,
        run=str(number),
        category=category,
        status=LiveStatus.SUCCEEDED,
        reason="",
        control=False,
        attempt=1,
        choices=(choice,),
        trace=trace,
        reward=OutcomeReward().infer(trace),
        started_at=0.0,
        ended_at=0.0,
        used_in=None,
    )


def by_thompson(environment: Environment, seed: int) -> float:
    """Return the same for Thompson sampling with a beta prior of 1, 1 by category and arm."""
    rng = random.Random(seed)
    won: dict[tuple[str, str], float] = {}
    lost: dict[tuple[str, str], float] = {}
    shares = []
    for number in range(RUNS):
        rates = environment.rates(number)
        category = rng.choice(list(rates))
        drawn = {
            arm: rng.betavariate(1 + won.get((category, arm), 0), 1 + lost.get((category, arm), 0))
            for arm in rates[category]
        }
        arm = max(drawn, key=lambda one: drawn[one])
        chance = rates[category][arm]
        shares.append(chance / max(rates[category].values()))
        side = won if rng.random() < chance else lost
        side[category, arm] = side.get((category, arm), 0) + 1
    return statistics.mean(shares[-LAST:])


class Stream(NamedTuple):
    """What the guard sees: the mean of q under control and under the selector at the start and the end."""

    control: tuple[float, float]
    selected: tuple[float, float]
    noise: float | None = None
    """None: q is 0 or 1; else it is normal around its mean with this deviation, cut to [0, 1]."""
    sets_in: int = 0
    """Run from which on these means hold; before, the selector is better by .15."""


def hold_at(stream: Stream, seed: int) -> int | None:
    """Return the run at which the guard finds the selector worse than control; None: never."""
    rng, needed = random.Random(seed), math.log(NEEDED)
    memory: Mapping[str, float] = {}
    for run in range(STREAM):
        control = rng.random() < CONTROL_SHARE
        first, last = stream.control if control or run < stream.sets_in else stream.selected
        mean = first + (last - first) * run / STREAM + 0.15 * (run < stream.sets_in and not control)
        q = rng.random() < mean if stream.noise is None else rng.gauss(mean, stream.noise)
        memory = bet(memory, min(max(float(q), 0.0), 1.0), control=control)
        if memory["log_wealth"] >= needed:
            return run + 1
    return None


def failures_hold_at(control: float, selected: float, seed: int) -> int | None:
    """Return the run at which the guard finds that the selector's runs fail more often; None: never."""
    rng, needed = random.Random(seed), math.log(NEEDED_OF_FAILURES)
    memory: Mapping[str, float] = {}
    for run in range(STREAM):
        is_control = rng.random() < CONTROL_SHARE
        ended_well = rng.random() >= (control if is_control else selected)
        memory = bet(memory, float(ended_well), control=is_control, margin=MORE_FAILURES)
        if memory["log_wealth"] >= needed:
            return run + 1
    return None


AS_OFTEN = ((0.02, 0.02), (0.2, 0.2), (0.5, 0.5), (0.1, 0.15))
MORE_OFTEN = ((0.0, 0.4), (0.05, 0.3), (0.2, 0.6))
"""Share of runs that fail, of control and selector."""

EQUAL: Mapping[str, Stream] = {
    "equal, q 0 or 1 with mean .6": Stream((0.6, 0.6), (0.6, 0.6)),
    "equal, q 0 or 1 with mean .9": Stream((0.9, 0.9), (0.9, 0.9)),
    "equal, q around .7 with deviation .15": Stream((0.7, 0.7), (0.7, 0.7), noise=0.15),
    "equal, both rise from .3 to .9": Stream((0.3, 0.9), (0.3, 0.9)),
}
HARMS: Mapping[str, Stream] = {
    ".8 against .4": Stream((0.8, 0.8), (0.4, 0.4)),
    ".5 against .1": Stream((0.5, 0.5), (0.1, 0.1)),
    ".9 against .5": Stream((0.9, 0.9), (0.5, 0.5)),
    ".8 against .6": Stream((0.8, 0.8), (0.6, 0.6)),
    ".6 against .2 after 1,000 good runs": Stream((0.6, 0.6), (0.2, 0.2), sets_in=1000),
}


def selection(seeds: int) -> bool:
    """Print the table of selection; return whether its bars hold."""
    good = True
    print(f"last {LAST} of {RUNS} runs, share of the best arm's score, mean of {seeds} seeds")
    print(f"{'':<38} {'Thompson':>9} {'ppo':>7} {'grpo':>7} {'rloo':>7} {'ppo/Thompson':>13}  bar")
    for name, environment in ENVIRONMENTS.items():
        thompson = statistics.mean(by_thompson(environment, seed) for seed in range(seeds))
        found = {
            algorithm: statistics.mean(by_selector(environment, seed, algorithm) for seed in range(seeds))
            for algorithm in ("ppo", "grpo", "rloo")
        }
        ratio = found["ppo"] / thompson
        bar = "" if environment.bar is None else f">= {environment.bar}"
        good &= environment.bar is None or ratio >= environment.bar
        others = " ".join(f"{value:7.3f}" for value in found.values())
        print(f"{name:<38} {thompson:9.3f} {others} {ratio:13.3f}  {bar}", flush=True)
    return good


def guard(streams: int) -> bool:
    """Print the table of the guard; return whether its bars hold."""
    good = True
    print(f"\nguard, {streams} streams of {STREAM} runs")
    for name, stream in EQUAL.items():
        share = statistics.mean(hold_at(stream, seed) is not None for seed in range(streams))
        good &= share <= 0.07
        print(f"{name:<38} held {share:7.1%}  bar <= 7 %", flush=True)
    for name, stream in HARMS.items():
        found = [(hold_at(stream, seed) or math.inf) - stream.sets_in for seed in range(streams)]
        judged = not stream.sets_in and stream.control[0] - stream.selected[0] >= 0.4 - 1e-9
        good &= not judged or statistics.median(found) <= 200
        bar = "  bar <= 200" if judged else ""
        print(f"{name:<38} found after {statistics.median(found):.0f} runs (median){bar}", flush=True)
    for control, selected in AS_OFTEN:
        share = statistics.mean(failures_hold_at(control, selected, n) is not None for n in range(streams))
        good &= share <= 0.015
        print(f"{f'{selected} fail, {control} of control':<38} held {share:7.1%}  bar <= 1.5 %", flush=True)
    for control, selected in MORE_OFTEN:
        after = [failures_hold_at(control, selected, n) or math.inf for n in range(streams)]
        name = f"{selected} fail, {control} of control"
        print(f"{name:<38} found after {statistics.median(after):.0f} runs (median)", flush=True)
    return good


def speed() -> bool:
    """Print what a choice and an update cost; return whether a choice takes less than 10 microseconds."""
    stamps = {f"arm{i}": str(i) for i in range(3)}
    learning = Learning(points={"config": stamps}, strategy="outcome_v1")
    state = open_selector(0, None, learning.points).with_categories(["billing"])

    def choose(run: str) -> ArmChoice:
        is_control("shop", run)
        return state.draw("shop", run, 1, "config", 0, category="billing")

    took = timeit.repeat(lambda: choose("ticket-17"), number=10_000, repeat=9)
    choice_us = statistics.median(took) / 10_000 * 1e6
    runs = [_run(i, "billing", float(i % 3 == 0), choose(str(i))) for i in range(learning.limit)]
    took = timeit.repeat(lambda: compute(runs, 0, None, learning=learning, now=0.0), number=1, repeat=9)
    update_ms = statistics.median(took) * 1e3
    print(f"\na choice takes {choice_us:.1f} us (median), bar < 10 us; an update {update_ms:.1f} ms")
    return choice_us < 10


def main() -> int:
    """Run all; return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    return 0 if all([selection(options.seeds), guard(options.streams), speed()]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
