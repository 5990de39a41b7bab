"""Folders that agents write to, or wrote to in runs before: nothing below them is collected.

Coding agents write tests as a matter of course, and what they leave would run outside of any sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from pytest_tfgrpo.core.files import JOURNAL, RUNS, WORKSPACES_PREFIX

CONFIGURED = "tfgrpo-configured"
"""Name of the plugin that declares and reads what can be set; it is there only where something may be."""
_OUT = pytest.StashKey[str]()


def is_agents(path: Path, config: pytest.Config) -> bool:
    """Return whether a folder is an output folder, that of a run or that of its workspaces."""
    if path.name.startswith(WORKSPACES_PREFIX):
        return not config.invocation_params.dir.is_relative_to(path)  # an agent may run its own tests there
    return _is_run(path) or (str(path) == _out(config) and _holds_runs(path))


def refuse_arguments(config: pytest.Config) -> None:
    """Raise pytest.UsageError where pytest would start in such a folder: it loads conftest.py files there.

    Called before any is loaded.
    """
    start, known = config.invocation_params.dir, set[str]()
    given = config.known_args_namespace.file_or_dir or [*config.getini("testpaths"), ""]
    for word in given:
        path = Path(os.path.abspath(start / str(word).partition("::")[0]))  # noqa: PTH100 - keeps links
        for folder in (path, *path.parents):
            if str(folder) in known:
                break
            known.add(str(folder))
            if _is_run(folder) or (str(folder) == _out(config) and _holds_runs(folder)):
                raise pytest.UsageError(
                    f"{str(path)!r} is or lies in {str(folder)!r}, to which runs and their agents write: "
                    "pytest collects nothing there; pass other paths, or set tfgrpo_out to another folder"
                )


def refuse_output(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Raise pytest.UsageError where runs are about to be written to a folder that holds a part of the suite.

    From then on pytest would collect nothing there.
    """
    out = _out(config)
    for folder, path in {item.path.parent: item.path for item in items}.items() if out else ():
        if folder.is_relative_to(out):
            raise pytest.UsageError(
                f"out: {out!r} holds a part of the suite, {str(path)!r}, and pytest collects nothing where "
                "runs are; set tfgrpo_out to another folder, or move the suite out of it"
            )


def _is_run(folder: Path) -> bool:
    if not os.access(folder / JOURNAL, os.F_OK):
        return False
    from pytest_tfgrpo.sandbox.paths import holds_journal

    return holds_journal(folder)


def _holds_runs(folder: Path) -> bool:
    return any((Path(entry) / RUNS).is_dir() for entry in _folders(folder))


def _folders(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if entry.is_dir())
    except OSError:
        return


def _out(config: pytest.Config) -> str:
    """Return the output folder; empty where the project lies in it, which then has to be collected."""
    if _OUT not in config.stash:
        root, flag = config.rootpath, getattr(config.known_args_namespace, "tfgrpo_out", None)
        ini = config.getini("tfgrpo_out") if config.pluginmanager.hasplugin(CONFIGURED) else None
        known = (flag, os.environ.get("TFGRPO_OUT"), ini)
        path = Path(os.path.abspath(root / next(filter(None, known), "out")))  # noqa: PTH100
        config.stash[_OUT] = "" if root.is_relative_to(path) else str(path)
    return config.stash[_OUT]
