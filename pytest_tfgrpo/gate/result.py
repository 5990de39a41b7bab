"""What a rule of the gate finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json

Outcome: TypeAlias = Literal["pass", "fail", "inconclusive", "skipped", "not_judged"]
Settled: TypeAlias = Literal["pass", "fail", "inconclusive"]
OPEN = ("inconclusive", "not_judged")
MIN_SCENARIOS = 10
MIN_SHARE = 0.8
"""Of the larger of both sets: fewer scenarios in common leave a comparison inconclusive (decision 21a)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleResult:
    """What one rule found."""

    name: str
    outcome: Outcome
    message: str
    """What was found, with figures, in one line."""
    advice: str = ""
    """What to do; empty when there is nothing to do."""
    figures: Mapping[str, Json] = field(default_factory=dict)
