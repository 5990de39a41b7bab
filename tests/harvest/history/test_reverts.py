"""Reverts: a change that undoes another hides that one, and no further one."""

import pytest

from pytest_tfgrpo.harvest.fixes import ChangedFile, HistoryChange
from pytest_tfgrpo.harvest.history.reverts import Reverts, reverts_another


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


def test_of_two_reverts_of_one_subject_the_older_one_hides_the_later_change() -> None:
    told = change(3, 'Revert "Fix"', ("d", "c")), change(4, 'Revert "Fix"', ("b", "e"))
    reverts = Reverts()
    history = (change(1, "Fix", ("a", "b")), change(2, "Fix", ("c", "x")), *told)
    by = {one.committed_at: reverts.reverted_by(one) for one in reversed(history)}
    assert (by[2], by[1]) == (told[0].commit, told[1].commit)


@pytest.mark.parametrize("what", ["commit", "changeset"])
def test_a_change_that_says_what_it_reverts_is_no_fix(what: str) -> None:
    undo = change(2, f"Undo\n\nThis reverts {what} {1:040x}.", ("b", "c"))
    assert reverted(change(1, "Fix", ("a", "b")), undo) == [1]
    assert reverts_another(undo)
    assert reverts_another(change(2, 'Revert "Fix" (#8)'))
    assert not reverts_another(change(2, "Let a user revert what he did"))


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
