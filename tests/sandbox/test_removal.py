"""Whatever an agent leaves is removed, without following a link; what is stuck is told, never raised."""

from __future__ import annotations

import errno
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.hostile_trees import TREES, deep, removable

from pytest_tfgrpo.sandbox import removal
from pytest_tfgrpo.sandbox.removal import remove, remove_few

ODD = ["", " ", "\udc80", "\n", "é", "-rf"]
"""Ends of names."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder that is removed whatever is left in it."""
    with removable() as folder:
        yield folder


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that links lead to; nothing in it may change."""
    folder = tmp_path / "victim"
    (folder / "sub").mkdir(parents=True)
    (folder / "precious.txt").write_text("precious")
    (folder / "sub" / "more.txt").write_text("more")
    before = sorted(folder.rglob("*"))
    yield folder
    assert sorted(folder.rglob("*")) == before
    assert (folder / "precious.txt").read_text() == "precious"


@pytest.mark.parametrize("name", TREES)
def test_it_is_removed_and_what_links_lead_to_is_not(tmp_path: Path, victim: Path, name: str) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    TREES[name](folder, victim)
    assert remove(folder) == ""
    assert not os.path.lexists(folder)


def test_a_link_in_place_of_the_folder_is_removed_alone(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "tree").symlink_to(victim)
    assert remove(tmp_path / "tree") == ""
    assert not os.path.lexists(tmp_path / "tree")


def test_a_folder_that_is_not_there_is_no_complaint(tmp_path: Path) -> None:
    assert remove(tmp_path / "nothing") == ""
    assert remove(tmp_path / "nothing" / "below") == ""


def test_what_is_stuck_stays_is_told_and_the_rest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tree"
    for name in ("a", "b", "c"):
        (folder / name / "below").mkdir(parents=True)
        (folder / name / "below" / "file").touch()
    (folder / "b" / "below" / "stuck").touch()
    unlink: Callable[..., None] = os.unlink

    def guarded(name: str, **place: int) -> None:
        if name == "stuck":
            raise PermissionError(1, "Operation not permitted")
        unlink(name, **place)

    monkeypatch.setattr(os, "unlink", guarded)
    assert remove(folder) == "'stuck': Operation not permitted"
    monkeypatch.undo()
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["stuck"]
    assert remove(folder) == ""


@pytest.mark.parametrize(
    ("stuck", "said"), [("tree", "'tree': Device or resource busy"), ("moved", "Device or resource busy")]
)
def test_a_folder_that_cannot_go_is_told(
    tmp_path: Path, stuck: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tree"
    (folder / "a" / "below").mkdir(parents=True)
    rmdir: Callable[..., None] = os.rmdir

    def guarded(name: str, **place: int) -> None:
        if name == stuck or (stuck == "moved" and name.startswith(".")):
            raise OSError(errno.EBUSY, "Device or resource busy")
        rmdir(name, **place)

    monkeypatch.setattr(os, "rmdir", guarded)
    found = remove(folder)
    monkeypatch.undo()
    assert found.endswith(said)
    assert remove(folder) == ""


def test_it_needs_few_descriptors(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    deep(folder, 500)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = max(int(path.name) for path in Path("/dev/fd").iterdir()) + 8
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        assert remove(folder) == ""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_it_ends_early_when_it_is_told_to(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    for n in range(200):
        (folder / str(n)).touch()
    left = iter(range(50))
    assert remove(folder, lambda: next(left, None) is None) == "out of time"
    assert 100 < len(list(folder.iterdir())) < 200
    assert remove(folder) == ""


def test_a_tree_that_changes_meanwhile_is_no_exception(tmp_path: Path, victim: Path) -> None:
    folder = tmp_path / "tree"
    ended = threading.Event()

    def disturb() -> None:
        n = 0
        while not ended.is_set():
            n += 1
            try:
                place = folder / f"d{n % 7}"
                place.mkdir(parents=True, exist_ok=True)
                (place / "sub").mkdir(exist_ok=True)
                (place / f"f{n}").touch()
                (place / "sub").rename(place / f"moved{n}")
                (place / "sub").symlink_to(victim)
            except OSError:
                continue

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(15):  # each costs that time twice, as the other thread never rests
            end = time.monotonic() + 0.05
            remove(folder, lambda end=end: time.monotonic() > end)  # type: ignore[misc]
    finally:
        ended.set()
        thread.join()
    assert remove(folder) == ""


@pytest.mark.faults
def test_random_trees_are_removed(tmp_path: Path, victim: Path, campaign: Campaign) -> None:
    dice = campaign.random("trees")
    for number in range(campaign.count(20, 300)):
        folder = tmp_path / f"tree{number}"
        folder.mkdir()
        places = [folder]
        for n in range(dice.randrange(1, 60)):
            place = dice.choice(places) / (str(n) + dice.choice(ODD))
            match dice.randrange(6):
                case 0 | 1:
                    place.mkdir()
                    places.append(place)
                case 2:
                    place.symlink_to(dice.choice([victim, *places, Path(), Path("nowhere")]))
                case 3:
                    os.mkfifo(place)
                case 4:
                    place.write_bytes(b"x" * dice.randrange(100))
                case 5:
                    os.link(victim / "precious.txt", place)
        closed = dice.sample(places, dice.randrange(len(places) + 1))
        for place in sorted(closed, reverse=True):  # what is in a folder before the folder
            place.chmod(dice.choice([0, 0o100, 0o400, 0o500, 0o777]))
        assert remove(folder) == ""
        assert not os.path.lexists(folder)


def test_a_socket_in_use_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        assert remove(folder) == ""


def test_a_folder_is_removed_whose_parent_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "run").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    assert remove(tmp_path / "linked" / "run") == ""
    assert not (tmp_path / "real" / "run").exists()


@pytest.mark.parametrize(("files", "gone"), [(0, True), (8, True), (9, False)])
def test_a_folder_of_few_files_goes_at_once(tmp_path: Path, files: int, gone: bool) -> None:
    folder = tmp_path / "few"
    folder.mkdir()
    for n in range(files):
        (folder / str(n)).touch()
    assert remove_few(folder) is gone
    assert folder.exists() is not gone
    assert gone or len(list(folder.iterdir())) == files


def test_a_folder_with_another_or_a_link_in_its_place_does_not_go_at_once(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    assert [remove_few(tmp_path / name) for name in ("a", "link", "none")] == [False, False, False]
    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_or_a_pipe_in_the_place_of_the_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    assert [remove(tmp_path / name) for name in ("file", "pipe")] == ["", ""]
    assert list(tmp_path.iterdir()) == []


def test_names_are_listed_some_at_a_time_until_none_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert removal.LISTED == 10_000
    monkeypatch.setattr(removal, "LISTED", 3)
    for n in range(10):
        (tmp_path / "tree" / str(n) / "below").mkdir(parents=True)
    assert remove(tmp_path / "tree") == ""
    assert not (tmp_path / "tree").exists()


def test_what_was_stuck_first_is_told_also_where_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / name).touch()
    names: list[str] = []

    def refuse(name: str, **_place: int) -> None:
        names.append(name)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refuse)
    assert remove(folder) == f"'{names[0]}': Operation not permitted"
    assert len(names) == 3
    names.clear()
    assert remove(folder, lambda: bool(names)) == f"'{names[0]}': Operation not permitted"
