"""The lessons of one domain, numbered for a prompt, and operations on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from pytest_tfgrpo.core.lessons import Experience, Operation
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.voices import quoted
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.learning.library.experience_lines import MAX_CHARS
from pytest_tfgrpo.learning.library.library import visible_stamp
from pytest_tfgrpo.learning.optimizer.contrast import Attempt
from pytest_tfgrpo.learning.optimizer.llm.parsing import Change
from pytest_tfgrpo.learning.optimizer.support import reward_of, support_of, tool_stats_of
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import LearningContext

MAX_REFUSED = 20
"""Refused lessons that the teacher is shown, the worst of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A change whose ids are known, with the attempts it rests on."""

    change: Change
    attempts: tuple[Attempt, ...] = ()

    def lesson_groups(self) -> set[str]:
        """Return the ids of the groups that its lesson comes from; a deletion carries none."""
        return set() if self.change.op == "DELETE" else {a.group_id for a in self.backing()}

    def backing(self) -> list[Attempt]:
        """Return the attempts that support its lesson: winners for one to do, losers for one to avoid."""
        sign = 1 if self.change.polarity == "do" else -1
        return [attempt for attempt in self.attempts if attempt.sign == sign]


class NumberedLessons:
    """The lessons of a domain that prompts can carry, numbered by what can be seen of them."""

    def __init__(self, domain: str, context: LearningContext) -> None:
        pack = context.packs[domain]
        lessons = [
            e for e in context.library.experiences if e.domain == domain and e.stamp_signature == pack.stamp
        ]
        lessons.sort(key=_order)
        self.domain = domain
        self._pack = pack
        self._context = context
        self._lessons: Mapping[str, Experience] = {f"L{n}": e for n, e in enumerate(lessons, 1)}
        self._refused = [
            (e, trial)
            for e, trial in context.refused
            if e.domain == domain and e.stamp_signature == pack.stamp
        ][:MAX_REFUSED]
        self._ordinal: Counter[str] = Counter()

    def text(self) -> str:
        """Return the lessons, one on a line, with their numbers, then what was refused, with its figures."""
        lines = [
            f"{number} | {e.polarity} | from {e.support.rollouts} attempts at {e.support.groups} tasks | "
            f"{quoted(' '.join(e.summary32.split()), MAX_CHARS, redact)}"
            for number, e in self._lessons.items()
        ]
        lines = lines or ["(none yet)"]
        if self._refused:
            lines.append("tried and refused, for they did not raise the mean score; say why a new one would:")
        lines += [
            f"- | {e.polarity} | change of the mean score {trial.value:+.3f}, probability to help "
            f"{trial.helps:.2f}, {trial.included} attempts with it and {trial.left_out} without | "
            f"{quoted(' '.join(e.summary32.split()), MAX_CHARS, redact)}"
            for e, trial in self._refused
        ]
        return "\n".join(lines)

    def has(self, numbers: Sequence[str]) -> bool:
        """Return whether all of `numbers` are lessons."""
        return all(number in self._lessons for number in numbers)

    def operations(self, draft: Draft) -> list[Operation]:
        """Return what `draft` does to the library; its ids must exist, and it must have support."""
        change = draft.change
        targets = tuple(self._lessons[number].id for number in change.ids)
        if change.op == "DELETE":
            return [Operation(kind="remove", targets=(id_,), reason=change.reason) for id_ in targets]
        kind: Literal["add", "update", "merge"] = (
            "add" if not targets else "update" if len(targets) == 1 else "merge"
        )
        new = self._experience(draft)
        groups = tuple(dict.fromkeys(attempt.group_id for attempt in draft.backing()))
        return [Operation(kind=kind, experience=new, targets=targets, reason=change.reason, groups=groups)]

    def founded(self, draft: Draft) -> bool:
        """Return whether there is anything that the lesson of `draft` rests on; a deletion needs nothing."""
        return draft.change.op == "DELETE" or bool(draft.backing() or self._continued(draft.change))

    def _continued(self, change: Change) -> list[Experience]:
        """Return the lessons whose evidence counts for that of `change`."""
        old = (self._lessons[number] for number in change.ids)
        return [lesson for lesson in old if lesson.polarity == change.polarity]

    def _experience(self, draft: Draft) -> Experience:
        context, change = self._context, draft.change
        attempts, same = draft.backing(), self._continued(change)
        source = attempts[0].group_id if attempts else same[0].group_id
        self._ordinal[source] += 1
        return Experience(
            id=identify(context.run_id, context.epoch, source, self._ordinal[source]),
            run_id=context.run_id,
            task_id=context.task_id,
            domain=self.domain,
            prompt_pack_id=self._pack.id,
            epoch=context.epoch,
            group_id=source,
            summary32=change.lesson,
            polarity=change.polarity,
            reward=reward_of(change.polarity, attempts, same, given=context.given),
            support=support_of(attempts, same),
            tool_stats=tool_stats_of(attempts, same),
            stamp_signature=self._pack.stamp,
            actor=context.actor,
            parents=tuple(self._lessons[number].id for number in change.ids),
            created_at=context.created_at,
            manifest_path=context.manifest_path,
        )


def _order(lesson: Experience) -> tuple[bool, str, int, int, str]:
    """Order lessons by what can be seen of them: ids and times differ from run to run."""
    support = lesson.support
    return lesson.polarity != "do", lesson.summary32, support.groups, support.rollouts, visible_stamp(lesson)
