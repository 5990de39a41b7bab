"""What another policy would have earned in the runs there were, and what the selector brings over control.

A run counts by its first choice at a point; the rest of it stays as it was. Axis ``_N`` runs over such
choices in the order of their runs, ``_A`` over arms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.numerics.arrays import np
from pytest_tfgrpo.numerics.resampling import student_quantile
from pytest_tfgrpo.numerics.rl import offpolicy
from pytest_tfgrpo.production.live.records import ArmChoice, LiveRollout, LiveStatus
from pytest_tfgrpo.production.live.selection.rewards import FAILURE
from pytest_tfgrpo.production.live.selection.selector import CONTROL_SHARE, PointPolicy, SelectorState
from pytest_tfgrpo.production.live.states import HELD

if TYPE_CHECKING:
    from pytest_tfgrpo.numerics.rl.offpolicy import OffPolicyEstimate

WorthBy = Literal["reward", "score"]
"""The reward as q in [0, 1] (decision 1), or the application's score."""
TargetPolicy: TypeAlias = Callable[[str], Mapping[str, float]]
"""Probability of each arm in a category."""
NumberedPolicy: TypeAlias = Callable[[int], PointPolicy | None]
"""The policy of a point in a selector, over the arms that there are now; None: there is no such selector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyValue:
    """What a policy would have earned, by three estimators."""

    policy: str
    point: str
    quantity: WorthBy
    decisions: int
    left_out: Mapping[str, int]
    """Runs by reason; no_overlap: an arm that the policy takes could not be taken then."""
    ips: OffPolicyEstimate
    snips: OffPolicyEstimate
    dr: OffPolicyEstimate


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlDifference:
    """Mean of runs under the selector less that of the concurrent control runs."""

    quantity: WorthBy
    selected: int
    controls: int
    selected_mean: float | None
    control_mean: float | None
    missing: tuple[int, int] = (0, 0)
    """Runs of the selector and of control that were cancelled, or whose reward or score is not known."""
    difference: float | None = None
    """None with fewer than 2 runs of either; and so are its bounds."""
    low: float | None = None
    high: float | None = None

    @property
    def uneven(self) -> bool:
        """Whether the shares of runs that count differ between the two, with p < .01 (normal approximation),
        so that the difference may be one of which runs count."""
        known, missing = (self.selected, self.controls), self.missing
        both = [a + b for a, b in zip(known, missing, strict=True)]
        if not all(both):
            return False
        share = sum(missing) / sum(both)
        spread = math.sqrt(share * (1 - share) * (1 / both[0] + 1 / both[1]))
        return abs(missing[0] / both[0] - missing[1] / both[1]) > 2.576 * spread


def target_policy(spec: str, point: PointPolicy, numbered: NumberedPolicy) -> TargetPolicy:
    """Return the policy of a point that ``arm:NAME``, ``selector:N`` or ``uniform`` names.

    Selector 0 is the one before the first update. Raises SettingError for one that there is not.
    """
    kind, _, name = spec.partition(":")
    if spec == "uniform":
        return lambda _category: dict.fromkeys(point.arms, 1 / len(point.arms))
    if kind == "arm" and name in point.arms:
        return lambda _category: {arm: float(arm == name) for arm in point.arms}
    if kind == "arm":
        hint = nearest(name, point.arms)
        raise SettingError(f"no arm {name!r}; there are {', '.join(sorted(point.arms))}{hint}")
    if kind == "selector" and name.isdecimal():
        if (found := numbered(int(name)) if int(name) else point.untaught()) is None:
            raise SettingError(f"no selector {name} in the store; 'tfgrpo live status' shows the newest")
        return found.probabilities
    raise SettingError(f"no policy {spec!r}; use arm:NAME, selector:N or uniform")


def evaluate(
    rollouts: Iterable[LiveRollout],
    target: TargetPolicy,
    state: SelectorState,
    point: str,
    *,
    policy: str,
    quantity: WorthBy = "reward",
    numbered: NumberedPolicy | None = None,
) -> PolicyValue:
    """Return what a policy would have earned at `point`, whose arms are those of `state`; raises KeyError for
    an unknown point. `rollouts` come in their order.

    With `numbered` control runs count too: as a tenth of all runs takes the default arm, whichever they are,
    each run had that arm with probability .1 + .9 p, and another with .9 p. They are left out where they did
    not all take one arm, and where arms were other ones then.
    """
    arms = sorted(state.points[point].arms)
    left_out, rows = Counter[str](), []
    for rollout, value in _with_values(rollouts, quantity):
        found = _row(rollout, target, state.points[point], point, value, numbered)
        if isinstance(found, str):
            left_out[found] += 1
        else:
            rows.append(found)
    rows, apart = _with_control(rows)
    left_out.update({"control": apart} if apart else {})
    reward_N = np.array([row.value for row in rows])
    arm_N = np.array([arms.index(row.arm) for row in rows], dtype=np.intp)
    shape = (len(rows), len(arms))
    target_NA = np.array([[row.target.get(arm, 0.0) for arm in arms] for row in rows]).reshape(shape)
    logged_NA = np.array([[row.logged.get(arm, 0.0) for arm in arms] for row in rows]).reshape(shape)
    category_N = np.unique([row.category for row in rows], return_inverse=True)[1].astype(np.intp)
    every = np.arange(len(rows))
    of_arm = (reward_N, target_NA[every, arm_N], logged_NA[every, arm_N])
    return PolicyValue(
        policy=policy,
        point=point,
        quantity=quantity,
        decisions=len(rows),
        left_out=dict(sorted(left_out.items())),
        ips=offpolicy.ips(*of_arm),
        snips=offpolicy.snips(*of_arm),
        dr=offpolicy.dr(reward_N, category_N, arm_N, target_NA, logged_NA),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    category: str
    arm: str
    value: float
    target: Mapping[str, float]
    logged: Mapping[str, float]
    """Of the selector, also where the run was a control run."""
    control: bool


def _row(
    rollout: LiveRollout,
    target: TargetPolicy,
    policy: PointPolicy,
    point: str,
    value: float | None,
    numbered: NumberedPolicy | None,
) -> _Row | str:
    choice = next((one for one in rollout.choices if one.point == point), None)
    if rollout.status not in (LiveStatus.SUCCEEDED, LiveStatus.FAILED):
        return str(rollout.status)
    if rollout.control and numbered is None:
        return "control"
    if choice is None:
        return "no_choices"
    if value is None:
        return "no_outcome"
    if not 0 < choice.probabilities.get(choice.arm, 0.0) <= 1:
        return "missing_logprobs"
    arm = policy.arm_of(choice)
    if arm is None:
        return "unknown_arm"
    logged = _logged(choice, policy)
    if rollout.control and numbered is not None:
        drew = policy.untaught() if not choice.selector else numbered(choice.selector)
        if drew is None or {*choice.arms.values()} != {*policy.arms.values()}:
            return "control"
        logged = drew.probabilities(rollout.category)
    wanted = target(rollout.category)
    if any(p > 0 and not logged.get(name) for name, p in wanted.items()):
        return "no_overlap"
    return _Row(
        category=rollout.category,
        arm=arm,
        value=value,
        target=wanted,
        logged=logged,
        control=rollout.control,
    )


def _with_control(rows: list[_Row]) -> tuple[list[_Row], int]:
    """Return rows by the probability over runs of both kinds, and how many control runs had to be left
    out."""
    defaults = {row.arm for row in rows if row.control}
    if len(defaults) != 1:
        return [row for row in rows if not row.control], sum(row.control for row in rows)
    mixed = []
    for row in rows:
        logged = {
            arm: CONTROL_SHARE * (arm in defaults) + (1 - CONTROL_SHARE) * p for arm, p in row.logged.items()
        }
        mixed.append(replace(row, logged=logged))
    return mixed, 0


def _logged(choice: ArmChoice, policy: PointPolicy) -> dict[str, float]:
    """Return the logged probabilities by present names."""
    stamps = {stamp: arm for arm, stamp in policy.arms.items()}
    stamps |= {choice.arms[arm]: arm for arm in choice.arms if policy.arms.get(arm) == choice.arms[arm]}
    return {
        stamps[stamp]: choice.probabilities.get(arm, 0.0)
        for arm, stamp in choice.arms.items()
        if stamp in stamps
    }


def value_of(rollout: LiveRollout, quantity: WorthBy) -> float | None:
    """Return what a run earned, in [0, 1]; None where that is not known.

    A run without a score that was blocked, or counts as failed, has the score 0.
    """
    reward = rollout.reward
    if quantity == "reward":
        return None if reward is None else reward.q
    if rollout.trace is None or rollout.trace.score is not None:
        return None if rollout.trace is None else rollout.trace.score
    return 0.0 if reward is not None and (reward.hard_gate or FAILURE in reward.components) else None


def _with_values(
    rollouts: Iterable[LiveRollout], quantity: WorthBy
) -> list[tuple[LiveRollout, float | None]]:
    """Return runs with what they earned; nothing is known of scores where no run was given one."""
    runs = list(rollouts)
    known = quantity == "reward" or any(run.trace and run.trace.score is not None for run in runs)
    return [(run, value_of(run, quantity) if known else None) for run in runs]


def control_difference(rollouts: Iterable[LiveRollout], *, quantity: WorthBy = "reward") -> ControlDifference:
    """Return what the selector's choices bring over the default arms, with the interval of Welch 1947.

    Each side is given one run of 0 and one of 1 for the interval, as Agresti and Caffo 2000 do for shares:
    without them a side whose runs are all equal would seem to be known exactly.
    """
    sides: tuple[list[float], list[float]] = ([], [])
    missing = [0, 0]
    for rollout, value in _with_values(rollouts, quantity):
        if rollout.status is LiveStatus.RUNNING or rollout.reason == HELD or not rollout.choices:
            continue
        if value is None or rollout.status is LiveStatus.CANCELLED:
            missing[rollout.control] += 1
        else:
            sides[rollout.control].append(value)
    selected, control = (sum(side) / len(side) if side else None for side in sides)
    found = ControlDifference(
        quantity=quantity,
        selected=len(sides[0]),
        controls=len(sides[1]),
        selected_mean=selected,
        control_mean=control,
        missing=(missing[0], missing[1]),
    )
    if selected is None or control is None or min(map(len, sides)) < 2:
        return found
    low, high = _welch(*sides)
    return replace(found, difference=selected - control, low=low, high=high)


def _welch(selected: list[float], control: list[float]) -> tuple[float, float]:
    centre, parts = 0.0, []
    for sign, side in ((1, selected), (-1, control)):
        values = [*side, 0.0, 1.0]
        mean = sum(values) / len(values)
        centre += sign * mean
        square = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        parts.append((square / len(values), len(values) - 1))
    variance = sum(part for part, _ in parts)
    nu = variance**2 / sum(part**2 / n for part, n in parts)
    half = student_quantile(0.975, max(nu, 4.0)) * variance**0.5
    return max(centre - half, -1.0), min(centre + half, 1.0)
