"""The ring of one contestant: its rollouts and teacher calls, counted, priced and kept on file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from pytest_tfgrpo.arena.bench import Bench, open_bench, phase_of, releasing, require_complete, run_of_bench
from pytest_tfgrpo.arena.bugs import Watched
from pytest_tfgrpo.arena.plan import ArenaPlan, fitted, training
from pytest_tfgrpo.arena.protocol import RolloutsSpent, ScoredRollout, TeacherCallsSpent
from pytest_tfgrpo.arena.teacher_limit import LimitedOptimizer, taught_in, was_limited
from pytest_tfgrpo.core.errors import JournalError, OptimizerError, SettingError
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.settings.learning import EXPERIENCE_MAX_WORDS
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.lineup import Arm
from pytest_tfgrpo.engine.preparation.prepare import Prepared, prepare
from pytest_tfgrpo.engine.request import RunRequest
from pytest_tfgrpo.engine.run_end import RunEnd
from pytest_tfgrpo.learning.library.screen import Screen
from pytest_tfgrpo.learning.prompts import PromptBuilder
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.llm.protocol import Message, Request
from pytest_tfgrpo.suite.contamination.answers import expected_answers
from pytest_tfgrpo.suite.packs import pack_for

TEACHER_TEMPERATURE = 0.7


class Questions:
    """The run in which a contestant asks agent and teacher, which opens with the first question."""

    def __init__(self, plan: ArenaPlan, prepared: Prepared, gauge: Gauge, stack: AsyncExitStack) -> None:
        """What is opened is closed by `stack`."""
        self._plan, self._prepared, self._gauge, self._stack = plan, prepared, gauge, stack
        self._bench: Bench | None = None
        self._asked = 0
        self.taught = 0
        """Teacher calls so far."""

    @property
    def runs(self) -> list[Run]:
        """The run so far; none before the first question."""
        return [] if self._bench is None else [run_of_bench(self._bench, "complete")]

    async def ask(
        self, scenarios: Sequence[Scenario], packs: Mapping[str, PromptPack], library: Library | None
    ) -> list[ScoredRollout]:
        """Run the agent once at each scenario; raises JournalError where another question is on file."""
        bench, job = await self._opened(), self._prepared.job
        self._asked += 1
        phase = phase_of(self._asked, self._plan.question, [scenario.id for scenario in scenarios])
        own = replace(job, packs={**job.packs, **packs})
        prompts = PromptBuilder(own, job.library if library is None else library)
        (groups,) = await bench.sweep([Arm(phase=phase, ask=prompts.ask)])
        made = {g.scenario_id: iter(zip(g.rollouts, g.scores, strict=True)) for g in groups}
        found = []
        for scenario in scenarios:
            rollout, score = next(made[scenario.id])
            if rollout.prompt_stamp != prompts.ask(scenario.id).prompt_stamp:
                raise JournalError(
                    f"question {self._asked} of {job.run_id} is another one than on file, so the arena "
                    "cannot be resumed; start a new one"
                )
            found.append(ScoredRollout(rollout=rollout, score=score))
        return found

    async def teach(self, system: str, user: str, seed: int) -> str:
        """Return the teacher's answer; raises SettingError where there is none."""
        bench, job = await self._opened(), self._prepared.job
        name = job.optimizer.identity.get("model")
        if not isinstance(name, str):
            raise SettingError(f"{job.task_id} needs a language model that teaches; set tfgrpo_teacher")
        self.taught += 1
        messages = (Message(role="system", content=system), Message(role="user", content=user))
        answer = await bench.context.calls.complete(
            job.models[name],
            Request(messages=messages, temperature=TEACHER_TEMPERATURE, seed=seed),
            key=f"teach.{self.taught}",
            purpose="learn",
            epoch=self._plan.question.epoch,
        )
        return answer.text

    async def _opened(self) -> Bench:
        if self._bench is None:
            self._bench = await self._stack.enter_async_context(open_bench(self._prepared, self._gauge))
        return self._bench


