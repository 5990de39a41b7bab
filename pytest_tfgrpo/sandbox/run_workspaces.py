"""The workspaces of a run: one private folder in the temporary one, and the removal of what is in it.

What agents leave must not lie below the project, where pytest would collect it, nor near the journal, which
holds the answers. A resumed run finds it by a pointer in the run's folder.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import queue
import re
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import WORKSPACES_PREFIX
from pytest_tfgrpo.core.scenarios import Attachment, WorkspaceArchive
from pytest_tfgrpo.sandbox.paths import read_untrusted
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.removal import OPEN, open_folder, remove, remove_few
from pytest_tfgrpo.sandbox.workspace import PRIVATE, Workspace, identity

TEMPORARY = ("/tmp", "/var/tmp")
"""Tried where the temporary folder of this process lies in the project."""
CLOSE_S = 10.0
"""How long the end of a run waits for the removal of its workspaces; a later run removes the rest."""
SWEEP_S = 2.0
"""How much of that goes to what runs before have left."""
REMOVERS = 6
"""Threads that remove workspaces: on some disks each folder takes milliseconds."""
SLOW_S, LEFT_TO_THREADS = 0.002, 50
"""After a removal that held the engine up for so long, so many are left to those threads."""
LOCK_TRIES, LOCK_PAUSE_S = 10, 0.01
KEPT = "-kept"
"""End of the name of a folder that a resumed run needs."""
KEPT_S = 7 * 86_400.0
"""How long such a folder of a dead run stays when the run is not resumed."""
POINTER_BYTES = 10_000


def temporary_folder(root: Path, out: Path | None) -> Path:
    """Return a temporary folder outside the project and the output folder; raises SettingError without one.

    In a project that is the whole file system, no folder is outside; what lies there is still not collected.
    """
    usual = tempfile.gettempdir()
    tried = [Path(os.path.realpath(name)) for name in dict.fromkeys((usual, *TEMPORARY))]
    inside = [Path(os.path.realpath(folder)) for folder in (root, out) if folder is not None]
    inside = [folder for folder in inside if folder != Path(folder.anchor)]
    for folder in tried:
        outside = not any(folder.is_relative_to(project) for project in inside)
        if outside and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise SettingError(
        f"agents work in a temporary folder outside the project, and {usual!r} lies in it; "
        "set TMPDIR to a folder outside the project and the output folder"
    )


class RunWorkspaces:
    """The folder of a run's workspaces, made with the first of them."""

    def __init__(self, run_id: str, temporary: Path, pointer: Path | None = None) -> None:
        """Take over what the pointer names, or nothing; `pointer` is a file that a resumed run reads.

        Without `pointer` a resumed run needs nothing of what is left.
        """
        self._temporary = temporary
        self._pointer = pointer
        self._lock: int | None = None
        self._mutex = threading.RLock()
        self._identity: tuple[int, int] | None = None
        self._discarded: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        self._left_to_threads = 0
        self._numbers = count()
        self._ending = threading.Event()
        self._deadline = math.inf
        self._kept = False
        self._left_over = ""
        self._remover = Thread(target=self._remove_all, name="tfgrpo-removal", daemon=True)
        name = f"{WORKSPACES_PREFIX}{run_id}.{secrets.token_hex(4)}{KEPT if pointer is not None else ''}"
        self._folder = temporary / name
        found = None if pointer is None else _pointed_at(pointer, run_id)
        if found is not None and (lock := _locked(found)) is not None:
            self._folder = found
            self._adopt(lock)

    def new(
        self,
        rollout_id: str,
        attachments: tuple[Attachment, ...],
        archive: WorkspaceArchive | None = None,
        environment: BuiltEnvironment | None = None,
    ) -> Workspace:
        """Return the workspace of a rollout that is still to be made."""
        return Workspace(
            self._folder / rollout_id,
            attachments,
            make=self._make_folder,
            archive=archive,
            environment=environment,
        )

    def left(
        self,
        rollout_id: str,
        attachments: tuple[Attachment, ...],
        archive: WorkspaceArchive | None = None,
        environment: BuiltEnvironment | None = None,
    ) -> Workspace | None:
        """Return the workspace that a rollout of a run before left; None when it is gone."""
        workspace = Workspace(
            self._folder / rollout_id,
            attachments,
            left=True,
            make=self._make_folder,
            archive=archive,
            environment=environment,
        )
        return workspace if self._identity is not None and workspace.made else None

    def discard(self, workspace: Workspace) -> None:
        """Remove the workspace of a rollout that is over, beside the run; a stuck one stays until the end."""
        if workspace.made and not self._remove_now(workspace.path):
            self._discarded.put(workspace.path)
        workspace.forget(over=True)

    def renew(self, workspace: Workspace) -> None:
        """Let a rollout that is made again start with an empty workspace."""
        if workspace.made:
            with suppress(OSError):
                self._set_aside(workspace.path)
        workspace.forget(over=False)

    def close(self, *, keep: bool) -> str:
        """Remove the folder, unless a resumed run needs it; return what to say of what could not be removed.

        Waits at most about `CLOSE_S`; what is left then, a later run removes. The first call counts.
        """
        if self._identity is None or self._ending.is_set():
            return ""
        self._deadline = time.monotonic() + CLOSE_S
        self._kept = keep and self._pointer is not None
        self._ending.set()
        for _ in range(REMOVERS):
            self._discarded.put(None)
        self._remover.join(CLOSE_S + 1.0)
        slow = "the removal does not end" if self._remover.is_alive() else ""
        self._identity = None
        if self._lock is not None:
            os.close(self._lock)
        if self._kept:
            return ""
        if self._pointer is not None:
            with suppress(OSError):
                self._pointer.unlink(missing_ok=True)
        reason = self._left_over or slow
        return (
            f"agents left files that could not be removed ({reason}); they are in {self._folder}, and later "
            "runs try again"
            if reason
            else ""
        )

    def _make_folder(self, path: Path) -> None:
        """Make the folder of a workspace; raises OSError.

        Each call of the kernel here costs a run of many short rollouts: the engine may lose its turn by it.
        """
        with self._mutex:
            if self._identity is None or identity(self._folder, PRIVATE) != self._identity:
                self._require_folder()
            try:
                os.mkdir(path, PRIVATE)  # noqa: PTH102 - called for each rollout
            except FileExistsError:  # what a killed attempt left must neither help nor hurt the next one
                self._set_aside(path)
                path.mkdir(PRIVATE)

    def _remove_now(self, path: Path) -> bool:
        """Remove a small workspace in this thread, unless the disk is slow; return whether it is gone."""
        if self._left_to_threads:
            self._left_to_threads -= 1
            return False
        began = time.perf_counter()
        gone = remove_few(path)
        if time.perf_counter() - began > SLOW_S:
            self._left_to_threads = LEFT_TO_THREADS
        return gone

    def _require_folder(self) -> None:
        """Make the folder, also again after an agent removed or replaced it; raises OSError."""
        if self._identity is not None and identity(self._folder) == self._identity:
            os.close(open_folder(self._folder))
            return
        if os.path.lexists(self._folder):
            self._folder.rename(f"{self._folder}.{secrets.token_hex(4)}")
        self._folder.mkdir(PRIVATE)
        if self._lock is not None:
            os.close(self._lock)
        self._adopt(self._lock_new())
        if self._pointer is not None:
            if self._pointer.is_symlink() or not self._pointer.is_file():  # an agent may have put it there
                self._pointer.unlink(missing_ok=True)
            write_json(self._pointer, {"folder": str(self._folder)})

    def _lock_new(self) -> int | None:
        """Lock the folder, which was made just now; raises OSError.

        In between another run may take it for one that a dead run left, and remove it.
        """
        for _ in range(LOCK_TRIES):
            if (lock := _locked(self._folder)) is not None:
                return lock
            time.sleep(LOCK_PAUSE_S)
            if not os.path.lexists(self._folder):
                self._folder.mkdir(PRIVATE)
        return None

    def _adopt(self, lock: int | None) -> None:
        self._lock = lock
        self._identity = identity(self._folder)
        if not self._remover.is_alive():
            self._remover.start()

    def _set_aside(self, path: Path) -> None:
        """Move what is at `path` out of the way, to be removed; raises OSError."""
        moved = self._folder / f".{next(self._numbers)}-{secrets.token_hex(4)}"
        path.rename(moved)
        self._discarded.put(moved)

    def _remove_discarded(self) -> None:
        while (path := self._discarded.get()) is not None:
            remove(path, self._is_late)

    def _remove_all(self) -> None:
        work = self._remove_discarded
        others = [Thread(target=work, name="tfgrpo-removal", daemon=True) for _ in range(REMOVERS)]
        for other in others:
            other.start()
        _sweep(self._temporary, self._has_swept)
        for other in others:
            other.join()
        if not self._kept:
            self._left_over = remove(self._folder, self._is_late)

    def _has_swept(self) -> bool:
        return time.monotonic() > self._deadline - CLOSE_S + SWEEP_S

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline


