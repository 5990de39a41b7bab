"""The repository of the demonstration: one commit, and changes that are laid over its files."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path

from pytest_tfgrpo.cli.suite.example_repository import make_repository
from pytest_tfgrpo.cli.suite.init import example_folder

WHO = "Ada <ada@shop.example> 1704103200 +0000"
BEFORE, FIX, CHEAT, PROMPT = "before", "fix", "cheat", "prompt.md"


def make_shop(folder: Path) -> None:
    """Make the repository `folder` with one commit; raises SettingError without git."""
    example = example_folder("learning")
    files = [*_files(example / BEFORE), (".gitignore", b"out/\n__pycache__/\n")]
    stream = f"commit refs/heads/main\nauthor {WHO}\ncommitter {WHO}\n".encode() + _data(b"Begin the shop\n")
    for name, data in files:
        stream += b"M 100644 inline %s\n%s" % (name.encode(), _data(data))
    make_repository(stream, folder)


def change(folder: Path, what: str) -> None:
    """Lay the files of a change over a repository, which then differs from its commit in these alone."""
    example = example_folder("learning")
    before = dict(_files(example / BEFORE))
    changed = dict(_files(example / what))
    others = {name for other in (FIX, CHEAT) for name, _ in _files(example / other)}
    for name in others - before.keys() - changed.keys():
        (folder / name).unlink(missing_ok=True)
    for name, data in ({name: before[name] for name in others & before.keys()} | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def prompt() -> str:
    """Return what was asked for."""
    return (example_folder("learning") / PROMPT).read_text(encoding="utf-8")


def _files(folder: Traversable, name: str = "") -> list[tuple[str, bytes]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        path = f"{name}/{entry.name}".lstrip("/")
        if entry.is_dir():
            found += [] if entry.name == "__pycache__" else _files(entry, path)
        else:
            found.append((path, entry.read_bytes()))
    return found


def _data(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)
