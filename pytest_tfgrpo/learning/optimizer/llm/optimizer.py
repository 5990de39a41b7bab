"""The optimizer `llm`: a critique of each group, then one list of changes per domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.voices import quoted
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.library.experience_lines import MAX_CHARS
from pytest_tfgrpo.learning.optimizer.llm.critique import GroupCritique, usable
from pytest_tfgrpo.learning.optimizer.llm.numbered_lessons import Draft, NumberedLessons
from pytest_tfgrpo.learning.optimizer.llm.pack import TeacherPrompts, load_prompts
from pytest_tfgrpo.learning.optimizer.llm.parsing import Change
from pytest_tfgrpo.learning.optimizer.llm.teacher import Teacher, TeacherRequest, together
from pytest_tfgrpo.llm.protocol import Completer
from pytest_tfgrpo.llm.templates import Block, fenced, fill
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import LearningContext, Optimizer, Proposal

MAX_FINAL = 20
"""Operations that one consolidation may leave."""
MAX_PROPOSALS = 300
"""Proposals that one consolidation is shown; more are consolidated in parts."""


class ModelOptimizer:
    """Has a language model, the teacher, say what the better attempts did differently."""

    name = "llm"

    def __init__(self, teacher: Completer, prompts: TeacherPrompts) -> None:
        self._completer = teacher
        self._prompts = prompts
        self.identity: Mapping[str, Json] = {
            "model": teacher.name,
            "model_identity": dict(teacher.identity),
            "pack": prompts.stamp,
            "pack_version": prompts.version,
        }

    async def propose(self, context: LearningContext) -> Proposal:
        """Return what the teacher would do to the library.

        Raises BudgetError and RecordingError, once the calls in flight have ended: what was paid for is kept;
        OutageError when no call was answered.
        """
        groups = [group for group in context.groups if group.informative]
        if not groups:
            return Proposal(note="no group had mixed results, so there was nothing to learn from")
        teacher = Teacher(self._completer, self._prompts, context)
        domains: dict[str, list[Group]] = {}
        for group in groups:
            domains.setdefault(group.domain, []).append(group)
        lists = await together(
            _Domain(name, context, teacher).learn(members) for name, members in sorted(domains.items())
        )
        teacher.require_answers()
        failures = dict(sorted(teacher.failures.items()))
        return Proposal(
            operations=tuple(o for changes in lists for o in changes.operations),
            lesson_groups=frozenset(g for changes in lists for g in changes.lesson_groups),
            note=_note(lists, failures),
            failures=failures,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Changes:
    """The result of one domain's batch."""

    operations: tuple[Operation, ...]
    lesson_groups: frozenset[str]
    studied: int
    """Groups whose comparison gave a usable answer."""
    groups: int


class _Domain:
    """The learning step of one domain."""

    def __init__(self, name: str, context: LearningContext, teacher: Teacher) -> None:
        self._name = name
        self._context = context
        self._teacher = teacher
        self._shelf = NumberedLessons(name, context)

    async def learn(self, groups: Sequence[Group]) -> _Changes:
        found = await together(
            GroupCritique(group, self._context, self._shelf, self._teacher).findings() for group in groups
        )
        drafts = [draft for findings in found if findings for draft in findings.drafts]
        proved = Counter(number for findings in found if findings for number in findings.proved)
        parts = [drafts[at : at + MAX_PROPOSALS] for at in range(0, len(drafts), MAX_PROPOSALS)]
        lists = await together(self._consolidated(part, proved, n) for n, part in enumerate(parts, 1))
        final = [draft for part in lists for draft in part]
        return _Changes(
            operations=tuple(o for draft in final for o in self._shelf.operations(draft)),
            lesson_groups=frozenset(g for draft in final for g in draft.lesson_groups()),
            studied=sum(findings is not None for findings in found),
            groups=len(groups),
        )

    async def _consolidated(
        self, drafts: Sequence[Draft], proved: Mapping[str, int], part: int
    ) -> list[Draft]:
        """Return one list of changes.

        The proposals stay as they are when they come from one group, whose study saw all that there is to
        see, or when there is no usable answer.
        """
        if len({attempt.group_id for draft in drafts for attempt in draft.attempts}) < 2:
            return list(drafts)
        proposals = {f"P{n}": draft for n, draft in enumerate(drafts, 1)}
        changes = await self._teacher.changes(self._question(proposals, proved, part))
        final = None if changes is None else self._sourced(changes, proposals)
        if final is None:
            self._teacher.failures["unconsolidated"] += 1
            return list(drafts[:MAX_FINAL])
        return final

    def _sourced(self, changes: Sequence[Change], proposals: Mapping[str, Draft]) -> list[Draft] | None:
        """Return the changes that can be made; None when there are some, and all lack what they rest on."""
        final = []
        for change in changes:
            unknown = set(change.sources) - proposals.keys()
            self._teacher.failures.update(["unknown_source"] * bool(unknown))
            sources = [proposals[number] for number in change.sources if number in proposals]
            by_group = {attempts[0].group_id: attempts for s in sources if (attempts := s.attempts)}
            attempts = tuple(a for group in by_group.values() for a in group)
            final.append(Draft(change=change, attempts=attempts))
        kept = usable(final, self._shelf, self._teacher, MAX_FINAL)
        added = [draft for draft in final if draft.change.op == "ADD"]
        return kept if kept or not added or any(draft.attempts for draft in added) else None

    def _question(
        self, proposals: Mapping[str, Draft], proved: Mapping[str, int], part: int
    ) -> TeacherRequest:
        lines = [f"{number} | {_line(draft)}" for number, draft in proposals.items()]
        lines += [f"studies that would keep {number}: {count}" for number, count in sorted(proved.items())]
        lessons, listed = fenced([Block("lessons", self._shelf.text()), Block("proposals", "\n".join(lines))])
        values = {"library": lessons, "proposals": listed}
        values |= {"max_operations": str(MAX_FINAL), "max_words": str(self._context.max_words)}
        return TeacherRequest(
            text=fill(self._teacher.prompts.consolidation, values),
            stage="consolidation" if part == 1 else f"consolidation.{part}",
            subject=self._name,
            stamp=self._name,
            sourced=True,
        )


def _line(draft: Draft) -> str:
    """Return a proposal on one line."""
    change = draft.change
    better, worse = (_mean([a.reward for a in draft.attempts if a.sign == sign]) for sign in (1, -1))
    what = f"{change.op} {', '.join(change.ids)}".strip()
    told = (
        f"{change.polarity} | {quoted(change.lesson, MAX_CHARS, redact)}"
        if change.lesson
        else quoted(change.reason)
    )
    return f"{what} | better {better:.2f}, worse {worse:.2f} | {told}"


def _mean(rewards: Sequence[float]) -> float:
    return sum(rewards) / len(rewards) if rewards else 0.0


def _note(lists: Sequence[_Changes], failures: Mapping[str, int]) -> str:
    """Return what a reader must know about an epoch in which something failed or nothing came out."""
    groups, studied = sum(c.groups for c in lists), sum(c.studied for c in lists)
    counted = ", ".join(f"{code}: {count}" for code, count in failures.items())
    if studied < groups:
        return f"the teacher returned no usable answer for {groups - studied} of {groups} groups ({counted})"
    if any(changes.operations for changes in lists):
        return ""
    return "the teacher proposed no change" + (f" that can be made ({counted})" if counted else "")


def open_llm(teacher: Completer, packs: Path | None) -> Optimizer:
    """Return the optimizer that calls `teacher`, with the prompts in `packs` where there are any.

    Raises PackError.
    """
    return ModelOptimizer(teacher, load_prompts(packs))
