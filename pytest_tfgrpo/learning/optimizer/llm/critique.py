"""Critiques: how the teacher sees the attempts of one group, and the changes it proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.voices import as_json, legible, named
from pytest_tfgrpo.learning.optimizer.contrast import Attempt, attempts_of
from pytest_tfgrpo.learning.optimizer.llm.numbered_lessons import Draft, NumberedLessons
from pytest_tfgrpo.learning.optimizer.llm.teacher import Teacher, TeacherRequest, together
from pytest_tfgrpo.learning.optimizer.llm.transcript import (
    SHOWN,
    transcript,
    without_run,
)
from pytest_tfgrpo.llm.templates import Block, fenced, fill
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import LearningContext
from pytest_tfgrpo.suite.prompt import task_text

MAX_CHANGES = 3
"""Operations that one group may propose."""
MAX_ATTEMPTS = 16
"""Different attempts of a group that are compared: half of them the best, half of them the worst."""
TASK = 8_000
"""Characters of a task that are shown."""
CHECK = 2_000
"""Characters of one check that are shown."""
MAX_CHECKS = 20
ESTIMATORS = {
    "majority": "a vote among the attempts: the answer that most of them gave counts as right",
    "judge": "a language model that judged each attempt",
}
GIVEN = "what production knew of each attempt, such as its outcome and the feedback of users"


@dataclass(frozen=True, kw_only=True, slots=True)
class Deed:
    """What one or more attempts of a group did alike, with the same reward."""

    numbers: tuple[int, ...]
    """The attempts, counted from 1."""
    reward: float
    text: str
    """Transcript, whole."""
    short: str
    """The same within the room of an attempt that is not summarised."""

    @property
    def title(self) -> str:
        """Name in a prompt."""
        numbers = ", ".join(map(str, self.numbers))
        return f"attempt {numbers}" if len(self.numbers) == 1 else f"attempts {numbers}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What a teacher found in one group."""

    drafts: tuple[Draft, ...]
    proved: frozenset[str]
    """Lessons that it would keep as they are, by number."""


class GroupCritique:
    """One group with spread."""

    def __init__(
        self, group: Group, context: LearningContext, shelf: NumberedLessons, teacher: Teacher
    ) -> None:
        self._context = context
        self._scenario = context.scenarios[group.scenario_id]
        self._shelf = shelf
        self._teacher = teacher
        self._group = group
        self._attempts = tuple(attempts_of(group))

    async def findings(self) -> Findings | None:
        """Return what the group suggests; None when the teacher gave no usable answer."""
        deeds = deeds_of(self._group, self._attempts, self._scenario)
        shown = await together(self._shown(deed) for deed in deeds)
        changes = await self._teacher.changes(self._critique(deeds, shown))
        if changes is None:
            return None
        drafts = [Draft(change=change, attempts=self._attempts) for change in changes]
        proved = {number for change in changes if change.op == "KEEP" for number in change.ids}
        return Findings(
            drafts=tuple(usable(drafts, self._shelf, self._teacher, MAX_CHANGES)),
            proved=frozenset(number for number in proved if self._shelf.has([number])),
        )

    async def _shown(self, deed: Deed) -> Block:
        """Return a short transcript as it is, and the summary of a long one."""
        if len(deed.text) <= SHOWN:
            return Block(deed.title, deed.text)
        task, truth, attempts = self._blocks([deed], [Block(deed.title, deed.text)])
        values = {"task": task, "truth": truth, "attempt": attempts}
        prompts = self._teacher.prompts
        told = await self._teacher.text(self._question(prompts.summary, f"summary.{deed.numbers[0]}", values))
        if told is None:
            return Block(deed.title, deed.short)
        return Block(f"{deed.title}, retold", legible(without_run(told, self._context.run_id), SHOWN, redact))

    def _critique(self, deeds: Sequence[Deed], shown: Sequence[Block]) -> TeacherRequest:
        library = Block("lessons", self._shelf.text())
        task, truth, attempts, lessons = self._blocks(deeds, shown, library)
        values = {"library": lessons, "task": task, "truth": truth, "attempts": attempts}
        values |= {"max_operations": str(MAX_CHANGES), "max_words": str(self._context.max_words)}
        return self._question(self._teacher.prompts.critique, "critique", values)

    def _question(self, template: str, stage: str, values: Mapping[str, str]) -> TeacherRequest:
        text = fill(template, values)
        return TeacherRequest(text=text, stage=stage, subject=self._scenario.id, stamp=self._scenario.stamp)

    def _blocks(self, deeds: Sequence[Deed], shown: Sequence[Block], *others: Block) -> list[str]:
        """Return the task, its truth, the attempts, and the other blocks of a message."""
        scenario, prompts = self._scenario, self._teacher.prompts
        blocks = [
            Block("task", legible(task_text(scenario), TASK, redact)),
            Block("expected", expected(scenario)),
            *others,
            *shown,
        ]
        task, known, *rest = fenced(blocks)
        asides, told = rest[: len(others)], rest[len(others) :]
        if self._context.given:
            truth = fill(prompts.truth_estimated, {"estimator": GIVEN})
        elif scenario.truth == "checks":
            truth = fill(prompts.truth_known, {"expected": known})
        else:
            truth = fill(prompts.truth_estimated, {"estimator": ESTIMATORS[scenario.truth]})
        attempts = [f"Reward {d.reward:.3f}:\n{block}" for d, block in zip(deeds, told, strict=True)]
        return [task, truth, "\n\n".join(attempts), *asides]


