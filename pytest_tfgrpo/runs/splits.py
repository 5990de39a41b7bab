"""Splits: the dev split, taken from the train split if no scenario sets it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.learning import ACCEPTANCE, DEV_SHARE
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.stamp import SEED_BITS, seed_of
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.runs.schedule import MIN_DEV
from pytest_tfgrpo.suite.families import family_of, tasks_of

WHOLE = 0.25
"""Share of the dev split, roughly, that is whole families, which training never sees."""
LARGEST = 1 / 3
"""Share of the dev split that one of them may be."""


def with_dev(scenarios: Iterable[Scenario], share: float, earlier: Set[str] | None = None) -> list[Scenario]:
    """Return the scenarios with about `share` of the tasks of each train family made the dev split.

    It is the same for ever. Where a scenario is `dev` already, or where fewer than MIN_DEV would be, all stay
    what they are. Tasks that are the same or alike stay together. A marked test function and a majority are
    for training alone. `earlier` are the ids that an interrupted run took, with which it goes on.
    """
    known = list(scenarios)
    if earlier is not None:
        return [replace(s, split="dev") if s.split == "train" and s.id in earlier else s for s in known]
    if not share or any(s.split == "dev" for s in known):
        return known
    dev = _chosen(known, share)
    if len(dev) < MIN_DEV:
        return known
    return [replace(s, split="dev") if s.id in dev else s for s in known]


def split_lines(scenarios: Iterable[Scenario]) -> list[str]:
    """Return the lines about scenarios whose split a hash chose, and dev families that training lacks."""
    known, lines = list(scenarios), []
    if splits := Counter(s.split for s in known if s.hashed):
        each = ", ".join(f"{splits[split]} {split}" for split in ("train", "dev", "eval") if splits[split])
        which = plural(splits.total(), "scenario", "that names none", "that name none")
        lines.append(f"a hash chose the split of the {which}: {each}")
    if apart := unseen_families(known):
        number = len({family_of(s) for s in known if s.id in apart})
        families = "one family" if number == 1 else f"{number} families"
        of = f"{sum(s.split == 'dev' for s in known)} dev scenarios"
        lines.append(f"{len(apart)} of {of} are of {families} that training does not use")
    return lines


def shortage(scenarios: Iterable[Scenario], settings: Mapping[str, object]) -> str:
    """Return why no dev scenario decides on what a run learns, and what to do; empty where they do.

    `scenarios` are those of the run, with their splits.
    """
    known = list(scenarios)
    named = sum(s.split == "dev" for s in known)
    if ACCEPTANCE.of(settings) == "off":
        return f"{named} dev scenarios are not used: acceptance is off" if named else ""
    if named >= MIN_DEV:
        return ""
    kept = f"lessons are kept without a test: that takes {MIN_DEV} dev scenarios or more"
    advice = "; {}, or set tfgrpo_acceptance = off"
    if named:
        return f"{kept}, so the {named} that there are stay unused" + advice.format("add some")
    number, train = len(_chosen(known, DEV_SHARE.of(settings))), sum(s.split == "train" for s in known)
    return (
        f"{kept}, and {number} of {train} train scenarios would be such (tfgrpo_dev_share = "
        f"{DEV_SHARE.of(settings):g})"
        + advice.format("set split: dev on some, add train scenarios, raise tfgrpo_dev_share")
    )


def unseen_families(scenarios: Iterable[Scenario]) -> set[str]:
    """Return the ids of the dev scenarios of families that no train scenario has."""
    known = [(s, family) for s in scenarios if (family := family_of(s))]
    taught = {family for s, family in known if s.split == "train"}
    return {s.id for s, family in known if s.split == "dev" and family not in taught}


def _chosen(known: Iterable[Scenario], share: float) -> set[str]:
    """Return the ids of the train scenarios that hashes of their families and tasks put into the dev split.

    These are about `share` of the tasks of each family, and some families whole, which show what lessons do
    where none was learned.
    """
    if not share:
        return set()
    train = [s for s in known if s.split == "train"]
    task_of = tasks_of(train)
    bound = {task_of[s.id] for s in train if s.checker or s.truth == "majority"}
    families: dict[str, list[str]] = {}
    for task, first in {task_of[s.id]: s for s in reversed(train)}.items():
        families.setdefault(family_of(first) or task, []).append(task)
    several = {family: tasks for family, tasks in families.items() if len(tasks) > 1}
    whole = _whole(several, bound, share)
    chosen = {task for family in whole for task in families.pop(family)}
    total = sum(map(len, several.values())) or 1
    within = max(share * total - len(chosen), 0) / max(total - len(chosen), 1)
    for family, tasks in families.items():
        free = [task for task in tasks if task not in bound]
        wanted = (within if family in several else share) * len(free) - seed_of("dev", family) / 2**SEED_BITS
        free.sort(key=lambda task: seed_of("dev", family, task))
        chosen |= set(free[: math.ceil(wanted)])  # of two or more never all: the share is at most a half
    return {s.id for s in train if task_of[s.id] in chosen}


def _whole(families: Mapping[str, Sequence[str]], bound: Set[str], share: float) -> list[str]:
    """Return the families whose tasks all go into the dev split; none where there are few families."""
    if len(families) < MIN_INTERVAL or not share:
        return []
    most = share * sum(map(len, families.values())) * LARGEST
    able = [family for family, tasks in families.items() if len(tasks) <= most and bound.isdisjoint(tasks)]
    number = max(1, round(WHOLE * share * len(families)))
    return sorted(able, key=lambda family: seed_of("dev", "whole", family))[:number]