class OpenRing:
    """What one contestant uses, as `Ring` describes it."""

    def __init__(
        self, plan: ArenaPlan, prepared: Prepared, questions: Questions, gauge: Gauge, budget: Budget
    ) -> None:
        """`prepared` is the run of its questions."""
        job = prepared.job
        self._plan, self._name, self._questions = plan, job.task_id, questions
        self._gauge, self._budget = gauge, budget
        self.train: Sequence[Scenario] = plan.split("train")
        self.dev: Sequence[Scenario] = plan.split("dev")
        self.seed = SEED.of(plan.settings)
        self.packs, self.library, self.actor = job.packs, job.library, job.actor.name
        self.screen = Screen(
            [*self.train, *self.dev],
            answers=lambda scenario: expected_answers(job.kinds, scenario),
            packs={scenario.domain: pack_for(job.packs, scenario.domain) for scenario in plan.scenarios},
            max_words=EXPERIENCE_MAX_WORDS.of(plan.settings),
        )
        self.spent = 0
        """Rollouts so far."""
        self.teacher_limited = False
        """Whether a learning run would have made more teacher calls."""
        self._learned: list[Run] = []

    @property
    def left(self) -> int:
        """Rollouts that are not spent."""
        return self._plan.budget_rollouts - self.spent

    @property
    def teacher_calls_left(self) -> int:
        """Teacher calls that are not made."""
        return self._plan.budget_teacher_calls - self._questions.taught - taught_in(self._learned)

    @property
    def runs(self) -> list[Run]:
        """Learning runs, and that of the questions."""
        return [*self._learned, *self._questions.runs]

    async def ask(
        self,
        scenarios: Sequence[Scenario],
        *,
        packs: Mapping[str, PromptPack] | None = None,
        library: Library | None = None,
    ) -> Sequence[ScoredRollout]:
        """Run the agent once at each scenario; see `Ring`."""
        if len(scenarios) > self.left:
            raise RolloutsSpent(f"{len(scenarios)} rollouts were requested, and {self.left} are left")
        if not scenarios:
            return ()
        found = await self._questions.ask(scenarios, packs or {}, library)
        self.spent += len(found)
        return found

    async def teach(self, system: str, user: str) -> str:
        """Return the teacher's answer; see `Ring`."""
        if self.teacher_calls_left <= 0:
            raise TeacherCallsSpent(f"the {plural(self._plan.budget_teacher_calls, 'teacher call')} are made")
        return await self._questions.teach(system, user, self.seed)

    async def learn(self, optimizer: str) -> Library:
        """Return what a learning run learns; see `Ring`."""
        plan, left = self._plan, self.left
        settings = fitted(plan, left)
        if settings is None:
            raise RolloutsSpent(f"{left} rollouts are too few for a learning run")
        run_id = f"{plan.arena_id}-{self._name}-{len(self._learned) + 1}"
        request = plan.request(
            self._name, run_id, training(plan, settings), self._budget, settings=settings, optimizer=optimizer
        )
        prepared = prepare(request)
        async with releasing(prepared.job):
            watched = Watched(LimitedOptimizer(prepared.job.optimizer, self.teacher_calls_left))
            job = replace(prepared.job, optimizer=watched)
            engine = Engine(job, folder=prepared.folder, observe=(), gauge=self._gauge, retell=False)
            run = await engine.run()
        self._learned.append(run)
        self.teacher_limited |= was_limited(run)
        self.spent += sum(len(group.rollouts) for result in run.phases for group in result.with_dev)
        if run.status == "aborted":
            raise OptimizerError(run.reason) from watched.error
        require_complete(RunEnd(run.status, run.reason))
        return run.library


@asynccontextmanager
async def open_ring(plan: ArenaPlan, name: str, gauge: Gauge, budget: Budget) -> AsyncIterator[OpenRing]:
    """Open the ring of a contestant; raises TfgrpoError."""
    async with AsyncExitStack() as stack:
        prepared = prepare(questions(plan, name, budget))
        yield OpenRing(plan, prepared, Questions(plan, prepared, gauge, stack), gauge, budget)


def questions(plan: ArenaPlan, name: str, budget: Budget | None = None) -> RunRequest:
    """Return the request of the run in which a contestant asks."""
    contestant = plan.contestants[name]
    teaches = contestant is not None and contestant.needs_teacher
    run_id, optimizer = f"{plan.arena_id}-{name}-questions", "llm" if teaches else "none"
    return plan.request(name, run_id, [plan.question], budget, optimizer=optimizer)
