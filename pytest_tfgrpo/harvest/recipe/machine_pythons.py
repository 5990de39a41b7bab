"""Interpreters: the Pythons of this machine by minor version; none is ever downloaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROBE_S = 10.0
SHIMS = "shims"
"""Folder of pyenv's scripts, which start a Python only where it is chosen."""


def find_interpreters(search: str, pyenv: Path | None = None) -> dict[str, Path]:
    """Return the Pythons by minor version: the running one, those on the PATH `search`, pyenv's."""
    found: dict[str, Path] = {}
    for path in (*_running(), *_on_path(search), *_of_pyenv(pyenv or Path.home() / ".pyenv")):
        if (version := _version(path)) and version not in found:
            found[version] = path
    return dict(sorted(found.items(), key=lambda item: int(item[0].partition(".")[2])))


def _running() -> Iterator[Path]:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    below = Path(sys.base_exec_prefix) / "bin" / f"python{version}"
    yield below if below.exists() else Path(sys.executable)


def _on_path(search: str) -> Iterator[Path]:
    for folder in map(Path, filter(os.path.isabs, search.split(os.pathsep))):
        if folder.name != SHIMS and folder.is_dir():
            names = (p for p in folder.glob("python3.*") if re.fullmatch(r"python3\.[0-9]+", p.name))
            yield from sorted(names)


def _of_pyenv(root: Path) -> Iterator[Path]:
    def number(path: Path) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall("[0-9]+", path.name))

    folders = [path for path in root.glob("versions/*") if re.fullmatch(r"3\.[0-9]+\.[0-9]+", path.name)]
    yield from (path / "bin" / "python" for path in sorted(folders, key=number, reverse=True))


@cache
def _version(path: Path) -> str | None:
    """Return the minor version of a Python; None where it does not start."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        ran = subprocess.run(
            [path, "-I", "-S", "-c", program], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = ran.stdout.decode("ascii", "replace").strip()
    return text if ran.returncode == 0 and re.fullmatch(r"3\.[0-9]+", text) else None
