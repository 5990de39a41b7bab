"""Prepare a run under pytest: what hooks supply, and our errors as pytest's usage errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.schema import nearest
from pytest_tfgrpo.core.settings import TABLE, Settings, unknown_variables
from pytest_tfgrpo.plugin import hook_calls
from pytest_tfgrpo.plugin.distributed import RUN_ID

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Phase
    from pytest_tfgrpo.core.scenarios import Scenario
    from pytest_tfgrpo.harness.engine.components import Supplied
    from pytest_tfgrpo.harness.gate.config import NamedGate
    from pytest_tfgrpo.harness.launch.launch import Launch
    from pytest_tfgrpo.harness.protocols import Tracing
    from pytest_tfgrpo.harness.scoring.checks.protocol import CheckKind

TRACING: pytest.StashKey[Tracing | None] = pytest.StashKey()


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn our errors into pytest's usage errors."""
    try:
        yield
    except TfgrpoError as error:
        raise pytest.UsageError(str(error)) from error


@usage_errors()
def prepare(
    config: pytest.Config,
    settings: Settings,
    *,
    scenarios: Sequence[Scenario],
    phases: Sequence[Phase],
    kinds: Mapping[str, CheckKind],
    gates: Iterable[NamedGate],
    partial: str,
    elsewhere: Callable[[Sequence[str]], str],
) -> Launch:
    """Return the launch of what pytest selected; raises pytest.UsageError on any misuse."""
    from pytest_tfgrpo.harness.launch.launch import open_launch

    _require_known_environment(os.environ)
    return open_launch(
        config.rootpath,
        settings,
        scenarios,
        _supplied(config, settings, kinds),
        phases=phases,
        gates=gates,
        environ=os.environ,
        resume=config.getoption("tfgrpo_resume"),
        run_id=getattr(config, "workerinput", {}).get(RUN_ID),
        partial=partial,
        elsewhere=elsewhere,
    )


def _supplied(config: pytest.Config, settings: Settings, kinds: Mapping[str, CheckKind]) -> Supplied:
    """Return what hooks supply; raises pytest.UsageError when one breaks."""
    from pytest_tfgrpo.harness.engine.components import Supplied

    actor, optimizer, named = settings["actor"], settings["optimizer"], ("name", "identity")
    return Supplied(
        actor=actor and hook_calls.supply_one(config, "pytest_tfgrpo_actor", actor, (*named, "paid")),
        optimizer=hook_calls.supply_one(config, "pytest_tfgrpo_optimizer", optimizer, named),
        rewarders=hook_calls.supply_rewarders(config),
        kinds=kinds,
        rules=tuple(hook_calls.gate_rules(config)),
        tracing=config.stash.get(TRACING, None),
    )


@usage_errors()
def open_tracing(config: pytest.Config, settings: Settings) -> None:
    """Open where the run's spans go; raises pytest.UsageError without the extra, or for a bad variable."""
    from pytest_tfgrpo.sinks.otel import open_telemetry

    config.stash[TRACING] = open_telemetry(settings, os.environ)


def _require_known_environment(environ: Mapping[str, str]) -> None:
    for name in unknown_variables(environ):
        hint = nearest(name, [setting.env for setting in TABLE])
        raise pytest.UsageError(
            f"unknown environment variable {name}={environ[name]!r}{hint or '; unset it'}"
        )


def dry_run(launch: Launch) -> list[str]:
    """Return the lines of a dry run: what the launch would ask, and what that may cost."""
    from pytest_tfgrpo.harness.estimate.forecast import forecast
    from pytest_tfgrpo.harness.estimate.plan_text import plan_text

    job, folder, record = launch.prepared.job, launch.prepared.folder, launch.settings["record"]
    runs = None if folder is None else folder.parent
    known = launch.root / record if record else None
    return plan_text(job, forecast(job, runs, known, launch.looks))
