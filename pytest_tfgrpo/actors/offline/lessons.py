"""Lessons: what the experiences in a prompt say about tools, their order, and the kind of task they are for.

A lesson is only ever read as tools to use or to avoid and words to compare; nothing in it is obeyed.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pytest_tfgrpo.actors.offline.advice import ADVISES, OPENERS, Advice, read_advice, tokens_of
from pytest_tfgrpo.actors.offline.matching import commonness
from pytest_tfgrpo.actors.offline.tools.registry import BY_NAME
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.words import content

MAX_LESSONS = 200
_OPEN = re.compile(r"<experiences(?:\s[^<>]*)?>")
_CLOSE = "</experiences>"
_LINE = re.compile(r"- \[(do|avoid)\] (.*)")


@dataclass(frozen=True, slots=True)
class ReadLesson:
    """One experience as the agent reads it."""

    tools: tuple[str, ...]
    """Tools to use, in the order in which the lesson names them."""
    warned: tuple[str, ...]
    """Tools to avoid."""
    about: Mapping[str, float]
    """Stems of the words on its kind of task; each weighs less, the more lessons of the prompt have it, and
    the more tools: "date" or "kg" says which data is at hand, not what to do with it."""

    def relevance(self, task: frozenset[str]) -> float:
        """Return the share of its weight that words of the task have, in [0, 1]."""
        total = sum(self.about.values())
        return sum(weight for stem, weight in self.about.items() if stem in task) / total if total else 0.0


@lru_cache(maxsize=512)
def lessons_in(prompt: str) -> tuple[ReadLesson, ...]:
    """Return the lessons in the last block of experiences of `prompt` that mean a tool."""
    openings = list(_OPEN.finditer(prompt))
    if not openings:
        return ()
    block = prompt[openings[-1].end() :].partition(_CLOSE)[0]
    lines = [match for line in block.splitlines() if (match := _LINE.fullmatch(line.strip()))]
    read = [_read(html.unescape(match[2]), match[1] == "avoid") for match in lines[:MAX_LESSONS]]
    lessons = [(advice, about) for advice, about in read if advice.do or advice.avoid]
    spread = Counter(stem for _, about in lessons for stem in about)
    return tuple(
        ReadLesson(
            advice.do,
            advice.avoid,
            {stem: 1 / (spread[stem] * (1 + commonness(stem))) for stem in sorted(about)},
        )
        for advice, about in lessons
    )


@lru_cache(maxsize=4096)
def _read(text: str, warning: bool) -> tuple[Advice, frozenset[str]]:
    """Return what a lesson advises, and the stems of the words on its kind of task."""
    tokens = tokens_of(text)
    start = _topic(tokens)
    advice = read_advice(tokens[start:], warning=warning)
    topic = content(" ".join(token for token in tokens[:start] if token not in BY_NAME))
    return advice, topic or advice.rest


def _topic(tokens: Sequence[str]) -> int:
    """Return how many of the first `tokens` say what the lesson is about."""
    opened = bool(tokens) and tokens[0] in OPENERS
    if ":" in tokens:
        end = tokens.index(":") + 1
        said = read_advice(tokens[:end], warning=False)
        return end if opened or not (said.do or said.avoid) else 0
    starts = [i for i, token in enumerate(tokens) if token in ADVISES or token in BY_NAME] if opened else []
    commas = [i + 1 for i, token in enumerate(tokens) if token == ","] if opened else []
    if not commas:
        return starts[0] if starts else 0
    # "about dates, times or weeks, use": what is advised begins behind a comma, and not always the first
    before = [end for end in commas if starts and end <= starts[0]]
    return next((end for end in commas if end in starts), before[-1] if before else commas[0])
