"""What the heuristic optimizer learns from an epoch: a lesson per domain and advice, with all its topics.

What it learns is which tools in which order (or else which arguments, or which form of answer) winners share
and losers lack; it knows nothing of any particular actor, tool or suite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from pytest_tfgrpo.core.lessons import Experience, Operation, Polarity
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.texts.words import content, stem
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.learning.optimizer.contrast import (
    MIN_WORTH,
    Attempt,
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
    MAX_TERMS,
    Topic,
    joined,
    key_terms,
    one_word_answers,
    parse,
    phrase,
    room_for,
    shares,
)
from pytest_tfgrpo.protocols import LearningContext

MIN_FIT = 0.3
"""Mean share of its terms in a kind's prompts from which an active lesson is about that kind."""
OTHERWISE = "winners now do otherwise"
INSTEAD = "what to do instead is known"


class LessonAdvice(NamedTuple):
    """What a lesson says, without the tasks that it says it of."""

    domain: str
    polarity: Polarity
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """An active lesson that this optimizer wrote, read back."""

    experience: Experience
    terms: tuple[str, ...]
    advice: LessonAdvice
    places: tuple[int, ...]
    """Places of the kinds that it is about."""

    @property
    def way(self) -> tuple[str, ...]:
        """The tools that it recommends, in order."""
        text = self.advice.text
        return tuple(text[4:].split(", then ")) if text.startswith("use ") else ()

    @property
    def record(self) -> tuple[float, float]:
        """Its part in one of its kinds: (groups, mean reward)."""
        return self.experience.support.groups / max(1, len(self.places)), self.experience.reward.value


