"""Groups that do not stay in memory read the same wherever they lie."""

import pytest
from support.run.stored_groups import kept, rich

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.runs.journal import stored_groups
from pytest_tfgrpo.runs.journal.stored_groups import (
    GLANCE,
    GroupStore,
    StoredGroups,
)


@pytest.fixture
def all_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_groups, "KEPT", 0)


@pytest.mark.parametrize("size", [1, GLANCE, 50_000])
def test_a_group_in_the_file_is_the_same_to_the_last_digit(all_in_the_file: None, size: int) -> None:
    groups = [rich(n, "\ud83d\N{SNOWMAN}x" * size) for n in range(3)]
    found = kept(GroupStore(), *groups)
    assert isinstance(found, StoredGroups)
    assert found == tuple(groups)
    assert tuple(groups) == found
    assert (found[1], found[-1], found[1:]) == (groups[1], groups[2], tuple(groups[1:]))
    assert (repr(found), repr(found[0].rollouts)) == (repr(tuple(groups)), repr(groups[0].rollouts))
    assert found + found[:1] == (*groups, groups[0])
    assert found[0].rollouts + found[1].rollouts == groups[0].rollouts + groups[1].rollouts
    assert from_wire(Group, to_wire(found[1])) == from_wire(Group, to_wire(groups[1]))
    assert (len(found), len(found[0].rollouts), found[0].rollouts[1:3]) == (3, 4, groups[0].rollouts[1:3])
    assert found != tuple(groups[:2])
