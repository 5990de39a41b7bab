"""Moves on the shelf: the table, the log before the file, nothing overwritten, git, and kills in between."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.patterns.shelves import make_body, make_evidence, make_pattern, put
from support.repositories import git

from pytest_tfgrpo.core.errors import PatternError, StoreError
from pytest_tfgrpo.patterns.shelf import moves
from pytest_tfgrpo.patterns.shelf.lint import fix, lint, require_fit
from pytest_tfgrpo.patterns.shelf.moves import (
    MOVES,
    ShelfDecision,
    comment,
    move,
    record_trial,
    restamp,
    unfinished,
    write_candidate,
)
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus, TrialResult
from pytest_tfgrpo.patterns.shelf.pattern_file import stamped
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf

ADA = ShelfDecision(by="ada", reason="it is so")
NAME = "read-rows-at-once"
SCREENS = PatternScreens()


@pytest.mark.parametrize(("event", "status"), list(product(MOVES, PatternStatus)))
def test_a_pattern_moves_by_the_table_alone(
    tmp_path: Path, event: moves.ShelfMove, status: PatternStatus
) -> None:
    shelf = put(tmp_path, make_pattern(status=status))
    source, target = MOVES[event]
    if status is not source:
        with pytest.raises(PatternError, match=f"cannot be {event}: it lies in {status.value}"):
            move(shelf, NAME, event, ADA)
        assert shelf.log.entries() == []
        return
    assert move(shelf, NAME, event, ADA) == shelf.pattern(NAME) == make_pattern(status=target)
    (entry,) = shelf.log.entries()
    assert {key: entry[key] for key in ("event", "by", "reason", "from", "to", "stamp")} == {
        "event": event,
        "by": "ada",
        "reason": "it is so",
        "from": source.value,
        "to": target.value,
        "stamp": make_pattern().stamp,
    }
    assert lint(shelf, SCREENS) == []


@pytest.mark.parametrize(
    "decision", [replace(ADA, by=" "), replace(ADA, reason=""), replace(ADA, reason="a\nb")]
)
def test_who_decides_says_who_and_why(tmp_path: Path, decision: ShelfDecision) -> None:
    shelf = put(tmp_path, make_pattern())
    for act in (lambda: move(shelf, NAME, "promoted", decision), lambda: comment(shelf, NAME, decision)):
        with pytest.raises(PatternError, match="printable characters"):
            act()
    assert not shelf.log.path.exists()


def of_job(job: str, **changes: Any) -> Pattern:
    return make_pattern(**{"evidence": make_evidence(job=job), **changes})


def test_a_candidate_gets_a_free_name_an_id_and_its_relations(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    (tmp_path / "shop.py").write_text("def total(rows):\n    return sum(row.price for row in rows)")
    first, second = write_candidate(shelf, of_job("1")), write_candidate(shelf, of_job("2"))
    assert write_candidate(shelf, of_job("1", title="Again")) == first
    assert [file.name for file in shelf.files()] == [NAME, f"{NAME}-2"]
    assert first.id != second.id
    assert second.parents == (first.id,)
    move(shelf, NAME, "rejected", ADA)
    third = write_candidate(shelf, of_job("3"))
    assert (third.name, third.reintroduced, third.parents) == (f"{NAME}-3", first.id, (second.id,))
    long = write_candidate(shelf, of_job("4", name="a" * 64))
    assert write_candidate(shelf, of_job("5", name="a" * 64)).name == "a" * 62 + "-2"
    assert long.stamp == shelf.pattern("a" * 64).stamp
    assert lint(shelf, SCREENS) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    shelf = put(tmp_path, make_pattern())
    there = shelf.place(PatternStatus.ACTIVE, NAME)
    there.parent.mkdir()
    there.symlink_to("/nowhere")
    with pytest.raises(PatternError, match="several patterns"):
        move(shelf, NAME, "promoted", ADA)
    assert shelf.pattern  # the candidate is where it was
    assert shelf.place(PatternStatus.CANDIDATE, NAME).is_file()


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("step", ["rename", "write", "log"])
def test_a_move_that_was_cut_short_is_found_and_finished(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())

    def kill(*_: object, **__: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        if step == "rename":
            patched.setattr(Path, "rename", kill)
        elif step == "write":
            patched.setattr(moves, "write_text", kill)
        else:
            patched.setattr(moves, "note", kill)
        with pytest.raises(KilledError):
            move(shelf, NAME, "promoted", ADA)
    if step == "log":  # nothing was decided
        assert lint(shelf, SCREENS) == []
        assert shelf.pattern(NAME).status is PatternStatus.CANDIDATE
        return
    assert len(unfinished(shelf)) == 1
    assert any("a move was cut short" in line for line in lint(shelf, SCREENS))
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: moved to where the log has it"]
    assert shelf.find(NAME).status is shelf.pattern(NAME).status is PatternStatus.ACTIVE
    assert lint(shelf, SCREENS) == []


def test_a_link_in_the_way_of_a_move_stays(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    moves.note(
        shelf, "promoted", write_candidate(shelf, make_pattern()), ADA, move=MOVES["promoted"]
    )  # and then it was killed
    there = shelf.place(PatternStatus.ACTIVE, NAME)
    there.parent.mkdir()
    there.symlink_to("/nowhere")
    with pytest.raises(PatternError, match="is there already and is not overwritten"):
        list(fix(shelf, SCREENS, ADA))
    assert there.is_symlink()


def test_a_link_to_a_pattern_is_no_pattern_and_deprecated_ones_are_not_screened(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    move(shelf, NAME, "rejected", ADA)
    path = shelf.place(PatternStatus.DEPRECATED, NAME)
    path.write_text(path.read_text().replace("in memory.", "there, see @x."))
    assert lint(shelf, SCREENS) == []
    (path.parent / "linked.md").symlink_to(path)
    assert any("linked.md:1: it is no regular file" in line for line in lint(shelf, SCREENS))


def test_a_candidate_whose_log_was_cut_off_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = put(
        tmp_path, make_pattern(), make_pattern("other", id="p-000000000001", status=PatternStatus.ACTIVE)
    )
    found = lint(shelf, SCREENS)
    assert ["--fix" in line for line in found] == [True, False]
    assert "nobody decided that; put it into candidates" in found[1]
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: noted in the log"]
    assert len(lint(shelf, SCREENS)) == 1


def test_a_file_moved_by_hand_goes_back_to_where_the_log_has_it(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    shelf.place(PatternStatus.ACTIVE).mkdir()
    shelf.place(PatternStatus.CANDIDATE, NAME).rename(shelf.place(PatternStatus.ACTIVE, NAME))
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: moved to where the log has it"]
    assert shelf.find(NAME).status is PatternStatus.CANDIDATE
    shelf.place(PatternStatus.CANDIDATE, NAME).unlink()
    assert "has no file any more" in lint(shelf, SCREENS)[0]


def test_an_edited_pattern_is_stamped_again_only_if_it_passes(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    path = shelf.place(PatternStatus.CANDIDATE, NAME)
    text = path.read_text()
    path.write_text(text.replace("in memory.", "there, see @x."))
    assert "load a file" in lint(shelf, SCREENS)[0]
    assert list(fix(shelf, SCREENS, ADA)) == []
    path.write_text(text.replace("in memory.", "there."))
    assert "was changed since it was screened" in lint(shelf, SCREENS)[0]
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: screened and stamped"]
    assert lint(shelf, SCREENS) == []
    assert shelf.log.entries()[-1]["event"] == "stamped"


def test_a_text_that_was_stamped_by_hand_is_found_by_the_log(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    known = write_candidate(shelf, make_pattern())
    put(tmp_path, stamped(replace(known, lesson="Read each row on its own.")))
    comment(shelf, NAME, ADA)
    (found,) = lint(shelf, SCREENS)
    assert "stamp: the log has that of another text" in found
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: screened and stamped"]
    assert lint(shelf, SCREENS) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"x": 1},
        {"event": {}, "id": "p-0123456789ab"},
        {"event": "escaped", "committed_at": "never"},
        {"time": "2020-01-01"},
        {"time": 5},
        {"time": "2020-01-01T00:00:00Z", "committed_at": "2020-01-01T00:00:00"},
        {"time": "2020-01-01T00:00:00", "committed_at": "2020-01-01T00:00:00Z"},
    ],
)
def test_an_entry_that_is_none_of_a_shelf_is_named_wherever_the_log_is_read(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    known = dict.fromkeys(("event", "id", "name", "by", "reason", "stamp"), "x")
    shelf.log.append({**known, **entry} if "x" not in entry else entry)
    with pytest.raises(StoreError, match="line 2: it is no entry of a shelf"):
        shelf.entries()
    assert "line 2" in lint(shelf, SCREENS)[0]


def test_files_that_dots_hide_or_that_are_called_otherwise_are_named(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    path = shelf.place(PatternStatus.CANDIDATE, NAME)
    path.with_name(".hidden.md").write_text(path.read_text())
    path.rename(path.with_name("other.md"))
    found = lint(shelf, SCREENS)
    assert ["name: it is 'read-rows-at-once'" in line for line in found] == [True, True]
    with pytest.raises(PatternError, match="write the name of the file"):
        move(shelf, "other", "rejected", ADA)


def test_what_agents_get_is_active_by_the_log_screened_and_as_it_was_stamped(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    known = write_candidate(shelf, make_pattern())
    move(shelf, NAME, "promoted", ADA)
    require_fit(shelf, SCREENS)
    (tmp_path / "shop.py").write_text("")
    require_fit(shelf, SCREENS)  # whether code still has an excerpt is for lint alone
    path = shelf.place(PatternStatus.ACTIVE, NAME)
    text = path.read_text()
    for edited, why in (
        (text.replace("in memory.", "there: !`id`"), "which agents run as a command"),
        (text.replace("in memory.", "there."), "the text was changed since it was screened"),
        ("no pattern", "it does not start with front matter"),
    ):
        path.write_text(edited)
        with pytest.raises(PatternError, match=why):
            require_fit(shelf, SCREENS)
    put(tmp_path, replace(known, status=PatternStatus.ACTIVE))
    put(tmp_path, make_pattern("other", id="p-000000000001", status=PatternStatus.ACTIVE))
    with pytest.raises(PatternError, match="nobody decided that"):
        require_fit(shelf, SCREENS)


def test_a_changed_log_stops_every_decision(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    comment(shelf, NAME, ADA)
    shelf.log.path.write_bytes(shelf.log.path.read_bytes().replace(b"job", b"jab", 1))
    for act in (lambda: move(shelf, NAME, "promoted", ADA), lambda: comment(shelf, NAME, ADA)):
        with pytest.raises(StoreError, match="line 2"):
            act()
    assert shelf.find(NAME).status is PatternStatus.CANDIDATE
    assert "line 2" in lint(shelf, SCREENS)[0]


def test_a_shelf_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "in/.agent/patterns").mkdir(parents=True)
    (tmp_path / "in/.agent/patterns/active").symlink_to(tmp_path / "out")
    with pytest.raises(PatternError, match="is a link"):
        Shelf(tmp_path / "in")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    git(tmp_path, "init", "-q")
    hook = tmp_path / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    yield tmp_path
    assert not (tmp_path / "hooked").exists()


def test_git_sees_a_move_of_a_tracked_file_as_one(repository: Path) -> None:
    shelf = put(repository)
    write_candidate(shelf, make_pattern())
    write_candidate(shelf, of_job("2", name="other", body=make_body(problem="Else.", solution="Else.")))
    git(repository, "-c", "core.hooksPath=/dev/null", "add", f".agent/patterns/candidates/{NAME}.md")
    git(repository, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "x")
    move(shelf, NAME, "promoted", ADA)
    move(shelf, "other", "rejected", ADA)
    staged = git(
        repository, "-c", "core.hooksPath=/dev/null", "status", "--porcelain", "--", ".agent"
    ).splitlines()
    assert staged[0] == f"R  .agent/patterns/candidates/{NAME}.md -> .agent/patterns/active/{NAME}.md"
    assert all(row.startswith("??") for row in staged[1:])
    (repository / ".git/index.lock").touch()
    with pytest.raises(PatternError, match=r"git mv failed .*lint --fix"):
        move(shelf, NAME, "deprecated", ADA)
    (repository / ".git/index.lock").unlink()
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: moved to where the log has it"]
    assert shelf.find(NAME).status is PatternStatus.DEPRECATED


def test_a_git_that_hangs_is_named_and_the_move_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())

    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("git", 60)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", hang)
        with pytest.raises(PatternError, match=r"git does not work .* timed out .*--fix --by YOU"):
            move(shelf, NAME, "rejected", ADA)
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: moved to where the log has it"]
    assert shelf.pattern(NAME).status is PatternStatus.DEPRECATED


def test_restamp_keeps_what_a_reader_does_not_get(tmp_path: Path) -> None:
    shelf = put(tmp_path, make_pattern())
    assert restamp(shelf, NAME, ADA) == make_pattern()


def test_what_cannot_be_read_is_neither_moved_stamped_nor_tried(tmp_path: Path) -> None:
    shelf = put(tmp_path, make_pattern())
    shelf.place(PatternStatus.CANDIDATE, NAME).write_text("---\n")
    trial = TrialResult(outcome="helps", gain=None, low=None, high=None, scenarios=1, families=1)
    acts: list[Any] = [
        lambda: move(shelf, NAME, "promoted", ADA),
        lambda: restamp(shelf, NAME, ADA),
        lambda: record_trial(shelf, NAME, trial),
        lambda: comment(shelf, NAME, ADA),
    ]
    for act in acts:
        with pytest.raises(PatternError, match="does not start with front matter"):
            act()
    assert shelf.entries() == []


def test_a_reason_has_two_thousand_printable_characters_at_most() -> None:
    ShelfDecision(by="a" * 2000, reason="b" * 2000).require()
    for by, reason in (("a" * 2001, "b"), ("a", "b" * 2001), ("a", "b\u200bc"), (" ", "b"), ("a\nb", "c")):
        with pytest.raises(PatternError, match="in 1 to 2,000 printable characters"):
            ShelfDecision(by=by, reason=reason).require()


def test_a_taken_name_gets_a_number_within_its_limit(tmp_path: Path) -> None:
    shelf, name = put(tmp_path), "a" * 61 + "-bc"
    names = [
        write_candidate(shelf, make_pattern(name, evidence=make_evidence(job=str(n)))).name for n in range(10)
    ]
    assert names[:3] == [name, "a" * 61 + "-2", "a" * 61 + "-3"]
    assert names[9] == "a" * 61 + "-10"


def test_trials_of_the_text_as_it_is_are_kept_in_their_order(tmp_path: Path) -> None:
    pattern = make_pattern()
    shelf = put(tmp_path, pattern)
    for outcome, stamp in (("helps", pattern.stamp), ("harms", "0" * 64), ("inconclusive", pattern.stamp)):
        trial = TrialResult(
            outcome=outcome, gain=None, low=None, high=None, scenarios=1, families=1,
            pattern_stamp=stamp, delivery="skill",
        )  # fmt: skip
        assert record_trial(shelf, NAME, trial) == shelf.place(PatternStatus.CANDIDATE, NAME)
    assert moves.trials_of(shelf, pattern) == ["helps", "inconclusive"]
    assert [entry["delivery"] for entry in shelf.entries()] == ["skill"] * 3
    found = shelf.pattern(NAME).trial
    assert found is not None
    assert found.outcome == "inconclusive"


def test_two_files_of_one_id_and_lost_files_are_named_unless_some_cannot_be_read(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    (one,) = shelf.patterns()
    put(tmp_path, replace(one, name="other"))
    (twice,) = (line for line in lint(shelf, SCREENS) if ": id: " in line)
    assert f"other.md: id: {one.id!r} is also that of " in twice
    assert twice.endswith("read-rows-at-once.md; take all but one away")
    for file in shelf.files():
        file.path.unlink()
    (gone,) = lint(shelf, SCREENS)
    assert f"{NAME!r} has no file any more; put it back from git, and deprecate it" in gone
    shelf.place(PatternStatus.ACTIVE, "odd").parent.mkdir()
    shelf.place(PatternStatus.ACTIVE, "odd").write_text("---\n")
    assert not [line for line in lint(shelf, SCREENS) if "no file any more" in line]


def test_an_active_pattern_that_was_edited_is_stamped_again_too(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    move(shelf, NAME, "promoted", ADA)
    path = shelf.place(PatternStatus.ACTIVE, NAME)
    path.write_text(path.read_text().replace("in memory.", "there."))
    assert list(fix(shelf, SCREENS, ADA)) == [f"{NAME}: screened and stamped"]
    assert lint(shelf, SCREENS) == []


def test_files_of_one_name_are_named_all_of_them(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    first = shelf.place(PatternStatus.CANDIDATE, NAME)
    others = [shelf.place(status, NAME) for status in (PatternStatus.ACTIVE, PatternStatus.DEPRECATED)]
    for path in others:
        path.parent.mkdir()
        path.write_text(first.read_text())
    said = f"{first}: name: {NAME!r} is also that of {others[0]}, {others[1]}; take all but one away"
    assert said in lint(shelf, SCREENS)
    with pytest.raises(PatternError, match="is also that of"):
        require_fit(shelf, SCREENS)


def test_an_excerpt_that_left_the_code_is_named_of_active_patterns_alone(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern())
    (tmp_path / "shop.py").write_text("")
    assert lint(shelf, SCREENS) == []
    move(shelf, NAME, "promoted", ADA)
    (found,) = lint(shelf, SCREENS)
    assert found.endswith("excerpt: its files no longer have it; renew it, or deprecate the pattern")
    require_fit(shelf, SCREENS)


def test_a_deprecated_pattern_may_have_another_stamp_and_is_restored_with_it(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    known = write_candidate(shelf, make_pattern())
    move(shelf, NAME, "rejected", ADA)
    put(tmp_path, stamped(replace(known, status=PatternStatus.DEPRECATED, lesson="Read each row.")))
    assert lint(shelf, SCREENS) == []
    move(shelf, NAME, "restored", ADA)
    assert lint(shelf, SCREENS) == []


def test_a_pattern_that_a_person_wrote_is_logged_as_written_by_hand(tmp_path: Path) -> None:
    shelf = put(tmp_path)
    write_candidate(shelf, make_pattern(evidence=None))
    write_candidate(shelf, of_job("7", name="other"))
    assert [entry["reason"] for entry in shelf.entries()] == ["by hand", "job 7"]


@pytest.mark.parametrize(
    "place", [".agent", ".agent/patterns", ".agent/patterns/log.jsonl", ".agent/patterns/deprecated"]
)
def test_no_part_of_a_shelf_is_a_link(tmp_path: Path, place: str) -> None:
    path = tmp_path / "in" / place
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "out")
    with pytest.raises(PatternError, match=r"is a link; patterns lie in the repository itself"):
        Shelf(tmp_path / "in")


def test_a_name_that_is_nearly_that_of_a_pattern_is_answered_with_it(tmp_path: Path) -> None:
    shelf = put(tmp_path, make_pattern())
    with pytest.raises(PatternError, match=f"no pattern 'read-row-at-once' in .*did you mean '?{NAME}"):
        shelf.find("read-row-at-once")
    with pytest.raises(PatternError, match="'tfgrpo patterns list' has all"):
        shelf.find("zzz")
