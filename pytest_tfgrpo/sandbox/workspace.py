"""Workspaces: a private folder per rollout, created on first use."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.scenarios import Attachment, WorkspaceArchive
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.bases import lay_base, open_base
from pytest_tfgrpo.sandbox.removal import open_folder, remove
from pytest_tfgrpo.sandbox.tree_writer import TreeWriter

if TYPE_CHECKING:
    from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment

PRIVATE = 0o700
"""Mode of a folder that its owner alone can enter."""
LINKS_MAX = 40


class Workspace:
    """The folder of one rollout; holds what the scenario's archive has, and copies of its attachments."""

    __slots__ = ("_archive", "_attachments", "_environment", "_made", "_make_folder", "_over", "_path")

    def __init__(
        self,
        path: Path,
        attachments: tuple[Attachment, ...] = (),
        *,
        left: bool = False,
        make: Callable[[Path], None] | None = None,
        archive: WorkspaceArchive | None = None,
        environment: BuiltEnvironment | None = None,
    ) -> None:
        """`left`: keep the folder of an interrupted run, if it exists; otherwise start with a fresh one.

        `make` makes an empty folder at a path; without it what is there is removed first.
        """
        self._path = path
        self._attachments = attachments
        self._archive = archive
        self._environment = environment
        self._make_folder = make or _make_folder
        self._made = left and identity(path) is not None
        self._over = False

    def __reduce__(self) -> tuple[Callable[..., Workspace], tuple[object, ...]]:
        """Travel to another process of this machine; it makes what is not made yet in its own way."""
        kept = (self._path, self._attachments, self._archive, self._environment, self._made)
        return _elsewhere, kept

    @property
    def path(self) -> Path:
        """The folder, with the attachments in it; raises ProviderError when it cannot be made, or is over."""
        if not self._made:
            self.make()
        return self._path

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files that were put into it."""
        return self._attachments

    @property
    def archive(self) -> WorkspaceArchive | None:
        """The archive of which it is made; None: it starts with nothing but the attachments."""
        return self._archive

    @property
    def environment(self) -> BuiltEnvironment | None:
        """What programs in it run with; None: what is on this machine."""
        return self._environment

    @property
    def links(self) -> Mapping[str, Path]:
        """Links that lead from it into the environment, by name."""
        return {} if self._environment is None else self._environment.links

    @property
    def made(self) -> bool:
        """True if the folder was used."""
        return self._made

    def make(self) -> None:
        """Make the folder with the attachments in it; raises ProviderError when that is not possible."""
        if self._over:
            raise ProviderError(f"the workspace {self._path} is removed: its rollout is over", "workspace")
        try:
            self._make_folder(self._path)
            if self._archive is not None:
                self._lay_project(self._archive)
            else:
                self._copy_attachments()
            self._made = True
        except (OSError, ValueError) as error:
            if self._archive is not None:  # what there is of it may fill the disk
                remove(self._path)
            raise ProviderError(f"cannot make the workspace {self._path}: {error}", "workspace") from error

    def _copy_attachments(self) -> None:
        for attachment in self._attachments:
            target = self._path / attachment.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(attachment.path, target)

    def _lay_project(self, archive: WorkspaceArchive) -> None:
        """Write the project, and what belongs to it, where links of the project lead nowhere else."""
        base = open_base(archive)
        lay_base(base, self._path, self.links)
        with TreeWriter(self._path) as writer:
            for attachment in self._attachments:
                name = behind_links(attachment.name, base.entries) if attachment.overlay else attachment.name
                writer.file(name, attachment.path.read_bytes(), executable=False)
            for name, target in self.links.items():
                writer.link(name, str(target))

    def secure(self) -> None:
        """Put an empty folder where the agent removed it or left something else; make it readable again.

        Checks look there next: a program must not run where a link leads, and what an agent did to its own
        folder is no error of ours. Raises ProviderError when it cannot be made.
        """
        if not self._made or identity(self._path, PRIVATE) is not None:
            return
        try:
            if identity(self._path) is None:
                self._make_folder(self._path)
            os.close(open_folder(self._path))
        except OSError as error:
            raise ProviderError(f"cannot restore the workspace {self._path}: {error}", "workspace") from error

    def withdraw(self) -> None:
        """Take the overlay out, whatever the agent did to it, and put back what it covered of the project.

        Raises ProviderError when the folder cannot be written.
        """
        covered = [attachment.name for attachment in self._attachments if attachment.overlay]
        if not covered or not self._made:
            return
        try:
            base = {} if self._archive is None else open_base(self._archive).entries
            with TreeWriter(self._path) as writer:
                for name in (behind_links(name, base) for name in covered):
                    writer.delete(name)
                    if (own := base.get(name)) is not None and own.link is None:
                        writer.file(name, own.data, executable=own.executable)
        except (OSError, ValueError) as error:
            raise ProviderError(
                f"cannot write to the workspace {self._path}: {error}", "workspace"
            ) from error

    def forget(self, *, over: bool) -> None:
        """Count as unused: the folder belongs to somebody else now; `over`: it is not made again."""
        self._made = False
        self._over = over


def _elsewhere(
    path: Path,
    attachments: tuple[Attachment, ...],
    archive: WorkspaceArchive | None,
    environment: BuiltEnvironment | None,
    made: bool,
) -> Workspace:
    return Workspace(path, attachments, left=made, archive=archive, environment=environment)


def behind_links(name: str, base: Mapping[str, ArchiveEntry]) -> str:
    """Return where a name leads by the links of a project; as it is where they lead in a circle or out."""
    found = name
    for _ in range(LINKS_MAX):
        parts = found.split("/")
        steps = ("/".join(parts[: n + 1]) for n in range(len(parts)))
        link = next(
            ((step, one.link) for step in steps if (one := base.get(step)) and one.link is not None), None
        )
        if link is None:
            return found
        step, target = link
        found = os.path.normpath(Path(step).parent / (target + found[len(step) :]))
        if found.startswith(("/", "..")):
            break
    return name


def identity(path: Path, rights: int = 0) -> tuple[int, int] | None:
    """Return device and inode of a folder that is no link and gives `rights`, None when there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    found = stat.S_ISDIR(status.st_mode) and status.st_mode & rights == rights
    return (status.st_dev, status.st_ino) if found else None


def _make_folder(path: Path) -> None:
    if reason := remove(path):
        raise OSError(f"what was there before cannot be removed: {reason}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(PRIVATE)
