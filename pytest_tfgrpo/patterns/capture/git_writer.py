"""Writes objects of a git repository: into a quarantine first, from which only what was screened goes over.

It works as the reader of objects does, through an empty repository of ours: no hook, filter, monitor or
program of the user's settings runs, and of the repository itself only objects and a reference under
``refs/learning/`` are ever written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.harvest.history.git_shadow import make_shadow
from pytest_tfgrpo.harvest.locked_folder import locked_folder

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_shadow import RepositoryPlace

QUARANTINE = "tfgrpo-learning-"
"""How the folders of quarantines begin."""
TIMEOUT_S = 600
LOOSE = 100
"""Objects up to which each goes over as a file of its own; more go as one pack."""
WRITER = ("pytest-tfgrpo", "learning@pytest-tfgrpo.invalid")
"""Author and committer of snapshots."""
_OURS = ("core.safecrlf=false", "core.untrackedCache=false", "core.preloadIndex=true")
_DURABLE = "committed,loose-object,reference"
"""What git syncs to disk in the repository itself; in quarantine it is nothing."""
_INFO = ("exclude", "attributes")


class GitWriter:
    """The quarantine of one snapshot; see `open_writer`."""

    def __init__(self, place: RepositoryPlace, folder: Path, settings: Mapping[str, str]) -> None:
        """Make the quarantine in an empty folder; raises SettingError without git, OSError."""
        self.place = place
        self.folder = folder
        argv, environment = make_shadow(place, folder)
        values = (*_OURS, *(f"{key}={value}" for key, value in settings.items()))
        self._argv = (*argv, *(word for value in values for word in ("-c", value)))
        name, email = WRITER
        self._environment = {
            **environment,
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            "GIT_INDEX_FILE": str(folder / "index"),
            **_fsync("none"),
            **{f"GIT_{who}_NAME": name for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": email for who in ("AUTHOR", "COMMITTER")},
        }
        (folder / "objects" / "info").mkdir()
        known = os.fsencode(place.common / "objects")
        (folder / "objects" / "info" / "alternates").write_bytes(_quoted(known) + b"\n")

    def copy_index(self) -> None:
        """Copy the index with its time, by which git knows what it has to read again, and its rules."""
        _copy(self.place.git_dir / "index", self.folder / "index")
        for shared in self.place.git_dir.glob("sharedindex.*"):
            _copy(shared, self.folder / shared.name)
        (self.folder / "info").mkdir(exist_ok=True)
        for name in _INFO:
            _copy(self.place.common / "info" / name, self.folder / "info" / name)
        _copy(self.place.git_dir / "info" / "sparse-checkout", self.folder / "info" / "sparse-checkout")

    def run(self, *arguments: str, given: bytes = b"", in_work_tree: bool = False) -> bytes:
        """Return what git prints; raises SnapshotError with its words."""
        more = {"GIT_WORK_TREE": str(self.place.root)} if in_work_tree else {}
        return self._run(arguments, more, given)

    def commit(self, tree: str, parent: str, message: str, at: int) -> str:
        """Write a commit into the quarantine and return its id."""
        dates = {f"GIT_{who}_DATE": f"{at} +0000" for who in ("AUTHOR", "COMMITTER")}
        return object_id(self._run(("commit-tree", tree, "-p", parent), dates, message.encode()))

    def publish(self, commit: str, ref: str) -> None:
        """Let the repository have the objects, then the reference; raises SnapshotError."""
        ids = sorted(self._objects())
        pack = self.run("pack-objects", "--stdout", "-q", given="".join(f"{one}\n" for one in ids).encode())
        taker = ("unpack-objects", "-q") if len(ids) <= LOOSE else ("index-pack", "--stdin")
        self._write(*taker, given=pack)
        self._write("update-ref", "--no-deref", ref, commit, "")

    def point(self, ref: str, commit: str) -> None:
        """Let a reference of ours lead to a commit; raises SnapshotError."""
        self._write("update-ref", "--no-deref", ref, commit)

    def drop(self, ref: str) -> None:
        """Delete a reference of ours, if it is there; raises SnapshotError."""
        self._write("update-ref", "--no-deref", "-d", ref)

    def _write(self, *arguments: str, given: bytes = b"") -> None:
        """Have git write into the repository itself, to disk."""
        self._run(
            arguments, {"GIT_OBJECT_DIRECTORY": str(self.place.common / "objects"), **_fsync(_DURABLE)}, given
        )

    def _objects(self) -> Iterator[str]:
        for found in (self.folder / "objects").glob("??/*"):
            yield found.parent.name + found.name

    def _run(self, arguments: tuple[str, ...], more: Mapping[str, str], given: bytes) -> bytes:
        """Run git with `more` in its environment, in the working tree where that has one."""
        try:
            done = subprocess.run(
                (*self._argv, *arguments),
                env={**self._environment, **more},
                cwd=more.get("GIT_WORK_TREE", self.folder),
                input=given,
                capture_output=True,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise SnapshotError(
                f"git {arguments[0]} took over {TIMEOUT_S} s in {str(self.place.root)!r}; try again"
            ) from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()[:500].replace("\n", "; ")
            raise SnapshotError(
                f"git {arguments[0]} failed in {str(self.place.root)!r}: {said!r}; correct this, try again"
            )
        return done.stdout


@contextmanager
def open_writer(place: RepositoryPlace, settings: Mapping[str, str]) -> Iterator[GitWriter]:
    """Open a quarantine that is gone in the end; raises SettingError without git, OSError."""
    with locked_folder(QUARANTINE) as folder:
        yield GitWriter(place, folder, settings)


def object_id(printed: bytes) -> str:
    """Return the id that git prints."""
    return printed.decode("ascii").strip()


def _fsync(parts: str) -> dict[str, str]:
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsync", "GIT_CONFIG_VALUE_0": parts}


def _copy(source: Path, target: Path) -> None:
    """Copy a file, if it is there, with its time to the nanosecond."""
    try:
        with source.open("rb") as file, target.open("wb") as copy:
            status = os.fstat(file.fileno())
            shutil.copyfileobj(file, copy, 1 << 20)
    except FileNotFoundError:
        return
    os.utime(target, ns=(status.st_mtime_ns, status.st_mtime_ns))


def _quoted(path: bytes) -> bytes:
    """Return a path as a line of ``alternates`` can hold it."""
    if b"\n" not in path and not path.startswith((b"#", b'"')):
        return path
    return b'"' + b"".join(b"\\%03o" % byte if byte in b'\n"\\' else bytes([byte]) for byte in path) + b'"'
