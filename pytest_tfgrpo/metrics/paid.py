"""Attempts that cost something, also those that are in no group."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_tfgrpo.core.records import Group, Rollout


def loose(
    groups: Iterable[Group], paid: Iterable[Rollout], abandoned: Iterable[Rollout]
) -> tuple[Rollout, ...]:
    """Return the rollouts that were paid for and are in no group, in order; those abandoned come last."""
    grouped = {rollout.rollout_id for group in groups for rollout in group.rollouts}
    own = (rollout for rollout in paid if rollout.rollout_id not in grouped)
    return tuple(r for part in (own, abandoned) for r in sorted(part, key=lambda r: r.rollout_id))


def is_paid(rollout: Rollout) -> bool:
    """Return whether an attempt is known to have cost something, or to have called a model, which may."""
    return any(f.tokens or f.cost_usd or (f.cost_usd != 0 and f.kind == "model") for f in rollout.frames)
