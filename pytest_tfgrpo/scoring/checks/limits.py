"""The check on what an attempt took: steps, turns, tokens, cost, time."""

from __future__ import annotations

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.records import CheckResult, Trajectory
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.scoring.checks.protocol import (
    CheckContext,
    CheckKind,
    Undecided,
    builtin_params,
    verdict,
)


def _limits(check: Check, context: CheckContext) -> CheckResult:
    steps = Trajectory(answer="", frames=context.frames)
    said = sum(frame.kind == USER for frame in steps.frames)
    calls = sum(frame.kind == "model" for frame in steps.frames)
    taken = {
        "steps": len(steps.frames) - said,
        "turns": said or calls or None,  # no agent answers without one
        "tokens": steps.tokens or None,  # 0 stands for unknown
        "cost_usd": steps.cost_usd,
        "latency_ms": context.latency_ms,
    }
    unknown = [name for name in check.params if taken[name] is None]
    if unknown:
        raise Undecided(f"{unknown[0]} is unknown: the agent does not report it; report it, or set no limit")
    over = [
        f"{name} {value:g} of at most {limit:g}"
        for name, limit in check.params.items()
        if (value := taken[name]) is not None and value > limit
    ]
    return verdict(check, f"took too much: {', '.join(over)}" if over else None)


LIMITS = CheckKind(name="limits", params=builtin_params("limits"), evaluate=_limits, blocking=False)
