"""The Python API: a run without pytest, in a program, a service or a notebook.

Settings are arguments: none comes from the environment, the command line or an ini file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.settings import from_arguments
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.core.settings.telemetry import OTEL

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.observers import Observer
    from pytest_tfgrpo.engine.supplied import Supplied
    from pytest_tfgrpo.gate.verdict import GateRule
    from pytest_tfgrpo.launch.launch import Launch
    from pytest_tfgrpo.launch.running import RunResult
    from pytest_tfgrpo.protocols import Rewarder
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind
    from pytest_tfgrpo.suite.collection import Source

_One = TypeVar("_One")


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
) -> RunResult:
    """Run a suite from start to report, as ``pytest --tfgrpo`` does, and return the result.

    `root` is the project folder that paths are relative to; `scenarios` are files, folders, records or
    mappings as in a file (default: all scenario files below `root`). `rewarders`, `checks` and `gate_rules`
    are added to the built-in ones. `settings` are given by name, for instance ``group_size=5``; None stands
    for the default, and `actor` and `optimizer` may be objects too. With `learning` off, each eval scenario
    runs once and nothing is learned. `resume` is the id of a run to go on with, or ``latest``.

    Observers are called on this thread, in order; one that raises is reported in the run's warnings. Ctrl-C
    ends the run as cancelled, writes its files and raises KeyboardInterrupt. A running event loop is no
    obstacle, but is blocked meanwhile; use `arun` there. Raises SettingError, ScenarioError and other
    TfgrpoErrors on misuse, before any call is made, and when files cannot be written.
    """
    from pytest_tfgrpo.launch.running import run_launch

    supplied = _supplied(settings, rewarders, checks, gate_rules)
    launch = _open(Path(root), scenarios, supplied, learning, resume, settings)
    return run_launch(launch, observe)


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
) -> RunResult:
    """Run a suite like `run`, without blocking the event loop; several may run at once.

    Observers are called on this loop. Actors are called on the run's own loop: an actor object must not hold
    what is bound to this one. Cancelling the task ends the run as cancelled, writes its files and raises
    CancelledError.
    """
    from pytest_tfgrpo.launch.running import arun_launch

    supplied = _supplied(settings, rewarders, checks, gate_rules)
    launch = await asyncio.to_thread(_open, Path(root), scenarios, supplied, learning, resume, settings)
    return await arun_launch(launch, observe)


def _supplied(
    settings: Mapping[str, Any],
    rewarders: Iterable[Rewarder],
    checks: Mapping[str, CheckKind] | None,
    rules: Iterable[GateRule],
) -> Supplied:
    """Return what is given as objects; raises SettingError when a check kind takes a known name."""
    from pytest_tfgrpo.engine.supplied import Supplied
    from pytest_tfgrpo.scoring.checks.registry import KINDS

    for name in checks or ():
        if name in KINDS:
            raise SettingError(f"checks: the check kind {name!r} is built in; use another name")
    return Supplied(
        actor=_object(settings, "actor", ("name", "identity", "paid", "bound", "aclose")),
        optimizer=_object(settings, "optimizer", ("name", "identity", "propose")),
        rewarders=tuple(_complete("rewarders", one, ("name", "weight", "__call__")) for one in rewarders),
        kinds={**KINDS, **(checks or {})},
        rules=tuple(_complete("gate_rules", one, ("name", "judge")) for one in rules),
    )


def _object(settings: Mapping[str, Any], name: str, wanted: Sequence[str]) -> Any | None:
    """Return a setting that is an object; raises SettingError when it lacks an attribute."""
    value = settings.get(name)
    return None if value is None or isinstance(value, str) else _complete(name, value, wanted)


def _complete(name: str, value: _One, wanted: Sequence[str]) -> _One:
    if isinstance(value, type):
        raise SettingError(f"{name}: {value.__name__!r} is a class; give an instance")
    if name == "actor" and isinstance(value, FunctionType | MethodType):
        raise SettingError(
            f"actor: {value.__qualname__!r} is a function; name it, for example python:<module>:<function>"
        )
    missing = [attribute for attribute in wanted if not hasattr(value, attribute)]
    if missing:
        raise SettingError(f"{name}: {value!r} has no attribute {missing[0]!r}; add it")
    return value


def _open(
    root: Path,
    scenarios: Source | Sequence[Source] | None,
    supplied: Supplied,
    learning: bool,
    resume: str | None,
    arguments: Mapping[str, Any],
) -> Launch:
    from pytest_tfgrpo.core.scenarios import Scenario
    from pytest_tfgrpo.core.texts.text import few
    from pytest_tfgrpo.engine.request import RunRequest
    from pytest_tfgrpo.launch.choice import choose
    from pytest_tfgrpo.launch.launch import open_launch, read_gates
    from pytest_tfgrpo.suite.collection import collect, uncollected

    root = root.resolve()
    objects = {"actor": supplied.actor, "optimizer": supplied.optimizer}
    names = {name: one.name for name, one in objects.items() if one is not None}
    settings = from_arguments({**arguments, **names}, learning=learning)
    if listed_agents(ACTOR.of(settings)):
        raise SettingError("actor: a list of agents runs under pytest only; call run for each of them")
    if OTEL.of(settings):
        from pytest_tfgrpo.telemetry.sinks.otel import open_telemetry

        supplied = replace(supplied, tracing=open_telemetry(settings, os.environ))
    one = isinstance(scenarios, str | Path | Scenario | Mapping)
    sources: Sequence[Source]
    sources = (".",) if scenarios is None else (scenarios,) if one else scenarios  # type: ignore[assignment]
    found = collect(root, sources, supplied.kinds)
    choice = choose(found, settings, root, resume)

    def elsewhere(ids: Sequence[str]) -> str:
        looked_in = [root / source for source in sources if isinstance(source, str | Path)]
        missed = uncollected(root, looked_in, ids)
        return f"{few(missed)} of the baseline in files that are no part of `scenarios`" if missed else ""

    request = RunRequest(
        root=root,
        settings=settings,
        scenarios=choice.scenarios,
        phases=choice.phases,
        supplied=supplied,
        environ=os.environ,
        gates=tuple(read_gates(settings, root, found, partial=False)),
        resume=resume,
        partial=choice.left_out,
        elsewhere=None if scenarios is None else elsewhere,
    )
    return open_launch(request)
