"""Folders as a hostile agent leaves them; each builder fills an empty folder, with links to another one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from pytest_tfgrpo.sandbox.removal import remove

LONG = "d" * 200


@contextmanager
def removable() -> Iterator[Path]:
    """Give a folder, in memory where there is one: disks take long, and pytest cannot remove a deep tree."""
    memory = "/dev/shm"
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)).resolve()
    yield folder
    assert remove(folder) == ""


def deep(folder: Path, depth: int, name: str = "d", mode: int = 0o700) -> None:
    """Nest folders so deep that no path leads to the last one."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=at))
        os.fchmod(at, mode)
        os.close(at)
        at = below
    os.close(at)


def _links(folder: Path, victim: Path) -> None:
    (folder / "out").symlink_to(victim)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "up").symlink_to("..")
    (folder / "sub").mkdir()
    (folder / "sub" / "self").symlink_to(folder)
    (folder / "sub" / "file").symlink_to(victim / "precious.txt")
    (folder / "root").symlink_to("/")
    (folder / "dangling").symlink_to("nowhere")


def _unreadable(folder: Path, victim: Path) -> None:
    for n, mode in enumerate((0, 0o100, 0o200, 0o400, 0o500)):
        (folder / f"d{n}" / "sub").mkdir(parents=True)
        (folder / f"d{n}" / "sub" / "file").touch()
        (folder / f"d{n}" / "file").touch(mode=0)
        (folder / f"d{n}" / "sub").chmod(mode)
        (folder / f"d{n}").chmod(mode)


def _names(folder: Path, victim: Path) -> None:
    for name in (b"\xff\xfe", b"new\nline", b" ", b"-rf", b"x" * 255, "é".encode(), b"\\", b"*"):
        (folder / os.fsdecode(name) / os.fsdecode(name)).mkdir(parents=True)


def _kinds(folder: Path, victim: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    os.mkfifo(folder / "sub" / "pipe")
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 2**40)
    with suppress(OSError):  # of a user who may not look, or on another file system
        os.link(victim / "precious.txt", folder / "hard")


def _many(folder: Path, victim: Path) -> None:
    (folder / "sub").mkdir()
    for n in range(12_000):
        os.close(os.open(folder / "sub" / f"{n}", os.O_WRONLY | os.O_CREAT))


def _wide(folder: Path, victim: Path) -> None:
    for n in range(800):
        (folder / f"{n}" / "sub").mkdir(parents=True)


TREES: Mapping[str, Callable[[Path, Path], None]] = MappingProxyType(
    {
        "empty": lambda folder, victim: None,
        "deep": lambda folder, victim: deep(folder, 1_100),
        "deep with long names": lambda folder, victim: deep(folder, 40, LONG),
        "deep and unreadable": lambda folder, victim: deep(folder, 200, mode=0),
        "links": _links,
        "unreadable": _unreadable,
        "odd names": _names,
        "many kinds": _kinds,
        "many files": _many,
        "many folders": _wide,
    }
)
"""By name."""
