"""A trial: two plain runs side by side, of which one carries a pattern, as a lesson or as a skill.

The scenarios are those of the dev split, so that the eval split stays unseen; those of the pattern's own
family are left out, as it was written from their answer.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.core.settings.learning import DEV_SHARE
from pytest_tfgrpo.core.settings.runs import CONCURRENCY, LIBRARY, PATTERNS, PROMPT_PACKS
from pytest_tfgrpo.core.wire.stamp import combined_stamp
from pytest_tfgrpo.engine.request import RunRequest, SharedLimits
from pytest_tfgrpo.engine.supplied import Supplied
from pytest_tfgrpo.launch.choice import planned
from pytest_tfgrpo.launch.launch import open_launch
from pytest_tfgrpo.learning.library.library import empty, load_library, of, save_library
from pytest_tfgrpo.learning.library.pattern_lessons import active_lessons, pattern_lesson
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, TrialResult
from pytest_tfgrpo.patterns.trial.skill_file import skill_overlay
from pytest_tfgrpo.patterns.trial.verdict import verdict
from pytest_tfgrpo.runs.splits import with_dev
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect
from pytest_tfgrpo.suite.families import families_of
from pytest_tfgrpo.suite.packs import load_packs

if TYPE_CHECKING:
    from pytest_tfgrpo.launch.launch import Launch
    from pytest_tfgrpo.launch.result import RunResult

Delivery: TypeAlias = Literal["prompt", "skill"]
WITHOUT, WITH = "without", "with"
"""Names of the two agents: tasks in the output folder of the trial."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialPlan:
    """What is tried, on what, and how often."""

    pattern: Pattern
    root: Path
    """The project's; paths are relative to it."""
    settings: Settings
    suite: Path
    """File or folder of scenarios."""
    delivery: Delivery = "prompt"
    rollouts: int = 1
    """Of each scenario and agent."""
    looks: Callable[[], int] = lambda: 1
    """Returns how many trials of the pattern as it is there are, with this one, when it ends."""
    out: Path
    """Folder of the two runs."""


class TrialRuns(NamedTuple):
    """What a trial came to."""

    result: TrialResult
    carried: int
    """Rollouts without error that had the lesson in their prompt; of a skill all."""
    rollouts: int
    """Of the agent with the pattern."""


CarryOut: TypeAlias = "Callable[[Launch], Awaitable[RunResult]]"
"""Carries a launch out, as `arun_launch` does."""


def run_trial(plan: TrialPlan, environ: Mapping[str, str], carry_out: CarryOut) -> TrialRuns:
    """Run both agents to their end, at the same time; raises TfgrpoError.

    `environ` holds the keys that model endpoints name.
    """
    scenarios = trial_scenarios(plan)
    if agents := listed_agents(ACTOR.of(plan.settings)):
        raise SettingError(
            f"a trial is of one agent, and the setting actor lists {len(agents)}; name one for this command, "
            f"as in {ACTOR.env}={agents[0].spec}"
        )
    with tempfile.TemporaryDirectory(prefix="tfgrpo-trial-") as name:
        folder = Path(name)
        without, lesson = _libraries(plan)
        both = {WITHOUT: without, WITH: without}
        if plan.delivery == "prompt":
            both[WITH] = of((*without.experiences, lesson))
        budget = Budget(plan.settings.values)
        requests = []
        for agent, library in both.items():
            save_library(folder / f"{agent}.json", library)
            own = scenarios
            if plan.delivery == "skill" and agent == WITH:
                overlay = skill_overlay(plan.pattern, folder)
                own = [replace(scenario, overlay=overlay) for scenario in scenarios]
            settings = _settings(plan, agent, folder / f"{agent}.json")
            requests.append(_request(plan, settings, own, environ, budget))
        runs = asyncio.run(_side_by_side(requests, carry_out))
    rollouts = [rollout for phase in runs[1].phases for group in phase.groups for rollout in group.rollouts]
    carried = sum(
        one.status != "error" and (plan.delivery == "skill" or lesson.id in one.experiences)
        for one in rollouts
    )
    result = replace(
        verdict(runs[0], runs[1], looks=plan.looks()),
        delivery=plan.delivery,
        suite=combined_stamp({scenario.stamp for scenario in scenarios}),
        tried_at=utc_now(),
        pattern_stamp=plan.pattern.stamp,
    )
    if not carried:
        result = replace(result, outcome="inconclusive", why="no prompt carried the lesson")
    return TrialRuns(result, carried, len(rollouts))


