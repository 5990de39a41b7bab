"""Groups of a run that its journal tells of, put away as they are read: a long run has no room in memory."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tfgrpo.core.records import Group, Phase
from pytest_tfgrpo.harness.run.stored_groups import GroupsById, GroupStore


class UnsettledError(Exception):
    """A journal comes back to a group that was put away, as that of a resumed run may."""


class SettledGroups:
    """Whole groups, by id and by phase."""

    def __init__(self) -> None:
        """Have none yet."""
        self._groups = GroupsById(GroupStore())
        self._places: dict[tuple[int, bool], list[tuple[str, str]]] = {}
        """Scenario and group by epoch, and whether they are of its dev sweeps."""

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
        return self._groups.of((id, known[id]) for id in phase.scenarios if id in known)

    def dev(self, phase: Phase) -> tuple[Group, ...]:
        """Return the groups of the dev sweeps of a phase, by id."""
        return tuple(
            self._groups[id] for id in sorted(id for _, id in self._places.get((phase.epoch, True), ()))
        )
