"""What a run was worth: strategies of reward inference (decision 28)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias

from pytest_tfgrpo.actors.modules import import_module
from pytest_tfgrpo.core.errors import ActorError, RewarderError, SettingError, describe
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.production.live.records import RewardBreakdown, RunTrace

LEAST = -0.75
"""Composite of an unblocked run at the least; -1 is that of a blocked one alone."""
ERRORS_COUNTED = 2
FAILURE = "failure"
"""Component of a run that counts as failed: what its reward is beyond the other components."""


class RewardInference(Protocol):
    """A strategy; equal traces get equal breakdowns."""

    name: str

    def infer(self, trace: RunTrace) -> RewardBreakdown | None:
        """Return the reward of a run; None where it needs a score that is not known.

        Raises ValueError for a trace that no run has, and RewarderError where a function of yours fails: the
        run has no reward then, and the guard counts a failure.
        """
        ...


class TraceReward:
    """Reward from counts alone; version 2 gives efficiency only where there is a reply.

    Without that a fast empty run gains .5 by its efficiency, and may beat one that worked.
    """

    def __init__(self, version: int) -> None:
        """Take version 1 or 2."""
        self.name = f"trace_v{version}"
        self._needs_reply = version > 1

    def infer(self, trace: RunTrace) -> RewardBreakdown:
        """Return the reward of a run."""
        _check(trace)
        replied = trace.reply_chars > 0
        counts = replied or not self._needs_reply
        components = {
            "completion": 0.5 if replied else 0.0,
            "session_completion": 0.0 if trace.completed else -0.25,
            "reliability": -0.25 * min(trace.tool_errors, ERRORS_COUNTED),
            "efficiency": _efficiency(trace.turns) if counts else 0.0,
            "token_efficiency": _token_efficiency(trace),
            "safety": -1.0 if trace.blocked else 0.0,
        }
        confidence = 0.5 + 0.25 * replied + 0.25 * (trace.turns > 0) - 0.25 * (not trace.completed)
        return _breakdown(self.name, trace, components, min(max(confidence, 0.0), 1.0))


class OutcomeReward:
    """Reward from the application's score alone: 1.75 score - .75."""

    name = "outcome_v1"

    def infer(self, trace: RunTrace) -> RewardBreakdown | None:
        """Return the reward of a run; None where it has no score and was not blocked."""
        _check(trace)
        if trace.score is None:
            return _breakdown(self.name, trace, {"safety": -1.0}, 1.0) if trace.blocked else None
        components = {"score": _of_score(trace.score), "safety": -1.0 if trace.blocked else 0.0}
        return _breakdown(self.name, trace, components, 1.0)


class FailureReward:
    """Reward of a strategy, but for a run that failed: that of its score, the worst where it has none.

    Otherwise an arm that fails more often would win where only runs that end well are scored.
    """

    def __init__(self, strategy: RewardInference) -> None:
        """Take the strategy for runs that came to their end."""
        self.name, self._strategy = strategy.name, strategy

    def infer(self, trace: RunTrace) -> RewardBreakdown | None:
        """Return the reward of a run; None where the strategy has none for one that came to its end."""
        if trace.completed:
            return self._strategy.infer(trace)
        _check(trace)
        if isinstance(self._strategy, TraceReward):
            parts = {**self._strategy.infer(trace).components}
        else:
            parts = {"safety": -1.0 if trace.blocked else 0.0}
        worth = _of_score(trace.score or 0.0)
        parts[FAILURE] = worth - math.fsum(value for name, value in parts.items() if name != "safety")
        found = _breakdown(self.name, trace, parts, 1.0)
        return found if trace.blocked else replace(found, composite=worth)


Found: TypeAlias = float | Mapping[str, float] | None
"""What a function of yours returns: a reward in [-.75, 1], its parts by name, or None."""


class ModuleReward:
    """Reward from a function of the application's, which sees the whole trace, cost and latency too."""

    def __init__(self, name: str, function: Callable[[RunTrace], Found]) -> None:
        """Take ``python:module:callable`` and what it names."""
        self.name, self._function = name, function

    def infer(self, trace: RunTrace) -> RewardBreakdown | None:
        """Return the reward of a run; None where the function returns none."""
        _check(trace)
        try:
            found = self._function(trace)
        except Exception as error:
            raise RewarderError(f"{self.name!r} failed: {describe(error)}") from error
        if found is None and not trace.blocked:
            return None
        parts = found if isinstance(found, Mapping) else {} if found is None else {"reward": found}
        components = {str(name): self._number(value) for name, value in parts.items()}
        total = math.fsum(components.values())
        if not LEAST - 1e-9 <= total <= 1 + 1e-9:
            raise RewarderError(f"{self.name!r} returned {total!r}; a reward lies in [{LEAST}, 1]")
        return _breakdown(self.name, trace, {**components, "safety": -1.0 if trace.blocked else 0.0}, 1.0)

    def _number(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise RewarderError(
                f"{self.name!r} returned {short(value)}; return a number, parts by name, or None"
            )
        return float(value)


BUILT_IN: Mapping[str, Callable[[], RewardInference]] = {
    "trace_v1": lambda: TraceReward(1),
    "trace_v2": lambda: TraceReward(2),
    "outcome_v1": OutcomeReward,
}


def open_inference(spec: str, root: Path | None = None) -> RewardInference:
    """Return the strategy that a spec names; raises SettingError for one that there is not.

    ``python:module:callable`` is looked for in `root` first, then on the path.
    """
    if spec in BUILT_IN:
        return BUILT_IN[spec]()
    kind, _, rest = spec.partition(":")
    module, _, names = rest.partition(":")
    if kind != "python" or not module or not names:
        known = [*BUILT_IN, "python:<module>:<callable>"]
        raise SettingError(f"no reward inference {spec!r}; use {', '.join(known)}{nearest(spec, known)}")

    try:
        found: object = import_module(module, root or Path.cwd(), spec)
        for name in names.split("."):
            found = getattr(found, name)
    except (ActorError, AttributeError) as error:
        raise SettingError(f"the reward inference {spec!r} cannot be used: {error}") from error
    if not callable(found):
        raise SettingError(f"the reward inference {spec!r} is {found!r}, which is no function of a trace")
    return ModuleReward(spec, found)


def _breakdown(
    strategy: str, trace: RunTrace, components: Mapping[str, float], confidence: float
) -> RewardBreakdown:
    total = -1.0 if trace.blocked else min(max(math.fsum(components.values()), -1.0), 1.0)
    return RewardBreakdown(
        strategy=strategy,
        composite=total,
        components=components,
        confidence=confidence,
        hard_gate=trace.blocked,
    )


def _of_score(score: float) -> float:
    return 1.75 * score + LEAST


def _efficiency(turns: int) -> float:
    return 0.5 if turns <= 2 else 0.25 if turns <= 4 else 0.0


def _token_efficiency(trace: RunTrace) -> float:
    if not trace.reply_chars or not trace.prompt_chars:
        return 0.0
    return 0.25 - 0.25 * (min(max(trace.reply_chars / trace.prompt_chars, 1.0), 3.0) - 1.0)


def _check(trace: RunTrace) -> None:
    for name in ("prompt_chars", "reply_chars", "turns", "tool_errors"):
        if getattr(trace, name) < 0:
            raise ValueError(f"{name} is {getattr(trace, name)!r}; a run has none below 0")
    if trace.score is not None and not 0 <= trace.score <= 1:
        raise ValueError(f"score is {trace.score!r}; it must be from 0 to 1")
