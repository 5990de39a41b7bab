"""Families of tasks that come without one: those of the train scenarios that they are most alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.learning.optimizer.wording import wording

ALIKE = 0.5
"""Shared content words (Jaccard) from which a task is of the family of another."""
MOST_WORDINGS = 50
"""Of a family that are compared."""


def with_families(scenarios: Mapping[str, Scenario], groups: frozenset[str]) -> dict[str, Scenario]:
    """Return scenarios by id, of which those in `groups` have the family of the most similar other one."""
    known: dict[str, dict[frozenset[str], str]] = {}
    count: dict[tuple[str, str], int] = {}
    for scenario in scenarios.values():
        if scenario.family and scenario.id not in groups:
            bag, of = _bag(scenario), (scenario.domain, scenario.family)
            bags = known.setdefault(scenario.domain, {})
            if bag not in bags and count.get(of, 0) < MOST_WORDINGS:
                bags[bag] = scenario.family
                count[of] = count.get(of, 0) + 1
    found = dict(scenarios)
    for id_ in groups:
        scenario = scenarios[id_]
        family = _nearest(_bag(scenario), known.get(scenario.domain, {}))
        found[id_] = replace(scenario, family=family)
    return found


def _bag(scenario: Scenario) -> frozenset[str]:
    return content(wording(scenario.wording))


def _nearest(bag: frozenset[str], known: Mapping[frozenset[str], str]) -> str | None:
    """Return the family of the bag that shares most with one; None where all are too different."""
    best, family = ALIKE, None
    for other, of in known.items():
        shared = len(bag & other) / len(bag | other) if bag | other else 0.0
        if shared > best or (shared == best and family is None):
            best, family = shared, of
    return family
