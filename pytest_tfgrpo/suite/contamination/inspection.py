"""Inspection: the whole of a run's scenarios, packs and starting library, before the first rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.contamination.findings import Finding, complaint, found_value
from pytest_tfgrpo.suite.contamination.leaks import leaks
from pytest_tfgrpo.suite.contamination.overlap import overlaps
from pytest_tfgrpo.suite.packs import pack_for


def inspect(
    scenarios: Sequence[Scenario],
    *,
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    library: Library,
) -> list[Finding]:
    """Return what the splits share and what leaks; `packs` are all that there are, by domain."""
    known: dict[str, tuple[str, ...]] = {}

    def answers(scenario: Scenario) -> tuple[str, ...]:
        own = known.get(scenario.id)
        if own is None:
            own = known[scenario.id] = tuple(
                text for check in scenario.checks for text in kinds[check.kind].expected(check)
            )
        return own

    in_use = {domain: pack_for(packs, domain) for domain in {s.domain for s in scenarios}}
    return [*overlaps(scenarios, answers), *leaks(scenarios, answers, packs=in_use, library=library)]


def require_clean(
    scenarios: Sequence[Scenario],
    *,
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    library: Library,
    warns: bool,
) -> Json:
    """Return what is found, as the report carries it; raises ScenarioError for it unless that only warns."""
    findings = inspect(scenarios, kinds=kinds, packs=packs, library=library)
    if findings and not warns:
        raise ScenarioError(complaint(findings))
    return found_value(findings)


def named_in_findings(
    others: Sequence[Scenario],
    suite: Sequence[Scenario],
    *,
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    library: Library,
) -> frozenset[str]:
    """Return ids of `others`, train scenarios, that findings name when they are inspected with a suite.

    A finding names one of several that are alike.
    """
    names = {f"other:{n}": scenario.id for n, scenario in enumerate(others)}  # no id of a suite has a colon
    renamed = [replace(scenario, id=name) for name, scenario in zip(names, others, strict=True)]
    every = [*suite, *renamed]
    findings = inspect(every, kinds=kinds, packs=packs, library=library)
    ids = (who.partition(" ")[0] for finding in findings for who in (finding.subject, finding.other))
    return frozenset(names[id_] for id_ in ids if id_ in names)
