"""What travels to the nodes of a cluster: the project's files, as one archive that equal files make equal.

What git ignores stays, and so do the folder of runs, caches, installed packages, and what looks like secrets.
"""

from __future__ import annotations

import os
import stat
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox.differences import INSTALLED

LIMIT_S = 30.0
"""How long git may take to list the files."""
KEPT_APART = frozenset({*INSTALLED, ".git", ".hg", ".svn", ".aws", ".ssh", ".gnupg", ".kube", "venv"})
"""Folders that never travel, wherever they lie."""
SECRETS = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", ".pgpass", ".pypirc", ".npmrc", ".git-credentials"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*"),
    *("id_ed25519*", "credentials", "credentials.json", "client_secret*.json", "service[-_]account*.json"),
    *("secrets.toml", "secrets.y*ml", "secrets.json", "htpasswd", ".htpasswd"),
)
"""Names of files that hold keys and passwords; examples of them (``.env.example``) may travel."""
EXAMPLES = ("*.example", "*.sample", "*.template")
FIRST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """The archive of a project."""

    path: Path
    stamp: str
    files: int
    secrets: tuple[str, ...]
    """Files that stayed because their names are those of secrets."""


def write_package(
    root: Path,
    folder: Path,
    *,
    left_out: Sequence[Path] = (),
    exclude: Sequence[str] = (),
    most: int,
    environ: Mapping[str, str],
) -> Package:
    """Write the archive of the project in `root` to `folder`, without the paths `left_out`.

    Raises SettingError when it has more than `most` bytes, which names what is largest in it.
    """
    names: list[str] = []
    secrets: list[str] = []
    apart = [path.relative_to(root).as_posix() for path in left_out if path.is_relative_to(root)]
    for name in sorted(set(_listed(root, environ))):
        if _stays(name, apart, exclude) or not _is_inside(root, name):
            continue
        (secrets if _is_secret(name) else names).append(name)
    target = folder / "project.zip"
    sizes = _write(root, names, target, most)
    if sum(sizes.values()) > most:
        raise SettingError(_too_large(sizes, most))
    content = target.read_bytes()
    return Package(path=target, stamp=stamp_bytes(content), files=len(names), secrets=tuple(secrets))


def _write(root: Path, names: Iterable[str], target: Path, most: int) -> Counter[str]:
    """Write the files and return their compressed sizes; stop soon after there are too many bytes."""
    sizes: Counter[str] = Counter()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in names:
            try:
                with (root / name).open("rb") as file:
                    content = file.read()
                    mode = os.fstat(file.fileno()).st_mode
            except FileNotFoundError:  # git knows it, and somebody has removed it
                continue
            except OSError as error:
                raise SettingError(
                    f"cannot read {root / name}, which would travel to the cluster: {error}"
                ) from error
            info = zipfile.ZipInfo(name, FIRST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if mode & stat.S_IXUSR else 0o644) << 16
            archive.writestr(info, content)
            sizes[name] = info.compress_size
            if sum(sizes.values()) > 2 * most:
                break
    return sizes


def _too_large(sizes: Counter[str], most: int) -> str:
    folders: Counter[str] = Counter()
    for name, size in sizes.items():
        folders[name.partition("/")[0]] += size
    shown = ", ".join(f"{name!r} {_size(size)}" for name, size in folders.most_common(3))
    return (
        f"the project has more than {_size(most)} of files that travel to the cluster; the largest are "
        f"{shown}. Let git ignore what the agent does not need, list it under [package] exclude in "
        "executor.toml, or raise max there"
    )


def _size(number: int) -> str:
    return f"{number / 2**20:.1f} MiB" if number >= 2**20 else f"{number / 2**10:.1f} KiB"


def _stays(name: str, apart: Sequence[str], exclude: Sequence[str]) -> bool:
    path = PurePosixPath(name)
    if not KEPT_APART.isdisjoint(path.parts[:-1]) or name.endswith((".pyc", ".pyo")):
        return True
    if any(name == one or name.startswith(f"{one}/") for one in apart):
        return True
    above = [name, *(parent.as_posix() for parent in path.parents)]
    return any(fnmatchcase(one, pattern.rstrip("/")) for pattern in exclude for one in above)


def _is_secret(name: str) -> bool:
    last = name.rpartition("/")[2].lower()
    return any(fnmatchcase(last, pattern) for pattern in SECRETS) and not any(
        fnmatchcase(last, pattern) for pattern in EXAMPLES
    )


def _is_inside(root: Path, name: str) -> bool:
    """Return whether a name is a file of the project: a link out of it stays here."""
    path = root / name
    try:
        return path.is_file() and path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # a link that leads to itself
        return False


def _listed(root: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the files of the project: what git does not ignore, or all where there is no repository."""
    if any((place / ".git").exists() for place in (root, *root.parents)):
        yield from _listed_by_git(root, environ)
    else:
        yield from _walked(root, root)


def _listed_by_git(root: Path, environ: Mapping[str, str]) -> Iterator[str]:
    own = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    arguments = ("-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or b""
        raise SettingError(
            f"git cannot say which files of {root} may travel to the cluster's nodes: {error} "
            f"{said.decode(errors='replace').strip()}"
        ) from error
    for name in filter(None, done.stdout.decode("utf-8", "surrogateescape").split("\0")):
        path = root / name
        if path.is_dir() and not path.is_symlink():  # a repository inside this one
            yield from (f"{name.rstrip('/')}/{inner}" for inner in _listed(path, environ))
        else:
            yield from _behind(root, path)


def _walked(root: Path, folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - KEPT_APART)
        for name in names + [one for one in folders if (Path(place) / one).is_symlink()]:
            yield from _behind(root, Path(place) / name)


def _behind(root: Path, path: Path) -> Iterator[str]:
    """Yield the name of a file, or of all files in the folder that a link inside the project leads to."""
    if not (path.is_symlink() and path.is_dir()):
        yield path.relative_to(root).as_posix()
        return
    target = path.resolve()
    if target.is_relative_to(root.resolve()) and not path.absolute().is_relative_to(target):
        for place, folders, names in os.walk(path):
            folders[:] = sorted(set(folders) - KEPT_APART)
            yield from ((Path(place) / name).relative_to(root).as_posix() for name in names)
