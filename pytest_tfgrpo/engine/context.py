"""The context of a run: what its phases share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.engine.attempts.deliveries import FromTests
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.observers import Observers
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.sandbox.programs.threads import DaemonThreads
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.attempts.breaker import Breaker
    from pytest_tfgrpo.engine.attempts.decoys import Decoys
    from pytest_tfgrpo.engine.attempts.stage import Stages
    from pytest_tfgrpo.engine.executors.protocol import Executor
    from pytest_tfgrpo.engine.run_writer import RunWriter
    from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """One run that goes on."""

    job: Job
    scenarios: Mapping[str, Scenario]
    """Scenarios of the run by id."""
    writer: RunWriter
    calls: Calls
    """Where optimizer and judge call their models."""
    tests: FromTests
    """What marked test functions deliver."""
    executor: Executor
    """Where the calls of the actor are made."""
    breaker: Breaker
    """What ends the run when it can call no more agents."""
    workspaces: RunWorkspaces
    decoys: Decoys
    stages: Stages
    """What surrounds attempts."""
    observe: Observers
    warn: Callable[[str], None]
    """Takes warnings of the run."""
    gauge: Gauge
    check_threads: DaemonThreads = field(default_factory=lambda: DaemonThreads("tfgrpo-evaluate"))
    """Where checks run that may block."""
    span_counts: SpanCounts = field(default_factory=SpanCounts)

    def let_go(self) -> None:
        """Wait for no more fixtures once no agent may run: pytest, which sets them up, waits for us."""
        if self.job.budget.exhausted or self.breaker.reason:
            self.tests.agents.close("")
