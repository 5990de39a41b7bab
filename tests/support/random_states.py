"""Random states of a working tree: staged, unstaged, untracked, deleted, renamed, modes and links."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from support.repositories import Repository, git

NAMES = (
    "a",
    "b.py",
    "d/c",
    "d/e/f",
    "g h",
    "h\n\udcffi",
    "j/k",
    ".gitignore",
    "l.log",
    "m/.gitignore",
    "m/n",
)
ACTS = 14


def random_state(folder: Path, random: Random) -> Repository:
    """Make a repository in a random state."""
    repository = Repository(folder)
    files = {name: _content(random) for name in NAMES if random.random() < 0.6}
    repository.commit({os.fsencode(name): content for name, content in files.items()} | {"first": "1\n"})
    git(folder, "reset", "-q", "--hard", "main")
    for _ in range(random.randrange(1, ACTS)):
        act = random.choice(_ACTS)
        try:
            act(folder, random.choice(NAMES), random)
        except (OSError, AssertionError):  # as when a folder stands where a file is wanted
            continue
    return repository


def _content(random: Random) -> str:
    return "".join(
        random.choice(("one\n", "two\r\n", "*.log\n", "\0", "!l.log\n")) for _ in range(random.randrange(4))
    )


def _write(folder: Path, name: str, random: Random) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(_content(random), newline="")


def _delete(folder: Path, name: str, random: Random) -> None:
    (folder / name).unlink()


def _rename(folder: Path, name: str, random: Random) -> None:
    to = folder / random.choice(NAMES)
    to.parent.mkdir(parents=True, exist_ok=True)
    (folder / name).rename(to)


def _link(folder: Path, name: str, random: Random) -> None:
    _delete(folder, name, random)
    (folder / name).symlink_to(random.choice(("a", "d", "first", "nowhere")))


def _mode(folder: Path, name: str, random: Random) -> None:
    (folder / name).chmod(random.choice((0o644, 0o755, 0o600)))


def _stage(folder: Path, name: str, random: Random) -> None:
    git(folder, "--literal-pathspecs", "add", "-f", os.fsencode(name))


def _stage_all(folder: Path, name: str, random: Random) -> None:
    git(folder, "add", "-A")


def _unstage(folder: Path, name: str, random: Random) -> None:
    git(folder, "--literal-pathspecs", "rm", "-q", "--cached", os.fsencode(name))


def _intend(folder: Path, name: str, random: Random) -> None:
    git(folder, "--literal-pathspecs", "add", "-N", os.fsencode(name))


def _touch(folder: Path, name: str, random: Random) -> None:
    (folder / name).touch()


_ACTS: tuple[Callable[[Path, str, Random], None], ...] = (
    *(_write, _write, _write, _delete, _rename, _link, _mode, _stage, _stage_all, _unstage, _intend, _touch),
)
