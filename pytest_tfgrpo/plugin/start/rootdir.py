"""Rootdir and ini file: refuse a value that moves them, since pytest took it for a path to test.

pytest looks for them before it knows any option of a plugin. Of ``--tfgrpo-out=DIR`` it then sees a word that
starts with a dash, and a path.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_tfgrpo.core.files import INI_FILES
from pytest_tfgrpo.core.settings import TABLE
from pytest_tfgrpo.plugin.start import options

LOOKED_FOR = (*INI_FILES, "setup.py")
"""What makes a folder a rootdir, or may."""
MADE = {"--tfgrpo-out": True, "--tfgrpo-record": False}
"""Options that name what a run makes: on the next run it is there. True: a folder."""


def require_unmoved(config: pytest.Config) -> None:
    """Raise pytest.UsageError where a value after a space changes which ini file or rootdir pytest finds."""
    start = config.invocation_params.dir
    tested = [_folder(path) for path in _existing(start, config.getoption("file_or_dir") or ())]
    for flag, value in _spaced([*_expanded(start, options.words(config))]):
        folder = _taken_for(config, flag, value)
        if folder is not None and _moves(config, tested, folder):
            raise pytest.UsageError(
                f"{flag} {value!r}: pytest takes a value after a space for a path to test, and looks for its "
                f"ini file and rootdir there; write {flag}={shlex.quote(value)}"
            )


def _expanded(start: Path, words: Iterable[str]) -> Iterator[str]:
    """Yield the words of the command line, with those of the files that ``@FILE`` names."""
    for word in words:
        file = start / word[1:]
        if word.startswith("@") and file.is_file():
            yield from _expanded(start, file.read_text(errors="replace").splitlines())
        else:
            yield word


def _spaced(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of this plugin whose value is a word of its own, each with the value."""
    flags = {"--tfgrpo-resume", *(setting.flag for setting in TABLE)}
    ours = words[: words.index("--")] if "--" in words else words
    for flag, value in pairwise(ours):
        if flag in flags and not value.startswith("-"):
            yield flag, value


def _taken_for(config: pytest.Config, flag: str, value: str) -> Path | None:
    """Return the folder that pytest takes a value for, now or once the run has made it, else None."""
    start = config.invocation_params.dir
    found = next(_existing(start, [value]), None)
    if found is not None:
        return _folder(found)
    path = Path(os.path.normpath(start / value))
    if flag not in MADE or path != Path(os.path.normpath(config.rootpath / value)):
        return None
    return path if MADE[flag] else path.parent


def _existing(start: Path, words: Iterable[str]) -> Iterator[Path]:
    for word in words:
        path = Path(os.path.normpath(start / word.partition("::")[0]))
        if os.access(path, os.F_OK):  # unlike Path.exists(), no error on a name that is too long
            yield path


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _moves(config: pytest.Config, tested: Sequence[Path], folder: Path) -> bool:
    """Return whether pytest finds an ini file or rootdir from `folder` that it does not find without.

    It looks upwards. Where it meets the same files on both ways, it finds the same, whatever is in them.
    """
    start, given = config.invocation_params.dir, config.getoption("inifilename", None)
    without, with_it = _ancestor(tested or [start]), _ancestor([*tested, folder])
    files = _files_above(without)
    if given is None and files != _files_above(folder):
        return True
    known = files if given is None else (start / given).is_file()
    if known or config.getoption("rootdir", None) is not None:
        return False
    return _rootdir(start, without) != _rootdir(start, with_it)


def _files_above(folder: Path) -> list[Path]:
    return [
        path for base in (folder, *folder.parents) for name in LOOKED_FOR if (path := base / name).is_file()
    ]


def _ancestor(folders: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(folders))


def _rootdir(start: Path, ancestor: Path) -> Path:
    """Return the rootdir where there is no file that makes one."""
    common = _ancestor([start, ancestor])
    return ancestor if common == common.parent else common
