"""The archive: a gzip file for each kind and day, whole after any crash, without whom somebody forgot."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.loop_events import judged, trajectory
from support.loop_sinks import SCRUBBER, TODAY, deployed, row, training_request

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.sinks import day_file
from pytest_tfgrpo.production.sinks.archive import Archive
from pytest_tfgrpo.production.sinks.removal import Removal
from pytest_tfgrpo.production.sinks.rows import SinkRow
from pytest_tfgrpo.storage.event_store import BusEvent

ADA, BOB = "u-" + "a" * 32, "u-" + "b" * 32
DAY = "trajectories-2025-12-08.jsonl.gz"


def run(name: str, **more: Json) -> SinkRow:
    return row("RL_TRAJECTORIES", trajectory(name, **more))


def lines(folder: Path, name: str = DAY) -> list[Json]:
    return [json.loads(line) for line in gzip.decompress((folder / name).read_bytes()).splitlines()]


def ids(folder: Path, name: str = DAY) -> list[str]:
    return [line["id"] for line in lines(folder, name)]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def test_each_kind_and_day_has_a_file_that_gzip_reads_whole(archive: Archive, tmp_path: Path) -> None:
    late = trajectory("late")
    after = BusEvent(id=late.id, subject=late.subject, time="2025-12-09T01:00:00+01:00", data=late.data)
    rows = [run("a", text="hello"), row("RL_TRAJECTORIES", after), row("RL_DEPLOYMENTS", deployed())]
    archive.write(rows, again=False)
    archive.write([run("b"), row("RL_TRAINING", training_request())], again=False)

    assert sorted(path.name for path in tmp_path.glob("*.gz")) == [
        "deployments-2025-12-08.jsonl.gz",
        "training-2025-12-08.jsonl.gz",
        DAY,
        "trajectories-2025-12-09.jsonl.gz",
    ]
    first, second = lines(tmp_path)
    assert (first["id"], second["id"]) == (run("a").id, run("b").id)
    assert first["data"]["turns"][0]["action"]["raw_response"] == "hello"
    assert (first["time"], first["subject"]) == ("2025-12-08T12:00:00.000Z", trajectory("a").subject)
    assert (tmp_path / DAY).stat().st_mode & 0o077 == 0


def test_the_folder_and_all_in_it_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder, before = tmp_path / "kept" / "archive", os.umask(0)
    try:
        Archive(folder).write([run("a")], again=False)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())] == [0, 0, 0]


def test_a_new_file_and_the_end_of_one_are_on_disk_when_that_returns(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(day_file, "sync_folder", synced.append)
    archive.write([run("a")], again=False)
    archive.write([run("b")], again=False)
    assert synced == [tmp_path]
    archive.expire("2025-12-09")
    assert synced == [tmp_path] * 2


def test_a_run_has_one_pseudonym_however_its_id_is_written() -> None:
    said = judged("j", "a", style=0.5)
    key = derived_id("a")
    loud = replace(said, data=said.data.replace(key.encode(), key.upper().encode()))
    assert loud.data != said.data
    assert row("RL_REWARDS", loud).trajectory == row("RL_REWARDS", said).trajectory != ""


def test_a_time_ahead_of_its_arrival_counts_as_that() -> None:
    event = trajectory("a")
    ahead = BusEvent(id=event.id, subject=event.subject, time="2031-01-01T00:00:00Z", data=event.data)
    assert row("RL_TRAJECTORIES", ahead).time == "2025-12-09T00:00:00.000Z"
    odd = BusEvent(id=event.id, subject=event.subject, time="yesterday", data=event.data)
    assert row("RL_TRAJECTORIES", odd).time == "2025-12-09T00:00:00.000Z"


def test_what_comes_again_is_there_once(archive: Archive, tmp_path: Path) -> None:
    archive.write([run("a"), run("b")], again=False)
    archive.write([run("b"), run("c")], again=True)
    Archive(tmp_path).write([run("c"), run("d")], again=False)  # a new process looks by itself
    assert ids(tmp_path) == [run(name).id for name in "abcd"]


@pytest.mark.parametrize("left", [1, 9, 10, 40, -1])
def test_a_torn_end_is_cut_off_and_its_events_come_again(archive: Archive, tmp_path: Path, left: int) -> None:
    archive.write([run("a")], again=False)
    whole = (tmp_path / DAY).stat().st_size
    archive.write([run("b")], again=False)
    with (tmp_path / DAY).open("r+b") as file:
        file.truncate(whole + left if left > 0 else (tmp_path / DAY).stat().st_size - 1)
    Archive(tmp_path).write([run("b"), run("c")], again=False)
    assert ids(tmp_path) == [run(name).id for name in "abc"]


def test_zeros_that_a_crash_left_are_cut_off(archive: Archive, tmp_path: Path) -> None:
    archive.write([run("a")], again=False)
    with (tmp_path / DAY).open("ab") as file:
        file.write(bytes(4096))
    Archive(tmp_path).write([run("b")], again=False)
    assert ids(tmp_path) == [run("a").id, run("b").id]


@pytest.mark.parametrize("goes", ["forgotten", "old"])
def test_what_goes_is_also_gone_behind_a_link_and_from_what_a_kill_left(tmp_path: Path, goes: str) -> None:
    folder, elsewhere = tmp_path / "archive", tmp_path / "elsewhere.gz"
    archive = Archive(folder)
    archive.write([run("a", user=ADA)], again=False)
    (folder / DAY).rename(elsewhere)
    (folder / DAY).symlink_to(elsewhere)
    left = tmp_path / f".{elsewhere.name}.999999-1.tmp"
    left.write_bytes(elsewhere.read_bytes())
    if goes == "forgotten":
        archive.remove(Removal(users=frozenset([ADA])))
    else:
        archive.expire("2025-12-09")
    assert elsewhere.read_bytes() == b""
    assert not left.exists()
    assert not (folder / DAY).is_symlink()


def test_damage_is_named_and_nothing_is_cut_off(archive: Archive, tmp_path: Path) -> None:
    archive.write([run("a")], again=False)
    with (tmp_path / DAY).open("ab") as file:
        file.write(b"no gzip")
    before = (tmp_path / DAY).read_bytes()
    with pytest.raises(StoreError, match=rf"{DAY}: what begins at byte .* is damaged .*; move the file"):
        Archive(tmp_path).write([run("b")], again=False)
    assert (tmp_path / DAY).read_bytes() == before


def test_a_full_disk_leaves_the_file_as_it_was(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write([run("a")], again=False)
    before = (tmp_path / DAY).read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(day_file.os, "fsync", full)
        with pytest.raises(StoreError, match=rf"archive {tmp_path}: .*No space left"):
            archive.write([run("b")], again=False)
    assert (tmp_path / DAY).read_bytes() == before
    archive.write([run("b")], again=False)
    assert ids(tmp_path) == [run("a").id, run("b").id]


def test_days_that_are_too_old_go(archive: Archive, tmp_path: Path) -> None:
    old = trajectory("old")
    before = BusEvent(id=old.id, subject=old.subject, time="2025-12-07T23:59:59.999Z", data=old.data)
    (tmp_path / "notes-2020.txt").write_text("mine")
    earlier = replace(before, time="2025-12-01T00:00:00Z")
    archive.write([run("a"), *(row("RL_TRAJECTORIES", one) for one in (before, earlier))], again=False)
    archive.expire("2025-12-08")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "notes-2020.txt", DAY]


def test_a_user_goes_with_runs_rewards_and_sessions_but_for_what_names_others(
    archive: Archive, tmp_path: Path
) -> None:
    rows = [
        run("a", user=ADA, session="hers"),
        run("b", session="hers"),  # names nobody: it is hers
        run("c", user=ADA, session="both"),
        run("d", user=BOB, session="both"),
        run("e", session="both"),  # may be Bob's
        run("f", user=BOB, session="his"),
        row("RL_REWARDS", judged("a", "a", style=0.5)),
        row("RL_REWARDS", judged("b", "b", style=0.5)),
        row("RL_REWARDS", judged("f", "f", style=0.5)),
    ]
    archive.write(rows, again=False)
    archive.remove(Removal(users=frozenset({ADA})))
    assert ids(tmp_path) == [run(name).id for name in "def"]
    assert ids(tmp_path, "rewards-2025-12-08.jsonl.gz") == [judged("f", "f", style=0.5).id]
    assert ADA.encode() not in b"".join(gzip.decompress(p.read_bytes()) for p in tmp_path.glob("*.gz"))
    archive.write([run("g")], again=False)
    assert ids(tmp_path)[-1] == run("g").id


def test_a_row_of_a_user_that_tells_of_no_run_takes_no_other_such_row_along(
    archive: Archive, tmp_path: Path
) -> None:
    rows = [replace(run("a", user=ADA), trajectory=""), row("RL_DEPLOYMENTS", deployed())]
    archive.write(rows, again=False)
    archive.remove(Removal(users=frozenset({ADA})))
    assert [path.name for path in tmp_path.glob("*.gz")] == ["deployments-2025-12-08.jsonl.gz"]


def test_what_stays_of_a_file_stays_in_whatever_batch_it_came(archive: Archive, tmp_path: Path) -> None:
    for name, user in (("a", ADA), ("b", None), ("c", ADA), ("d", None)):
        archive.write([run(name, user=user, session=name)], again=False)
    archive.remove(Removal(users=frozenset({ADA})))
    assert ids(tmp_path) == [run("b").id, run("d").id]


def test_a_batch_that_is_read_in_pieces_is_whole(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_file, "_CHUNK", 50)
    archive.write([run(name, text=f"{name} " * 500) for name in "ab"], again=False)
    archive.write([run("c")], again=False)
    Archive(tmp_path).write([run("b"), run("d")], again=True)
    assert ids(tmp_path) == [run(name).id for name in "abcd"]
    assert len(list(day_file.members(tmp_path / DAY))) == 3


def test_sessions_runs_and_single_events_go(archive: Archive, tmp_path: Path) -> None:
    archive.write([run(name, session=f"s-{name}") for name in "abcd"], again=False)
    archive.write([row("RL_REWARDS", judged("a", "a", style=0.5))], again=False)
    removal = Removal(
        sessions=frozenset({SCRUBBER.session_ref("s-a")}),
        trajectories=frozenset({run("b").trajectory}),
        events=frozenset({run("c").id}),
    )
    archive.remove(removal)
    assert ids(tmp_path) == [run("d").id]
    assert not (tmp_path / "rewards-2025-12-08.jsonl.gz").exists()  # nothing is left of that day


def test_an_attempt_that_ended_half_way_finds_the_rest(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = trajectory("b", session="hers")
    later = BusEvent(id=event.id, subject=event.subject, time="2025-12-09T00:00:00Z", data=event.data)
    archive.write([run("a", user=ADA, session="hers"), row("RL_TRAJECTORIES", later)], again=False)
    rewrite, failures = day_file.rewrite, iter([True])

    def failing(path: Path, stays: object) -> int:
        found = rewrite(path, stays)  # type: ignore[arg-type]
        if found and next(failures, False):
            raise OSError(28, "No space left on device")
        return found

    monkeypatch.setattr(day_file, "rewrite", failing)
    with pytest.raises(StoreError):
        archive.remove(Removal(users=frozenset({ADA})))
    archive.remove(Removal(users=frozenset({ADA})))
    assert list(tmp_path.glob("*.gz")) == []


def test_the_rows_of_one_arrival_do_not_depend_on_the_day(tmp_path: Path) -> None:
    assert row("RL_TRAJECTORIES", trajectory("a"), TODAY + 1) == row("RL_TRAJECTORIES", trajectory("a"))
