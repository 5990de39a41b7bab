"""Reverts: a change that undoes another hides that one, and no further one."""

import pytest

from pytest_tfgrpo.harvest.fixes import ChangedFile, HistoryChange
from pytest_tfgrpo.harvest.history.reverts import Reverts


def change(n: int, message: str, *files: tuple[str, str]) -> HistoryChange:
    """Return the change number `n` of a history; of each file the contents before and after are given."""
    return HistoryChange(
        commit=f"{n:040x}",
        base=f"{n - 1:040x}",
        tree="",
        base_tree="",
        committed_at=n,
        message=message,
        files=tuple(
            ChangedFile(
                path=f"f{n}.py", status="M", old_id=old, new_id=new, old_mode="100644", new_mode="100644"
            )
            for n, (old, new) in enumerate(files)
        ),
    )


def reverted(*oldest_first: HistoryChange) -> list[int]:
    """Return the numbers of those that a later one reverts, oldest first."""
    reverts = Reverts()
    by = {one.committed_at: reverts.reverted_by(one) for one in reversed(oldest_first)}
    return sorted(n for n, later in by.items() if later)


@pytest.mark.parametrize("told", ['Revert "Fix"', 'revert: "Fix" (#9)'])
def test_one_revert_by_subject_hides_the_latest_change_of_that_name(told: str) -> None:
    twice = change(1, "Fix", ("a", "b")), change(2, "Fix", ("c", "d"))
    assert reverted(*twice, change(3, told, ("d", "e"))) == [2]
    assert reverted(*twice, change(3, told, ("d", "e")), change(4, told, ("b", "e"))) == [1, 2]


def test_one_revert_by_its_effect_hides_one_change() -> None:
    fix = change(1, "Fix", ("a", "b"))
    partly = change(2, "Go on", ("b", "a"), ("x", "y"))
    again, undone = change(3, "Fix it once more", ("a", "b")), change(4, "Clean up", ("b", "a"))
    assert reverted(fix, partly, again, undone) == [3]
    assert reverted(fix, change(2, "Go back", ("b", "a")), again, undone) == [1, 3]


def test_a_revert_by_id_hides_the_commit_of_that_id_and_none_that_begins_alike() -> None:
    fix, other = change(1, "Fix", ("a", "b")), change(2, "Other", ("c", "d"))
    whole, start = f"{1:040x}", f"{1:040x}"[:12]
    for named in (whole, start):
        assert reverted(fix, other, change(3, f"Undo\n\nThis reverts commit {named}.")) != []
    far = "0" * 7 + "9" * 33
    assert reverted(fix, other, change(3, f"Undo\n\nThis reverts commit {far}.")) == []
