"""The judgement of a rollout: what its checker and the judge found, in a run as from its journal."""

from __future__ import annotations

from dataclasses import replace

from pytest_tfgrpo.core.records import CheckerResult, CheckResult, Failure, JudgeResult, Rollout
from pytest_tfgrpo.privacy.redact import redact


def as_error(rollout: Rollout, code: str, message: str) -> Rollout:
    """Return the rollout as an error that is not the agent's fault: it is counted, never scored."""
    return replace(rollout, status="error", checks=(), failure=Failure(code=code, message=redact(message)))


def judged(
    rollout: Rollout,
    *,
    checker_result: CheckerResult | None = None,
    opinion: JudgeResult | None = None,
    decisive: bool = False,
) -> Rollout:
    """Return the rollout with what was found of it; `decisive` says that its score is the judge's.

    It is an error where its checker broke, or where the judge decides and came to no score.
    """
    if checker_result is not None and checker_result.outcome == "error":
        return as_error(rollout, "checker", checker_result.reason)
    if checker_result is not None and checker_result.outcome == "score":
        credit, reason = checker_result.score, checker_result.reason
        result = CheckResult(kind="test", weight=1.0, credit=credit, reason=reason)
        rollout = replace(rollout, checks=(result,), scores=checker_result.scores)
    if opinion is None:
        return rollout
    rollout = replace(rollout, opinion=opinion)
    return as_error(rollout, "judge", opinion.reason) if decisive and opinion.score is None else rollout
