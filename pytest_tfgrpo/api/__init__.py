"""The Python API: a run without pytest, in a program, a service or a notebook.

Settings are arguments: none comes from the environment, the command line or an ini file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tfgrpo.engine.observers import Observer
    from pytest_tfgrpo.gate.verdict import GateRule
    from pytest_tfgrpo.launch.result import RunResult, RunResults
    from pytest_tfgrpo.protocols import Rewarder
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind
    from pytest_tfgrpo.suite.collection import Source


@overload
def run(
    root: str | Path = ".",
    scenarios: Source | Sequence[Source] | None = None,
    *,
    actor: list[Any] | tuple[Any, ...] | Mapping[str, Any],
    **arguments: Any,
) -> RunResults: ...
@overload
def run(
    root: str | Path = ".",
    scenarios: Source | Sequence[Source] | None = None,
    *,
    rewarders: Iterable[Rewarder] = (),
    checks: Mapping[str, CheckKind] | None = None,
    gate_rules: Iterable[GateRule] = (),
    learning: bool = True,
    observe: Observer | Sequence[Observer] = (),
    resume: str | None = None,
    **settings: Any,
) -> RunResult: ...
def run(
    root: str | Path = ".",
    scenarios: Source | Sequence[Source] | None = None,
    *,
    rewarders: Iterable[Rewarder] = (),
    checks: Mapping[str, CheckKind] | None = None,
    gate_rules: Iterable[GateRule] = (),
    learning: bool = True,
    observe: Observer | Sequence[Observer] = (),
    resume: str | None = None,
    **settings: Any,
) -> RunResult | RunResults:
    """Run a suite from start to report, as ``pytest --tfgrpo`` does, and return the result.

    `root` is the project folder that paths are relative to; `scenarios` are files, folders, records or
    mappings as in a file (default: all scenario files below `root`). `rewarders`, `checks` and `gate_rules`
    are added to the built-in ones. `settings` are given by name, for instance ``group_size=5``; None stands
    for the default. With `learning` off, each eval scenario runs once and nothing is learned. `resume` is the
    id of a run to go on with, or ``latest``.

    `actor` is a spec, a function that takes an AgentContext, a method, an object that is called like one, or
    an Actor; a list of those, or a mapping from names to them, runs them side by side and returns RunResults.
    `optimizer` may be an object too. ``progress=False`` shows nothing in a terminal or notebook meanwhile.

    Observers are called on this thread, in order; one that raises is reported in the run's warnings. Ctrl-C
    ends the run as cancelled, writes its files and raises KeyboardInterrupt. A running event loop is no
    obstacle, but is blocked meanwhile; use `arun` there. Raises SettingError, ScenarioError and other
    TfgrpoErrors on misuse, before any call is made, and when files cannot be written.
    """
    from pytest_tfgrpo.api.runs import open_runs
    from pytest_tfgrpo.launch.running import run_launches

    runs = open_runs(root, scenarios, (rewarders, checks, gate_rules), learning, resume, settings)
    return runs.result(run_launches(runs.launches, observe, runs.follow))


@overload
async def arun(
    root: str | Path = ".",
    scenarios: Source | Sequence[Source] | None = None,
    *,
    actor: list[Any] | tuple[Any, ...] | Mapping[str, Any],
    **arguments: Any,
) -> RunResults: ...
@overload
async def arun(
    root: str | Path = ".",
    scenarios: Source | Sequence[Source] | None = None,
    *,
    rewarders: Iterable[Rewarder] = (),
    checks: Mapping[str, CheckKind] | None = None,
    gate_rules: Iterable[GateRule] = (),
    learning: bool = True,
    observe: Observer | Sequence[Observer] = (),
    resume: str | None = None,
    **settings: Any,
) -> RunResult: ...
async def arun(
    root: str | Path = ".",
    scenarios: Source | Sequence[Source] | None = None,
    *,
    rewarders: Iterable[Rewarder] = (),
    checks: Mapping[str, CheckKind] | None = None,
    gate_rules: Iterable[GateRule] = (),
    learning: bool = True,
    observe: Observer | Sequence[Observer] = (),
    resume: str | None = None,
    **settings: Any,
) -> RunResult | RunResults:
    """Run a suite like `run`, without blocking the event loop; several may run at once.

    Observers are called on this loop. Agents are called on the run's own loop: none may hold what is bound to
    this one. Cancelling the task ends the run as cancelled, writes its files and raises CancelledError.
    """
    from pytest_tfgrpo.api.runs import open_runs
    from pytest_tfgrpo.launch.running import arun_launches

    supplied = (rewarders, checks, gate_rules)
    runs = await asyncio.to_thread(open_runs, root, scenarios, supplied, learning, resume, settings)
    return await asyncio.to_thread(runs.result, await arun_launches(runs.launches, observe, runs.follow))
