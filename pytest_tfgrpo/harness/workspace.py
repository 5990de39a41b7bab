"""Workspaces: a private folder per rollout, made when first asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.records import Attachment


class Workspace:
    """The folder of one rollout; holds copies of the scenario's attachments."""

    __slots__ = ("_attachments", "_made", "_path")

    def __init__(self, path: Path, attachments: tuple[Attachment, ...] = ()) -> None:
        self._path = path
        self._attachments = attachments
        self._made = False

    @property
    def path(self) -> Path:
        """The folder, with the attachments in it; raises ProviderError when it cannot be made."""
        if not self._made:
            self._make()
            self._made = True
        return self._path

    @property
    def made(self) -> bool:
        """True when somebody asked for the folder."""
        return self._made

    def _make(self) -> None:
        try:
            self._path.mkdir(parents=True, exist_ok=True)
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
