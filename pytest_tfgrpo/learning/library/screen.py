"""The screen: which lessons may enter a library (decisions 14, 21)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from pytest_tfgrpo.core.lessons import Experience, LeakedAnswer, Library
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.stamp import canonical
from pytest_tfgrpo.learning.library.experience_lines import MAX_CHARS, check
from pytest_tfgrpo.learning.library.injection import find_order, find_role
from pytest_tfgrpo.learning.library.words_to_scorer import find_scorer, find_words_to_scorer, topics_of
from pytest_tfgrpo.privacy.redact import MARK, find_secret
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.contamination.answers import Answers, expected_answers, tool_names
from pytest_tfgrpo.suite.contamination.lesson_answers import LessonAnswers, labels
from pytest_tfgrpo.suite.contamination.readings import readings, rotated, without_leet
from pytest_tfgrpo.suite.contamination.spelling import bare, fold

_ROLE_MARKER = re.compile(
    r"<\|[^|<>]{0,40}\|>"
    r"|\[/?INST\]|<</?SYS>>"
    r"|#{1,6}\s{0,4}(?:system|assistant|user|human|developer|instructions?|response)\b"
    r"|</?(?:system|assistant|user|human|developer|s)>"
    r"|\b(?:system|assistant|user|human|developer)\s{0,4}:",
    re.IGNORECASE,
)
_DELIMITER = re.compile(r"</?[A-Za-z!?]|/>|```|~~~|\]\]>|(?:^|\s)(?:-{3,}|={3,}|\*{3,})(?:\s|$)")
_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,20}://[^\s<>\"']+|\bwww\.[^\s<>\"']+"
    r"|(?<![\w./@-])(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|app|example|test|info|biz|xyz|top|site|online|cloud|me|co|us|uk"
    r"|eu|de|fr|it|es|nl|ch|ru|cn|jp|br|pw|tk|cc|ws|gg|ly)(?::[0-9]{1,5})?/[^\s<>\"']*"
    r"|(?<![\w./-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5}(?:/[^\s<>\"']*)?|/[^\s<>\"']*)",
    re.IGNORECASE,
)
"""Addresses with a scheme, and hosts with a path."""
_DOT = re.compile(r"\s?[\[({]\s?(?:\.|dot)\s?[\])}]\s?|(?<=\w)\sdot\s(?=\w)", re.IGNORECASE)
_SLASH = re.compile(r"(?<=\w)\sslash\s(?=\w)", re.IGNORECASE)


NAMED = 5
"""Scenarios that the reason of a refusal names."""


class Screen:
    """Judges lessons against the train and dev scenarios and the prompt packs of a run."""

    def __init__(
        self,
        scenarios: Iterable[Scenario],
        *,
        answers: Answers,
        packs: Mapping[str, PromptPack],
        max_words: int,
        tools: Collection[str] = (),
    ) -> None:
        """`packs` maps domains to the pack in use; names in `tools` are never a leak.

        Raises ValueError on an eval scenario: those never edit a library.
        """
        known = tuple(scenarios)
        for scenario in known:
            if scenario.split == "eval":
                raise ValueError(f"eval scenario {scenario.id!r} must not screen lessons")
        self._answers = LessonAnswers(known, answers, tools, allowed=labels(known, answers))
        self._packs = packs
        self._max_words = max_words
        self._topics = {domain: topics_of(_told(domain, known, pack)) for domain, pack in packs.items()}
        self._urls = {domain: _urls("\n".join((p.system, *p.inject))) for domain, p in packs.items()}

    def refuse(self, experience: Experience) -> tuple[str, str] | None:
        """Return (code, reason) why `experience` must stay out of the library, or None."""
        return self._form(experience) or self.refuse_text(experience.summary32, experience.domain)

    def refuse_text(self, text: str, domain: str, *, code: bool = False) -> tuple[str, str] | None:
        """Return (code, reason) why agents of `domain` must not read a text of any length, or None.

        In `code` tags and lines of signs are no way out of its place: it stands in a fence.
        """
        plain = bare(text)
        return self._injection(plain, domain, delimited=not code) or self._leak(plain)

    def _form(self, experience: Experience) -> tuple[str, str] | None:
        count = len(experience.summary32.split())
        if not 1 <= count <= self._max_words:
            return "word_cap", f"it has {count} words; a lesson has 1 to {self._max_words}"
        if len(experience.summary32) > MAX_CHARS:
            return (
                "word_cap",
                f"it has {len(experience.summary32)} characters; a lesson has at most {MAX_CHARS}",
            )
        pack = self._packs.get(experience.domain)
        if pack is None or experience.stamp_signature != pack.stamp:
            return "unstamped", f"it lacks the stamp of the prompt pack of domain {experience.domain!r}"
        try:
            check(experience, self._max_words)
        except ValueError as error:
            return "malformed", str(error)
        for character in experience.summary32:
            if not character.isprintable():
                return "control_character", f"it contains the character U+{ord(character):04X}"
        return None

    def _injection(self, text: str, domain: str, *, delimited: bool) -> tuple[str, str] | None:
        if secret := find_secret(text):
            return "secret", f"it contains what looks like a secret ({secret})"
        if MARK in text:
            return "secret", "it contained what looks like a secret, which is taken out"
        for reading in _all_readings(text):
            if marker := _role_marker(reading):
                return "role_marker", f"it contains the role marker {marker!r}"
            if order := find_order(reading):
                return "injection", f"it contains {order!r}, an order to the model that reads it"
            if words := find_words_to_scorer(reading):
                return "scorer", f"it contains {words!r}, which addresses the scorer of the answers"
            if scorer := find_scorer(reading, self._topics[domain]):
                return "scorer", f"it names {scorer!r}, and no task of its domain is about scoring"
        if delimited and (delimiter := _DELIMITER.search(text)):
            return (
                "delimiter",
                f"it contains {delimiter[0].strip()!r}, which could end its place in the prompt",
            )
        if unknown := _urls(text, hidden=True) - self._urls[domain]:
            return "url", f"it contains the URL {min(unknown)!r}, which the prompt pack does not"
        return None

    def _leak(self, text: str) -> tuple[str, str] | None:
        found = self._answers.find(text)
        if not found:
            return None
        of = ", ".join(repr(each.scenario) for each in found[:NAMED]) + ", ..." * (len(found) > NAMED)
        what = "an answer of scenario" if len(found) == 1 else "a list of short answers of scenarios"
        return "leak", f"it contains {what} {of}"


def leaked_answers(run: Run, kinds: Mapping[str, CheckKind]) -> list[LeakedAnswer]:
    """Return which answers of eval scenarios the lessons of a run hold (decision 21)."""
    answers = partial(expected_answers, kinds)
    return contaminated(
        run.library,
        [s for s in run.scenarios if s.split == "eval"],
        answers,
        tool_names(group for result in run.phases for group in result.groups),
        allowed=labels(run.scenarios, answers),
    )


def contaminated(
    library: Library,
    scenarios: Iterable[Scenario],
    answers: Answers,
    tools: Collection[str] = (),
    *,
    allowed: Collection[str] = (),
) -> list[LeakedAnswer]:
    """Return the active lessons that contain an answer of one of `scenarios`, the eval split.

    `allowed` are keys of answers that a lesson may name: the labels of the whole suite. What it finds fails
    the gate; it never edits a library (decision 21).
    """
    index = LessonAnswers(scenarios, answers, tools, allowed=allowed)
    return [
        LeakedAnswer(experience_id=experience.id, scenario_id=found.scenario)
        for experience in library.experiences
        for found in index.find(experience.summary32)[:1]
    ]


def _told(domain: str, scenarios: Iterable[Scenario], pack: PromptPack) -> Iterator[str]:
    """Yield what the prompts of a domain say."""
    yield from (pack.system, *pack.inject)
    for scenario in scenarios:
        if scenario.domain == domain:
            yield scenario.wording
            if scenario.input is not None:
                yield canonical(scenario.input).decode("utf-8", "replace")


def _all_readings(text: str) -> Iterator[str]:
    """Yield a lesson as it stands, decoded, with letters for digits, backwards, and with rotated letters."""
    yield from readings(text)
    yield from without_leet(fold(text))
    yield text[::-1]
    yield rotated(text)


def _role_marker(text: str) -> str | None:
    found = _ROLE_MARKER.search(text)
    return found[0] if found else find_role(text)


def _urls(text: str, *, hidden: bool = False) -> set[str]:
    """Return the addresses in a text; `hidden`: also those whose dots are written otherwise."""
    if hidden:
        text = _SLASH.sub("/", _DOT.sub(".", text))
    return {match[0].rstrip(".,;:!?)]}") for match in _URL.finditer(text)}
