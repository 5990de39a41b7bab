"""Git without a repository's own settings: an empty one of ours sees but its objects and references.

Nothing of a repository's configuration, hooks, attributes, grafts and replacements is read, so none can be
run; nothing is fetched; and as git writes where its own folder is, the repository stays as it is.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass

FILE_MAX = 1_000_000
"""Bytes of a ``.git`` file, ``HEAD`` or configuration that are read."""
_SHA256 = re.compile(r"^\s*objectformat\s*=\s*\"?sha256\b", re.IGNORECASE | re.MULTILINE)
_SHARED = ("refs", "packed-refs", "shallow")
"""What the shadow has by link: names of commits, and where a shallow clone ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryPlace:
    """Where a repository's parts are."""

    git_dir: Path
    """With HEAD; that of a linked working tree is its own."""
    common: Path
    """With objects and references."""
    root: Path
    """The folder of the working tree; of a bare repository its own."""

    @property
    def is_shallow(self) -> bool:
        """Whether its history ends before its first commit."""
        return (self.common / "shallow").is_file()


def locate(folder: Path) -> RepositoryPlace:
    """Return the repository that `folder` is or lies in; raises SettingError where there is none."""
    if not folder.is_dir():
        raise SettingError(f"there is no folder {str(folder)!r}; name a folder of a git repository")
    start = folder.resolve()
    for place in (start, *start.parents):
        for git_dir in (_linked(place / ".git"), place):
            common = _common(git_dir)
            if (git_dir / "HEAD").is_file() and (common / "objects").is_dir() and (common / "refs").is_dir():
                root = place.parent if place.name == ".git" else place
                return RepositoryPlace(git_dir=git_dir, common=common, root=root)
    raise SettingError(f"{str(folder)!r} is not in a git repository; name a folder that is")


def make_shadow(place: RepositoryPlace, folder: Path) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Make, in the empty `folder`, a repository of ours that reads the objects of another.

    Returns the start of git's command line and its whole environment; raises SettingError without git.
    """
    program = shutil.which("git")
    if program is None:
        raise SettingError("git is not installed, or not on PATH; install it to read a history")
    for name in _SHARED:
        if (place.common / name).exists():
            (folder / name).symlink_to(place.common / name)
    (folder / "objects").mkdir()
    (folder / "HEAD").write_bytes(_read(place.git_dir / "HEAD"))
    sha256 = _SHA256.search(_read(place.common / "config").decode("utf-8", "replace"))
    (folder / "config").write_text(_CONFIG.format(version=int(bool(sha256))) + _EXTENSION * bool(sha256))
    argv = (program, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "--no-replace-objects")
    return argv, {
        "GIT_DIR": str(folder),
        "GIT_OBJECT_DIRECTORY": str(place.common / "objects"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "HOME": str(folder),
        "LC_ALL": "C",
        "PATH": f"{Path(program).parent}{os.pathsep}{os.defpath}",
    }


_CONFIG = """\
[core]
    repositoryFormatVersion = {version}
    bare = true
    commitGraph = false
    deltaBaseCacheLimit = 256m
[protocol]
    allow = never
"""
_EXTENSION = """\
[extensions]
    objectFormat = sha256
"""


def _linked(path: Path) -> Path:
    """Return where a ``.git`` file leads; a folder is itself."""
    if path.is_file():
        text = os.fsdecode(_read(path)).strip()
        if text.startswith("gitdir: "):
            return path.parent / text.removeprefix("gitdir: ")
    return path


def _common(git_dir: Path) -> Path:
    path = git_dir / "commondir"
    return (git_dir / os.fsdecode(_read(path)).strip()).resolve() if path.is_file() else git_dir


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(FILE_MAX) if path.is_file() else b""
    except FileNotFoundError:
        return b""
    except (OSError, ValueError) as error:
        raise SettingError(f"cannot read {str(path)!r} of the git repository: {error}") from error
