"""Files that are none: a pipe without a writer, an endless device, a folder, a socket, a huge file."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**12)


KINDS: tuple[Callable[[Path], None], ...] = (pipe, endless, folder, listening, huge)
