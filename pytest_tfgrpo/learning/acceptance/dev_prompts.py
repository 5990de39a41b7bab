"""The prompts of a dev sweep, each with the lessons that its coins brought in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.wire.stamp import SEED_BITS, seed_of
from pytest_tfgrpo.learning.acceptance.pool import Pool
from pytest_tfgrpo.learning.attribution.exposures import series_of
from pytest_tfgrpo.learning.library.retrieval import select
from pytest_tfgrpo.learning.prompts import RenderedPrompt
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.suite.packs import pack_for
from pytest_tfgrpo.suite.prompt import render_prompt


class DevPrompts:
    """Makes the question of each dev rollout after one training epoch.

    Coins follow from identity alone (decision 8): run seed, epoch, task and what a lesson says. Rollouts come
    in pairs, and in the second of a pair every coin falls the other way: each task runs as often with a
    lesson as without it.
    """

    def __init__(self, job: Job, pool: Pool, phase: Phase) -> None:
        """`phase` is the training epoch that proposed what is in the pool."""
        self._packs = job.packs
        self._scenarios = {s.id: s for s in job.scenarios}
        self._pools = {domain: pool.within(domain) for domain in {e.domain for e in pool.lessons}}
        self._series = series_of(SEED.of(job.settings), job.library)
        self._epoch = phase.epoch
        self._tossed = pool.tossed
        self._by_domain: dict[str, list[Experience]] = {}
        for lesson in pool.lessons:
            self._by_domain.setdefault(lesson.domain, []).append(lesson)
        self._fitting: dict[str, tuple[str, ...]] = {}

    def open(self, scenario_ids: Iterable[str], most: int) -> tuple[str, ...]:
        """Return the scenarios whose prompt depends on a coin, `most` at most; the others show nothing.

        Where there are more, those come first that show most of the lessons of which least is shown so far.
        """
        found = tuple(id_ for id_ in scenario_ids if self._fits(self._scenarios[id_]))
        if len(found) <= most:
            return found
        shown, chosen = Counter[str](), set[str]()

        def gain(id_: str) -> float:
            return sum(1 / (1 + shown[lesson]) for lesson in self._fits(self._scenarios[id_]))

        heap = [(-gain(id_), n, id_) for n, id_ in enumerate(found)]
        heapify(heap)
        while len(chosen) < most:  # a gain only falls: the first that is still as large is the largest
            known, n, id_ = heap[0]
            if (now := -gain(id_)) > known:
                heapreplace(heap, (now, n, id_))
                continue
            heappop(heap)
            chosen.add(id_)
            shown.update(self._fits(self._scenarios[id_]))
        return tuple(id_ for id_ in found if id_ in chosen)

    def ask(self, scenario_id: str, index: int) -> RenderedPrompt:
        """Return the question of one rollout."""
        scenario = self._scenarios[scenario_id]
        pool = self._pools.get(scenario.domain)
        carried = pool.carried(lambda key: self._falls(key, scenario, index)) if pool else frozenset()
        picked = self._picked([e for e in self._lessons(scenario) if e.id in carried], scenario)
        prompt = render_prompt(pack_for(self._packs, scenario.domain), scenario, picked)
        ids = tuple(e.id for e in picked)
        return RenderedPrompt(
            scenario=scenario,
            task=scenario.task(),
            prompt=prompt,
            prompt_stamp=prompt.stamp,
            experiences=ids,
            left_out=tuple(id_ for id_ in self._fits(scenario) if id_ not in carried),
            tossed=tuple(id_ for id_ in ids if id_ in self._tossed),
        )

    def _falls(self, key: str, scenario: Scenario, index: int) -> bool:
        pair, second = divmod(index, 2)
        seed = seed_of("coin", self._series, self._epoch, scenario.stamp, pair, key)
        heads = seed < 1 << (SEED_BITS - 1)
        return not heads if second else heads

    def _lessons(self, scenario: Scenario) -> list[Experience]:
        return self._by_domain.get(scenario.domain, [])

    def _fits(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the ids of the lessons that a coin decides on and that the prompt has a use for."""
        if scenario.id not in self._fitting:
            lessons = self._lessons(scenario)
            picked = self._picked(lessons, scenario, limit=len(lessons))
            self._fitting[scenario.id] = tuple(sorted(e.id for e in picked if e.id in self._tossed))
        return self._fitting[scenario.id]

    def _picked(
        self, lessons: list[Experience], scenario: Scenario, limit: int | None = None
    ) -> tuple[Experience, ...]:
        pack = pack_for(self._packs, scenario.domain)
        most = pack.experience_slots if limit is None else limit
        found = select(lessons, pack=pack, domain=scenario.domain, prompt=scenario.wording, limit=most)
        return found.picked
