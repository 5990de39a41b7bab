"""A version as its room describes it to those who deploy it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.deployment.states import DeployState

NO_JOB = "00000000-0000-0000-0000-000000000000"
"""Training job of a version that was made by hand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeployCandidate:
    """A version that may be deployed."""

    version: str
    approved_by: str = ""
    """The person who approved it; empty where nobody did."""
    validated: bool = False
    """Whether its validation decided, for it."""
    benchmark_passed: bool = False
    safety_checks_passed: bool = False
    performance_regression: bool = False
    improvement: float | None = None
    """Paired difference from the version that was live; None where it was not compared."""
    improvement_low: float | None = None
    """Lower end of its 95 % interval."""
    job: str = NO_JOB
    model_info: Mapping[str, Json] = field(default_factory=dict)
    """The block of the same name in events."""

    @property
    def deployable(self) -> bool:
        """Whether it may be deployed without a person's override (decision 35)."""
        return self.benchmark_passed and self.safety_checks_passed and not self.performance_regression

    @property
    def start(self) -> DeployState:
        """Where it stands as long as no user has met it."""
        return "validated" if self.deployable else "rejected"

    def payload(self) -> dict[str, Json]:
        """Return the parts of its events that do not change."""
        by_hand = {"made_by_hand": True} if self.job == NO_JOB else {}
        return {
            "training_job_id": self.job,
            "model_info": {"model_id": self.version, **self.model_info},
            "validation_results": {
                "benchmark_passed": self.benchmark_passed,
                "safety_checks_passed": self.safety_checks_passed,
                "performance_regression": self.performance_regression,
            },
            "metadata": by_hand,
        }


NextCandidate: TypeAlias = Callable[[Serving], tuple[DeployCandidate, DeployCandidate] | None]
"""Returns the version that may begin a ramp, and the live one; raises StoreError and BusError."""
