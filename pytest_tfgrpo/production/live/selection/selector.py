"""The selector: for each point and category of task a softmax policy over arms, drawn from in plain Python.

A category's logits are those that a point's categories share plus its own, and each arm keeps a least
probability, as in `numerics.rl.softmax`, which learns them; nothing here needs numpy.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.production.live.records import ArmChoice
from pytest_tfgrpo.production.live.selection.critic import Critic
from pytest_tfgrpo.production.live.selection.evidence import ArmEvidence

FLOOR = 0.02
"""Least probability of an arm, less where there are more than 25: an arm that is never taken can never be
judged."""
MOST_CATEGORIES = 64
OTHER = "other"
"""Category of all that come after the first 64."""
CONTROL_SHARE = 0.1
"""Of all runs, those that take the default arms and no part in updates."""
KEPT_FOR = 64
"""Selectors for which the logits of an arm are kept that the process which learns does not have: another one
that shares the store may have it."""
SCHEMA = "tfgrpo.live-selector/1"

Points = Mapping[str, Mapping[str, str]]
"""Stamp of each arm, by point and name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AwayArm:
    """The logits of an arm that the process at hand does not have."""

    shared: float
    own: Mapping[str, float]
    """By category."""
    seen: int
    """Number of the newest selector that a process with this arm made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PointPolicy:
    """The logits of one point; every mapping of them has each arm."""

    arms: Mapping[str, str]
    """Stamp by name: an arm is its stamp, whatever it is called."""
    shared: Mapping[str, float]
    own: Mapping[str, Mapping[str, float]]
    """By category; one that is not here has the shared logits alone."""

    @property
    def floor(self) -> float:
        """Least probability of an arm."""
        return min(FLOOR, 0.5 / len(self.arms))

    def probabilities(self, category: str) -> dict[str, float]:
        """Return the probability of each arm, by name in sorted order."""
        if category not in self.own and len(self.own) >= MOST_CATEGORIES:
            category = OTHER
        own = self.own.get(category, {})
        logits = {arm: self.shared[arm] + own.get(arm, 0.0) for arm in sorted(self.arms)}
        highest = max(logits.values())
        raised = {arm: math.exp(logit - highest) for arm, logit in logits.items()}
        total, floor = sum(raised.values()), self.floor
        return {arm: (1 - len(raised) * floor) * one / total + floor for arm, one in raised.items()}

    def arm_of(self, choice: ArmChoice) -> str | None:
        """Return the present name of the arm that was chosen; None where it was removed or changed."""
        stamp = choice.arms.get(choice.arm)
        if stamp is None or self.arms.get(choice.arm) == stamp:
            return None if stamp is None else choice.arm
        return next((arm for arm, one in self.arms.items() if one == stamp), None)

    def untaught(self) -> PointPolicy:
        """Return the policy before the first update."""
        return PointPolicy(arms=self.arms, shared=dict.fromkeys(self.arms, 0.0), own={})

    def with_arms(self, arms: Mapping[str, str], away: Mapping[str, AwayArm] | None = None) -> PointPolicy:
        """Return the policy over `arms`; one that comes back, of `away` by stamp, has the logits that it had,
        and a new one starts at the mean logit."""
        by_stamp = {stamp: arm for arm, stamp in self.arms.items()}
        back = away or {}
        old = {
            arm: arm if self.arms.get(arm) == stamp else by_stamp.get(stamp) for arm, stamp in arms.items()
        }

        def moved(logits: Mapping[str, float], kept: Mapping[str, float]) -> dict[str, float]:
            mean = sum(logits.values()) / len(logits)
            return {
                arm: kept.get(arms[arm], mean) if was is None else logits[was] for arm, was in old.items()
            }

        shared = moved(self.shared, {stamp: one.shared for stamp, one in back.items()})
        own = {
            category: moved(logits, {s: one.own[category] for s, one in back.items() if category in one.own})
            for category, logits in self.own.items()
        }
        return PointPolicy(arms=dict(arms), shared=shared, own=own)


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectorState:
    """All that a selector has learned."""

    number: int = 0
    """0 before the first update."""
    categories: tuple[str, ...] = ()
    """Those that have logits of their own, in the order in which they came; at most 64, and `OTHER`."""
    points: Mapping[str, PointPolicy] = field(default_factory=dict)
    critic: Critic = field(default_factory=Critic)
    away: Mapping[str, Mapping[str, AwayArm]] = field(default_factory=dict)
    """Arms of other processes by point and stamp."""
    evidence: Mapping[str, ArmEvidence] = field(default_factory=dict)
    """By point."""
    _known: dict[tuple[str, str], tuple[dict[str, float], Mapping[str, str]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def category(self, name: str) -> str:
        """Return the category whose logits a run uses; empty for those that all share."""
        if name in self.categories:
            return name
        return OTHER if len(self.categories) >= MOST_CATEGORIES else ""

    def probabilities(self, point: str, category: str) -> Mapping[str, float]:
        """Return the probability of each arm of a point by name; raises KeyError for an unknown point."""
        return self._policy(point, category)[0]

    def draw(
        self, namespace: str, run: str, attempt: int, point: str, place: int, *, category: str
    ) -> ArmChoice:
        """Return the arm that a run takes, from its identity alone; raises KeyError for an unknown point."""
        found, arms = self._known.get((point, category)) or self._policy(point, category)
        left = share_of(f"choice {attempt} {place} {len(namespace)} {len(run)} {namespace}{run}{point}")
        arm = ""
        for arm, probability in found.items():  # noqa: B007 - the last one takes what rounding leaves
            left -= probability
            if left < 0:
                break
        return ArmChoice(
            point=point, place=place, arm=arm, arms=arms, probabilities=found, selector=self.number
        )

    def with_points(self, points: Points) -> SelectorState:
        """Return the selector for the points and arms that there are now; it keeps what others have."""
        found = {name: self._point(name, arms) for name, arms in points.items()}
        return replace(self, points=found, away=self._left(points), _known={})

    def with_categories(self, names: Iterable[str]) -> SelectorState:
        """Return the selector with logits for new categories, `OTHER` once there are 64."""
        categories = list(self.categories)
        for name in names:
            wanted = OTHER if len(categories) >= MOST_CATEGORIES else name
            if name not in categories and wanted not in categories:
                categories.append(wanted)
        return replace(self, categories=tuple(categories), _known={})

    def learned(
        self, points: Mapping[str, PointPolicy], critic: Critic, evidence: Mapping[str, ArmEvidence]
    ) -> SelectorState:
        """Return the next selector; what is known of arms that no process has is dropped."""
        stamps = {name: {*arms} for name, arms in self.away.items()}
        for name, policy in points.items():
            stamps[name] = {*policy.arms.values()} | stamps.get(name, set())
        kept = {name: one.of_arms(stamps[name]) for name, one in evidence.items() if name in stamps}
        return replace(self, number=self.number + 1, points=points, critic=critic, evidence=kept, _known={})

    def document(self) -> Json:
        """Return what the store keeps of it."""
        found: dict[str, object] = {
            "categories": self.categories,
            "points": self.points,
            "critic": self.critic,
        }
        found |= {"evidence": self.evidence} if self.evidence else {}
        found |= {"away": self.away} if self.away else {}
        return {"schema": SCHEMA, **to_wire(found)}

    def _policy(self, point: str, category: str) -> tuple[dict[str, float], Mapping[str, str]]:
        key = (point, self.category(category))
        found = self._known.get(key)
        if found is None:
            policy = self.points[point]
            found = self._known[key] = (policy.probabilities(key[1]), policy.arms)
        return found

    def _point(self, name: str, arms: Mapping[str, str]) -> PointPolicy:
        if not arms:
            raise ValueError(f"the point {name!r} has no arms; give it one at least")
        away = self.away.get(name, {})
        if (old := self.points.get(name)) is not None:
            return old if old.arms == arms else old.with_arms(arms, away)
        if back := {stamp: one for stamp, one in away.items() if stamp in arms.values()}:
            return _of_away(back).with_arms(arms)
        return PointPolicy(arms=dict(arms), shared={}, own={}).untaught()

    def _left(self, points: Points) -> dict[str, dict[str, AwayArm]]:
        """Return what is known of arms that are not in `points`, unless no process had them for long."""
        known = {name: dict(arms) for name, arms in self.away.items()}
        for name, policy in self.points.items():
            known[name] = known.get(name, {}) | {
                stamp: AwayArm(
                    shared=policy.shared[arm],
                    own={category: logits[arm] for category, logits in policy.own.items()},
                    seen=self.number,
                )
                for arm, stamp in policy.arms.items()
            }
        left = {
            name: {
                stamp: one
                for stamp, one in arms.items()
                if stamp not in points.get(name, {}).values() and one.seen >= self.number - KEPT_FOR
            }
            for name, arms in known.items()
        }
        return {name: arms for name, arms in left.items() if arms}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Document:
    schema: str
    categories: tuple[str, ...]
    points: Mapping[str, PointPolicy]
    critic: Critic
    away: Mapping[str, Mapping[str, AwayArm]] = field(default_factory=dict)
    evidence: Mapping[str, ArmEvidence] = field(default_factory=dict)


def _of_away(arms: Mapping[str, AwayArm]) -> PointPolicy:
    """Return a policy over arms that come back, by stamp, to a point that only others had."""
    categories = dict.fromkeys(category for one in arms.values() for category in one.own)
    return PointPolicy(
        arms={stamp: stamp for stamp in arms},
        shared={stamp: one.shared for stamp, one in arms.items()},
        own={
            category: {stamp: one.own.get(category, 0.0) for stamp, one in arms.items()}
            for category in categories
        },
    )


def open_selector(number: int, document: Json | None, points: Points) -> SelectorState:
    """Return the selector of a document, for the points and arms that there are now; None: one that knows
    nothing. Raises ValueError for a document of another kind."""
    if document is None:
        return SelectorState(number=number).with_points(points)
    found = from_wire(_Document, document)
    if found.schema != SCHEMA:
        raise ValueError(f"the selector's schema is {found.schema!r}; this version reads {SCHEMA!r}")
    state = SelectorState(
        number=number,
        categories=found.categories,
        points=found.points,
        critic=found.critic,
        away=found.away,
        evidence=found.evidence,
    )
    return state.with_points(points)


def is_control(namespace: str, run: str) -> bool:
    """Return whether a run takes the default arms, from its identity alone."""
    return share_of(f"control {len(namespace)} {namespace}{run}") < CONTROL_SHARE


def share_of(identity: str) -> float:
    """Return a number in [0, 1) that depends on `identity` alone (decision 8)."""
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) * 2.0**-53
