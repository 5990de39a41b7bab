"""Where a version stands, as a row of the table ``state``."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE
from pytest_tfgrpo.production.training.versions.verdict import VersionVerdict

MET = ("canary", "held", "live")
"""States of a version that users meet."""
VersionState: TypeAlias = Literal["validated", "rejected", "needs_approval", "approved", "removed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRow:
    """Where a version stands."""

    name: str
    job: str
    state: VersionState
    by: str = ""
    """Who approved or rejected it; empty where its validation did."""
    reason: str = ""
    at: str = ""
    """Since when, ISO 8601 in UTC."""
    score: float | None = None
    """Mean on the eval split; None where it was not compared."""
    pinned: bool = False
    """Whether its files stay, however old they are."""
    verdict: VersionVerdict | None = field(default=None, metadata=SPARSE)

    def shown(self, served: str | None) -> str:
        """Return its state beside that of its deployment, if it has one: a rejection beats one that ended."""
        return self.state if served is None or (self.state == "rejected" and served not in MET) else served
