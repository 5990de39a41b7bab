"""A job: everything that a run needs, collected and checked before the first rollout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase, Reference, RunHeader
from pytest_tfgrpo.core.scenarios import Attachment, PromptPack, Scenario, WorkspaceArchive
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.llm.protocol import Completer
from pytest_tfgrpo.protocols import Actor, GivenAttempts, Judge, Optimizer, Rewarder, Tracing
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.checks.protocol import CheckKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Job(RunHeader):
    """One run, planned."""

    phases: tuple[Phase, ...]
    packs: Mapping[str, PromptPack]
    """Prompt packs by domain."""
    actor: Actor
    optimizer: Optimizer
    kinds: Mapping[str, CheckKind]
    rewarders: tuple[Rewarder, ...] = ()
    """Additional rewarders, supplied by hooks."""
    judge: Judge | None = None
    """Who judges rollouts of scenarios with a rubric."""
    user: Completer | None = None
    """The model that plays the users of conversations; None: they say their turns."""
    budget: Budget
    """Where the calls of this run reserve before they spend."""
    models: Mapping[str, Completer] = field(default_factory=dict)
    """Language models that the run may call, by name."""
    reach: Mapping[str, Completer] = field(default_factory=dict)
    """Models that must answer once before anything is paid for, by role: teacher, judge."""
    supplied_actor: bool = True
    """False where the setting `actor` opens an equal one."""
    replayed: bool = False
    """True when a recording answers, whose errors are repeated as they are."""
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Called once, after the last call of the run, to release what its parts hold."""
    tracing: Tracing | None = None
    """Where the run's spans go."""
    library: Library
    """The library at the start."""
    reference: Reference | None = None
    """What the baseline sweep uses in place of library and packs; None: those of the start."""
    environments: Mapping[str, BuiltEnvironment] = field(default_factory=dict)
    """What scenarios' programs run with, by stamp."""
    root: Path = field(default_factory=Path)
    """Folder of the suite, which sandboxes hide."""
    temporary: Path
    """Temporary folder, in which the run makes that of its workspaces."""
    given: GivenAttempts | None = None
    """Attempts that exist already, of the scenarios of a phase that runs no agent."""
    resumed: JournalContents = field(default_factory=JournalContents)
    """What an interrupted run has on file; empty for a new one."""

    def made_of(
        self, scenario: Scenario
    ) -> tuple[tuple[Attachment, ...], WorkspaceArchive | None, BuiltEnvironment | None]:
        """Return what a scenario's workspaces are made of: attachments with overlay, archive, environment."""
        stamp = scenario.environment
        return (
            (*scenario.attachments, *scenario.overlay),
            scenario.workspace,
            self.environments[stamp] if stamp else None,
        )
