"""Splits: the dev split, taken out of the train split where no scenario names it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_tfgrpo.core.records import Scenario
from pytest_tfgrpo.core.stamp import SEED_BITS, seed_of
from pytest_tfgrpo.harness.loading import task_key

MIN_DEV = 20
"""With fewer dev scenarios a comparison says nothing: what is learned is then kept unseen, and said to be."""


def with_dev(scenarios: Iterable[Scenario], share: float) -> list[Scenario]:
    """Return the scenarios with about `share` of the train families made the dev split, the same for ever.

    Where a scenario is `dev` already, or where fewer than MIN_DEV would be, all stay what they are. Families
    stay whole, and so do equal tasks. A marked test function and a majority are for training alone.
    """
    known = list(scenarios)
    if any(s.split == "dev" for s in known):
        return known
    kin: dict[str, str] = {}
    family_of = {
        s.id: kin.setdefault(task_key(s), s.family or task_key(s)) for s in known if s.split == "train"
    }
    bound = {family_of[s.id] for s in known if s.split == "train" and (s.checker or s.truth == "majority")}
    chosen = {
        family for family in set(family_of.values()) - bound if seed_of("dev", family) < share * 2**SEED_BITS
    }
    dev = {id for id, family in family_of.items() if family in chosen}
    if len(dev) < MIN_DEV:
        return known
    return [replace(s, split="dev") if s.id in dev else s for s in known]
