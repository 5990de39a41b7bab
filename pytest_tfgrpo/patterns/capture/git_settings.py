"""What the settings of git say of how files are compared and converted; none of them runs a program."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_shadow import RepositoryPlace

TIMEOUT_S = 60
KEPT = frozenset(
    {
        *("core.autocrlf", "core.eol", "core.checkroundtripencoding"),
        *("core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode"),
        *("core.checkstat", "core.trustctime", "core.sharedrepository"),
        *("core.sparsecheckout", "core.sparsecheckoutcone"),
    }
)
"""Keys that a snapshot follows, so that a file that git holds to be unchanged is unchanged in it."""
_FILES = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}
"""Keys that name a file, with its name where it is not set."""
_FILTER = re.compile(r"filter\.(.+)\.(?:clean|process)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class GitSettings:
    """The settings that a snapshot follows, and the filters that it does not run."""

    kept: Mapping[str, str]
    filters: frozenset[str]
    """Names of filters that git would run, such as ``lfs``."""


def read_git_settings(place: RepositoryPlace, environ: Mapping[str, str]) -> GitSettings:
    """Return what git's files of settings say, those of the user and of the repository; raises SettingError.

    Of `environ` the places of these files are used.
    """
    program = shutil.which("git")
    if program is None:
        raise SettingError("git is not installed, or not on PATH; install it to capture work")
    known = {
        name: value
        for name, value in environ.items()
        if name in ("HOME", "XDG_CONFIG_HOME", "PATH") or name.startswith("GIT_CONFIG")
    }
    done = subprocess.run(
        (program, f"--git-dir={place.git_dir}", "--no-pager", "config", "--list", "-z"),
        env={**known, "LC_ALL": "C"},
        cwd=place.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[:500]
        raise SettingError(f"git cannot read the settings of {str(place.root)!r}: {said!r}; correct them")
    rows = [row.partition("\n") for row in done.stdout.decode("utf-8", "surrogateescape").split("\0") if row]
    values = {key: value if has_value else "true" for key, has_value, value in rows}
    kept = {key: value for key, value in values.items() if key in KEPT}
    for key, name in _FILES.items():
        if path := _path(values.get(key), name, environ):
            kept[key] = path
    filters = (_FILTER.fullmatch(key) for key, value in values.items() if value)
    return GitSettings(kept=kept, filters=frozenset(found[1] for found in filters if found))


def _path(value: str | None, name: str, environ: Mapping[str, str]) -> str:
    """Return the file that a key names, or the one that git reads without it."""
    home = environ.get("HOME", "")
    if value is not None:
        return str(Path(home) / value[2:]) if value.startswith("~/") and home else value
    folder = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return f"{folder}/git/{name}" if folder else ""
