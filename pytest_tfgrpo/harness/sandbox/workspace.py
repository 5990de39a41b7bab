"""Workspaces: a private folder per rollout, created on first use."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.scenarios import Attachment


class Workspace:
    """The folder of one rollout; holds copies of the scenario's attachments."""

    __slots__ = ("_attachments", "_made", "_path")

    def __init__(self, path: Path, attachments: tuple[Attachment, ...] = (), *, left: bool = False) -> None:
        """`left`: keep the folder of an interrupted run, if it exists; otherwise start with a fresh one."""
        self._path = path
        self._attachments = attachments
        self._made = left and path.is_dir()

    @property
    def path(self) -> Path:
        """The folder, with the attachments in it; raises ProviderError when it cannot be made."""
        if not self._made:
            self._make()
            self._made = True
        return self._path

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files that were put into it."""
        return self._attachments

    @property
    def made(self) -> bool:
        """True if the folder was used."""
        return self._made

    def _make(self) -> None:
        try:
            if self._path.is_dir():  # what a killed attempt left behind must not help or hurt the next one
                shutil.rmtree(self._path)
            self._path.mkdir(parents=True)
            for attachment in self._attachments:
                target = self._path / attachment.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(attachment.path, target)
        except OSError as error:
            raise ProviderError(f"cannot make the workspace {self._path}: {error}", "workspace") from error

    def remove(self) -> None:
        """Delete the folder; does nothing when it was never made."""
        if self._made:
            shutil.rmtree(self._path, ignore_errors=True)
            self._made = False


@contextmanager
def work_folder(folder: Path | None) -> Iterator[Path]:
    """Give the folder of a run's workspaces; one made here, for None, is removed at the end."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tfgrpo-", ignore_cleanup_errors=True) as made:
        yield Path(made)
