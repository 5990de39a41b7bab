"""What a dataset is to hold: the filter of a training request, sample and seed."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json

FILTER = (
    "min_reward",
    "max_trajectory_length",
    "date_range",
    "task_domains",
    "exclude_subordinate_profiles",
)
"""Keys of a request's filter; others are ignored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetRequest:
    """What attempts have to be to get in; what is None or empty lets all in."""

    min_reward: float | None = None
    """Of the best attempt of a group."""
    max_turns: int | None = None
    start: str | None = None
    """An attempt ended at this time or later, ISO 8601 in UTC as `utc_time` writes it."""
    end: str | None = None
    """An attempt ended at this time or earlier."""
    domains: tuple[str, ...] = ()
    """Of trajectories."""
    without_profiles: tuple[str, ...] = ()
    sample_size: int | None = None
    """Attempts at most."""
    seed: int = 0
    """Draws the sample, and what is left out of a user with too many attempts."""

    def filter(self) -> dict[str, Json]:
        """Return the filter as a training request has it."""
        dates = {"start": self.start, "end": self.end}
        said: dict[str, Json] = {
            "min_reward": self.min_reward,
            "max_trajectory_length": self.max_turns,
            "date_range": {name: at for name, at in dates.items() if at is not None},
            "task_domains": list(self.domains),
            "exclude_subordinate_profiles": list(self.without_profiles),
        }
        return {name: value for name, value in said.items() if value not in (None, {}, [])}


def request_of(dataset: Mapping[str, Json], seed: int = 0) -> DatasetRequest:
    """Return what the `dataset` of a valid training request asks for."""
    asked = dataset.get("filter", {})
    dates = asked.get("date_range", {})
    return DatasetRequest(
        min_reward=asked.get("min_reward"),
        max_turns=asked.get("max_trajectory_length"),
        start=utc_time(dates.get("start")),
        end=utc_time(dates.get("end")),
        domains=tuple(asked.get("task_domains", ())),
        without_profiles=tuple(asked.get("exclude_subordinate_profiles", ())),
        sample_size=dataset.get("sample_size"),
        seed=seed,
    )