def _pointed_at(pointer: Path, run_id: str) -> Path | None:
    """Return the folder that a pointer names, if it is ours: an agent may have written the pointer."""
    try:
        folder = Path(json.loads(read_untrusted(pointer.parent, pointer.name, POINTER_BYTES))["folder"])
        name = rf"{WORKSPACES_PREFIX}{re.escape(run_id)}\.[0-9a-f]{{8}}{KEPT}"
        if re.fullmatch(name, folder.name) and str(folder) == os.path.realpath(folder) and _is_ours(folder):
            return folder
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def _is_ours(folder: Path) -> bool:
    """Return whether a folder is one that this user alone can enter, where no other user can replace it."""
    try:
        own, above = folder.lstat(), folder.parent.stat()
    except OSError:
        return False
    user = os.geteuid()
    private = stat.S_ISDIR(own.st_mode) and own.st_uid == user and not own.st_mode & 0o077
    safe = above.st_mode & stat.S_ISVTX or not above.st_mode & 0o022
    return bool(private and safe and above.st_uid in (0, user))


def _locked(folder: Path) -> int | None:
    """Return the descriptor that holds the lock on a folder; None when another process has it."""
    try:
        handle = os.open(folder, OPEN)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _sweep(temporary: Path, stop: Callable[[], bool]) -> None:
    """Remove what dead runs of this user left in a temporary folder."""
    with suppress(OSError):
        for folder in temporary.glob(f"{WORKSPACES_PREFIX}*"):
            if not _is_ours(folder) or _is_kept(folder):
                continue
            lock = _locked(folder)
            if lock is not None:
                remove(folder, stop)
                os.close(lock)


def _is_kept(folder: Path) -> bool:
    """Return whether a run may still be resumed that needs this folder; raises OSError."""
    return folder.name.endswith(KEPT) and time.time() - folder.lstat().st_mtime < KEPT_S
