"""Both arms of a ramp in figures: what the rules look at, and what events keep."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.numerics.two_arms import DifferenceSequence, odds_evidence, rate_evidence
from pytest_tfgrpo.production.deployment.sessions import SettledSession

REWARD_LEVEL, ERROR_LEVEL, SAFETY_LEVEL = 0.02, 0.02, 0.01
"""How often each rule may roll back a version that is as good as the live one; together .05 a deployment."""
ERRORS = 0.05
"""Share of sessions with a failed run above which a version has errors (decision 34)."""
RECENT = 30
"""Newest sessions of an arm that show whether errors have ended."""
_TIMED = 1000
"""Newest sessions of an arm whose times are kept."""
_TAIL = 0.95


class ArmPair(NamedTuple):
    """A figure of either arm."""

    canary: float = 0.0
    control: float = 0.0


class RewardCounts(NamedTuple):
    """Settled sessions of either arm by their rewards."""

    rewarded: ArmPair = ArmPair()
    """With a reward, since the ramp began."""
    fresh: ArmPair = ArmPair()
    """With a reward, since the present step began."""
    unrewarded: ArmPair = ArmPair()
    """Without a reward that counts."""
    too_late: ArmPair = ArmPair()
    """Those of them whose first reward came too late to count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RampFigures:
    """What is known of a ramp; counts are of settled sessions."""

    counts: RewardCounts = RewardCounts()
    difference: float = 0.0
    """Mean reward, canary minus control."""
    low: float = -1.0
    high: float = 1.0
    """Bounds of that difference, each at the level of the rule on rewards, at all times."""
    error_rate: ArmPair = ArmPair()
    """Share of sessions with a failed run."""
    error_evidence: float = 0.0
    """Log evidence that the canary's is above the limit."""
    error_odds: float = 0.0
    """Log evidence that it is above that of the control."""
    step_evidence: ArmPair = ArmPair()
    """Log evidence of each arm that its error rate is above the limit, since the present step began."""
    recent_rate: ArmPair = ArmPair(1.0, 1.0)
    """Error rate of the newest sessions; 1 where these are too few."""
    blocked: ArmPair = ArmPair()
    """First sessions of a user that safety blocked."""
    blocked_odds: float = 0.0
    """Log evidence that these are more frequent in the canary."""
    violations: int = 0
    """That an evaluator or reviewer confirmed, of the canary."""
    timed: ArmPair = ArmPair()
    """Sessions whose times are compared."""
    p95_s: ArmPair = ArmPair()
    """95th percentile of the longest run of a session, in seconds."""

    @property
    def missed_drop(self) -> float:
        """The drop of the mean reward that is not excluded."""
        return max(0.0, -self.low)

    def evidence(self) -> dict[str, Json]:
        """Return what events keep."""
        return {
            "sessions": self.counts.rewarded._asdict(),
            "since_step": self.counts.fresh._asdict(),
            "unrewarded": self.counts.unrewarded._asdict(),
            "reward": {
                "difference": round(self.difference, 4),
                "low": round(self.low, 4),
                "high": round(self.high, 4),
                "missed_drop": round(self.missed_drop, 4),
            },
            "error_rate": {arm: round(rate, 4) for arm, rate in self.error_rate._asdict().items()},
            "blocked": self.blocked._asdict(),
            "violations": self.violations,
            "p95_s": {arm: round(value, 3) for arm, value in self.p95_s._asdict().items()},
        }


class _Arm:
    def __init__(self) -> None:
        self.rewarded: list[int] = []
        """Sequences of the sessions with a reward."""
        self.settled: list[int] = []
        self.failed: list[int] = []
        self.recent: deque[bool] = deque(maxlen=RECENT)
        self.seconds: deque[float] = deque(maxlen=_TIMED)
        self.blocked = self.unrewarded = self.too_late = 0

    def add(self, one: SettledSession) -> None:
        """Count a session; one that was late on the bus may be of an earlier step."""
        if one.was == "too late":
            self.too_late += 1
        elif one.reward is not None:
            insort(self.rewarded, one.sequence)
            self.unrewarded -= one.was == "waiting"
        else:
            self.unrewarded += 1
        if one.was == "new":
            insort(self.settled, one.sequence)
            self.recent.append(one.failed)
            self.seconds.append(one.seconds)
            if one.failed:
                insort(self.failed, one.sequence)
            self.blocked += one.blocked and one.first

    def step_evidence(self, since: int) -> float:
        failed, settled = _after(self.failed, since), _after(self.settled, since)
        return rate_evidence(failed, settled, ERRORS)

    @property
    def recent_rate(self) -> float:
        return sum(self.recent) / RECENT if len(self.recent) == RECENT else 1.0

    @property
    def p95_s(self) -> float:
        values = sorted(self.seconds)
        return values[min(len(values) - 1, int(_TAIL * len(values)))] if values else 0.0


class RampTally:
    """Counts the sessions of one ramp."""

    def __init__(self) -> None:
        self._difference = DifferenceSequence(REWARD_LEVEL)
        self._canary, self._control = _Arm(), _Arm()
        self._failed: dict[float, list[int]] = {}
        """Sessions with a failed run by share: of the control, of the canary."""
        self._blocked: dict[float, list[int]] = {}

    def add(self, one: SettledSession) -> None:
        """Count a session when it settled, or when its first reward came."""
        (self._canary if one.canary else self._control).add(one)
        if one.was == "new" and one.failed:
            self._failed.setdefault(one.share, [0, 0])[one.canary] += 1
        if one.was == "new" and one.blocked and one.first:
            self._blocked.setdefault(one.share, [0, 0])[one.canary] += 1
        if one.reward is not None:
            self._difference.add(one.reward, one.canary, one.share)

    def figures(self, since: int, violations: int) -> RampFigures:
        """Return the figures; `since` is the position on the bus where the present step began."""
        canary, control = self._canary, self._control
        return RampFigures(
            counts=RewardCounts(
                rewarded=ArmPair(len(canary.rewarded), len(control.rewarded)),
                fresh=ArmPair(_after(canary.rewarded, since), _after(control.rewarded, since)),
                unrewarded=ArmPair(canary.unrewarded, control.unrewarded),
                too_late=ArmPair(canary.too_late, control.too_late),
            ),
            difference=self._difference.estimate,
            low=self._difference.low,
            high=self._difference.high,
            error_rate=ArmPair(
                _share(canary.failed, canary.settled), _share(control.failed, control.settled)
            ),
            error_evidence=rate_evidence(len(canary.failed), len(canary.settled), ERRORS),
            error_odds=_odds(self._failed),
            step_evidence=ArmPair(canary.step_evidence(since), control.step_evidence(since)),
            recent_rate=ArmPair(canary.recent_rate, control.recent_rate),
            blocked=ArmPair(canary.blocked, control.blocked),
            blocked_odds=_odds(self._blocked),
            violations=violations,
            timed=ArmPair(len(canary.seconds), len(control.seconds)),
            p95_s=ArmPair(canary.p95_s, control.p95_s),
        )


def _after(sequences: list[int], since: int) -> int:
    return len(sequences) - bisect_right(sequences, since)


def _share(some: list[int], of: list[int]) -> float:
    return len(some) / len(of) if of else 0.0


def _odds(hits: dict[float, list[int]]) -> float:
    return odds_evidence((canary, control, share) for share, (control, canary) in hits.items())
