"""Bases are read once, and are those that the scenario names."""

import threading
from pathlib import Path

import pytest
from support.projects_in_archives import write_archive

from pytest_tfgrpo.sandbox import bases
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, ArchiveProblem
from pytest_tfgrpo.sandbox.bases import lay_base, open_base


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Start without bases, and count the archives that are read."""
    read: list[str] = []
    monkeypatch.setattr(bases, "_BASES", bases._Bases(bases.KEPT_BYTES))
    inner = bases._read
    monkeypatch.setattr(bases, "_read", lambda archive: (read.append(archive.archive), inner(archive))[1])
    return read


def test_a_base_is_read_once(tmp_path: Path, fresh: list[str]) -> None:
    archive = write_archive(tmp_path / "a.tar.gz", {"x.py": "1"})
    assert open_base(archive) is open_base(archive)
    (tmp_path / "a.tar.gz").unlink()
    assert open_base(archive).entries == {"x.py": ArchiveEntry(name="x.py", data=b"1")}
    assert fresh == ["a.tar.gz"]


def test_one_that_many_threads_want_is_read_once(tmp_path: Path, fresh: list[str]) -> None:
    archive = write_archive(tmp_path / "a.tar.gz", {f"{n}.py": "1" * n for n in range(300)})
    found: list[bases.Base] = []
    threads = [threading.Thread(target=lambda: found.append(open_base(archive))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(base) for base in found}) == 1
    assert fresh == ["a.tar.gz"]


def test_an_archive_that_changed_since_is_not_used(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.tar.gz", {"x.py": "1"})
    write_archive(tmp_path / "a.tar.gz", {"x.py": "other"})
    with pytest.raises(ArchiveProblem, match=r"a\.tar\.gz: it changed since the scenario was read"):
        open_base(archive)


def test_a_damaged_archive_is_said_by_name_each_time(tmp_path: Path, fresh: list[str]) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"nothing of the kind")
    archive = write_archive(tmp_path / "b.tar.gz", {})
    archive = type(archive)(
        archive="a.tar.gz",
        path=tmp_path / "a.tar.gz",
        sha256="64f18fc9a5a9bb9e7ee6a6ad1cd56c8b5e94d9c3b7a0d7a5f2e0b9c5f2b1a111",
    )
    for _ in range(2):
        with pytest.raises(ArchiveProblem, match=r"a\.tar\.gz: "):
            open_base(archive)
    assert len(fresh) == 2


def test_the_bases_used_last_are_kept_within_their_room(tmp_path: Path, fresh: list[str]) -> None:
    archives = [write_archive(tmp_path / f"{n}.tar.gz", {f"{n}.py": "1" * 50_000}) for n in range(3)]
    size = open_base(archives[0]).size
    bases._BASES = bases._Bases(int(size * 2.5))  # type: ignore[misc]
    fresh.clear()
    for n in (0, 1, 0, 2, 0, 1):
        open_base(archives[n])
    assert fresh == ["0.tar.gz", "1.tar.gz", "2.tar.gz", "1.tar.gz"]


def test_one_that_is_too_large_is_read_each_time(
    tmp_path: Path, fresh: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "KEPT_BYTES", 1000)
    archive = write_archive(tmp_path / "a.tar.gz", {"x.py": "1" * 2000})
    assert open_base(archive) == open_base(archive)
    assert len(fresh) == 2


def test_files_links_and_modes_are_laid(tmp_path: Path) -> None:
    run = ArchiveEntry(name="bin/run", data=b"#!/bin/sh\n", executable=True)
    link = ArchiveEntry(name="current", link="bin/run")
    archive = write_archive(tmp_path / "a.tar.gz", {"x.py": "1", "run": run, "link": link})
    for repository in (True, False):
        folder = tmp_path / str(repository)
        folder.mkdir()
        lay_base(open_base(archive), folder, ["node_modules"], repository=repository)
        assert (folder / "current").readlink() == Path("bin/run")
        assert (folder / "bin" / "run").stat().st_mode & 0o100
        assert not (folder / "x.py").stat().st_mode & 0o100
        assert (folder / ".git").exists() == repository
    assert (tmp_path / "True" / ".git" / "info" / "exclude").read_text() == "/node_modules\n"
