"""Repositories of real fixes, made from package indexes: releases as commits, patches as commits."""

from __future__ import annotations

import email.utils
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

BACKENDS = ("setuptools<81", "wheel", "poetry-core", "hatchling", "hatch-vcs", "flit-core")
"""What the releases are built with: pip reads the name of each from its build."""
DAY_S = 86_400
EARLIEST, LATEST = 1_262_304_000, time.time()
"""Times of files in a release that are believed, from 2010 on; reproducible builds have others."""
REPRODUCIBLE = 1_580_601_600
"""2020-02-02, which hatchling gives to each file."""
GENERATED = ("PKG-INFO", "setup.cfg.orig")


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceSet:
    """One package, whose history is made."""

    name: str
    versions: tuple[str, ...]
    """Its releases, oldest first; with `debian` the one that is patched."""
    needs: tuple[str, ...] = ()
    """What its tests import besides the package."""
    debian: str = ""
    """Debian's source package with the patches."""
    imports: str = "."
    """The folder in which the package lies."""


def _releases(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SETS = {
    "releases": (
        SourceSet(
            name="cachetools",
            versions=_releases(
                "4.2.0 4.2.1 4.2.2 4.2.3 4.2.4 5.0.0 5.1.0 5.2.0 5.2.1 5.3.0 5.3.1 5.3.2 5.3.3 5.4.0 5.5.0 "
                "5.5.1 5.5.2 6.0.0 6.1.0 6.2.0"
            ),
            imports="src",
        ),
        SourceSet(
            name="humanize",
            versions=_releases(
                "3.10.0 3.11.0 3.12.0 3.13.0 3.13.1 3.14.0 4.0.0 4.1.0 4.2.0 4.2.1 4.2.2 4.2.3 4.3.0 4.4.0 "
                "4.5.0 4.6.0 4.7.0 4.8.0 4.9.0 4.10.0 4.11.0 4.12.0 4.12.1 4.12.2 4.12.3"
            ),
            needs=("freezegun", "pytest-cov"),
            imports="src",
        ),
        SourceSet(
            name="tomlkit",
            versions=_releases(
                "0.7.0 0.7.1 0.7.2 0.8.0 0.9.0 0.9.1 0.9.2 0.10.0 0.10.1 0.10.2 0.11.0 0.11.1 0.11.2 0.11.3 "
                "0.11.4 0.11.5 0.11.6 0.11.7 0.11.8 0.12.0 0.12.1 0.12.2 0.12.3 0.12.4 0.12.5 0.13.0 0.13.1 "
                "0.13.2 0.13.3"
            ),
            needs=("pyyaml",),
        ),
        SourceSet(
            name="mistune",
            versions=_releases(
                "2.0.0 2.0.1 2.0.2 2.0.3 2.0.4 2.0.5 3.0.0 3.0.1 3.0.2 3.1.0 3.1.1 3.1.2 3.1.3 3.1.4"
            ),
            imports="src",
        ),
        SourceSet(
            name="sqlparse",
            versions=_releases("0.4.0 0.4.1 0.4.2 0.4.3 0.4.4 0.5.0 0.5.1 0.5.2 0.5.3"),
        ),
    ),
    "debian": (
        SourceSet(name="sqlparse", versions=("0.4.2",), debian="sqlparse"),
        SourceSet(name="Jinja2", versions=("3.1.2",), needs=("markupsafe",), debian="jinja2", imports="src"),
        SourceSet(
            name="Werkzeug",
            versions=("2.2.2",),
            needs=(
                "markupsafe",
                "pytest-timeout",
                "pytest-xprocess",
                "ephemeral-port-reserve",
                "cryptography",
            ),
            debian="python-werkzeug",
            imports="src",
        ),
        SourceSet(
            name="urllib3",
            versions=("1.26.12",),
            needs=(
                "mock",
                "tornado",
                "PySocks",
                "trustme",
                "python-dateutil",
                "pytest-timeout",
                "pytest-freezer",
                "six",
                "flaky",
            ),
            debian="python-urllib3",
            imports="src",
        ),
    ),
}
"""Set (a), consecutive source distributions; set (b), patches that Debian 12 carries."""


class Downloads:
    """What was fetched, kept in a folder: a second run needs no network."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pip: list[str] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def release(self, name: str, version: str) -> Path | None:
        """Return a source distribution, None if the index has none."""
        wanted = re.compile(rf"{re.escape(name)}-{re.escape(version)}\.tar\.gz", re.IGNORECASE)
        if found := self._matching(wanted):
            return found
        argv = [*self._downloader(), "--dest", str(self._folder), f"{name}=={version}"]
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self._matching(wanted)

    def patches(self, package: str) -> Path | None:
        """Return the folder of a Debian source package's patches, None where apt has no such package."""
        kept = self._folder / f"{package}-patches"
        if (kept / "series").is_file():
            return kept
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _apt_source(package, folder)
            for archive in folder.glob("*.debian.tar.*"):
                subprocess.run(["tar", "-xf", archive, "-C", folder, "debian/patches"], check=True)
                shutil.copytree(folder / "debian" / "patches", kept, dirs_exist_ok=True)
        return kept if (kept / "series").is_file() else None

    def _matching(self, wanted: re.Pattern[str]) -> Path | None:
        return next((path for path in self._folder.iterdir() if wanted.fullmatch(path.name)), None)

    def _downloader(self) -> Sequence[str]:
        if self._pip is None:
            home = self._folder / "backends"
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            pip = [str(home / "bin" / "pip"), "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "install", *BACKENDS], check=True)
            self._pip = [*pip, "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        return self._pip


def _apt_source(package: str, folder: Path) -> None:
    """Download a source package of Debian 12 with lists of our own: the machine's stay as they are."""
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (*Path("/etc/apt/sources.list.d").glob("debian*.sources"), Path("/etc/apt/sources.list"))
        if path.is_file()
    )
    mirrors = re.findall(r"^(?:URIs:|deb)\s+(\S+/debian(?:-security)?)/?\s", sources, re.MULTILINE)
    lines = [
        f"deb-src {mirror} bookworm{'-security' if mirror.rstrip('/').endswith('security') else ''} main\n"
        for mirror in dict.fromkeys(mirrors)
    ]
    (folder / "sources.list").write_text("".join(lines), encoding="utf-8")
    for name in ("lists/partial", "cache"):
        (folder / name).mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
    }
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
    for words in (["update"], ["source", "--download-only", package]):
        subprocess.run([*apt, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_repository(source: SourceSet, downloads: Downloads, folder: Path) -> Iterator[str]:
    """Make the git repository of a package in `folder`, its first commit tagged; yield what is left out."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    date = 0
    for version in source.versions:
        archive = downloads.release(source.name, version)
        if archive is None:
            yield f"{source.name} {version}: the index has no source distribution"
            continue
        date = _date(archive) or date + DAY_S
        _replace(folder, archive)
        _commit(folder, f"Release {version} of {source.name}", date or EARLIEST)
        if not git(folder, "tag", "--list", "first"):
            git(folder, "tag", "first")
    if source.debian:
        yield from _patch(source, downloads.patches(source.debian), folder, date or EARLIEST)


def _patch(source: SourceSet, patches: Path | None, folder: Path, date: int) -> Iterator[str]:
    """Commit each patch of a series; yield those that do not apply."""
    if patches is None:
        yield f"{source.name}: apt has no source package {source.debian!r}"
        return
    for line in (patches / "series").read_text(encoding="utf-8").splitlines():
        name = line.split("#")[0].strip()
        if not name:
            continue
        text = (patches / name).read_text(encoding="utf-8", errors="replace")
        applied = subprocess.run(
            [
                "patch",
                "-p1",
                "--forward",
                "--batch",
                "--silent",
                "--no-backup-if-mismatch",
                "-i",
                patches / name,
            ],
            cwd=folder,
            capture_output=True,
        )
        date = max(_header_date(text), date + 1)
        if applied.returncode:
            git(folder, "reset", "--quiet", "--hard")
            git(folder, "clean", "--quiet", "-fd")
            yield f"{source.name} {name}: it does not apply to the release"
        else:
            _commit(folder, _subject(text, name), date)


def _replace(folder: Path, archive: Path) -> None:
    """Make a release the content of the repository, without what its build adds."""
    for path in folder.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with tempfile.TemporaryDirectory() as name:
        words = ["--exclude=.git", "--no-same-owner", "--no-same-permissions"]
        subprocess.run(["tar", "-xzf", archive, "-C", name, *words], check=True)
        (top,) = Path(name).iterdir()
        for path in top.iterdir():
            shutil.move(path, folder / path.name)
    for path in [*folder.rglob("*.egg-info"), *(folder / name for name in GENERATED)]:
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()


def _date(archive: Path) -> int:
    """Return the newest time of a file in a release that a build did not choose; 0 if there is none."""
    with tarfile.open(archive) as tar:
        times = {int(member.mtime) for member in tar}
    return max((at for at in times if EARLIEST < at < LATEST and at != REPRODUCIBLE), default=0)


def _subject(text: str, name: str) -> str:
    """Return the message of a patch: its subject and description, or its name."""
    head = text.split("\n---", 1)[0].split("\ndiff ", 1)[0]
    found = re.search(r"^(?:Subject|Description):\s*(.+(?:\n[ \t]+.+)*)", head, re.MULTILINE)
    if not found:
        return name
    return re.sub(r"^\[PATCH[^]]*\]\s*", "", re.sub(r"\s+", " ", found[1]).strip())


def _header_date(text: str) -> int:
    found = re.search(r"^Date:\s*(.+)$", text, re.MULTILINE)
    try:
        return int(email.utils.parsedate_to_datetime(found[1]).timestamp()) if found else 0
    except ValueError:
        return 0


def _commit(folder: Path, message: str, date: int) -> None:
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message, date=date)


def git(folder: Path, *words: str, date: int = 0) -> str:
    """Run git in a repository without the user's configuration; return what it prints."""
    person = {
        f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _PERSON.items()
    }
    when = {f"GIT_{who}_DATE": f"{date} +0000" for who in ("AUTHOR", "COMMITTER")} if date else {}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    ran = subprocess.run(
        ["git", *words], cwd=folder, env=alone | person | when, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


_PERSON = {"NAME": "History", "EMAIL": "history@example.org"}
