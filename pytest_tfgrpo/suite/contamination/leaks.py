"""Leaks: answers of scenarios in what prompts carry, in lessons, and in prompts that are learned from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.stamp import canonical
from pytest_tfgrpo.suite.contamination.answers import AnswerIndex, Answers, SoughtAnswer, spellings
from pytest_tfgrpo.suite.contamination.findings import Finding, OverlapKind, called, excerpt
from pytest_tfgrpo.suite.contamination.lesson_answers import LABEL_TASKS, LessonAnswers, labels
from pytest_tfgrpo.suite.contamination.overlap import SPLITS

MAX_PROMPTS = 3
"""An answer in more prompts than these is what the tasks are about, not a leak."""
_PROMPT_CHARACTERS = 20_000
"""Of one prompt, in the search for answers of other scenarios."""
_DISTINCT_CHARACTERS = 16
_DISTINCT_WORDS = 3
_DISTINCT_DIGITS = 7
_DATE = re.compile(r"[0-9]{1,4}[-/. :][0-9]{1,2}[-/. :][0-9]{1,4}(?:[t ][0-9:.z+-]*)?")


def leaks(
    scenarios: Sequence[Scenario],
    answers: Answers,
    *,
    packs: Mapping[str, PromptPack],
    library: Library,
) -> list[Finding]:
    """Return where answers of `scenarios` stand that must not; `packs` maps domains to the pack in use."""
    owners = _owners(scenarios, answers)
    return [
        *_in_packs(scenarios, answers, packs, owners),
        *_in_lessons(scenarios, answers, library.experiences),
        *_in_prompts(scenarios, answers, owners),
    ]


def _owners(scenarios: Iterable[Scenario], answers: Answers) -> Counter[str]:
    """Count the tasks that have each answer, as it is spelled in the index."""
    return Counter(
        text for s in scenarios for text in {spelled for a in answers(s) for spelled in spellings(a)}
    )


def _finding(kind: OverlapKind, scenario: Scenario, text: str, other: str, other_where: str = "") -> Finding:
    return Finding(
        kind=kind,
        subject=called(scenario),
        where=scenario.source,
        other=other,
        other_where=other_where,
        excerpt=excerpt(text),
    )


def _in_packs(
    scenarios: Sequence[Scenario], answers: Answers, packs: Mapping[str, PromptPack], owners: Counter[str]
) -> Iterator[Finding]:
    """Yield answers in the text that every prompt of their domain carries."""
    by_pack: dict[str, tuple[PromptPack, list[Scenario]]] = {}
    for scenario in scenarios:
        pack = packs[scenario.domain]
        by_pack.setdefault(pack.stamp, (pack, []))[1].append(scenario)
    for pack, own in by_pack.values():
        told = set()
        for found in AnswerIndex(own, answers).matches("\n".join((pack.system, *pack.inject))):
            if owners[found.text] < LABEL_TASKS and found.scenario.id not in told:
                told.add(found.scenario.id)
                yield _finding(
                    "answer_in_pack", found.scenario, found.text, f"prompt pack {excerpt(pack.id)}"
                )


def _in_lessons(
    scenarios: Sequence[Scenario], answers: Answers, lessons: Sequence[Experience]
) -> Iterator[Finding]:
    """Yield answers in lessons of the starting library, as the screen of new lessons would find them."""
    if not lessons:
        return
    known = {s.id: s for s in scenarios}
    allowed = labels(scenarios, answers)
    index = LessonAnswers(scenarios, answers, _tools(lessons), allowed=allowed)
    for lesson in lessons:
        for found in index.find(lesson.summary32)[:1]:
            yield _finding("answer_in_lesson", known[found.scenario], found.answer, f"lesson {lesson.id}")


def _tools(lessons: Iterable[Experience]) -> set[str]:
    """Return tools that lessons of several groups used: their names are no answers."""
    groups: dict[str, set[str]] = {}
    for lesson in lessons:
        for stat in lesson.tool_stats:
            groups.setdefault(stat.tool, set()).add(lesson.group_id)
    return {tool for tool, of in groups.items() if len(of) > 1}


def _in_prompts(scenarios: Sequence[Scenario], answers: Answers, owners: Counter[str]) -> Iterator[Finding]:
    """Yield distinctive answers of one split in prompts of a split before it, which is learned from.

    An answer that its own prompt holds is extracted from there, and says nothing when it stands elsewhere.
    """

    def distinctive(scenario: Scenario) -> tuple[str, ...]:
        texts = [a for a in answers(scenario) if _is_distinctive(a, owners)]
        own = AnswerIndex([scenario], lambda _: texts).matches(_asked(scenario)) if texts else ()
        held = {found.text for found in own}
        return tuple(a for a in texts if held.isdisjoint(spellings(a)))

    owned = [s for s in scenarios if s.split != SPLITS[0]]
    index = AnswerIndex(owned, distinctive)
    places: dict[str, list[tuple[SoughtAnswer, Scenario]]] = {}
    for holder in scenarios:
        if holder.split != SPLITS[-1]:
            for found in index.matches(_asked(holder)):
                places.setdefault(found.text, []).append((found, holder))
    told = set()
    for found, holder in (place for held in places.values() if len(held) <= MAX_PROMPTS for place in held):
        pair = found.scenario.id, holder.id
        if SPLITS.index(holder.split) < SPLITS.index(found.scenario.split) and pair not in told:
            told.add(pair)
            yield _finding("answer_in_prompt", found.scenario, found.text, called(holder), holder.source)


def _asked(scenario: Scenario) -> str:
    text = scenario.wording[:_PROMPT_CHARACTERS]
    if scenario.input is None:
        return text
    return f"{text}\n{canonical(scenario.input).decode('utf-8', 'replace')[:_PROMPT_CHARACTERS]}"


def _is_distinctive(answer: str, owners: Counter[str]) -> bool:
    """Return whether an answer stands in a text for no other reason than that somebody wrote the answer.

    It is that of one task alone, and some words long, or a long figure or code that is no date.
    """
    plain = spellings(answer)[0]
    if max(owners[text] for text in spellings(answer)) > 1 or _DATE.fullmatch(plain):
        return False
    digits = sum(character.isdigit() for character in plain)
    words = len(plain.split())
    return digits >= _DISTINCT_DIGITS or (words >= _DISTINCT_WORDS and len(plain) >= _DISTINCT_CHARACTERS)
