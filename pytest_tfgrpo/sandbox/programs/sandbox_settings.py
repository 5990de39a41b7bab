"""Open a sandbox from settings: the paths that they list are checked before anything is paid."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.keys.list_values import limits, listed
from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.permissions import (
    SANDBOX,
    SANDBOX_ENV,
    SANDBOX_LIMITS,
    SANDBOX_NETWORK,
    SANDBOX_READABLE,
    SANDBOX_WRITABLE,
)
from pytest_tfgrpo.core.settings.runs import OUT
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.programs.bubblewrap import Sandbox, open_bwrap
from pytest_tfgrpo.sandbox.programs.programs import chain, needed

SHAPING: tuple[Setting[str | None], ...] = (
    *(SANDBOX_READABLE, SANDBOX_WRITABLE, SANDBOX_ENV, SANDBOX_NETWORK, SANDBOX_LIMITS),
)
"""Settings that change what an agent in a sandbox can do."""
RESOURCES = {"processes": "nproc", "memory": "data", "file_size": "fsize"}
"""What prlimit calls a limit. Interpreters reserve far more addresses than they use, so memory is data."""
SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
ANSWERS = ("archives", "references", "provenance")
"""Folders of a suite of fixes that hold them, and their tests."""


def open_sandbox(
    settings: Mapping[str, object], root: Path, argv: Sequence[str], search: str
) -> tuple[Sandbox | None, dict[str, Json]]:
    """Return the sandbox for a program, if one is set, and its part of the actor's identity.

    `search` is the PATH for interpreters. Raises SettingError on a path that cannot be listed, ActorError
    where bubblewrap does not work.
    """
    if SANDBOX.of(settings) == "none":
        return None, {"sandbox": "none"}
    identity: dict[str, Json] = {"sandbox": "bwrap"}
    identity |= {row.name: value for row in SHAPING if (value := row.of(settings)) != row.default}
    sandbox = Sandbox(
        bwrap=open_bwrap(),
        readable=(*needed(argv, search, root), *_existing(SANDBOX_READABLE, settings, root)),
        writable=tuple(_writable(settings, root)),
        hidden=(root, _out(settings, root)),
        network=SANDBOX_NETWORK.of(settings),
        limited=tuple(_limited(settings)),
    )
    return sandbox, identity


def require_sandbox(settings: Mapping[str, object]) -> None:
    """Raise SettingError where a setting keeps an agent from something, of any kind, and no sandbox does."""
    if SANDBOX.of(settings) != "none":
        return
    if SANDBOX_LIMITS.of(settings):
        raise SettingError("sandbox_limits: a limit needs a sandbox; set sandbox = bwrap, or remove it")
    if SANDBOX_NETWORK.of(settings) == "loopback":
        raise SettingError(
            "sandbox_network: without a sandbox an agent reaches every address, not only loopback; "
            "set sandbox = bwrap, or remove it"
        )


def require_apart(
    settings: Mapping[str, object], root: Path, scenarios: Iterable[Scenario], temporary: Path
) -> list[str]:
    """Return a warning for each readable path that holds the suite; a writable one is a SettingError.

    So is one that holds the folder `temporary`, in which all rollouts work.
    """
    if SANDBOX.of(settings) == "none":
        return []
    suite = [root / scenario.source.rpartition(":")[0] for scenario in scenarios]
    suite += [attachment.path for scenario in scenarios for attachment in scenario.attachments]
    suite += _beside_archives(scenarios)
    suite = sorted({path.resolve() for path in suite})
    for name in _existing(SANDBOX_WRITABLE, settings, root):
        real = name.resolve()
        if held := next((path for path in suite if _meet(path, real)), None):
            raise SettingError(_refusal(name, f"holds {str(held)!r} of the suite"))
        if temporary.is_relative_to(real):
            raise SettingError(_refusal(name, "holds the workspaces of all rollouts"))
    answers = [root.resolve(), _out(settings, root).resolve(), *suite]
    shown = {name.resolve(): name for name in _existing(SANDBOX_READABLE, settings, root)}
    root_user = "pytest runs as root, and so do agents in the sandbox; run it as an ordinary user"
    return ([root_user] if os.geteuid() == 0 else []) + [
        f"sandbox_readable = {line(str(name), 200)} lets the agent read answers, "
        f"as it is or holds {line(str(held), 200)}; list only what the agent needs"
        for real, name in shown.items()
        if (held := _held(real, answers, suite)) is not None
    ]


def _beside_archives(scenarios: Iterable[Scenario]) -> list[Path]:
    """Return the archives that scenarios name, and the folders beside them with the true fixes."""
    archives = [scenario.workspace.path for scenario in scenarios if scenario.workspace is not None]
    folders = {path.parent.parent / name for path in archives for name in ANSWERS}
    return [*archives, *(folder for folder in folders if folder.is_dir())]


def _meet(answers: Path, shown: Path) -> bool:
    """Return whether a path holds answers, or is one of them, or lies in a folder of them."""
    return answers.is_relative_to(shown) or shown.is_relative_to(answers)


def _held(shown: Path, roots: Iterable[Path], suite: Iterable[Path]) -> Path | None:
    """Return what an agent could read by a path that it is shown; None where it is nothing that matters."""
    held = next((path for path in roots if path.is_relative_to(shown)), None)
    return held or next((path for path in suite if _meet(path, shown)), None)


def _limited(settings: Mapping[str, object]) -> Iterator[str]:
    """Yield the words that run a program with limits; raises SettingError where one would not hold."""
    wanted = limits(SANDBOX_LIMITS.of(settings))
    if not wanted:
        return
    program = shutil.which("prlimit", path=SYSTEM_PATH)
    if program is None:
        raise SettingError("sandbox_limits: needs prlimit, which is not installed; install util-linux")
    if "processes" in wanted and os.geteuid() == 0:
        raise SettingError(
            "sandbox_limits: the kernel limits no processes of root; run pytest as an ordinary user, or "
            "remove 'processes' and limit the container (docker run --pids-limit)"
        )
    yield program
    yield from (f"--{RESOURCES[name]}={value}:{value}" for name, value in wanted.items())
    yield "--"


def _out(settings: Mapping[str, object], root: Path) -> Path:
    return root / (OUT.of(settings) or "out")


def _existing(row: Setting[str | None], settings: Mapping[str, object], root: Path) -> Iterator[Path]:
    """Yield the paths that a setting lists, each as it is and resolved; raises SettingError."""
    for entry in listed(row.of(settings)):
        path = Path(os.path.normpath(root / Path(entry).expanduser()))
        if not path.exists():
            raise SettingError(f"{row.name}: there is no {str(path)!r}; make it, or remove it from the list")
        yield from chain(path)


def _writable(settings: Mapping[str, object], root: Path) -> Iterator[Path]:
    home, out = root.resolve(), _out(settings, root).resolve()
    for path in _existing(SANDBOX_WRITABLE, settings, root):
        real = path.resolve()
        for whole, called in ((home, "the project"), (out, "the output folder")):
            if whole.is_relative_to(real):
                raise SettingError(_refusal(path, f"{'is' if real == whole else 'holds'} {called}"))
        if real.is_relative_to(out):
            raise SettingError(_refusal(path, "lies in the output folder"))
        yield path


def _refusal(path: Path, why: str) -> str:
    return (
        f"sandbox_writable: {str(path)!r} {why}, where an agent could change answers and results; "
        "list a folder of the agent's own"
    )
