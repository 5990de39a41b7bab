"""A version as its room describes it to those who deploy it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.deployment.states import DeployState
from pytest_tfgrpo.storage.event_store import TablePut

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
    human_eval_score: float | None = None
    """What people gave it, from 0 to 1."""
    job: str = NO_JOB
    model_info: Mapping[str, Json] = field(default_factory=dict)
    """The block of the same name in events."""
    row: TablePut | None = None
    """The row that says so, as it was read: it does not start once that was changed."""

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
        scored = {} if self.human_eval_score is None else {"human_eval_score": self.human_eval_score}
        return {
            "training_job_id": self.job,
            "model_info": {"model_id": self.version, **self.model_info},
            "validation_results": {
                "benchmark_passed": self.benchmark_passed,
                "safety_checks_passed": self.safety_checks_passed,
                "performance_regression": self.performance_regression,
                **scored,
            },
            "metadata": by_hand,
        }


class NextRamp(NamedTuple):
    """Whose ramp may begin."""

    candidate: DeployCandidate | None = None
    """None: nobody's."""
    live: DeployCandidate | None = None
    """The version that it is to replace."""
    skipped: Mapping[str, str] = MappingProxyType({})
    """Why approved versions cannot begin theirs, by name."""


FindNext: TypeAlias = Callable[[Serving], NextRamp]
"""Returns whose ramp may begin beside what is served; raises StoreError and BusError."""
