"""Node ids of gates: a command line that names gates alone runs the suite that they judge."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

RUN_ID = "tfgrpo"
"""Node id of a run without an ini file."""
ALONE = pytest.StashKey[list[str]]()
"""Node ids of the gates where the command line names nothing else."""


def run_id(config: pytest.Config) -> str:
    """Return the node id of a run, of which its gates are part: the ini file, if below the rootdir."""
    path = config.inipath
    if path is None or not path.is_relative_to(config.rootpath):
        return RUN_ID
    return path.relative_to(config.rootpath).as_posix()


def bring_suite(config: pytest.Config) -> None:
    """Put the whole suite in the place of a command line that names gates alone."""
    gates = [*_gates(config)]
    if gates and len(gates) == len(config.args):
        config.stash[ALONE] = [f"{run_id(config)}::{gate}" for gate in gates]
        tested = [*_tested(config)]
        config.args = tested or [str(config.rootpath)]
        if tested:
            config.args_source = pytest.Config.ArgsSource.TESTPATHS


def _gates(config: pytest.Config) -> Iterator[str]:
    for arg in config.args:
        path, _, name = arg.partition("::")
        file = os.path.normpath(config.invocation_params.dir / path)
        if name.partition("[")[0] == "gate" and Path(file) == config.inipath:
            yield name


def _tested(config: pytest.Config) -> Iterator[str]:
    for pattern in config.getini("testpaths"):
        for path in sorted(glob.iglob(pattern, root_dir=config.rootpath, recursive=True)):  # noqa: PTH207 - pytest does
            yield str(config.rootpath / path)


def beside(config: pytest.Config, others: list[pytest.Item]) -> list[pytest.Item]:
    """Return which other items run beside a run: none of a suite that only its gates brought in."""
    if others and ALONE in config.stash:
        config.hook.pytest_deselected(items=others)
        return []
    return others


def require_gates(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Raise pytest.UsageError where the command line names a gate alone that is none of the run's `items`."""
    made = [item.nodeid for item in items if item.nodeid.startswith(f"{run_id(config)}::gate")]
    missing = [gate for gate in config.stash.get(ALONE, []) if gate not in made]
    if missing and not config.getoption("tfgrpo_dry_run", False):
        known = f"the run has {', '.join(made)}" if made else "the run has none; set tfgrpo_baseline"
        raise pytest.UsageError(f"no gate {missing[0]}: {known}")
