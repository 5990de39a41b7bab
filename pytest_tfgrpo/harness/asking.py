"""Asking: the prompt of each scenario in one phase, with the experiences that the library holds for it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Prompt, Scenario, Task
from pytest_tfgrpo.core.stamp import stamp
from pytest_tfgrpo.harness.job import Job
from pytest_tfgrpo.harness.loading import pack_for, render_prompt
from pytest_tfgrpo.harness.retrieval import select


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What the actor is asked in every rollout of one group."""

    scenario: Scenario
    task: Task
    prompt: Prompt
    prompt_stamp: str
    experiences: tuple[str, ...]
    """Ids of the experiences in the prompt."""


def stamp_of_prompt(prompt: Prompt) -> str:
    """Return the stamp of a prompt."""
    return stamp([prompt.system, prompt.user])


class Asker:
    """Makes questions with the library of one phase, one at a time, when a scenario's turn has come."""

    def __init__(self, job: Job, library: Library) -> None:
        """`library` is frozen for as long as the phase lasts."""
        self._packs = job.packs
        self._scenarios = {s.id: s for s in job.scenarios}
        self._by_domain: dict[str, list[Experience]] = {}
        for experience in library.experiences:
            self._by_domain.setdefault(experience.domain, []).append(experience)
        self._mismatches: dict[str, int] = {}

    @property
    def skipped(self) -> int:
        """Experiences that were left out because their stamp is not the pack's (decision 13)."""
        return sum(self._mismatches.values())

    def ask(self, scenario_id: str) -> Question:
        """Return the question of a scenario."""
        scenario = self._scenarios[scenario_id]
        pack = pack_for(self._packs, scenario.domain)
        retrieval = select(
            self._by_domain.get(scenario.domain, []),
            pack=pack,
            domain=scenario.domain,
            prompt=scenario.prompt,
            limit=pack.experience_slots,
        )
        self._mismatches[scenario.domain] = retrieval.stamp_mismatches
        prompt = render_prompt(pack, scenario, retrieval.picked)
        return Question(
            scenario=scenario,
            task=scenario.task(),
            prompt=prompt,
            prompt_stamp=stamp_of_prompt(prompt),
            experiences=tuple(e.id for e in retrieval.picked),
        )
