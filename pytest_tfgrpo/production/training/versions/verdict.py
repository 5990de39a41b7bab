"""What a person says of a version: whether it is safe where nobody could judge that, and how good it is."""

from __future__ import annotations

from dataclasses import field, replace

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SHARES
from pytest_tfgrpo.production.training.versions.validation import Validation, ValidationOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionVerdict:
    """What people said of a version so far."""

    safe: bool | None = None
    """Whether what its safety suites left open is safe; None: nobody said."""
    human_eval_score: float | None = field(default=None, metadata=SHARES)
    """From 0 to 1."""
    said: tuple[str, ...] = ()
    """Who said what and why, in order."""


def add_verdict(
    before: VersionVerdict | None, *, safe: bool | None, score: float | None, by: str, reason: str
) -> VersionVerdict:
    """Return what people said, with what one says now; raises StoreError where that is nothing."""
    if safe is None and score is None:
        raise StoreError("nothing was said: give --safety passed, --safety failed or --human-eval-score")
    if score is not None and not 0.0 <= score <= 1.0:
        raise StoreError(f"a human evaluation is a number from 0 to 1, not {score:g}")
    told = [] if safe is None else [f"safety {'passed' if safe else 'failed'}"]
    told += [] if score is None else [f"human evaluation {score:g}"]
    known = before or VersionVerdict()
    return VersionVerdict(
        safe=known.safe if safe is None else safe,
        human_eval_score=known.human_eval_score if score is None else score,
        said=(*known.said, f"{', '.join(told)}, says {by}: {reason}"),
    )


def judged(found: Validation, verdict: VersionVerdict | None) -> Validation:
    """Return a validation with what people said beside it.

    Raises StoreError where a person calls safe what a suite found unsafe.
    """
    if verdict is None:
        return found
    if verdict.safe and not found.open_safety and not found.safety_checks_passed:
        why = "; ".join(found.reasons)
        raise StoreError(f"a suite failed, so that no verdict makes it pass: {why}; approve it to override")
    reasons = found.reasons
    if verdict.safe is not None:
        reasons = tuple(one for one in reasons if one not in found.open_safety)
    if verdict.safe is False:
        reasons = ("a person found it unsafe", *reasons)
    return replace(
        found,
        outcome=_outcome(found, verdict, reasons),
        reasons=reasons,
        safety_checks_passed=found.safety_checks_passed if verdict.safe is None else verdict.safe,
        open_safety=found.open_safety if verdict.safe is None else (),
        human_eval_score=verdict.human_eval_score,
    )


def _outcome(found: Validation, verdict: VersionVerdict, reasons: tuple[str, ...]) -> ValidationOutcome:
    if verdict.safe is False or found.outcome == "rejected":
        return "rejected"
    return "needs_approval" if reasons else "validated"
