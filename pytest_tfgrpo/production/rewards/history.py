"""The recent past that scores are compared with: per component, and turns by domain (decisions 30, 31).

Sums are of whole numbers, so that they are exact: a history gives the same rewards whether it grew one by
one, in a batch, or was rebuilt from the rewards that were published.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.rewards.evidence import EFFICIENCY, EVALUATOR

TRAILING = 1000
"""Values that a history holds."""
MOST_COMPONENTS = 256
"""Components that have a history; who else evaluates may name as many as there are attempts."""
ENOUGH = 30
"""Values below which a score is not normalized."""
FLAT = 1e-6
"""Standard deviation below which a score is not normalized."""
CAP = 2.0
"""Largest z-score, either way."""
STEPS = 1 << 20
"""Of a score from 0 to 1: 1,000 squares times 1,000 stay below 2**61."""


class Moments(NamedTuple):
    """Number, sum and sum of squares of whole numbers."""

    n: int
    total: int
    squares: int

    def mean(self, steps: int = 1) -> float:
        """Return the mean of the values over `steps`; there must be one."""
        return self.total / (self.n * steps)

    def std(self, steps: int = 1) -> float:
        """Return the standard deviation (population) of the values over `steps`; there must be one."""
        return math.sqrt(self.n * self.squares - self.total * self.total) / (self.n * steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizedScore:
    """A score as a z-score among the recent ones; 0 where those are too few or too equal."""

    method: str
    """``z-score`` or ``none``."""
    n: int
    mean: float | None
    std: float | None
    normalized: float
    """From -2 to 2."""


class TrailingValues:
    """The last 1,000 whole numbers, each of a trajectory, and their exact moments."""

    __slots__ = ("_squares", "_total", "_values")

    def __init__(self) -> None:
        self._values: OrderedDict[str, int] = OrderedDict()
        self._total = 0
        self._squares = 0

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> list[tuple[str, int]]:
        """Return trajectory id and value, the oldest first."""
        return list(self._values.items())

    def moments(self, without: str = "") -> Moments:
        """Return the moments of all values but that of the trajectory `without`."""
        own = self._values.get(without)
        if own is None:
            return Moments(len(self._values), self._total, self._squares)
        return Moments(len(self._values) - 1, self._total - own, self._squares - own * own)

    def put(self, key: str, value: int) -> None:
        """Add a value as the newest, or change it where it stands."""
        self._count(self._values.get(key, 0), -1)
        self._values[key] = value
        self._count(value, 1)
        if len(self._values) > TRAILING:
            self._count(self._values.popitem(last=False)[1], -1)

    def remove(self, key: str) -> None:
        """Take the value of a trajectory out, if it is there."""
        self._count(self._values.pop(key, 0), -1)

    def _count(self, value: int, sign: int) -> None:
        self._total += sign * value
        self._squares += sign * value * value


def in_steps(score: float) -> int:
    """Return a score from 0 to 1 as a whole number of steps."""
    return math.floor(score * STEPS + 0.5)


def efficiency(turns: int, known: Moments) -> float:
    """Return how few turns a run took among the known ones of its domain: (z + 2) / 4, z capped at 2.

    It is .5 with fewer than 2 known runs, or where all took the same (decision 31).
    """
    if known.n < 2 or not (std := known.std()):
        return 0.5
    return (min(CAP, max(-CAP, (known.mean() - turns) / std)) + 2.0) / 4.0


def normalize(score: float, known: Moments) -> NormalizedScore:
    """Return a score as a z-score among the `known` ones, in steps, clipped to 2 (decision 30)."""
    if not known.n:
        return NormalizedScore(method="none", n=0, mean=None, std=None, normalized=0.0)
    mean, std = known.mean(STEPS), known.std(STEPS)
    if known.n < ENOUGH or std < FLAT:
        return NormalizedScore(method="none", n=known.n, mean=mean, std=std, normalized=0.0)
    z = min(CAP, max(-CAP, (score - mean) / std))
    return NormalizedScore(method="z-score", n=known.n, mean=mean, std=std, normalized=z)


_NONE = TrailingValues()


class RewardHistory:
    """The recent scores of each component, and the turns of each domain.

    A run that safety blocked does not join: it was cut short.
    """

    def __init__(self) -> None:
        self.components: dict[str, TrailingValues] = {}
        self.turns: dict[str, TrailingValues] = {}

    def scores(self, component: str) -> TrailingValues:
        """Return the recent scores of a component, in steps, which may join."""
        return self.components.setdefault(component, TrailingValues())

    def known_scores(self, component: str) -> TrailingValues:
        """Return the recent scores of a component, in steps, to be read."""
        return self.components.get(component, _NONE)

    def turns_of(self, domain: str) -> TrailingValues:
        """Return the recent numbers of turns of a domain."""
        return self.turns.setdefault(domain, TrailingValues())

    def join(self, reward: Mapping[str, Json]) -> None:
        """Add a reward that was computed here; a later revision takes the place of those before.

        What left the history does not come back: of a revision only the components in ``metadata.joined``
        are added. Rewards of others are passed over. Beyond `MOST_COMPONENTS`, the component goes that was
        not scored for the longest time.
        """
        metadata = reward.get("metadata", {})
        if metadata.get("evaluator") != EVALUATOR:
            return
        key, parts = reward["trajectory_id"], reward["reward_components"]
        blocked = metadata.get("hard_gate", False)
        first = metadata.get("revision", 1) == 1
        fresh = parts.keys() if first else set(metadata.get("joined", ()))
        for name, part in parts.items():
            values = self.components.pop(name, None) or TrailingValues()
            self.components[name] = values  # the newest
            if not blocked and name != EFFICIENCY and (key in values or name in fresh):
                values.put(key, in_steps(part["score"]))
        for name, values in self.components.items():
            if blocked or name not in parts:
                values.remove(key)
        while len(self.components) > MOST_COMPONENTS:
            del self.components[next(iter(self.components))]
        if "turns" in metadata and "domain" in metadata:
            self._join_turns(key, metadata, first or EFFICIENCY in fresh, blocked)

    def _join_turns(self, key: str, metadata: Mapping[str, Json], fresh: bool, blocked: bool) -> None:
        own = self.turns_of(metadata["domain"])
        fresh = fresh or any(key in values for values in self.turns.values())
        for values in self.turns.values():
            if blocked or values is not own:
                values.remove(key)
        if not blocked and fresh:
            own.put(key, metadata["turns"])

    def dump(self) -> dict[str, Json]:
        """Return all values as JSON."""
        return {
            "components": {name: values.items() for name, values in self.components.items()},
            "turns": {domain: values.items() for domain, values in self.turns.items()},
        }

    def restore(self, dumped: Mapping[str, Json]) -> None:
        """Add the values that `dump` returned."""
        for part, place in (("components", self.scores), ("turns", self.turns_of)):
            for name, values in dumped[part].items():
                for key, value in values:
                    place(name).put(key, value)

    def rebuild(self, rewards: Iterable[Mapping[str, Json]]) -> None:
        """Join the payloads of published rewards, in the order of their publication."""
        for reward in rewards:
            self.join(reward)