async def _side_by_side(requests: Sequence[RunRequest], carry_out: CarryOut) -> list[Run]:
    launches = [await asyncio.to_thread(open_launch, request) for request in requests]
    results = await asyncio.gather(*(carry_out(launch) for launch in launches))
    return [result.run for result in results]


def trial_scenarios(plan: TrialPlan) -> list[Scenario]:
    """Return the dev scenarios that a pattern is tried on, as a plain run takes them.

    Those of its own family, and for a lesson those of other domains, are left out. Raises ScenarioError, and
    SettingError where none is left.
    """
    found = collect(plan.root, [plan.suite], KINDS)
    split = with_dev(found, DEV_SHARE.of(plan.settings))
    dev = [scenario for scenario in split if scenario.split == "dev"]
    if not dev:
        raise SettingError(
            f"{str(plan.suite)!r} has no dev scenarios, on which patterns are tried (the eval split stays "
            "unseen); set split: dev on some, or add train scenarios"
        )
    own = _own_family(plan.pattern, found)
    kept = [scenario for scenario in dev if scenario.id not in own]
    if plan.delivery == "prompt":
        kept = [scenario for scenario in kept if scenario.domain == plan.pattern.domain]
    if not kept:
        raise SettingError(
            f"none of the {len(dev)} dev scenarios of {str(plan.suite)!r} can try the pattern "
            f"{plan.pattern.name!r}: its domain is {plan.pattern.domain!r}, and those of its own family are "
            "left out; name another suite, or --delivery skill"
        )
    return [replace(scenario, split="eval") for scenario in kept]


def _own_family(pattern: Pattern, found: Iterable[Scenario]) -> set[str]:
    """Return the ids of the scenarios that a pattern was written from, or that are like those."""
    if pattern.evidence is None:
        return set()
    source, families = pattern.evidence.scenario, families_of(found)
    family = families.get(source)
    return {source} | {id_ for id_, of_it in families.items() if family is not None and of_it == family}


def _libraries(plan: TrialPlan) -> tuple[Library, Experience]:
    """Return the library without the pattern, and the pattern's lesson; raises StoreError, PackError."""
    folder = plan.root / PROMPT_PACKS.of(plan.settings)
    packs = load_packs(folder) if folder.is_dir() else {}
    front = {"id": plan.pattern.id, "name": plan.pattern.name, "domain": plan.pattern.domain}
    lesson = pattern_lesson(
        {**front, "lesson": plan.pattern.lesson, "polarity": plan.pattern.polarity}, packs
    )
    name, shelf = LIBRARY.of(plan.settings), PATTERNS.of(plan.settings)
    library = empty() if name == "none" else load_library(plan.root / name)
    others = [] if shelf == "none" else active_lessons(plan.root / shelf, packs)
    known = {one.id: one for one in (*library.experiences, *others) if one.run_id != plan.pattern.id}
    return of(known.values()), lesson


def _settings(plan: TrialPlan, agent: str, library: Path) -> Settings:
    """Return the settings of one of the two agents: nothing judges its run but the trial."""
    most = CONCURRENCY.of(plan.settings)
    return plan.settings.with_values(
        library=str(library),
        patterns="none",
        out=str(plan.out),
        task_id=agent,
        eval_rollouts=plan.rollouts,
        concurrency=max(1, most // 2) if isinstance(most, int) else most,
        **dict.fromkeys(("baseline", "gates", "gate_min_mean", "record", "limit")),
    )


def _request(
    plan: TrialPlan,
    settings: Settings,
    scenarios: Sequence[Scenario],
    environ: Mapping[str, str],
    budget: Budget,
) -> RunRequest:
    return RunRequest(
        root=plan.root,
        settings=settings,
        scenarios=scenarios,
        phases=planned(scenarios, settings, plan.root),
        supplied=Supplied(),
        environ=environ,
        shared=SharedLimits(budget=budget),
    )
