"""The context of a run: what its phases share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tfgrpo.harness.engine.checker_results import CheckerResults
from pytest_tfgrpo.harness.engine.observers import Observers
from pytest_tfgrpo.harness.run.job import Job
from pytest_tfgrpo.llm.budget import Budget
from pytest_tfgrpo.llm.calls import Calls

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.engine.breaker import Breaker
    from pytest_tfgrpo.harness.engine.decoys import Decoys
    from pytest_tfgrpo.harness.engine.writer import RunWriter
    from pytest_tfgrpo.harness.sandbox.run_workspaces import RunWorkspaces


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """One run that goes on."""

    job: Job
    writer: RunWriter
    budget: Budget
    calls: Calls
    """Where optimizer and judge ask their models."""
    checker_results: CheckerResults
    """What marked test functions find."""
    breaker: Breaker
    """What ends the run when it cannot go on asking."""
    workspaces: RunWorkspaces
    decoys: Decoys
    observe: Observers
