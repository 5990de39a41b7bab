"""What the heuristic optimizer learns from an epoch, kind of task by kind of task.

What it learns is which tools in which order (or else which arguments, or which form of answer) winners share
and losers lack; it knows nothing of any particular actor, tool or suite.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from pytest_tfgrpo.core.lessons import Experience, Operation, Polarity
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.learning.optimizer.contrast import (
    MIN_WORTH,
    Contrast,
    best_arguments,
    best_form,
    best_way,
    kinds_of,
    record_of,
    worst_form,
    worst_tool,
)
from pytest_tfgrpo.learning.optimizer.support import reward_of, support_of, tool_stats_of
from pytest_tfgrpo.learning.optimizer.wording import (
    key_terms,
    one_word_answers,
    parse,
    phrase,
    shares,
)
from pytest_tfgrpo.protocols import LearningContext

MIN_FIT = 0.3
"""Mean share of its terms in a kind's prompts from which an active lesson is about that kind."""
_FAILURES = re.compile(r"it failed in (\d{1,9}) of \d{1,9} attempts")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """An active lesson that this optimizer wrote, read back."""

    experience: Experience
    terms: tuple[str, ...]
    claim: str
    """Its advice without the figures."""
    lost: int
    """Failed attempts that an avoid lesson mentions."""

    @property
    def way(self) -> tuple[str, ...]:
        """The tools that it recommends, in order."""
        return tuple(self.claim[4:].split(", then ")) if self.claim.startswith("use ") else ()


