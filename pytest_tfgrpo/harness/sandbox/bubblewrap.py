"""Bubblewrap: a sandbox for the command actor without network and with a read-only root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pytest_tfgrpo.core.errors import ActorError

PROBE_TIMEOUT_S = 10.0
HIDDEN = (Path("/tmp"), Path("/run"))
"""Folders that a sandbox has to itself, empty."""


def open_bwrap() -> str:
    """Return the path of a bubblewrap that works here; raises ActorError saying what to do."""
    program = shutil.which("bwrap")
    if program is None:
        raise ActorError(
            "sandbox=bwrap needs bubblewrap, which is not installed; install it "
            "(apt-get install bubblewrap, dnf install bubblewrap) or set sandbox=none"
        )
    probe = wrap([shutil.which("true") or "true"], program, root=Path("/"), workspace=None)
    try:
        ran = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ActorError(f"sandbox=bwrap: {program} does not start: {error}") from error
    if ran.returncode != 0:
        reason = ran.stderr.decode("utf-8", "replace").strip()
        raise ActorError(
            f"sandbox=bwrap: {program} cannot make a sandbox here: {reason!r}; "
            "allow user namespaces, or set sandbox=none"
        )
    return program


def wrap(argv: list[str], program: str, *, root: Path, workspace: Path | None) -> list[str]:
    """Return the command line that runs `argv` in a sandbox that can write `workspace` and a private /tmp.

    /run is hidden because a read-only mount does not stop anybody from talking to the sockets in it. What the
    command line and `root` name below /tmp and /run stays to be seen.
    """
    mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for hidden in HIDDEN:
        mounts += ["--tmpfs", str(hidden)]
        for kept in sorted({path for arg in (*argv, str(root)) for path in _kept(arg, hidden)}):
            mounts += ["--ro-bind", str(kept), str(kept)]
    if workspace is not None:
        mounts += ["--bind", str(workspace), str(workspace), "--chdir", str(workspace)]
    isolation = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    return [program, *isolation, *mounts, "--remount-ro", "/", "--", *argv]


def _kept(argument: str, hidden: Path) -> list[Path]:
    """Return the entry of the folder `hidden` through which a path is reached, if it is."""
    path = Path(os.path.normpath(argument))
    if path == hidden or not path.is_relative_to(hidden) or not path.exists():
        return []
    return [hidden / path.relative_to(hidden).parts[0]]
