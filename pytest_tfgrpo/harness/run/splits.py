"""Splits: the dev split, taken from the train split if no scenario sets it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.core.stamp import SEED_BITS, seed_of
from pytest_tfgrpo.core.text import plural
from pytest_tfgrpo.harness.run.schedule import MIN_DEV
from pytest_tfgrpo.harness.suite.scenario_files import task_key


def with_dev(scenarios: Iterable[Scenario], share: float) -> list[Scenario]:
    """Return the scenarios with about `share` of the train families made the dev split, the same for ever.

    Where a scenario is `dev` already, or where fewer than MIN_DEV would be, all stay what they are. Families
    stay whole, and so do tasks that are the same or alike. A marked test function and a majority are for
    training alone.
    """
    known = list(scenarios)
    dev = _chosen(known, share)
    if any(s.split == "dev" for s in known) or len(dev) < MIN_DEV:
        return known
    return [replace(s, split="dev") if s.id in dev else s for s in known]


def hashed_line(scenarios: Iterable[Scenario]) -> list[str]:
    """Return the line about the scenarios whose split a hash chose, as their files name none."""
    splits = Counter(s.split for s in scenarios if s.hashed)
    if not splits:
        return []
    each = ", ".join(f"{splits[split]} {split}" for split in ("train", "dev", "eval") if splits[split])
    which = plural(splits.total(), "scenario", "that names none", "that name none")
    return [f"a hash chose the split of the {which}: {each}"]


def shortage(scenarios: Iterable[Scenario], settings: SettingValues) -> str:
    """Return why no dev scenario decides on what a run learns, and what to do; empty where they do.

    `scenarios` are those of the run, with their splits.
    """
    known = list(scenarios)
    named = sum(s.split == "dev" for s in known)
    if settings["acceptance"] == "off":
        return f"{named} dev scenarios are not used: acceptance is off" if named else ""
    if named >= MIN_DEV:
        return ""
    advice = "; lessons are kept unvalidated; {}, or set tfgrpo_acceptance = off"
    if named:
        missing = f"acceptance is off: the {named} dev scenarios are not used, at least {MIN_DEV} are needed"
        return missing + advice.format("add some")
    number, train = len(_chosen(known, settings["dev_share"])), sum(s.split == "train" for s in known)
    return (
        f"acceptance is off: {number} of {train} train scenarios would be the dev split (tfgrpo_dev_share = "
        f"{settings['dev_share']:g}), at least {MIN_DEV} are needed"
        + advice.format("add train scenarios, raise tfgrpo_dev_share, set split: dev on some")
    )


def _chosen(known: Iterable[Scenario], share: float) -> set[str]:
    """Return the ids of the train scenarios whose family a hash puts into the dev split."""
    train = [s for s in known if s.split == "train"]
    family_of = _families(train)
    bound = {family_of[s.id] for s in train if s.checker or s.truth == "majority"}
    chosen = {
        family for family in set(family_of.values()) - bound if seed_of("dev", family) < share * 2**SEED_BITS
    }
    return {id for id, family in family_of.items() if family in chosen}


def _families(train: Sequence[Scenario]) -> dict[str, str]:
    """Return the family of each scenario by id; families that share a task are one, called as the first."""
    from pytest_tfgrpo.harness.suite.contamination.overlap import alike

    own = {s.id: s.family or task_key(s) for s in train}
    first: dict[str, str] = {}

    def root(family: str) -> str:
        while (up := first.setdefault(family, family)) != family:
            first[family] = family = first[up]
        return family

    place = {family: n for n, family in enumerate(dict.fromkeys(own.values()))}
    for a, b in alike(train):
        one, two = sorted((root(own[a.id]), root(own[b.id])), key=place.__getitem__)
        first[two] = one
    return {id: root(family) for id, family in own.items()}
