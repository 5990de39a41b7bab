"""The placebo sweep: whether a gain is one of what lessons say, or of any text in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum

from pytest_tfgrpo.core.records import Group, Rollout, Run
from pytest_tfgrpo.core.report_blocks import GainClaim, PlaceboBlock, PlaceboChange
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.metrics.comparison import Sweeps, Tally, compare, figures, has_lessons
from pytest_tfgrpo.metrics.looks import evaluations
from pytest_tfgrpo.metrics.significance import ALPHA, Claim, claim, held, p_of

IMPOSSIBLE = (
    "placebo not possible, as all lessons are of one domain and of one family, or of none that is known"
)


def placebo_block(run: Run, sweeps: Sweeps) -> PlaceboBlock | None:
    """Return what the placebo sweep shows beside the baseline and the final one; None without all three."""
    placebo, before, after = sweeps.placebo, sweeps.before, sweeps.after
    if placebo is None or before is None or after is None:
        return None
    seen = evaluations(run, sweeps)
    looks = seen["looks"] if seen else 1
    over = compare(sweeps.rows_placebo, sweeps.rows_after)
    ids = {group.scenario_id for group in placebo.groups}
    changed = [_changed(ids, before.counted), _changed(ids, placebo.groups), _changed(ids, after.groups)]
    return {
        "beside": _beside(run),
        "total": figures(compare(sweeps.rows_before, sweeps.rows_after))["difference"],
        "possible": len(ids),
        "impossible": sum(map(has_lessons, placebo.shared)),
        "over": figures(over),
        "p": p_of(over),
        "level": ALPHA / looks,
        "side": claimed(sweeps.rows_placebo, sweeps.rows_after, looks),
        "gain": figures(compare(sweeps.rows_before, sweeps.rows_placebo)),
        "gain_side": claimed(sweeps.rows_before, sweeps.rows_placebo, looks),
        "changed": [_change(what, *(one[what] for one in changed)) for what in changed[0]],
    }


def held_to_placebo(found: GainClaim, placebo: PlaceboBlock | None) -> GainClaim:
    """Return what may be claimed of a gain where a placebo ran: better only if over that too.

    Both tests are at the level of the claim: an intersection of claims, each of which must hold, needs no
    correction (Berger 1982, "Multiparameter Hypothesis Testing and Acceptance Sampling").
    """
    if placebo is None or held(found["side"], placebo["side"]) == found["side"]:
        return found
    return {**found, "side": None, "over_nothing": "better"}


def claimed(before: Mapping[str, Tally], after: Mapping[str, Tally], looks: int) -> Claim | None:
    """Return what may be claimed of the difference of two sweeps, in both readings of errors."""
    readings = [compare(before, after, errors_as_zero=as_zero) for as_zero in (False, True)]
    return claim(*((one, p_of(one)) for one in readings), looks=looks)


def _beside(run: Run) -> str:
    """Return what the baseline sweep carries."""
    if run.reference is not None:
        return f"the reference {line(run.reference.title, 120)}"
    return "the lessons at the start" if run.library_start.experiences else "no lessons"


def _changed(ids: set[str], groups: Iterable[Group]) -> dict[str, float | None]:
    """Return what answers of some scenarios are like, mean over the rollouts that are no errors."""
    sums, n = [0.0, 0.0, 0.0], 0
    for group in groups:
        if group.scenario_id not in ids:
            continue
        for rollout in group.rollouts:
            if rollout.status != "error":
                n += 1
                now = (len(rollout.answer), _is_cut(rollout), rollout.tokens)
                sums = [fsum(pair) for pair in zip(sums, now, strict=True)]
    names = ("characters", "cut", "tokens")
    return {name: total / n if n else None for name, total in zip(names, sums, strict=True)}


def _is_cut(rollout: Rollout) -> bool:
    return any(frame.kind == "model" and frame.finish == "length" for frame in rollout.frames)


def _change(what: str, before: float | None, placebo: float | None, after: float | None) -> PlaceboChange:
    return {"what": what, "before": before, "placebo": placebo, "after": after}