class HeuristicLessons:
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
        self._found: dict[LessonAdvice, dict[int, Contrast]] = {}
        """What this epoch shows, by advice and place of the kind."""
        self._over: dict[str, dict[int, tuple[str, LessonAdvice | None]]] = {}
        """Where an active lesson, by id, no longer holds: why, and what holds in its place."""
        self._topics = [self._topic(place, frozenset([place])) for place in range(len(kinds))]
        known = self._read_back(context.library.experiences)
        for place, kind in enumerate(kinds):
            if kind.attempts:
                self._learn(place, [k for k in known if place in k.places])
        self._write(known)

    def _learn(self, place: int, known: Sequence[_Known]) -> None:
        attempts = self._kinds[place].attempts
        do = [k for k in known if k.advice.polarity == "do"]
        prior = {k.way: k.record for k in do if k.way}
        best = best_way(attempts, prior)
        way = best.attempts[0].tools if best else next(iter(prior), ())
        worst = None
        if best is None and not prior:
            worst = worst_tool(attempts, spared=())
            best = best_arguments(attempts) or best_form(attempts)
            worst = worst or (worst_form(attempts) if best is None else None)
        if best:
            advice = self._find(place, "do", best)
            for k in do:
                if k.advice.text.split()[0] == best.advice.split()[0] and k.advice != advice:
                    self._end(k, place, OTHERWISE, advice)
        if worst:
            self._find(place, "avoid", worst)
        for k in known:
            if way and k.advice.polarity == "avoid":
                warned = k.advice.text.removeprefix("avoid ") in way
                self._end(k, place, "winners now use what it warned of" if warned else INSTEAD)
        for k in do if best is None else ():
            if k.way and record_of(k.way, attempts, prior[k.way])[1] < MIN_WORTH:
                self._end(k, place, "attempts that followed it earned less than half")
        self.mute += best is None and worst is None

    def _find(self, place: int, polarity: Polarity, contrast: Contrast) -> LessonAdvice:
        advice = LessonAdvice(self._kinds[place].domain, polarity, contrast.advice)
        self._found.setdefault(advice, {})[place] = contrast
        return advice

    def _end(self, known: _Known, place: int, reason: str, instead: LessonAdvice | None = None) -> None:
        self._over.setdefault(known.experience.id, {})[place] = (reason, instead)

    def _write(self, known: Sequence[_Known]) -> None:
        """Propose a lesson for each advice, and what becomes of active ones that hold for fewer kinds."""
        replaced: dict[LessonAdvice, list[_Known]] = {}
        partly = dict[LessonAdvice, None]()
        for k in known:
            over = self._over.get(k.experience.id, {})
            if not over or k.advice in self._found:
                continue
            reason, instead = next(iter(over.values()))
            if not self._is_over(k):
                partly[k.advice] = None
            elif instead is None:
                self.operations.append(Operation(kind="remove", targets=(k.experience.id,), reason=reason))
            else:
                replaced.setdefault(instead, []).append(k)
        for advice in partly:
            self._revise(advice, {}, [k for k in known if k.advice == advice and not self._is_over(k)], [])
        for advice, found in self._found.items():
            same = [k for k in known if k.advice == advice]
            self._revise(advice, found, same, replaced.get(advice, ()))

    def _is_over(self, known: _Known) -> bool:
        """Return whether a lesson holds for none of its kinds any more."""
        return 0 < len(self._over.get(known.experience.id, {})) == len(known.places)

    def _revise(
        self,
        advice: LessonAdvice,
        found: Mapping[int, Contrast],
        same: Sequence[_Known],
        replaced: Sequence[_Known],
    ) -> None:
        """Propose the lessons of `advice`, one but for the word cap; evidence of the same advice adds up."""
        over = {(id_, place) for id_, places in self._over.items() for place in places}
        held = {place for k in same for place in k.places if (k.experience.id, place) not in over}
        places = sorted(held | found.keys())
        room = room_for(advice.text, self._context.max_words)
        terms = self._terms(advice, places, same, room) if room > 0 else []
        attempts = tuple(a for contrast in found.values() for a in contrast.attempts)
        if terms:
            self.lesson_groups.update(a.group_id for a in attempts)
        else:
            self.mute += len(found)
        old = [*same, *replaced]
        ends = [end for k in same for end, _ in self._over.get(k.experience.id, {}).values()]
        reason = "new" if not old else "more evidence" if found and same else (ends or [OTHERWISE])[0]
        for start in range(0, len(terms), max(1, room)):
            text = phrase(terms[start : start + room], advice.text)
            self.operations.append(
                Operation(
                    kind="add" if not old else "update" if len(old) == 1 else "merge",
                    experience=self._experience(advice, text, attempts, [k.experience for k in same]),
                    targets=tuple(k.experience.id for k in old),
                    reason=reason,
                    groups=tuple(map(_copy, dict.fromkeys(a.group_id for a in attempts))),
                )
            )
            same, old, reason = (() if attempts else same), [], "new"  # topics beyond the word cap

    def _terms(
        self, advice: LessonAdvice, places: Sequence[int], same: Sequence[_Known], room: int
    ) -> list[str]:
        """Return the words for the kinds at `places`; of similar tasks also those of earlier epochs."""
        few = len(places) <= MAX_TERMS  # else words that several of them share are needed
        topics = [self._topics[i] if few else self._topic(i, frozenset(places)) for i in places]
        left = {place for places in self._over.values() for place in places} - set(places)
        kept = [
            term
            for k in same
            for term in " ".join(k.terms).split()  # people write several words between two commas
            if any(self._kinds[i].cluster for i in places) and not self._is_of(term, left)
        ]
        return joined(topics, kept, room) or [advice.domain]

    def _topic(self, place: int, alike: frozenset[int]) -> Topic:
        """Return the words that distinguish a kind from those of its domain that are not `alike`."""
        kind, own = self._kinds[place], self._shares[place]
        others = [i for i in range(len(self._kinds)) if i not in alike]
        rivals = [i for i in others if self._kinds[i].domain == kind.domain] or others
        terms = key_terms(kind.prompts, own, [self._shares[i] for i in rivals], self._barred)
        return Topic(terms, own)

    def _is_of(self, term: str, places: Iterable[int]) -> bool:
        return any(self._shares[i].get(stem(term), 0.0) >= MIN_FIT for i in places)

    def _experience(
        self, advice: LessonAdvice, text: str, attempts: Sequence[Attempt], same: Sequence[Experience]
    ) -> Experience:
        context, polarity = self._context, advice.polarity
        sign = 1 if polarity == "do" else -1
        group_id = Counter(a.group_id for a in attempts if a.sign == sign).most_common(1)
        source = group_id[0][0] if group_id else attempts[0].group_id if attempts else same[0].group_id
        pack = context.packs[advice.domain]
        self._ordinal[source] += 1
        return Experience(
            id=identify(context.run_id, context.epoch, source, self._ordinal[source]),
            run_id=context.run_id,
            task_id=context.task_id,
            domain=advice.domain,
            prompt_pack_id=pack.id,
            epoch=context.epoch,
            group_id=source,
            summary32=text,
            polarity=polarity,
            reward=reward_of(polarity, attempts, same, given=context.given),
            support=support_of(attempts, same),
            tool_stats=tool_stats_of(attempts, same),
            stamp_signature=pack.stamp,
            actor=context.actor,
            parents=tuple(lesson.id for lesson in same),
            created_at=context.created_at,
            manifest_path=context.manifest_path,
        )

    def _read_back(self, lessons: Iterable[Experience]) -> list[_Known]:
        """Return the active lessons of the form that this optimizer writes, with the kinds they are about."""
        known: list[_Known] = []
        for lesson in lessons:
            parsed, pack = parse(lesson.summary32), self._context.packs.get(lesson.domain)
            if parsed is None or pack is None or lesson.stamp_signature != pack.stamp:
                continue
            text = parsed.advice.partition("; ")[0]  # older lessons add figures
            advice = LessonAdvice(lesson.domain, lesson.polarity, text)
            places = tuple(self._places(lesson.domain, content(" ".join(parsed.terms))))
            known.append(_Known(experience=lesson, terms=parsed.terms, advice=advice, places=places))
        return known

    def _places(self, domain: str, stems: frozenset[str]) -> Iterable[int]:
        """Return the kind that has most of `stems`, and those whose most distinctive word is one of them."""
        own = [i for i, kind in enumerate(self._kinds) if kind.domain == domain]
        fits = [(fsum(self._shares[i].get(s, 0.0) for s in stems) / max(1, len(stems)), -i) for i in own]
        fit, best = max(fits, default=(0.0, 0))
        for i in own:
            if (i == -best and fit >= MIN_FIT) or self._topics[i].head in stems:
                yield i


def _copy(id_: str) -> str:
    """Return an equal id: a run keeps it, and not the memory of the attempts that the other lies among."""
    return f"{id_[:1]}{id_[1:]}"
