"""What is known of a trajectory, from its own outcome, from feedback, and from other evaluators.

Explicit evidence beats implicit; of its kind the newest value of a component counts (decisions 31, 32).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json

TASK_COMPLETION = "task_completion"
EFFICIENCY = "efficiency"
CODE_QUALITY = "code_quality"
USER_FEEDBACK = "user_feedback"
EVALUATOR = "tfgrpo"
"""Who computed a reward, in its metadata; what others computed is evidence."""
NEUTRAL = 0.5
"""Score of a user who says nothing."""
CORRECTED = 0.2
"""Score of a user who had the answer corrected."""
LARGEST_FOREIGN_WEIGHT = 1.0
"""A component that only another evaluator knows weighs no more."""
STATUS_SCORES = MappingProxyType({"completed_successfully": 1.0, "partial_completion": 0.5, "failed": 0.0})
_IMPLICIT = MappingProxyType({"correction": CORRECTED, "abandonment": 0.0})
_THUMBS = MappingProxyType({"thumbs_up": 1.0, "thumbs_down": 0.0})


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardClaim:
    """What somebody, or something, says of one component."""

    component: str
    score: float
    """From 0 to 1."""
    explicit: bool
    """It was said for this purpose, not concluded from what happened."""
    at: str
    """ISO 8601 in UTC, to the millisecond."""
    source: str
    reasoning: str = ""
    key: str = ""
    """Id of the event; it decides between equal times."""
    weight: float | None = None
    """As another evaluator declares it."""
    evidence: bool = True
    """It is enough for a reward."""

    @property
    def rank(self) -> tuple[bool, str, str, str]:
        """The claim with the highest rank counts."""
        return self.explicit, self.at, self.component, self.key


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardEvidence:
    """What a reward is computed from."""

    trajectory_id: str
    session_id: str
    domain: str
    turns: int
    blocked: bool
    """Safety blocked the trajectory."""
    claims: Mapping[str, RewardClaim]
    """The claim that counts, by component; efficiency is claimed by other evaluators alone."""
    marks: Mapping[str, str]
    """What a report groups by: policy version, key of the task; only what is known."""
    problems: Mapping[str, str]
    """What went wrong, by the component that it keeps from counting."""


def gather(
    trajectory: Mapping[str, Json],
    feedback: Iterable[Mapping[str, Json]] = (),
    rewards: Iterable[Mapping[str, Json]] = (),
    further: Iterable[RewardClaim] = (),
    problems: Mapping[str, str] = MappingProxyType({}),
) -> RewardEvidence:
    """Return what is known of a trajectory from valid payloads: its own, feedback, others' rewards.

    `further` are claims of components that a project adds, and `problems` what went wrong with them.
    """
    claims: dict[str, RewardClaim] = {}
    for source in (_own(trajectory), further, _feedback(feedback), _rewards(rewards)):
        for claim in source:
            known = claims.get(claim.component)
            if known is None or claim.rank >= known.rank:
                claims[claim.component] = claim
    context, metadata = trajectory["task_context"], trajectory.get("metadata", {})
    marks = {"policy_version": metadata.get("policy_version"), "task_key": context.get("task_key")}
    return RewardEvidence(
        trajectory_id=trajectory["trajectory_id"],
        session_id=trajectory["session_id"],
        domain=context["domain"],
        turns=len(trajectory["turns"]),
        blocked=trajectory.get("outcome", {}).get("safety_blocked", False),
        claims=claims,
        marks={name: value for name, value in marks.items() if value},
        problems=problems,
    )


def _own(trajectory: Mapping[str, Json]) -> Iterator[RewardClaim]:
    outcome = trajectory.get("outcome")
    if not outcome:
        return
    at = _time(trajectory["end_timestamp"])
    if (score := task_score(outcome)) is not None:
        yield RewardClaim(
            component=TASK_COMPLETION,
            score=score,
            explicit=False,
            at=at,
            source="automated",
            reasoning=outcome["task_status"],
        )
    parts = code_parts(outcome)
    if parts:
        yield RewardClaim(
            component=CODE_QUALITY,
            score=sum(parts.values()) / len(parts),
            explicit=False,
            at=at,
            source="automated",
            reasoning=", ".join(f"{name} {score:.3g}" for name, score in parts.items()),
        )
    said = outcome.get("user_feedback")
    if said is not None:
        yield _human(USER_FEEDBACK, _said(said["type"], said), said["type"], at, explicit=True)
    elif outcome.get("correction_requested"):
        yield _human(USER_FEEDBACK, CORRECTED, "correction", at, explicit=False)
    elif outcome.get("task_abandoned"):
        yield _human(USER_FEEDBACK, 0.0, "abandonment", at, explicit=False)


def task_score(outcome: Mapping[str, Json]) -> float | None:
    """Return how far the task was completed; None where that is unknown."""
    score = STATUS_SCORES.get(outcome.get("task_status", "unknown"))
    if outcome.get("task_status") == "partial_completion":
        return 0.5 + 0.5 * float(outcome.get("completion", 0.0))
    return score


def code_parts(outcome: Mapping[str, Json]) -> dict[str, float]:
    """Return the scores that code quality is the mean of; empty without code, or without any result."""
    parts: dict[str, float] = {}
    if outcome.get("contains_code"):
        if "linter" in outcome:
            parts["linter"] = outcome["linter"]["score"] / 10.0
        if "tests" in outcome and outcome["tests"]["total"]:
            parts["tests"] = outcome["tests"]["passed"] / outcome["tests"]["total"]
        if "security" in outcome:
            parts["security"] = max(0.0, 1.0 - 0.5 * outcome["security"]["critical_issues"])
    return parts


def _feedback(events: Iterable[Mapping[str, Json]]) -> Iterator[RewardClaim]:
    for event in events:
        kind, at, key = event["type"], _time(event["timestamp"]), event["feedback_id"]
        source = event.get("source", "human")
        if kind == "score":
            yield _human(event["component"], float(event["score"]), kind, at, key=key, source=source)
        elif kind == "label":
            named = event.get("component", TASK_COMPLETION) == TASK_COMPLETION
            if named and event["text"] in STATUS_SCORES:
                score = STATUS_SCORES[event["text"]]
                yield _human(TASK_COMPLETION, score, event["text"], at, key=key, source=source)
        else:
            explicit = kind not in _IMPLICIT
            score = _said(kind, event)
            yield _human(USER_FEEDBACK, score, kind, at, key=key, source=source, explicit=explicit)


def _rewards(events: Iterable[Mapping[str, Json]]) -> Iterator[RewardClaim]:
    for event in events:
        if event.get("metadata", {}).get("evaluator") == EVALUATOR:
            continue
        at = _time(event["timestamp"])
        for name, part in event["reward_components"].items():
            yield RewardClaim(
                component=name,
                score=float(part["score"]),
                explicit=True,
                at=at,
                source=part["source"],
                reasoning=part.get("reasoning", ""),
                key=event["reward_id"],
                weight=min(float(part["weight"]), LARGEST_FOREIGN_WEIGHT),
            )


def _said(kind: str, event: Mapping[str, Json]) -> float:
    if kind == "rating":
        return float(event["rating"]) / 5.0
    return _THUMBS[kind] if kind in _THUMBS else _IMPLICIT[kind]


def _human(
    component: str,
    score: float,
    reasoning: str,
    at: str,
    *,
    explicit: bool = True,
    key: str = "",
    source: str = "human",
) -> RewardClaim:
    return RewardClaim(
        component=component,
        score=score,
        explicit=explicit,
        at=at,
        source=source,
        reasoning=reasoning,
        key=key,
    )


def _time(text: str) -> str:
    return utc_time(text) or text
