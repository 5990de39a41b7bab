"""Groups of a run in its journal, put away as they are read: a long run has no room in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_tfgrpo.core.records import TRAINING, Group, Phase, Rollout
from pytest_tfgrpo.runs.journal.stored_groups import GroupPlace, GroupsById, GroupStore


class UnsettledError(Exception):
    """A journal comes back to a group that was put away, as that of a resumed run may."""


@dataclass(kw_only=True, slots=True)
class SettledCost:
    """What the rollouts of settled groups used, for the budget of a run that goes on."""

    usd: float = 0.0
    tokens: int = 0
    unknown: int = 0
    """Rollouts whose cost is unknown."""

    def add(self, rollouts: Iterable[Rollout]) -> None:
        """Add some rollouts."""
        for rollout in rollouts:
            self.tokens += rollout.tokens
            if rollout.cost_usd is None:
                self.unknown += 1
            else:
                self.usd += rollout.cost_usd


class SettledGroups:
    """Whole groups, by id and by phase."""

    def __init__(self, store: GroupStore | None = None, *, resumed: bool = False) -> None:
        """Have none yet; with `resumed` take those alone that a resumed run takes as they are."""
        self.store = store or GroupStore()
        self._resumed = resumed
        self._groups = GroupsById(self.store)
        self._places: dict[tuple[int, bool], list[tuple[str, str]]] = {}
        """Scenario and group by epoch, and whether they are of its dev sweeps."""

    def takes(self, group: Group, *, again: bool) -> bool:
        """Return whether a group is to be added; `again` says that a resumed run may look into its rollouts.

        The sweeps that the gate compares run as pairs, may be extended and may end early, so that a resumed
        run goes through them once more.
        """
        return not self._resumed or (not again and group.mode in (*TRAINING, "dev"))

    @property
    def ids(self) -> Collection[str]:
        """Ids of the groups."""
        return self._groups

    def __contains__(self, group_id: object) -> bool:
        """Return whether a group is there."""
        return group_id in self._groups

    def all(self) -> Iterator[Group]:
        """Yield the groups, each read when it is its turn."""
        return iter(self._groups.values())

    def places(self, ids: Iterable[str]) -> dict[str, GroupPlace]:
        """Return where the groups are that are there of some ids, by id."""
        known = self._groups.places()
        return {id_: known[id_] for id_ in ids if id_ in known}

    def add(self, group: Group) -> None:
        """Put a group away; raises UnsettledError where it is there."""
        self.require_open(group.group_id)
        self._groups[group.group_id] = group
        self._places.setdefault((group.epoch, group.mode == "dev"), []).append(
            (group.scenario_id, group.group_id)
        )

    def require_open(self, group_id: str) -> None:
        """Raise UnsettledError where a group is there."""
        if group_id in self._groups:
            raise UnsettledError(group_id)

    def of(self, phase: Phase) -> Sequence[Group]:
        """Return the groups of a phase, in the order of its scenarios, without those of dev sweeps."""
        known = dict(self._places.get((phase.epoch, False), ()))
        return self._groups.of((id_, known[id_]) for id_ in phase.scenarios if id_ in known)

    def dev(self, phase: Phase) -> tuple[Group, ...]:
        """Return the groups of the dev sweeps of a phase, by id."""
        return tuple(
            self._groups[id_] for id_ in sorted(id_ for _, id_ in self._places.get((phase.epoch, True), ()))
        )
