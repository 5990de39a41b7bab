"""Files that git tracks, moved so that git knows: a pull request then shows a move as one.

The repository's hooks are not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pytest_tfgrpo.core.errors import PatternError

GIT_S = 60
FINISH = "mend this, then 'tfgrpo patterns lint --fix --by YOU' finishes what the log has"


def is_tracked(root: Path, path: Path) -> bool:
    """Return whether git tracks a file; nothing is tracked where there is no git."""
    done = _git(root, "ls-files", "--error-unmatch", "--", str(path))
    return done is not None and done.returncode == 0


def git_move(root: Path, source: Path, target: Path) -> None:
    """Move a tracked file, in the index too; raises PatternError."""
    _must(root, "mv", "--", str(source), str(target))


def git_add(root: Path, path: Path) -> None:
    """Put what a tracked file holds now into the index; raises PatternError."""
    _must(root, "add", "--", str(path))


def in_head(root: Path, path: Path) -> str | None:
    """Return what a file holds in HEAD; None where it is not in it."""
    done = _git(root, "show", f"HEAD:./{path.relative_to(root).as_posix()}")
    return None if done is None or done.returncode else done.stdout.decode("utf-8", "replace")


def _must(root: Path, *arguments: str) -> None:
    done = _git(root, *arguments)
    if done is None or done.returncode:
        said = (
            "it is not installed"
            if done is None
            else done.stderr.decode("utf-8", "replace").partition("\n")[0]
        )
        raise PatternError(f"git {arguments[0]} failed in {root}: {said[:500]}; {FINISH}")


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    program = shutil.which("git")
    if program is None:
        return None
    settings = ("core.hooksPath=/dev/null", "core.fsmonitor=false")
    argv = (
        program,
        *(part for setting in settings for part in ("-c", setting)),
        "--literal-pathspecs",
        *arguments,
    )
    environment = {
        "HOME": str(Path.home()),
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "PATH": f"{Path(program).parent}{os.pathsep}{os.defpath}",
    }
    try:
        return subprocess.run(
            argv,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PatternError(f"{program} does not work in {root}: {error}; {FINISH}") from error
