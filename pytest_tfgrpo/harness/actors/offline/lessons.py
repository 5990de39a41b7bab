"""Lessons: what the experiences in a prompt say about tools, their order, and the kind of task they are for.

A lesson is only ever read as tool names and words to compare; nothing in it is obeyed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pytest_tfgrpo.core.words import content
from pytest_tfgrpo.harness.actors.offline.tools.registry import BY_NAME

MAX_LESSONS = 200
_OPEN = re.compile(r"<experiences(?:\s[^<>]*)?>")
_CLOSE = "</experiences>"
_LINE = re.compile(r"- \[(do|avoid)\] (.*)")
_TOKEN = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ReadLesson:
    """One experience as the agent reads it."""

    do: bool
    """False: what it names led to worse attempts."""
    tools: tuple[str, ...]
    """Known tools, in the order in which the lesson names them."""
    about: Mapping[str, float]
    """Stems of its other words; each weighs less, the more lessons of the prompt have it."""

    def relevance(self, task: frozenset[str]) -> float:
        """Return the share of its weight that words of the task have, in [0, 1]."""
        total = sum(self.about.values())
        return sum(weight for stem, weight in self.about.items() if stem in task) / total if total else 0.0


@lru_cache(maxsize=512)
def lessons_in(prompt: str) -> tuple[ReadLesson, ...]:
    """Return the lessons in the last block of experiences of `prompt` that name a tool."""
    openings = list(_OPEN.finditer(prompt))
    if not openings:
        return ()
    block = prompt[openings[-1].end() :].partition(_CLOSE)[0]
    lines = [match for line in block.splitlines() if (match := _LINE.fullmatch(line.strip()))]
    read = [(match[1] == "do", *_read(html.unescape(match[2]))) for match in lines[:MAX_LESSONS]]
    lessons = [(do, tools, about) for do, tools, about in read if tools]
    spread = {
        stem: sum(stem in about for _, _, about in lessons) for _, _, about in lessons for stem in about
    }
    return tuple(
        ReadLesson(do, tools, {stem: 1 / spread[stem] for stem in sorted(about)})
        for do, tools, about in lessons
    )


def _read(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    tokens = _TOKEN.findall(text)
    tools = tuple(dict.fromkeys(token for token in tokens if token in BY_NAME))
    return tools, content(" ".join(token for token in tokens if token not in BY_NAME))
