"""The frozen policy: how likely each next step is, given the task, the working value and the lessons."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import field

from pytest_tfgrpo.actors.offline.lessons import ReadLesson
from pytest_tfgrpo.actors.offline.matching import similarities
from pytest_tfgrpo.actors.offline.tools.registry import TOOLS
from pytest_tfgrpo.actors.offline.values import ValueKind
from pytest_tfgrpo.core.python.dataclass import dataclass

FINISH = "finish"


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """Constants of the policy; part of the actor's identity."""

    similarity: float = 3.0
    """Logit of a tool whose description has just the words of the task."""
    sight: float = 3.0
    """Logit that a first tool gains when its description has just the words for the data at hand."""
    lesson: float = 6.0
    """Logit that a wholly relevant lesson adds to the step it asks for."""
    avoid: float = 6.0
    """Logit that a wholly relevant lesson takes from the tools it warns of."""
    floor: float = 0.5
    """Relevance under which a lesson changes nothing."""
    max_steps: int = 10
    idle_finish: float = -3.0
    """Logit of finishing before any tool has worked."""
    finish: Mapping[ValueKind, float] = field(
        default_factory=lambda: {
            "text": 1.0,
            "number": 2.0,
            "date": 2.0,
            "quantity": 0.5,
            "record": 0.0,
            "items": 0.0,
            "numbers": -1.0,
            "dates": -1.0,
            "table": -2.0,
        }
    )
    """Logit of finishing with a value of each kind."""

    def prior(self, task: frozenset[str], data: frozenset[str]) -> tuple[float, ...]:
        """Return the logit of each tool by the words of the task and, for the first step, of its data."""
        pairs = zip(similarities(task), similarities(data), strict=True)
        return tuple(self.similarity * said + self.sight * seen for said, seen in pairs)

    def logits(
        self, prior: Sequence[float], tools: Sequence[int], kind: ValueKind, done: Sequence[str], hints: Hints
    ) -> dict[str, float]:
        """Return the logit of each step open now, by name.

        `prior` holds the logit of every tool, `tools` the places of those that may be called, `done` the
        names of those that have worked.
        """
        open_steps = {FINISH: self.finish[kind] if done else self.idle_finish}
        open_steps |= {TOOLS[i].name: prior[i] for i in tools}
        do: dict[str, float] = {}
        avoid: dict[str, float] = {}
        for lesson, weight in hints:
            step = next_step(lesson.tools, kind, done) if lesson.tools else None
            if step is not None:
                do[step] = max(do.get(step, 0.0), weight)
            for tool in lesson.warned:
                avoid[tool] = max(avoid.get(tool, 0.0), weight)
        for step in open_steps:
            open_steps[step] += self.lesson * do.get(step, 0.0) - self.avoid * avoid.get(step, 0.0)
        return open_steps

    def hints(self, lessons: Sequence[ReadLesson], task: frozenset[str]) -> Hints:
        """Return the lessons that concern the task, with their weight in (0, 1]."""
        weighed = ((lesson, lesson.relevance(task)) for lesson in lessons)
        return [(lesson, relevance) for lesson, relevance in weighed if relevance >= self.floor]


Hints = list[tuple[ReadLesson, float]]


def next_step(order: Sequence[str], kind: ValueKind, done: Sequence[str]) -> str | None:
    """Return the step that a lesson asks for: its first tool, not yet done, that takes this kind of value.

    Without any it is to finish, or None when something else was done than the lesson knows of.
    """
    progress = 0
    for name in done:
        if name in order[progress:]:
            progress = order.index(name, progress) + 1
    end = FINISH if set(done) <= set(order) else None
    return next((name for name in order[progress:] if kind in _TAKES[name]), end)


_TAKES = {tool.name: tool.takes for tool in TOOLS}


def choose(logits: Mapping[str, float], temperature: float, chance: random.Random) -> str:
    """Return a step drawn from the softmax at `temperature`; at 0 the likeliest, ties by order."""
    mark = chance.random()
    best = max(logits, key=lambda name: logits[name])
    if temperature <= 0:
        return best
    weights = {name: math.exp((logit - logits[best]) / temperature) for name, logit in logits.items()}
    mark *= sum(weights.values())
    for name, weight in weights.items():
        mark -= weight
        if mark < 0:
            return name
    return best