def deeds_of(group: Group, attempts: Sequence[Attempt], scenario: Scenario) -> list[Deed]:
    """Return what the attempts of a group did, each thing once; of very many the best and the worst."""
    rollouts = {rollout.index: rollout for rollout in group.rollouts}
    numbers: dict[tuple[float, str], list[int]] = {}
    first: dict[tuple[float, str], Rollout] = {}
    for attempt in attempts:
        key = attempt.reward, transcript(rollouts[attempt.index], scenario)
        numbers.setdefault(key, []).append(attempt.index + 1)
        first.setdefault(key, rollouts[attempt.index])
    deeds = [
        Deed(
            numbers=tuple(n),
            reward=key[0],
            text=key[1],
            short=key[1] if len(key[1]) <= SHOWN else transcript(first[key], scenario, SHOWN),
        )
        for key, n in numbers.items()
    ]
    if len(deeds) > MAX_ATTEMPTS:
        ranked = sorted(deeds, key=lambda deed: (-deed.reward, deed.numbers))
        kept = [*ranked[: MAX_ATTEMPTS // 2], *ranked[-MAX_ATTEMPTS // 2 :]]
        deeds = sorted(kept, key=lambda deed: deed.numbers)
    return deeds


def expected(scenario: Scenario) -> str:
    """Return what the checks of a scenario expect; only a teacher who may know the truth is shown it."""
    if scenario.checker is not None:
        return f"what the test {scenario.checker} asks for"
    return "\n".join(
        f"{named(check.title)}, weight {check.weight:g}: {as_json(dict(check.params), CHECK, redact)}"
        for check in scenario.checks[:MAX_CHECKS]
    )


def usable(drafts: Sequence[Draft], shelf: NumberedLessons, teacher: Teacher, most: int) -> list[Draft]:
    """Return at most `most` drafts that can be carried out; the others are counted."""
    kept: list[Draft] = []
    for draft in drafts:
        if not shelf.has(draft.change.ids):
            teacher.failures["unknown_id"] += 1
        elif draft.change.op == "KEEP":
            continue
        elif not shelf.founded(draft):
            teacher.failures["unfounded"] += 1
        elif len(kept) == most:
            teacher.failures["too_many"] += 1
        else:
            kept.append(draft)
    return kept
