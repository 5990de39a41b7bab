"""Set-up commands of an environment: they have the network, no secrets, and write its own folder alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.harvest.environment.package_tools import TAIL, BuildProblem, BuildTools, inside
from pytest_tfgrpo.harvest.recipe.node_recipe import LOCKS
from pytest_tfgrpo.sandbox.programs.environments import SETUP, VENV, Environment
from pytest_tfgrpo.scoring.runners.isolation import SYSTEM_PATH

LOCK_NODE = ("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")


def run_setup(tools: BuildTools, environment: Environment, folder: Path) -> None:
    """Run the set-up commands of an environment in its folder; raises BuildProblem, OSError."""
    for command in environment.setup:
        programs = _programs(tools, folder, command[0])
        code, told = inside(tools, command, folder, programs, SETUP)
        if code:
            raise BuildProblem(
                f"the set-up command {' '.join(command)[:200]!r} ended with {code}: {told[-TAIL:]}"
            )


def lock_node_packages(
    tools: BuildTools, files: Mapping[str, str], until: str | None, work: Path
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the files with a lock that npm made as of a time, and notes; raises BuildProblem, OSError."""
    for name, text in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    dated = (f"--before={until}",) if until else ()
    programs = _programs(tools, work, LOCK_NODE[0])
    notes: tuple[str, ...] = ()
    code, told = inside(tools, (*LOCK_NODE, *dated), work, programs)
    if code and dated:
        notes = ("npm could not apply the date: it was not applied",)
        code, told = inside(tools, LOCK_NODE, work, programs)
    lock = work / LOCKS[0]
    if code or lock.is_symlink() or not lock.is_file():
        raise BuildProblem(f"npm made no lock of package.json: {told[-TAIL:]}")
    return {**files, LOCKS[0]: lock.read_text("utf-8", "replace")}, notes


def _programs(tools: BuildTools, folder: Path, program: str) -> tuple[Path, ...]:
    """Return the programs that a sandbox must show for a command: the environment's, and its own."""
    inner = folder / VENV / "bin"
    search = os.pathsep.join([str(inner), tools.environ.get("PATH", ""), SYSTEM_PATH])
    wanted = ((inner / "python") if (inner / "python").exists() else None, shutil.which(program, path=search))
    return tuple(Path(path) for path in wanted if path)
