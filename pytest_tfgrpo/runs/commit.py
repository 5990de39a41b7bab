"""The commit that a project is at, for the header of a run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMIT_S = 1.0
"""How long git may take; a run does not wait for a repository that is slow to look at."""
DIGITS = 12
OID = re.compile(r"^# branch\.oid ([0-9a-f]{40,64})$", re.MULTILINE)
STATUS = ("-c", "core.fsmonitor=false", "--no-optional-locks", "status")
ABOUT = ("--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
"""Writes nothing, and compares no contents but those of files that seem to have changed."""
FILTERS = ("config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
PERSONAL = ("system", "global")
"""Scopes of configuration that no repository brings with it."""
OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""A partial clone may name a program that fetches what is missing."""


def commit_of(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return the start of the id of the commit that `folder` is at, ``+dirty`` where tracked files differ.

    None without a commit, without git, and where git takes too long.
    """
    if not any((place / ".git").exists() for place in (folder, *folder.parents)):
        return None
    own = {name: value for name, value in environ.items() if not name.startswith("GIT_")} | OFFLINE
    try:
        filters = _git(folder, FILTERS, own, codes=(0, 1))
        told = _git(folder, (*STATUS, *ABOUT), own | _without(filters))
    except (OSError, subprocess.SubprocessError):
        return None
    found = OID.search(told)
    if found is None:
        return None
    dirty = any(not row.startswith("#") for row in told.splitlines())
    return found[1][:DIGITS] + ("+dirty" if dirty else "")


def _git(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str], codes: Sequence[int] = (0,)
) -> str:
    """Return what git prints; raises OSError or SubprocessError."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode not in codes:
        raise subprocess.SubprocessError(f"git ended with {done.returncode}")
    return done.stdout.decode("utf-8", "surrogateescape")


def _without(filters: str) -> dict[str, str]:
    """Return what switches off the filters of a repository's own configuration: each is a program."""
    parts = filters.split("\0")
    keys = {
        key.rpartition(".")[0]
        for scope, key in zip(parts[::2], parts[1::2], strict=False)  # a \0 is behind the last
        if scope not in PERSONAL
    }
    off = (("clean", ""), ("process", ""), ("required", "false"))
    pairs = [(f"{key}.{part}", value) for key in sorted(keys) for part, value in off]
    variables = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for i, (key, value) in enumerate(pairs):
        variables |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    return variables
