"""The decision after an epoch: dev rollouts carry what is in doubt by coins, and one estimate chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from pytest_tfgrpo.core.lessons import Acceptance, Revision
from pytest_tfgrpo.core.records import Group, Phase, RunStatus
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.learning import ACCEPTANCE, ACCEPTANCE_MARGIN, ACCEPTANCE_ROLLOUTS
from pytest_tfgrpo.learning.acceptance.choice import Choice
from pytest_tfgrpo.learning.acceptance.dev_prompts import DevPrompts
from pytest_tfgrpo.learning.acceptance.evidence import value_of
from pytest_tfgrpo.learning.acceptance.pool import ALPHA, Pool, pool_of
from pytest_tfgrpo.learning.acceptance.standpoint import Standpoint
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.learned_effects import with_effects
from pytest_tfgrpo.learning.prompts import Ask
from pytest_tfgrpo.runs.schedule import MIN_DEV, dev_phase

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.acceptance.evidence import Evidence

Sweep: TypeAlias = Callable[[Phase, Ask], Awaitable[Mapping[str, Group]]]
"""Carries out a phase and returns its groups by scenario id; raises Unfinished when it could not."""


class Unfinished(Exception):
    """A sweep did not finish: interrupted, aborted, or out of budget."""

    def __init__(self, end: RunStatus, reason: str) -> None:
        """`end` is how the run ends, for a reason."""
        super().__init__(end, reason)
        self.end: RunStatus = end
        self.reason = reason


def undecided(candidate: Revision, scenarios: Iterable[Scenario], settings: Mapping[str, object]) -> Revision:
    """Return `candidate`, which is accepted untried, with the reason why nothing decides on it."""
    if candidate.acceptance is not None or ACCEPTANCE.of(settings) == "off":
        return candidate
    number = sum(scenario.split == "dev" for scenario in scenarios)
    note = f"not tried: {number} dev scenarios, at least {MIN_DEV} are needed"
    return replace(candidate, acceptance=_acceptance(settings, number, note=note))


def _acceptance(settings: Mapping[str, object], scenarios: int, *, note: str = "") -> Acceptance:
    return Acceptance(
        rule=cast("Literal['strict', 'safe']", ACCEPTANCE.of(settings)),
        margin=ACCEPTANCE_MARGIN.of(settings),
        alpha=ALPHA,
        scenarios=scenarios,
        note=note,
    )


async def decide(at: Standpoint, sweep: Sweep) -> Revision:
    """Return what of the candidate comes into force, with what decided; raises Unfinished.

    What is new, what is in doubt and what was refused before is in the prompt of each dev rollout by a coin
    of its own; a regression over all such rollouts of the run says what each lesson is worth.
    """
    settings = at.job.settings
    evidence, pool = await asyncio.to_thread(_pool, at)
    if not pool.units and not pool.barred and not pool.tossed:
        note = _acceptance(settings, len(at.phase.dev), note="nothing was proposed")
        return replace(at.candidate, acceptance=note)
    prompts = DevPrompts(at.job, pool, at.phase)
    tried = prompts.open(at.phase.dev, ACCEPTANCE_ROLLOUTS.of(settings) // 2)
    planned = dev_phase(at.phase, tried, settings)
    asked = await sweep(planned, prompts.ask) if planned.rollouts else {}
    dev = [asked[id_] for id_ in planned.scenarios if id_ in asked]
    return await asyncio.to_thread(_decided, at, pool, evidence, dev)


def _pool(at: Standpoint) -> tuple[Evidence, Pool]:
    """Return what the run has seen so far, and what it puts in question."""
    evidence = at.evidence()
    helps: dict[str, float] = {}
    if not evidence.is_empty:
        values = value_of(evidence, at.prior)
        helps = {key: float(values.helps_L[n]) for n, key in enumerate(evidence.keys) if values.tried_L[n]}
    pool = pool_of(
        at.library,
        at.candidate,
        refused=at.refused(),
        helps=helps,
        started=frozenset(content_key(e) for e in at.job.library.experiences),
    )
    return evidence, pool


def _decided(at: Standpoint, pool: Pool, before: Evidence, dev: Sequence[Group]) -> Revision:
    """Return the revision that the evidence calls for, that of before and of the dev split."""
    evidence = at.with_dev(before, dev)
    choice = Choice(at, pool, evidence, measured=_is_measured(dev, len(at.phase.dev)))
    revision = choice.revision()
    if not evidence.is_empty:
        library = with_effects(
            revision.library, choice.prior, run_id=at.job.run_id, series=at.series, measure=at.measure
        )
        revision = replace(revision, library=library)
    rollouts = [rollout for group in dev for rollout in group.rollouts]
    acceptance = replace(
        choice.acceptance(_acceptance(at.job.settings, len(at.phase.dev))),
        rollouts=len(rollouts),
        errors=sum(rollout.status == "error" for rollout in rollouts),
    )
    return replace(revision, acceptance=acceptance)


def _is_measured(dev: Sequence[Group], scenarios: int) -> bool:
    """Return whether errors leave MIN_DEV scenarios, and half of those that ran."""
    scored = sum(group.gt_mean is not None for group in dev)
    return 2 * scored >= len(dev) and scored + scenarios - len(dev) >= MIN_DEV
