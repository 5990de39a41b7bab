"""Inspection: the whole of a run's scenarios, packs and starting library, before the first rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.contamination.findings import Finding
from pytest_tfgrpo.suite.contamination.leaks import leaks
from pytest_tfgrpo.suite.contamination.overlap import overlaps


def inspect(
    scenarios: Sequence[Scenario],
    *,
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    library: Library,
) -> list[Finding]:
    """Return what the splits share and what leaks; `packs` maps the scenarios' domains to the pack in use."""
    known: dict[str, tuple[str, ...]] = {}

    def answers(scenario: Scenario) -> tuple[str, ...]:
        own = known.get(scenario.id)
        if own is None:
            own = known[scenario.id] = tuple(
                text for check in scenario.checks for text in kinds[check.kind].expected(check)
            )
        return own

    return [*overlaps(scenarios, answers), *leaks(scenarios, answers, packs=packs, library=library)]
