"""Named scores: what a rollout got under a name of its own, and the scale that such a figure is on."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE

Better: TypeAlias = Literal["higher", "lower"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricScale:
    """What the figures of a metric are, and which of them are good; they lie in [0, `most`]."""

    unit: str = ""
    """Empty: a share."""
    better: Better = "higher"
    most: float = 1.0

    def share(self, value: float) -> float:
        """Return a figure as share of the best one, in [0, 1]."""
        part = min(max(value / self.most, 0.0), 1.0)
        return part if self.better == "higher" else 1.0 - part

    @property
    def words(self) -> str:
        """What the share 1 is, for a reader."""
        shares = f"shares of {self.most:g}" + (f" {self.unit}" if self.unit else "")
        return f"{shares} saved, as lower is better" if self.better == "lower" else shares

    def figure(self, share: float) -> float:
        """Return what `share` made a share of."""
        return self.most * (share if self.better == "higher" else 1.0 - share)


SHARE = MetricScale()
"""The scale of checks, judges and rewarders."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedScore:
    """One named figure of a rollout, as a marked test function reported it."""

    name: str
    value: float
    """In [0, `scale.most`]."""
    why: str = ""
    """Its evidence; without secrets once it is on file."""
    scale: MetricScale = field(default=SHARE, metadata=SPARSE)
