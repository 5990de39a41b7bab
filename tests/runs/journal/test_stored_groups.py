"""Groups that do not stay in memory read the same wherever they lie."""

import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from support.builders import make_frame, make_group, make_rollout
from support.jobs import ScriptedActor, make_job, run_job, three_or_not
from support.project import Project
from support.run.stored_groups import kept, rich

from pytest_tfgrpo.core.files import run_folder
from pytest_tfgrpo.core.named_scores import SHARE
from pytest_tfgrpo.core.records import CheckResult, FileChange, JudgeResult
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal import stored_groups
from pytest_tfgrpo.runs.journal.journal_contents import load_run
from pytest_tfgrpo.runs.journal.stored_groups import (
    GroupStore,
    StoredGroups,
    StoredRollouts,
    by_scenario,
)


@pytest.fixture
def all_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_groups, "KEPT", 0)


def test_a_default_is_the_same_object_again(all_in_the_file: None) -> None:
    (found,) = kept(GroupStore(), rich())
    assert found.rollouts[3].scores[0].scale is SHARE


def test_a_group_with_more_scores_than_are_read_at_once_is_read_whole(all_in_the_file: None) -> None:
    large = make_group([1.0, 0.0] * 200)
    (found,) = kept(GroupStore(), large)
    assert isinstance(found.rollouts, StoredRollouts)
    assert found == large


def test_types_survive_the_file(all_in_the_file: None) -> None:
    check = CheckResult(kind="exact", weight=1.0, credit=1)
    group = make_group([1.0], rollouts=(make_rollout(0, 1.0, checks=(check,), cost_usd=0.0, tokens=0),))
    (found,) = kept(GroupStore(), group)
    assert isinstance(found.rollouts, StoredRollouts)
    assert repr(found.rollouts.group) == repr(group)


def test_the_first_groups_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_groups, "KEPT", 2)
    groups, store = [rich(n) for n in range(4)], GroupStore()
    assert kept(store, *groups[:2]) == tuple(groups[:2])
    found = kept(store, *groups[2:])
    assert isinstance(found, StoredGroups)
    assert found == tuple(groups[2:])


def test_large_groups_stay_in_memory_only_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_groups, "KEPT_BYTES", 1000)
    bare = make_group([1.0], rollouts=(make_rollout(0, 1.0, answer="x" * 999),))
    for large in (rich(0, "x" * 1000), replace(bare, group_id="run.e1.s0")):
        store = GroupStore()
        assert kept(store, large, *[replace(bare, group_id=f"run.e1.s{n}") for n in range(1, 3)])
        assert kept(store, large)[0] == large
        assert isinstance(kept(store, rich(3)), StoredGroups)


def test_by_scenario_finds_groups_wherever_they_lie(all_in_the_file: None) -> None:
    groups = [rich(n) for n in range(3)]
    for found in (by_scenario(groups), by_scenario(kept(GroupStore(), *groups))):
        assert dict(found) == {group.scenario_id: group for group in groups}
        assert ("s1" in found, "s9" in found, found.get("s9"), len(found)) == (True, False, None, 3)


def test_what_marshal_cannot_hold_stays_in_memory(all_in_the_file: None) -> None:
    odd = make_group([1.0], rollouts=(make_rollout(0, 1.0, extra=MappingProxyType({"a": 1})),))
    assert kept(GroupStore(), odd) == (odd,)


def test_a_full_disk_leaves_groups_in_memory(all_in_the_file: None, monkeypatch: pytest.MonkeyPatch) -> None:
    store = GroupStore()
    first = kept(store, rich(0))

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    assert kept(store, rich(1)) == (rich(1),)
    monkeypatch.undo()
    assert isinstance(first, StoredGroups)
    assert first == (rich(0),)


def open_in(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open."""
    links = (str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink())
    return [link for link in links if link.startswith(str(folder))]


def test_the_file_has_no_name_and_goes_with_its_store(all_in_the_file: None, tmp_path: Path) -> None:
    store = GroupStore(tmp_path)
    found = kept(store, rich())
    assert not list(tmp_path.iterdir())
    assert len(open_in(tmp_path)) == 1
    del store
    assert found == (rich(),)
    del found
    assert open_in(tmp_path) == []


def test_a_run_from_the_file_gives_the_report_and_page_of_its_journal(
    all_in_the_file: None, tmp_path: Path
) -> None:
    folder = run_folder(tmp_path, "demo", "run1")
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path), folder)
    again = load_run(folder)
    assert all(isinstance(result.groups, StoredGroups) for result in run.phases)
    assert again.phases == run.phases
    report = build(run, None)
    assert build(again, None) == report
    assert html(report, again) == html(report, run)


def test_pytest_items_show_their_groups_from_the_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_groups, "KEPT", 0)
    project.scenarios(train=3, sweep=3)
    result = project.learn("-v")
    result.assert_outcomes(passed=13)
    report = project.report()
    assert [row["groups"] for row in report["epochs"]] == [0, 3, 3, 3]


def test_groups_in_the_file_compare_as_tuples_do(all_in_the_file: None) -> None:
    a, b, c = groups = tuple(rich(n) for n in range(3))
    stored = kept(GroupStore(), *groups)
    assert isinstance(stored, StoredGroups)
    for other in (groups, [*groups], (a, b), (a, c, b), (c, b, a), (), kept(GroupStore(), *groups)):
        assert (stored == other) is (
            tuple(stored) == (tuple(other) if isinstance(other, StoredGroups) else other)
        )
    assert (len(stored), stored[0], stored[-1], stored[1:], stored[:0]) == (3, a, c, (b, c), ())
    assert repr(stored) == repr(groups)
    assert stored + groups[:1] == (*groups, a)


@pytest.mark.parametrize(
    ("fields", "bare"),
    [
        ({}, True),
        ({"frames": (make_frame(output="x" * 500),)}, False),
        ({"extra": {"a": "x" * 500}}, False),
        ({"files": (FileChange(name="x" * 500),)}, False),
        ({"opinion": JudgeResult(score=1.0, reason="x" * 500)}, False),
    ],
)
def test_a_group_is_as_large_as_all_that_its_rollouts_hold(fields: Any, bare: bool) -> None:
    rollouts = (
        make_rollout(0, 1.0, answer="abc", frames=()),
        make_rollout(1, 1.0, answer="de", **{"frames": ()} | fields),
    )
    size = stored_groups._size(make_group([1.0, 1.0], rollouts=rollouts))
    assert (size == 5) is bare
    assert (size > 500) is not bare
