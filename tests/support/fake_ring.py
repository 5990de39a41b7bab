"""A ring of the arena in memory: an agent and a teacher that are functions, and a budget that is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pytest_tfgrpo.arena.protocol import RolloutsSpent, ScoredRollout, TeacherCallsSpent
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Score
from pytest_tfgrpo.core.scenarios import Prompt, PromptPack, Scenario, stamped
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.learning.library.retrieval import select
from pytest_tfgrpo.learning.library.screen import Screen
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.contamination.answers import expected_answers
from pytest_tfgrpo.suite.packs import pack_for, rewritten
from pytest_tfgrpo.suite.prompt import render_prompt
from support.builders import make_pack, make_rollout, make_scenario

Agent = Callable[[Prompt, Scenario], float | None]
"""Returns the gt_score of its answer; None: an error."""
Teacher = Callable[[str, str], str]


def tasks(split: str, count: int, domain: str = "text", families: int = 4) -> list[Scenario]:
    """Return scenarios of some families, with the answers of none of them in their prompts."""
    return [
        stamped(
            make_scenario(
                f"{split}-{domain}-{n}",
                split=split,
                domain=domain,
                family=f"kind{n % families}",
                prompt=f"How much is parcel {n} of the {domain} depot?",
            )
        )
        for n in range(count)
    ]


def pack_of(domain: str = "text", system: str = "Solve the task.") -> PromptPack:
    return rewritten(make_pack(domain), system)


class FakeRing:
    def __init__(
        self,
        agent: Agent,
        teacher: Teacher,
        budget: int,
        *,
        train: Sequence[Scenario] | None = None,
        dev: Sequence[Scenario] | None = None,
        packs: Sequence[PromptPack] = (),
        library: Library | None = None,
        answer: str = "3",
        seed: int = 0,
        teacher_calls: int = 10_000,
    ) -> None:
        self.train = tasks("train", 12) if train is None else train
        self.dev = tasks("dev", 8) if dev is None else dev
        self.packs: Mapping[str, PromptPack] = {pack.domain: pack for pack in packs or (pack_of(),)}
        self.library = empty() if library is None else library
        self.seed, self.actor = seed, "offline"
        known = [*self.train, *self.dev]
        self.screen = Screen(
            known,
            answers=partial(expected_answers, KINDS),
            packs={s.domain: pack_for(self.packs, s.domain) for s in known},
            max_words=32,
        )
        self.budget, self.spent, self.teacher_calls = budget, 0, teacher_calls
        self.prompts: list[tuple[str, str]] = []
        """(scenario id, system text) of each rollout."""
        self.questions: list[tuple[str, str]] = []
        self._agent, self._teacher, self._answer = agent, teacher, answer

    @property
    def left(self) -> int:
        return self.budget - self.spent

    @property
    def teacher_calls_left(self) -> int:
        return self.teacher_calls - len(self.questions)

    async def ask(
        self,
        scenarios: Sequence[Scenario],
        *,
        packs: Mapping[str, PromptPack] | None = None,
        library: Library | None = None,
    ) -> Sequence[ScoredRollout]:
        if len(scenarios) > self.left:
            raise RolloutsSpent(f"{len(scenarios)} rollouts wanted, {self.left} left")
        self.spent += len(scenarios)
        await asyncio.sleep(0)
        return [self._rollout(scenario, packs or {}, library or self.library) for scenario in scenarios]

    def _rollout(
        self, scenario: Scenario, packs: Mapping[str, PromptPack], library: Library
    ) -> ScoredRollout:
        pack = pack_for({**self.packs, **packs}, scenario.domain)
        prompt = select(
            library.experiences,
            pack=pack,
            domain=scenario.domain,
            prompt=scenario.prompt,
            limit=pack.experience_slots,
        )
        rendered = render_prompt(pack, scenario, prompt.picked)
        self.prompts.append((scenario.id, rendered.system))
        gt_score = self._agent(rendered, scenario)
        rollout = make_rollout(
            len(self.prompts), gt_score, scenario_id=scenario.id, answer=self._answer, mode=scenario.split
        )
        return ScoredRollout(
            rollout=rollout,
            score=Score(
                rollout_id=rollout.rollout_id,
                gt_score=gt_score,
                reward=gt_score,
                relative_rank=None,
                advantage=None,
            ),
        )

    async def teach(self, system: str, user: str) -> str:
        if self.teacher_calls_left <= 0:
            raise TeacherCallsSpent("no teacher call is left")
        self.questions.append((system, user))
        await asyncio.sleep(0)
        return self._teacher(system, user)

    async def learn(self, optimizer: str) -> Library:
        raise AssertionError(optimizer)
