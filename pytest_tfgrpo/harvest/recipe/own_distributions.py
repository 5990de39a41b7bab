"""A project's own distribution in its environment: metadata without modules, which lie in the workspace."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.sandbox.programs.environments import Environment

SCRIPT = """#!{python}
import sys
from {module} import {first}
sys.exit({call}())
"""


def write_distributions(environment: Environment, venv: Path) -> None:
    """Write the metadata and scripts of the project's own packages into a fresh virtual environment.

    Raises OSError. Nothing that is there is replaced.
    """
    packages = next(iter(sorted(venv.glob("lib/python3*/site-packages"))))
    for name, version in environment.distributions.items():
        folder = packages / f"{re.sub(r'[-.]+', '_', name)}-{version.replace('-', '_')}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8"
        )
        (folder / "INSTALLER").write_text("tfgrpo\n", "utf-8")
        (folder / "RECORD").write_text("", "utf-8")
        if text := environment.entry_points.get(name):
            (folder / "entry_points.txt").write_text(text, "utf-8")
            for script, module, call in _scripts(text):
                _write_script(venv, script, module, call)


def _scripts(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the console scripts of an ``entry_points.txt``: name, module, callable."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for name, value in parser.items("console_scripts") if parser.has_section("console_scripts") else ():
        target = re.fullmatch(r"([\w.]+)\s*:\s*([\w.]+)\s*(?:\[.*\])?", value or "")
        if target and re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            yield name, target[1], target[2]


def _write_script(venv: Path, name: str, module: str, call: str) -> None:
    path = venv / "bin" / name
    if path.exists() or path.is_symlink():
        return
    python = venv / "bin" / "python"
    first = call.partition(".")[0]
    path.write_text(SCRIPT.format(python=python, module=module, first=first, call=call), "utf-8")
    path.chmod(0o755)
