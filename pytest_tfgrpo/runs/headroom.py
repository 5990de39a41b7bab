"""Headroom: what learning can gain at all, from the first training groups, before any of their lessons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import TypedDict

from pytest_tfgrpo.core.records import Group, Phase, PhaseResult
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.learning import EVAL_ROLLOUTS, GROUP_SIZE, HEADROOM
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.metrics.comparison import tally
from pytest_tfgrpo.metrics.passes import Passes
from pytest_tfgrpo.numerics.planning import (
    MIN_INTERVAL,
    NO_SPREAD,
    Spread,
    minimum_detectable_effect,
    pooled_noise,
    uneven_effect,
)
from pytest_tfgrpo.numerics.stats import effective_families, mean_interval
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.schedule import PLANNED_BY, most_rollouts, outline, plan
from pytest_tfgrpo.suite.families import families_of, family_of

RESUME = "continue anyway with --tfgrpo-resume and --tfgrpo-headroom=show"


class Headroom(TypedDict):
    """What a lesson can gain and what the plan can show of it."""

    groups: int
    """Scored training groups of the first epoch."""
    informative: int
    mean: float | None
    bound: float | None
    """1 - their mean: no gain is above it."""
    bound_ci95: Sequence[float] | None
    k: int
    pass_at_1: float | None
    pass_at_k: float | None
    scenarios: int
    families: int
    rollouts: int
    detectable: float | None
    """The smallest gain that the final comparison shows in 4 of 5 runs, if all scenarios gain alike."""
    detectable_uneven: float | None
    """The same if whole families gain all that there is or nothing."""
    rollouts_per_claim: Sequence[int] | None
    stop: str


def look_ahead(
    job: Job, phase: Phase, groups: Sequence[Group], earlier: Iterable[PhaseResult] = ()
) -> tuple[str, str]:
    """Return what to say of the headroom before the first learning step, and why to stop; empty for nothing.

    A run that learned in an `earlier` phase, or before it was resumed, is beyond it.
    """
    known = phase.epoch in job.resumed.candidates or phase.epoch in job.resumed.revisions
    known = known or not phase.asks or any(result.phase.trains for result in earlier)
    found = None if known else headroom(job.scenarios, job.settings, groups)
    if found is None:
        return "", ""
    stops = HEADROOM.of(job.settings) == "stop"
    return f"headroom: {headroom_notice(found)}", f"headroom = stop: {found['stop']}" if stops and found[
        "stop"
    ] else ""


def headroom(
    scenarios: Sequence[Scenario], settings: Mapping[str, object], groups: Sequence[Group]
) -> Headroom | None:
    """Return what a lesson can gain and what the plan can show of it; None without a scored group.

    `groups` are those of the first training epoch. The bound is 1 - their mean; its interval counts families.
    The smallest gains that the final comparison shows in 4 of 5 runs rest on the spread of these rollouts:
    once if all scenarios gain alike, once if whole families gain all that there is or nothing. Under 8
    effective families the comparison is over scenarios, and they stand for families here.
    """
    family = families_of([s for s in scenarios if s.split == "eval"])
    family |= {s.id: of for s in scenarios if s.split == "train" and (of := family_of(s))}
    rows = tally(groups, {s.id: s.stamp for s in scenarios})
    means = {id_: mean for id_, row in rows.items() if (mean := row.mean()) is not None}
    if not means:
        return None
    interval = mean_interval(list(means.values()), [family.get(id_, f"scenario {id_}") for id_ in means])
    bound, within = 1.0 - interval.mean, pooled_noise([rows[id_] for id_ in means])
    sweep = [family.get(s.id, f"scenario {s.id}") for s in scenarios if s.split == "eval"]
    effective = effective_families(sweep)
    passes = Passes(groups)
    n, k = len(sweep), GROUP_SIZE.of(settings)
    rollouts = EVAL_ROLLOUTS.of(settings) or k
    units = effective if effective >= MIN_INTERVAL else n
    known = within is not None and within > NO_SPREAD and n >= MIN_INTERVAL
    found: Headroom = {
        "groups": len(means),
        "informative": sum(group.informative for group in groups),
        "mean": fsum(means.values()) / len(means),
        "bound": bound,
        "bound_ci95": None
        if interval.low is None or interval.high is None
        else [1 - interval.high, 1 - interval.low],
        "k": k,
        "pass_at_1": passes.at(1),
        "pass_at_k": passes.at(k),
        "scenarios": n,
        "families": len(set(sweep)),
        "rollouts": rollouts,
        "detectable": minimum_detectable_effect(Spread(0.0, 2 * (within or 0.0)).std(rollouts), n)
        if known
        else None,
        "detectable_uneven": uneven_effect(within or 0.0, bound, n, rollouts, units) if known else None,
        "rollouts_per_claim": _rollouts(scenarios, {**settings, "eval_rollouts": rollouts}, rollouts),
        "stop": "",
    }
    return found | {"stop": why_stop(found)}


def _rollouts(
    scenarios: Iterable[Scenario], settings: Mapping[str, object], rollouts: int
) -> list[int] | None:
    """Return how many rollouts the plan takes at least and, by control and dev split, at most.

    None for a run made before one of the settings existed.
    """
    if any(row.name not in settings for row in PLANNED_BY):
        return None
    sweeps = outline(settings, learning=True, sweep_rollouts=rollouts)
    phases = plan(sweeps, scenarios, settings)
    least = sum(phase.planned for phase in phases if not phase.concurrent)
    planned = sum(phase.planned for phase in phases)
    return [least, planned + sum(most_rollouts(phase, settings) for phase in phases)]


def why_stop(found: Headroom) -> str:
    """Return why the plan can show no gain, by the bound and the informative groups alone; empty if it can.

    What was never solved says nothing: a lesson may teach it.
    """
    if found["groups"] >= MIN_INTERVAL and not found["informative"]:
        way = "harder" if found["mean"] is not None and found["mean"] > 0.5 else "easier"
        return (
            f"none of the first {found['groups']} training groups had mixed results, so there is nothing to "
            f"learn from; take {way} train scenarios or a larger group_size, or {RESUME}"
        )
    ends, smallest = found["bound_ci95"], found["detectable"]
    if ends is None or smallest is None or ends[1] >= smallest:
        return ""
    return (
        f"no gain above {ends[1]:.3f} is left, and {_size(found)} show gains from {smallest:.3f} on; take "
        f"harder scenarios, more eval scenarios or a higher eval_rollouts, or {RESUME}"
    )


def headroom_notice(found: Headroom) -> str:
    """Return the headroom in a sentence, for the time when a run could still be stopped."""
    text = (
        f"{found['informative']} of {plural(found['groups'], 'first training group')} had mixed results; "
        f"at most {found['bound']:.3f} to gain"
    )
    smallest = found["detectable"]
    return text if smallest is None else f"{text}; {_size(found)} show gains from {smallest:.3f} on"


def headroom_text(found: Headroom) -> str:
    """Return the headroom in words."""
    ends = found["bound_ci95"]
    interval = "" if ends is None else f" (95 % interval {ends[0]:.3f} to {ends[1]:.3f})"
    text = (
        f"{found['informative']} of {plural(found['groups'], 'first training group')} had mixed results; "
        f"mean {found['mean']:.3f}, so no gain above {found['bound']:.3f}{interval}"
    )
    if found["pass_at_1"] is not None and found["pass_at_k"] is not None:
        extra = found["pass_at_k"] - found["pass_at_1"]
        text += (
            f"; pass@{found['k']} - pass@1 {extra:.3f} (no bound: lessons may solve what was never solved)"
        )
    return f"{text}; {_shown(found)}"


def _shown(found: Headroom) -> str:
    """Return what the plan can show, and for how many rollouts."""
    smallest, uneven, cost = found["detectable"], found["detectable_uneven"], found["rollouts_per_claim"]
    if smallest is None or uneven is None:
        return "what the plan can show is unknown"
    over = ", which is more than is left," if smallest > (found["bound"] or 0.0) else ""
    price = "" if cost is None else f", for {cost[0]}{f' to {cost[1]}' if cost[1] > cost[0] else ''} rollouts"
    families = f"({uneven:.3f} if whole families gain all or nothing)"
    return f"{_size(found)} show gains from {smallest:.3f} on {families}{over} in 4 of 5 runs{price}"


def _size(found: Headroom) -> str:
    return f"{plural(found['scenarios'], 'eval scenario')} x {plural(found['rollouts'], 'rollout')}"
