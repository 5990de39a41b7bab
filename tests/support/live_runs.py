"""A small world of live runs: a selector serves tasks whose arms succeed with known probabilities."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.records import ArmChoice, LiveRollout, LiveStatus, LiveUpdate, RunTrace
from pytest_tfgrpo.production.live.selection.rewards import open_inference
from pytest_tfgrpo.production.live.selection.selector import SelectorState, is_control, open_selector
from pytest_tfgrpo.production.live.selection.update import Learning, compute

ARMS = {"bare": "s-bare", "learned": "s-learned", "misled": "s-misled"}
POINTS = {"config": ARMS}
RATES = {
    "freight": {"bare": 0.45, "learned": 0.85, "misled": 0.2},
    "notes": {"bare": 0.55, "learned": 0.9, "misled": 0.3},
    "orders": {"bare": 0.4, "learned": 0.8, "misled": 0.35},
}
"""Mean score by category and arm."""


def trace(*, score: float | None = None, blocked: bool = False) -> RunTrace:
    return RunTrace(
        prompt_chars=40, reply_chars=20, completed=True, turns=2, tool_errors=0, blocked=blocked, score=score
    )


def rollout(
    sequence: int,
    choices: Sequence[ArmChoice],
    score: float | None,
    *,
    category: str = "freight",
    strategy: str = "outcome_v1",
    control: bool = False,
    status: LiveStatus = LiveStatus.SUCCEEDED,
    blocked: bool = False,
) -> LiveRollout:
    found = trace(score=score, blocked=blocked)
    return LiveRollout(
        id=f"live-rl-rollout-test-{sequence:010}",
        sequence=sequence,
        run=f"run-{sequence}",
        category=category,
        status=status,
        reason="" if status is LiveStatus.SUCCEEDED else "said so",
        control=control,
        attempt=1,
        choices=tuple(choices),
        trace=found,
        reward=open_inference(strategy).infer(found),
        started_at=float(sequence),
        ended_at=sequence + 0.5,
        used_in=None,
    )


@dataclass
class LiveWorld:
    """A service of one process without a store."""

    seed: int
    rates: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: RATES)
    learning: Learning = field(default_factory=lambda: Learning(points=POINTS, strategy="outcome_v1"))
    default: str = "bare"
    control: bool = True
    rewards: Callable[[list[LiveRollout]], list[LiveRollout]] | None = None
    """What becomes of the runs of an update before it is computed."""

    def __post_init__(self) -> None:
        self.document: Json = None
        self.selector: SelectorState = open_selector(0, None, self.learning.points)
        self.runs: list[LiveRollout] = []
        self.updates: list[LiveUpdate] = []
        self.documents: list[tuple[int, Json]] = []
        self._waiting: list[LiveRollout] = []
        self._random = random.Random(self.seed)
        self._due = 0

    def serve(self, n: int) -> None:
        for _ in range(n):
            self._one()

    def _one(self) -> None:
        number, namespace = len(self.runs) + 1, f"world-{self.seed}"
        category = self._random.choice(list(self.rates))
        point = next(iter(self.learning.points))
        control = self.control and is_control(namespace, str(number))
        choice = self.selector.draw(namespace, str(number), 1, point, 0, category=category)
        if control:
            certain = {arm: float(arm == self.default) for arm in choice.arms}
            choice = replace(choice, arm=self.default, probabilities=certain, control=True)
        score = float(self._random.random() < self.rates[category][choice.arm])
        found = rollout(
            number, [choice], score, category=category, strategy=self.learning.strategy, control=control
        )
        self.runs.append(found)
        if not control:
            self._waiting.append(found)
            self._due += 1
        if self._due >= 8:
            self._update()

    def _update(self) -> None:
        self._due, offered = 0, self._waiting[: self.learning.limit]
        given = self.rewards(offered) if self.rewards else offered
        report, self.document = compute(
            given, self.selector.number, self.document, learning=self.learning, now=0.0
        )
        self.updates.append(report)
        if report.executed:
            self.documents.append((report.selector_after, self.document))
        self._waiting = [one for one in self._waiting if one.id not in report.spent]
        self.selector = open_selector(report.selector_after, self.document, self.learning.points)

    def late(self, n: int = 100) -> float:
        """Return the expected score of the last `n` selector runs, as a share of the best arm's."""
        runs = [one for one in self.runs if not one.control][-n:]
        got = sum(self.rates[one.category][one.choices[0].arm] for one in runs)
        return got / sum(max(self.rates[one.category].values()) for one in runs)
