"""Rewards of trajectories: the source's components and weights, under decisions 1, 2 and 29 to 32."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.rewards.evidence import (
    CODE_QUALITY,
    EFFICIENCY,
    EVALUATOR,
    NEUTRAL,
    TASK_COMPLETION,
    USER_FEEDBACK,
    RewardEvidence,
)
from pytest_tfgrpo.production.rewards.history import (
    Moments,
    NormalizedScore,
    RewardHistory,
    efficiency,
    normalize,
)

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {TASK_COMPLETION: 0.40, EFFICIENCY: 0.20, CODE_QUALITY: 0.15, USER_FEEDBACK: 0.25}
)
"""Of the components that are computed here, in the order in which they are summed."""


class Unrewarded(StrEnum):
    """Why a trajectory has no reward."""

    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    """Neither status, nor code result, nor feedback is known (decision 31)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardComponent:
    """One component of a reward."""

    score: float
    """From 0 to 1."""
    weight: float
    source: str
    reasoning: str
    normalized: NormalizedScore
    known: bool = True
    """False: it has its neutral value, since nothing is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryReward:
    """The reward of a trajectory, as of one revision."""

    evidence: RewardEvidence
    components: Mapping[str, RewardComponent]
    total: float
    """Weighted mean of the components that are present; 0 where blocked."""
    normalized_total: float
    """Weighted sum of the normalized components, from -2 to 2."""
    revision: int
    """From 1."""
    joined: tuple[str, ...]
    """Components that the revision before did not have."""

    def payload(self, at: str) -> dict[str, Json]:
        """Return the payload of ``agent.rl.reward.v1``; `at` is its timestamp."""
        known = self.evidence
        parts = {
            name: {"score": part.score, "weight": part.weight, "source": part.source}
            | ({"reasoning": part.reasoning} if part.reasoning else {})
            for name, part in self.components.items()
        }
        return {
            "reward_id": derived_id("reward", known.trajectory_id, str(self.revision)),
            "trajectory_id": known.trajectory_id,
            "session_id": known.session_id,
            "timestamp": at,
            "reward_components": parts,
            "total_reward": self.total,
            "reward_type": "dense",
            "normalization": self._normalization(),
            "metadata": self._metadata(),
        }

    def _normalization(self) -> dict[str, Json]:
        parts = {
            name: {"method": z.method, "n": z.n, "mean": z.mean, "std": z.std, "normalized": z.normalized}
            for name, z in ((name, part.normalized) for name, part in self.components.items())
        }
        used = any(part.normalized.method != "none" for part in self.components.values())
        return {
            "method": "z-score" if used else "none",
            "components": parts,
            "normalized_total": self.normalized_total,
            "normalized_unit": (self.normalized_total + 2.0) / 4.0,
        }

    def _metadata(self) -> dict[str, Json]:
        known = self.evidence
        people = {part.source for part in self.components.values()} & {"human", "judge"}
        found: dict[str, Json] = {
            "evaluator": EVALUATOR,
            "evaluation_method": "hybrid" if people else "automated",
            "confidence": self._confidence(),
            "revision": self.revision,
            "domain": known.domain,
            "turns": known.turns,
            **known.marks,
        }
        if self.revision > 1:
            found["joined"] = list(self.joined)
        if known.blocked:
            found["hard_gate"] = True
        if known.problems:
            found["problems"] = dict(known.problems)
        return found

    def _confidence(self) -> float:
        """Return the share of the weights, absent components included, that rests on something known."""
        parts = self.components
        absent = sum(weight for name, weight in WEIGHTS.items() if name not in parts)
        known = sum(part.weight for part in parts.values() if part.known)
        return min(1.0, known / (absent + sum(part.weight for part in parts.values())))

    def differs(self, previous: Mapping[str, Json]) -> bool:
        """Return whether the reward says something else than the payload of the revision before.

        Times, reasons, and what the scores are compared with do not count.
        """
        before = {
            name: (part["score"], part["weight"], part["source"])
            for name, part in previous["reward_components"].items()
        }
        now = {name: (part.score, part.weight, part.source) for name, part in self.components.items()}
        blocked = previous.get("metadata", {}).get("hard_gate", False)
        return before != now or blocked != self.evidence.blocked


def reward(
    evidence: RewardEvidence,
    history: RewardHistory,
    weights: Mapping[str, float] = WEIGHTS,
    previous: Mapping[str, Json] | None = None,
) -> TrajectoryReward | Unrewarded:
    """Return the reward that the evidence amounts to, compared with a history that it has not joined.

    `weights` name every component that counts, but for those that only other evaluators know. With the
    payload of the revision before, the reward is the next one; its efficiency stays as it was.
    """
    if not is_sufficient(evidence, weights):
        return Unrewarded.INSUFFICIENT_EVIDENCE
    parts = _components(evidence, history, weights, previous)
    if not parts:
        return Unrewarded.INSUFFICIENT_EVIDENCE
    whole = spread = weighted = 0.0
    for part in parts.values():
        weighted += part.weight * part.score
        spread += part.weight * part.normalized.normalized
        whole += part.weight
    before = {} if previous is None else previous["reward_components"]
    return TrajectoryReward(
        evidence=evidence,
        components=parts,
        total=0.0 if evidence.blocked else weighted / whole,
        normalized_total=-2.0 if evidence.blocked else spread / max(1.0, whole),
        revision=1 if previous is None else previous["metadata"]["revision"] + 1,
        joined=tuple(name for name in parts if name not in before),
    )


def is_sufficient(evidence: RewardEvidence, weights: Mapping[str, float]) -> bool:
    """Return whether something is known that counts; a component without a weight does not (decision 31)."""
    return evidence.blocked or any(
        claim.evidence and bool(weights.get(name, claim.weight)) for name, claim in evidence.claims.items()
    )


def _components(
    evidence: RewardEvidence,
    history: RewardHistory,
    weights: Mapping[str, float],
    previous: Mapping[str, Json] | None,
) -> dict[str, RewardComponent]:
    found = {}
    claims = evidence.claims
    names = [*WEIGHTS, *sorted((weights.keys() | claims.keys()) - WEIGHTS.keys())]
    for name in names:
        claim = claims.get(name)
        weight = weights.get(name, claim.weight if claim is not None else None)
        if not weight:
            continue
        if name == EFFICIENCY:
            found[name] = _efficiency(evidence, history, weight, previous)
        elif claim is not None or name == USER_FEEDBACK:
            score = NEUTRAL if claim is None else claim.score
            found[name] = RewardComponent(
                score=score,
                weight=weight,
                source="none" if claim is None else claim.source,
                reasoning="no feedback" if claim is None else claim.reasoning,
                normalized=normalize(score, history.known_scores(name).moments(evidence.trajectory_id)),
                known=claim is not None,
            )
    return found


def _efficiency(
    evidence: RewardEvidence, history: RewardHistory, weight: float, previous: Mapping[str, Json] | None
) -> RewardComponent:
    """Return the component that is a z-score by itself; a later revision keeps that of the first one."""
    claim = evidence.claims.get(EFFICIENCY)
    if claim is None and (kept := _kept(evidence, previous, weight)) is not None:
        return kept
    known = history.turns_of(evidence.domain).moments(evidence.trajectory_id)
    if claim is None:
        score, source, reasoning = efficiency(evidence.turns, known), "automated", _turns(evidence, known)
    else:
        score, source, reasoning = claim.score, claim.source, claim.reasoning
    mean, std = (known.mean(), known.std()) if known.n else (None, None)
    normalized = NormalizedScore(
        method="z-score" if known.n > 1 and std else "none",
        n=known.n,
        mean=mean,
        std=std,
        normalized=4.0 * score - 2.0,
    )
    return RewardComponent(
        score=score,
        weight=weight,
        source=source,
        reasoning=reasoning,
        normalized=normalized,
        known=known.n > 1 or claim is not None,
    )


def _kept(
    evidence: RewardEvidence, previous: Mapping[str, Json] | None, weight: float
) -> RewardComponent | None:
    if previous is None:
        return None
    metadata = previous["metadata"]
    part = previous["reward_components"].get(EFFICIENCY)
    same = (metadata.get("turns"), metadata.get("domain")) == (evidence.turns, evidence.domain)
    if not same or part is None or part["source"] != "automated":
        return None
    normalized = NormalizedScore(**previous["normalization"]["components"][EFFICIENCY])
    return RewardComponent(
        score=part["score"],
        weight=weight,
        source=part["source"],
        reasoning=part.get("reasoning", ""),
        normalized=normalized,
        known=normalized.n > 1,
    )


def _turns(evidence: RewardEvidence, known: Moments) -> str:
    if known.n < 2:
        return f"{evidence.turns} turns; fewer than 2 runs to compare with"
    return f"{evidence.turns} turns, mean {known.mean():.3g} of {known.n} runs in {evidence.domain}"
