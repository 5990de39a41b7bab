"""Where the files of versions are: a folder, or a bucket under an fsspec URL.

The one file that imports ``fsspec``, inside its factory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKPOINTS, LOGS, CURVES = "rl-checkpoints", "rl-logs", "rl-viz"
"""Folders of the files: of a version, by its name; of a job's run and its curve, by the job's id."""
PACKS = "packs.json"
"""The prompt packs of a version, with their texts, in its folder."""
URL = "://"


class Artifacts(Protocol):
    """Files by name, such as ``rl-checkpoints/v2/policy.json``; each method raises StoreError."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return a file; None where there is none."""
        ...

    def remove(self, folder: str) -> None:
        """Remove a folder with all in it, if it is there."""
        ...

    def place(self, name: str) -> str:
        """Return the path, from the root, or URL of a file or folder."""
        ...


def open_artifacts(spec: str) -> Artifacts:
    """Return what a URL or path names; raises SettingError."""
    return _open_bucket(spec) if URL in spec else FolderArtifacts(Path(spec))


class FolderArtifacts:
    """Files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, data: bytes) -> None:
        """See `Artifacts`."""
        path = self._folder / name
        with _said(f"write {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, [data])

    def read(self, name: str) -> bytes | None:
        """See `Artifacts`."""
        path = self._folder / name
        with _said(f"read {path}"):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def remove(self, folder: str) -> None:
        """See `Artifacts`."""
        from shutil import rmtree

        path = self._folder / folder
        with _said(f"remove {path}"):
            if path.exists():
                rmtree(path)

    def place(self, name: str) -> str:
        """See `Artifacts`."""
        return str(self._folder.absolute() / name)


class BucketArtifacts:
    """Files below a URL; a write is one object, which buckets store whole or not at all."""

    def __init__(self, url: str, files: Any, root: str) -> None:
        """`files` is a file system of fsspec, and `root` the path in it."""
        self._url, self._files, self._root = url.rstrip("/"), files, PurePosixPath(root)

    def write(self, name: str, data: bytes) -> None:
        """See `Artifacts`."""
        path = self._root / name
        with _said(f"write {self.place(name)}"):
            try:
                self._files.pipe_file(str(path), data)
            except FileNotFoundError:
                if not self._files.exists(path.parts[0]):
                    raise  # no driver is to make a bucket by a wrong name
                self._files.makedirs(str(path.parent), exist_ok=True)
                self._files.pipe_file(str(path), data)

    def read(self, name: str) -> bytes | None:
        """See `Artifacts`."""
        with _said(f"read {self.place(name)}"):
            try:
                return bytes(self._files.cat_file(str(self._root / name)))
            except FileNotFoundError:
                return None

    def remove(self, folder: str) -> None:
        """See `Artifacts`."""
        path = str(self._root / folder)
        with _said(f"remove {self.place(folder)}"):
            if self._files.exists(path):
                self._files.rm(path, recursive=True)
                self._files.invalidate_cache()
                if self._files.exists(path):  # drivers raise nothing for files that may not be removed
                    raise PermissionError("files are left; has this user the right to remove them?")

    def place(self, name: str) -> str:
        """See `Artifacts`."""
        return f"{self._url}/{name}"


def _open_bucket(url: str) -> Artifacts:
    try:
        import fsspec
    except ImportError as error:
        raise SettingError(
            f"{url} needs fsspec; install it with: pip install 'pytest-tfgrpo[buckets]'"
        ) from error
    opened: Callable[[str], tuple[Any, str]] = fsspec.url_to_fs
    try:
        files, root = opened(url)
    except (ImportError, ValueError) as error:
        raise SettingError(f"cannot open {url}: {error}") from error
    return BucketArtifacts(url, files, root)


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Let errors of a disk or a bucket's driver say what was to be done."""
    try:
        yield
    except Exception as error:  # each driver has errors of its own
        raise StoreError(f"cannot {what}: {error}") from error
