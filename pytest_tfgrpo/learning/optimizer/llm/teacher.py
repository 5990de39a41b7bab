"""The teacher: a language model that compares attempts; malformed replies are repaired once and counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pytest_tfgrpo.core.errors import ModelError, OutageError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.voices import legible, said
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.optimizer.llm.pack import TeacherPrompts
from pytest_tfgrpo.learning.optimizer.llm.parsing import Change, ParsedAnswer, answer_schema, read
from pytest_tfgrpo.llm.limits.concurrency import with_batches
from pytest_tfgrpo.llm.protocol import Completer, Completion, Message, Request
from pytest_tfgrpo.llm.templates import Block, fenced, fill
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import LearningContext

TEMPERATURE = 0.0
SHOWN_ANSWER = 8_000
"""Characters of a malformed answer that its repair is shown."""
SHOWN_PROBLEMS = 10
PROBLEM = 800
"""Characters of what one problem says."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherRequest:
    """A request to a teacher."""

    text: str
    stage: str
    """Last part of the key of its call: ``critique`` and the like."""
    subject: str
    """Scenario id or domain."""
    stamp: str
    """Identity of the subject, which the seed comes from."""
    sourced: bool = False
    """True when each operation of the answer names the proposals it rests on."""


class Teacher:
    """Answers the questions of one epoch; used on the event loop only.

    Its methods raise BudgetError and RecordingError.
    """

    def __init__(self, completer: Completer, prompts: TeacherPrompts, context: LearningContext) -> None:
        self.prompts = prompts
        self.failures: Counter[str] = Counter()
        """What failed, by reason code."""
        self._asked = 0
        self._unanswered: list[ModelError] = []
        self._completer = completer
        self._context = context
        self._free = asyncio.Semaphore(with_batches(context.concurrency, completer))

    def require_answers(self) -> None:
        """Raise OutageError if calls were made and all failed; a content filter minds what it is shown."""
        reasons = [error for error in self._unanswered if error.code != "content_filter"]
        if reasons and len(self._unanswered) == self._asked:
            raise OutageError(
                f"nothing could be learned: all {self._asked} calls of the teacher failed: {reasons[0]}"
            )

    async def text(self, question: TeacherRequest) -> str | None:
        """Return the answer in plain words; None, and counted, when there is none."""
        answer = await self._ask(question, self._opening(question))
        if answer is None:
            return None
        if not answer.text.strip():
            self.failures["malformed"] += 1
            return None
        return answer.text

    async def changes(self, question: TeacherRequest) -> tuple[Change, ...] | None:
        """Return the changes that the answer proposes, repaired once where it is malformed.

        None, and counted, when there is no usable answer; what of an answer cannot be used is counted too.
        """
        messages = self._opening(question)
        schema = answer_schema(sources=question.sourced)
        answer = await self._ask(question, messages, schema)
        if answer is None:
            return None
        reading = self._read(question, answer)
        if reading.problems:
            messages = (*messages, *self._complaint(answer, reading))
            again = await self._ask(replace(question, stage=f"{question.stage}.repair"), messages, schema)
            corrected = reading if again is None else self._read(question, again)
            reading = corrected if corrected.usable or not reading.usable else reading
        self.failures.update(problem.code for problem in reading.problems)
        return reading.changes if reading.usable else None

    def _opening(self, question: TeacherRequest) -> tuple[Message, ...]:
        system = Message(role="system", content=self.prompts.system)
        return system, Message(role="user", content=question.text)

    def _complaint(self, answer: Completion, reading: ParsedAnswer) -> tuple[Message, ...]:
        lines = [said("-", problem.message, PROBLEM, redact) for problem in reading.problems[:SHOWN_PROBLEMS]]
        (problems,) = fenced([Block("problems", "\n".join(lines))])
        values = {"problems": problems, "max_words": str(self._context.max_words)}
        return (
            Message(role="assistant", content=legible(answer.text, SHOWN_ANSWER, redact)),
            Message(role="user", content=fill(self.prompts.repair, values)),
        )

    def _read(self, question: TeacherRequest, answer: Completion) -> ParsedAnswer:
        words, cut = self._context.max_words, answer.finish == "length"
        return read(answer.text, max_words=words, sources=question.sourced, cut=cut)

    async def _ask(
        self,
        question: TeacherRequest,
        messages: tuple[Message, ...],
        schema: Mapping[str, Json] | None = None,
    ) -> Completion | None:
        context = self._context
        request = Request(
            messages=messages,
            temperature=TEMPERATURE,
            seed=seed_of(context.seed, "learn", context.epoch, question.stamp, question.stage),
            schema=schema,
        )
        self._asked += 1
        try:
            async with self._free:
                answer = await context.calls.complete(
                    self._completer,
                    request,
                    key=f"e{context.epoch}.learn.{question.subject}.{question.stage}",
                    purpose="learn",
                    epoch=context.epoch,
                    subject=question.subject,
                )
        except ModelError as error:
            self.failures[error.code] += 1
            self._unanswered.append(error)
            return None
        if answer.finish in ("content_filter", "refusal"):
            self.failures[answer.finish] += 1
            return None
        return answer


async def together(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what the jobs return, in order; when some raise, the error of the first of them.

    It waits for all of them first: a call in flight is paid for, and must reach the journal.
    """
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
