"""Prompts: the prompt of each scenario in one phase, with its lessons from the library, or their placebo.

In training each of them is left out at random, so that what it does can be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Prompt, Scenario, Task
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.wire.stamp import SEED_BITS, seed_of
from pytest_tfgrpo.learning.attribution.exposures import content_key, series_of
from pytest_tfgrpo.learning.library.retrieval import select
from pytest_tfgrpo.learning.placebo import Placebo, is_placebo
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.suite.packs import pack_for
from pytest_tfgrpo.suite.prompt import render_prompt


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedPrompt:
    """The prompt of every rollout of one group."""

    scenario: Scenario
    task: Task
    prompt: Prompt
    prompt_stamp: str
    experiences: tuple[str, ...]
    """Ids of the experiences in the prompt."""
    left_out: tuple[str, ...] = ()
    """Ids of those that fit it and were left out at random; in training their slots stay empty."""
    tossed: tuple[str, ...] | None = None
    """Of `experiences`, those that a coin could have left out; None where no coins are thrown."""


Ask: TypeAlias = Callable[[str, int], RenderedPrompt]
"""Returns the prompt in a rollout of a scenario, by scenario id and place in the group."""


class PromptBuilder:
    """Makes questions with the library of one phase, one at a time, when a scenario's turn has come."""

    def __init__(
        self,
        job: Job,
        library: Library,
        phase: Phase | None = None,
        probed: frozenset[str] | None = None,
        scenarios: Mapping[str, Scenario] | None = None,
    ) -> None:
        """`library` is frozen for as long as `phase` lasts; without a phase nothing is left out.

        `probed` has the ids of the lessons that may be left out; None: all. `scenarios` are those of the job
        by id, where the caller has them.
        """
        self._packs = job.packs
        if phase is not None and phase.is_control and job.reference is not None:
            self._packs = {pack.domain: pack for pack in job.reference.packs}
        self._scenarios = {s.id: s for s in job.scenarios} if scenarios is None else scenarios
        self._by_domain: dict[str, list[Experience]] = {}
        for experience in library.experiences:
            self._by_domain.setdefault(experience.domain, []).append(experience)
        self._placebo: Placebo | None = None
        if is_placebo(phase, job.reference):
            able = [
                e for e in library.experiences if e.stamp_signature == pack_for(self._packs, e.domain).stamp
            ]
            self._placebo = Placebo(able, self._scenarios, SEED.of(job.settings))
        self._mismatches: dict[str, int] = {}
        self._series = series_of(SEED.of(job.settings), job.library)
        self._epoch = phase.epoch if phase is not None else 0
        self._training = phase is not None and phase.mode == "train"
        self._below: float = (phase.lesson_dropout if phase is not None else 0.0) * 2**SEED_BITS
        self._probed = probed
        self._keys: dict[str, str] = {}
        self._last: RenderedPrompt | None = None

    @property
    def skipped(self) -> int:
        """Experiences that were left out because their stamp is not the pack's (decision 13)."""
        return sum(self._mismatches.values())

    def ask(self, scenario_id: str, _index: int = 0) -> RenderedPrompt:
        """Return the question of a scenario, the same for every rollout of its group."""
        if self._last is None or self._last.scenario.id != scenario_id:
            self._last = self._rendered(self._scenarios[scenario_id])
        return self._last

    def _rendered(self, scenario: Scenario) -> RenderedPrompt:
        pack = pack_for(self._packs, scenario.domain)
        retrieval = select(
            self._by_domain.get(scenario.domain, []),
            pack=pack,
            domain=scenario.domain,
            prompt=scenario.wording,
            limit=pack.experience_slots,
        )
        self._mismatches[scenario.domain] = retrieval.stamp_mismatches
        kept: list[Experience] = []
        left_out: list[str] = []
        for experience in retrieval.picked:
            if self._is_left_out(experience, scenario):
                left_out.append(experience.id)
            else:
                kept.append(experience)
        if self._placebo is not None and kept:
            kept = [*(self._placebo.in_place_of(kept, scenario) or kept)]
        prompt = render_prompt(pack, scenario, kept)
        return RenderedPrompt(
            scenario=scenario,
            task=scenario.task(),
            prompt=prompt,
            prompt_stamp=prompt.stamp,
            experiences=tuple(e.id for e in kept),
            left_out=tuple(left_out),
            tossed=tuple(e.id for e in kept if self._is_probed(e)) if self._training else None,
        )

    def _is_probed(self, experience: Experience) -> bool:
        return bool(self._below) and (self._probed is None or experience.id in self._probed)

    def _is_left_out(self, experience: Experience, scenario: Scenario) -> bool:
        """Draw by identity, and by what the lesson says: ids contain the run's, and equal runs draw alike."""
        if not self._is_probed(experience):
            return False
        key = self._keys.get(experience.id)
        if key is None:
            key = self._keys[experience.id] = content_key(experience)
        return seed_of("leave out", self._series, self._epoch, scenario.stamp, key) < self._below
