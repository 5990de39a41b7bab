"""Examples of the documentation: fenced blocks, where they run, and how their output is compared.

A block says what it is by its language and the words after it:

* ``console``: each line that starts with ``$`` is run in the page's folder, what follows it is its output;
  ``exit=1`` is the exit code of the last command;
* ``sh``: a command; a block ``text output`` right after it is its output, ``never-run`` leaves it alone;
* any language with ``file=NAME``: is written to that file (``append=NAME``: added to it) before what follows;
* ``yaml scenario``, ``yaml checks``: is loaded as a scenario file, or as the checks of one;
* ``yaml models``, ``yaml gates``: is loaded as a file of endpoints and prices, or of named gates;
* ``toml live``: is loaded as the configuration of live RL, from the file that ``file=NAME`` names;
* ``json schema=NAME``: is valid under a packaged schema;
* ``python``: is run, with ``never-run`` only compiled; ``sql`` is only shown;
* ``ini`` and ``toml``: every key of ours is a setting with a valid value.

``<!-- in: NAME -->`` starts a new, empty folder; ``<!-- in: NAME, a copy of the checkout -->`` one with the
project's fixtures. In an output ``...`` stands for anything, on a line of its own for any lines; run ids and
times match any others.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support import ROOT

CHECKOUT = ("fixtures", "prompt-packs", "pyproject.toml", "conftest.py", "tests/telemetry/traces/recorded")
SET_UP = re.compile(r"^python3 -m venv \.venv && \.venv/bin/pip install -q \S+ && ")
_FENCE = re.compile(
    r"^```(\S*)([^\n]*)\n(.*?)^```$|^<!-- in: ([^,>]+?)(, a copy of the checkout)? -->$", re.M | re.S
)
LOOSE = {
    r"\.\.\.": ".*?",
    r"\d{8}T\d{6}-[0-9a-f]{8}": r"\d{8}T\d{6}-[0-9a-f]{8}",
    r"\d+(?:\.\d+)? ?m?s\b": r"\d+(?:\.\d+)? ?m?s",
    r" {2,}": " +",
    r"={3,}": "=+",
}
"""What differs from run to run, and what it must match."""
_LOOSE = re.compile(f"({'|'.join(LOOSE)})")


class Block(NamedTuple):
    """A fenced block of a page, or the start of a folder."""

    line: int
    language: str
    words: tuple[str, ...]
    """What follows the language."""
    text: str
    folder: str = ""
    """Not empty: no block, but the name of the folder that starts here."""
    checkout: bool = False

    def option(self, name: str) -> str | None:
        """Return the value of ``name=value`` among the words."""
        return next((w.partition("=")[2] for w in self.words if w.startswith(f"{name}=")), None)


class Done(NamedTuple):
    """What became of a command."""

    command: str
    output: str
    code: int


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the blocks of a page's text."""
    for match in _FENCE.finditer(page):
        line = page.count("\n", 0, match.start()) + 1
        if match[4]:
            yield Block(line, "", (), "", match[4], match[5] is not None)
        else:
            yield Block(line, match[1], tuple(match[2].split()), match[3])


def make_folder(place: Path, block: Block) -> Path:
    """Return the folder that a page asks for, which it may enter again."""
    folder = place / block.folder
    known = folder.exists()
    folder.mkdir(exist_ok=True)
    if block.checkout and not known:
        for name in CHECKOUT:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, folder / name)
    return folder


def commands_of(console: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block with their expected outputs."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def run(command: str, folder: Path) -> Done:
    """Run a command as a reader would after the set-up, with this plugin alone and nothing else set."""
    ours = ("TFGRPO_", "FEATURE_TFGRPO_", "PYTEST_", "GITHUB_", "COV_", "COVERAGE_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    for name in ("CI", "BUILD_NUMBER"):  # pytest then shortens nothing
        environ.pop(name, None)
    environ |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}",
        "COLUMNS": "80",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p tfgrpo -p no:cacheprovider --strict-config",
    }
    command = SET_UP.sub("", command).replace(".venv/bin/", "")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
    )
    return Done(command, done.stdout, done.returncode)


def pattern_of(expected: str) -> re.Pattern[str]:
    """Return what an output must match to be the one that a page shows."""
    lines = []
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append("".join(map(_loosen, _LOOSE.split(line.rstrip()))) + r"[ ]*\n")
    return re.compile("".join(lines))


def _loosen(piece: str) -> str:
    for loose, wanted in LOOSE.items():
        if re.fullmatch(loose, piece):
            return wanted
    return re.escape(piece)
