"""The repository of a workspace is one that git takes for its own, of one commit."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.tools import require_tool

from pytest_tfgrpo.sandbox.archives import ArchiveEntry, ArchiveProblem, lay, pack
from pytest_tfgrpo.sandbox.repository import repository_files

PROJECT = (
    ArchiveEntry(name="a.b", data=b"1"),
    ArchiveEntry(name="a/b", data=b"two\n" * 500),
    ArchiveEntry(name="a/c/run", data=b"#!/bin/sh\n", executable=True),
    ArchiveEntry(name="a0", data=b"1"),
    ArchiveEntry(name="empty"),
    ArchiveEntry(name="link", link="a/b"),
    ArchiveEntry(name="latin-\udce9\n", data=b"odd"),
    ArchiveEntry(name="deep/" * 40 + "x", data=b"deep"),
    ArchiveEntry(name="y" * 255 + "/" + "z" * 255, data=bytes(100_000)),
    *(ArchiveEntry(name=f"many/{n}", data=str(n).encode()) for n in range(300)),
)


def make(folder: Path, entries: tuple[ArchiveEntry, ...] = PROJECT) -> Path:
    folder.mkdir()
    lay(entries, folder)
    for name, data in repository_files(entries).items():
        path = folder / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git as somebody without a configuration of his own."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [require_tool("git"), *words], cwd=folder, env=environ, capture_output=True, check=True
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def test_the_index_is_in_order_of_bytes_and_says_of_a_very_long_name_that_it_is_one() -> None:
    long = "/".join(["d" * 200] * 25)
    odd = ArchiveEntry(name="\udc80", data=b"odd")
    index = repository_files((ArchiveEntry(name="é", data=b"1"), odd, ArchiveEntry(name=long, data=b"2")))[
        "index"
    ]
    head, *rows = 12, index[12:]
    at, names, flags = head, [], []
    for _ in range(3):
        row = rows[0][at - head :]
        end = row.index(b"\0", 62)
        names.append(row[62:end].decode("utf-8", "surrogateescape"))
        flags.append(int.from_bytes(row[60:62], "big"))
        at += (end // 8 + 1) * 8
    assert names == [long, "\udc80", "é"]
    assert flags == [0xFFF, 1, 2]


def test_git_finds_nothing_wrong_with_it_and_nothing_to_commit(tmp_path: Path) -> None:
    folder = make(tmp_path / "work")
    assert git(folder, "fsck", "--full", "--strict") == ""
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "log", "--all", "--format=%s") == "The state of the project\n"
    assert git(folder, "ls-files", "-z").split("\0")[:-1] == sorted(
        (entry.name for entry in PROJECT), key=lambda name: name.encode("utf-8", "surrogateescape")
    )
    assert git(folder, "branch", "--show-current") == "main\n"


def test_what_an_agent_does_shows_in_git(tmp_path: Path) -> None:
    folder = make(tmp_path / "work")
    (folder / "a.b").write_text("2")
    (folder / "empty").unlink()
    (folder / "new").touch()
    (folder / "a0").chmod(0o755)
    assert git(folder, "status", "--porcelain").split("\n") == [" M a.b", " M a0", " D empty", "?? new", ""]
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a step")
    git(folder, "gc", "-q")
    assert git(folder, "status", "--porcelain") == ""
    git(folder, "checkout", "-q", "HEAD^")
    assert (folder / "a.b").read_text() == "1"


def test_the_commit_is_the_one_that_git_makes_of_these_files(tmp_path: Path) -> None:
    ours, own = make(tmp_path / "ours"), tmp_path / "own"
    own.mkdir()
    lay(PROJECT, own)
    git(own, "init", "-q")
    git(own, "add", "-A")
    assert git(ours, "rev-parse", "HEAD^{tree}") == git(own, "write-tree")


def test_equal_files_give_equal_repositories_in_any_order() -> None:
    assert repository_files(PROJECT) == repository_files(PROJECT[::-1])
    assert repository_files(PROJECT) != repository_files(PROJECT[1:])


def test_an_empty_project_has_a_commit_too(tmp_path: Path) -> None:
    folder = make(tmp_path / "work", ())
    assert git(folder, "fsck", "--strict") == ""
    assert git(folder, "ls-files") == ""


names = st.lists(st.text("ab.-é\n", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)
files = st.dictionaries(names, st.tuples(st.binary(max_size=40), st.booleans()), max_size=9)


@reaches("files")
@given(files)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_git_sorts_as_we_do(tmp_path_factory: pytest.TempPathFactory, found: dict) -> None:
    entries = tuple(
        ArchiveEntry(name=name, data=data, executable=executable)
        for name, (data, executable) in found.items()
    )
    try:
        pack(entries)
    except ArchiveProblem:
        return
    reached("files", len(entries) > 1)
    folder = make(tmp_path_factory.mktemp("any") / "work", entries)
    assert git(folder, "fsck", "--full", "--strict") == ""
    assert git(folder, "status", "--porcelain") == ""