class HeuristicStudy:
    """The lessons of one epoch in the making."""

    def __init__(self, context: LearningContext, informative: Iterable[Group]) -> None:
        kinds = kinds_of(informative, context.scenarios)
        self.operations: list[Operation] = []
        self.lesson_groups: set[str] = set()
        self.mute = 0
        """Kinds without a lesson."""
        self._context = context
        self._kinds = kinds
        self._shares = [shares(kind.prompts) for kind in kinds]
        self._barred = one_word_answers(context.scenarios.values())
        self._ordinal: Counter[str] = Counter()
        self._shared: dict[tuple[str, str], list[tuple[int, Contrast]]] = {}
        """What to avoid, by domain and advice, where kinds were found by similarity."""
        known = self._assign(context.library.experiences)
        for place, kind in enumerate(kinds):
            if kind.attempts:
                self._learn(place, known.get(place, []))
        for (domain, advice), found in self._shared.items():
            self._learn_shared(domain, advice, found, known)

    def _learn(self, place: int, known: Sequence[_Known]) -> None:
        attempts = self._kinds[place].attempts
        do = [k for k in known if k.experience.polarity == "do"]
        avoid = [k for k in known if k.experience.polarity == "avoid"]
        prior = {k.way: (k.experience.support.groups, k.experience.reward.value) for k in do if k.way}
        best = best_way(attempts, prior)
        way = best.attempts[0].tools if best else next(iter(prior), ())
        worst = worst_tool(attempts, spared=way)
        if best is None and not prior:
            best = best_arguments(attempts) or best_form(attempts)
            worst = worst or (worst_form(attempts) if best is None else None)
        if best:
            rivals = [k for k in do if k.claim.split()[0] == best.advice.split()[0]]
            self._revise([place], "do", best, rivals)
        if worst and self._kinds[place].cluster:
            self._shared.setdefault((self._kinds[place].domain, worst.advice), []).append((place, worst))
        elif worst:
            self._revise([place], "avoid", worst, [k for k in avoid if k.claim == worst.advice])
        for k in avoid:
            if k.claim.removeprefix("avoid ") in way:
                self._remove(k, "winners now use what it warned of")
        for k in do if best is None else ():
            if k.way and record_of(k.way, attempts, prior[k.way])[1] < MIN_WORTH:
                self._remove(k, "attempts that followed it earned less than half")
        self.mute += best is None and worst is None

    def _learn_shared(
        self,
        domain: str,
        advice: str,
        found: Sequence[tuple[int, Contrast]],
        known: Mapping[int, Sequence[_Known]],
    ) -> None:
        """Propose one lesson where several clusters of a domain, now or earlier, warn of the same.

        Similar tasks are not surely of different kinds: the advice is kept once, and its support grows.
        """
        gone = {target for operation in self.operations for target in operation.targets}
        old = [
            k
            for place, lessons in known.items()
            for k in lessons
            if (place < 0 or self._kinds[place].cluster)
            and (k.experience.domain, k.experience.polarity, k.claim) == (domain, "avoid", advice)
            and k.experience.id not in gone
        ]
        attempts = tuple(attempt for _, contrast in found for attempt in contrast.attempts)
        self._revise([place for place, _ in found], "avoid", Contrast(advice=advice, attempts=attempts), old)

    def _remove(self, known: _Known, reason: str) -> None:
        self.operations.append(Operation(kind="remove", targets=(known.experience.id,), reason=reason))

    def _revise(
        self, places: Sequence[int], polarity: Polarity, finding: Contrast, old: Sequence[_Known]
    ) -> None:
        """Propose the lesson of `finding` in the place of `old` ones; evidence of the same claim adds up."""
        same = [k for k in old if k.claim == finding.advice]
        new = self._experience(places, polarity, finding, same)
        if new is None:
            self.mute += 1
            return
        self.lesson_groups.update(a.group_id for a in finding.attempts)
        self.operations.append(
            Operation(
                kind="add" if not old else "update" if len(old) == 1 else "merge",
                experience=new,
                targets=tuple(k.experience.id for k in old),
                reason="new" if not old else "more evidence" if same else "winners now do otherwise",
                groups=tuple(map(_copy, dict.fromkeys(a.group_id for a in finding.attempts))),
            )
        )

    def _experience(
        self, places: Sequence[int], polarity: Polarity, finding: Contrast, same: Sequence[_Known]
    ) -> Experience | None:
        """Return the lesson, or None when it does not fit into the word cap."""
        context, kind, attempts = self._context, self._kinds[places[0]], finding.attempts
        lessons = [k.experience for k in same]
        advice = finding.advice
        if polarity == "avoid":
            lost = sum(a.sign < 0 for a in attempts) + sum(k.lost for k in same)
            count = len(attempts) + sum(k.experience.support.rollouts for k in same)
            advice += f"; it failed in {lost} of {count} attempts"
        text = phrase(self._terms(places, same) or [kind.domain], advice, context.max_words)
        if text is None:
            return None
        sign = 1 if polarity == "do" else -1
        group_id = Counter(a.group_id for a in attempts if a.sign == sign).most_common(1)
        source = group_id[0][0] if group_id else attempts[0].group_id
        pack = context.packs[kind.domain]
        self._ordinal[source] += 1
        return Experience(
            id=identify(context.run_id, context.epoch, source, self._ordinal[source]),
            run_id=context.run_id,
            task_id=context.task_id,
            domain=kind.domain,
            prompt_pack_id=pack.id,
            epoch=context.epoch,
            group_id=source,
            summary32=text,
            polarity=polarity,
            reward=reward_of(polarity, attempts, lessons, given=context.given),
            support=support_of(attempts, lessons),
            tool_stats=tool_stats_of(attempts, lessons),
            stamp_signature=pack.stamp,
            actor=context.actor,
            parents=tuple(lesson.id for lesson in lessons),
            created_at=context.created_at,
            manifest_path=context.manifest_path,
        )

    def _terms(self, places: Sequence[int], same: Sequence[_Known]) -> list[str]:
        kind, own = self._kinds[places[0]], self._shares[places[0]]
        prompts = [prompt for place in places for prompt in self._kinds[place].prompts]
        if kind.cluster:  # a family's wordings are all at hand; a cluster's of earlier epochs are not
            prompts += [" ".join(k.terms) for k in same]
            own = shares(prompts)
        others = [i for i in range(len(self._kinds)) if i not in places]
        rivals = [i for i in others if self._kinds[i].domain == kind.domain] or others
        return key_terms(prompts, own, [self._shares[i] for i in rivals], self._barred)

    def _assign(self, lessons: Iterable[Experience]) -> dict[int, list[_Known]]:
        """Return the active lessons by the place of the kind that each is about, -1 where there is none."""
        found: dict[int, list[_Known]] = {}
        for lesson in lessons:
            known, pack = _read_back(lesson), self._context.packs.get(lesson.domain)
            if known is None or pack is None or lesson.stamp_signature != pack.stamp:
                continue
            stems = content(" ".join(known.terms))
            fits = [
                (fsum(self._shares[i].get(s, 0.0) for s in stems) / max(1, len(stems)), -i)
                for i, kind in enumerate(self._kinds)
                if kind.domain == lesson.domain
            ]
            fit, place = max(fits, default=(0.0, 0))
            found.setdefault(-place if fit >= MIN_FIT else -1, []).append(known)
        return found


def _copy(id_: str) -> str:
    """Return an equal id: a run keeps it, and not the memory of the attempts that the other lies among."""
    return f"{id_[:1]}{id_[1:]}"


def _read_back(lesson: Experience) -> _Known | None:
    parsed = parse(lesson.summary32)
    if parsed is None:
        return None
    claim, _, figures = parsed.advice.partition("; ")
    lost = _FAILURES.fullmatch(figures)
    return _Known(experience=lesson, terms=parsed.terms, claim=claim, lost=int(lost[1]) if lost else 0)
