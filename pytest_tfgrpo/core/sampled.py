"""Log-probabilities of the tokens that a model sampled, as its server gave them; null where it did not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LogProbKind: TypeAlias = Literal["raw", "processed", "unknown"]
"""``raw``: of the model's own distribution; ``processed``: after temperature and truncation, as sampled."""

MISSING = "missing_logprobs"
RAW = "raw_at_temperature"
UNKNOWN = "unknown_at_temperature"
GREEDY = "greedy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """The tokens of one model call, in the order in which they were sampled."""

    kind: LogProbKind
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms, at most 0, one per token; None: there are none, or none to rely on."""
    token_ids: tuple[int, ...] | None = None
    """As many as `logprobs`; None where the server gave none."""
    temperature: float | None = None
    """As it was asked for; None when the server's own applied."""
    reason: str = ""
    """Why `logprobs` is None, as a code; else empty."""


def why_no_ratio(sampled: Sampled | None) -> str:
    """Return why `sampled` cannot serve as old log-probabilities of a policy ratio; empty if it can.

    The ratio needs the probability with which a token was drawn. A raw value is that at temperature 1 alone,
    and the value of the chosen token cannot be rescaled, as that takes the values of all tokens.
    At temperature 0 nothing was drawn.
    """
    if sampled is None:
        return MISSING
    if sampled.logprobs is None:
        return sampled.reason or MISSING
    if sampled.temperature == 0:
        return GREEDY
    if sampled.kind == "processed" or sampled.temperature == 1:
        return ""
    return RAW if sampled.kind == "raw" else UNKNOWN
