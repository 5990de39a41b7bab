"""Candidates for scenarios: one for each task of which production knows a right answer, the worst first."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from statistics import fmean

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.production.training.candidates.right_answers import RightAnswer, encoded

_MOST_CORRECTIONS = 5
"""Criteria of one scenario."""
_MOST_KEPT = 1000
"""Different answers, corrections or owners of one task that are kept apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioCandidate:
    """What is known of one task."""

    id: str
    """Follows from domain and task alone."""
    domain: str
    """Of the suite."""
    sequence: int
    """Of its first trajectory with such feedback, in RL_TRAJECTORIES."""
    owners: int
    """Users, else sessions, who said so."""
    reward: float | None
    """Mean of the attempts they spoke of."""
    expected: Sequence[str]
    """Expected values as JSON, the most frequent first."""
    corrections: Sequence[str]
    """The most frequent first."""

    @property
    def weight(self) -> float:
        """How much there is to gain: how many said so, and how bad it was."""
        return self.owners * (1.0 - (0.5 if self.reward is None else self.reward))


@dataclass(kw_only=True, slots=True)
class _Task:
    sequence: int
    domain: str
    owners: set[str] = field(default_factory=set)
    totals: dict[int, float] = field(default_factory=dict)
    expected: Counter[str] = field(default_factory=Counter)
    corrections: Counter[str] = field(default_factory=Counter)
    said: set[tuple[str, str]] = field(default_factory=set)
    """Who said what, each once."""

    def add(self, answer: RightAnswer) -> None:
        self.sequence = min(self.sequence, answer.sequence)
        if len(self.said) >= _MOST_KEPT:
            return
        self.owners.add(answer.owner)
        if answer.total is not None:
            self.totals[answer.sequence] = answer.total
        for kind, text in (
            (self.expected, "" if answer.expected is None else encoded(answer.expected)),
            (self.corrections, answer.correction),
        ):
            if text and (answer.owner, text) not in self.said:
                self.said.add((answer.owner, text))
                kind[text] += 1


def candidates_of(answers: Iterable[RightAnswer], domains: Mapping[str, str]) -> list[ScenarioCandidate]:
    """Return the candidates, the worst and most frequent first; `domains` are the suite's."""
    tasks: dict[str, _Task] = {}
    for answer in answers:
        domain = domains.get(answer.agent) or domains.get(answer.domain, answer.domain)
        key = _id(domain, answer.task)
        task = tasks.get(key)
        if task is None:
            task = tasks[key] = _Task(sequence=answer.sequence, domain=domain)
        task.add(answer)
    found = [_candidate(key, task) for key, task in tasks.items()]
    return sorted(found, key=lambda one: (-one.weight, one.id))


def _candidate(key: str, task: _Task) -> ScenarioCandidate:
    return ScenarioCandidate(
        id=key,
        domain=task.domain,
        sequence=task.sequence,
        owners=len(task.owners),
        reward=fmean(task.totals.values()) if task.totals else None,
        expected=_ranked(task.expected),
        corrections=_ranked(task.corrections)[:_MOST_CORRECTIONS],
    )


def _ranked(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda text: (-counts[text], text))


def _id(domain: str, task: tuple[bool, str]) -> str:
    data = json.dumps([domain, *task]).encode()
    return f"production-{hashlib.blake2b(data, digest_size=6).hexdigest()}"


def find_candidate(candidates: Sequence[ScenarioCandidate], id_: str) -> ScenarioCandidate:
    """Return the candidate with this id; raises StoreError."""
    known = {one.id: one for one in candidates}
    if id_ not in known:
        raise StoreError(
            f"there is no candidate {id_!r}{nearest(id_, known)}; `tfgrpo loop candidates list` names them"
        )
    return known[id_]
