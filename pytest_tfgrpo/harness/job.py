"""A job: all that a run needs, gathered and checked before the first rollout is paid for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import Json, ModelCall, Opinion, Phase, PromptPack, Rollout, Scenario
from pytest_tfgrpo.harness.actors.protocol import Actor
from pytest_tfgrpo.harness.baseline import Baseline
from pytest_tfgrpo.harness.budget import Budget
from pytest_tfgrpo.harness.checks import CheckKind
from pytest_tfgrpo.harness.judge.protocol import Judge
from pytest_tfgrpo.harness.optimizer.protocol import Optimizer
from pytest_tfgrpo.harness.rewarders.protocol import Rewarder
from pytest_tfgrpo.llm.protocol import Completer


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What a marked test function found of one rollout."""

    outcome: Literal["score", "error", "skip"]
    """score: it judged; error: it broke (status ``error``); skip: the scenario is excluded."""
    score: float = 0.0
    """In [0, 1]."""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What an interrupted run has on file, by id; empty for a new run."""

    rollouts: Mapping[str, Rollout] = field(default_factory=dict)
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    """Judgements of rollouts, by rollout id."""
    groups: frozenset[str] = frozenset()
    revisions: Mapping[int, Revision] = field(default_factory=dict)
    """Revisions of the library, by epoch."""
    candidates: Mapping[int, Revision] = field(default_factory=dict)
    """What the optimizer made of epochs whose library was, or was to be, tried on the dev split, by epoch."""
    settled: frozenset[int] = frozenset()
    """Epochs of sweeps that the gate was settled without finishing."""
    phases: frozenset[int] = frozenset()
    """Epochs whose end is on file."""
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    """Opinions of the judge, by rollout id."""
    calls: Mapping[str, ModelCall] = field(default_factory=dict)
    """Model calls besides rollouts, by key."""
    abandoned: tuple[Rollout, ...] = ()
    """Attempts that a budget ended: no results, but paid for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run, planned."""

    run_id: str
    task_id: str
    started_at: str
    settings: Mapping[str, Any]
    scenarios: tuple[Scenario, ...]
    """The selected scenarios, in order of collection."""
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
    budget: Budget | None = None
    """Where the model calls of this run ask before they spend; None: made from the settings."""
    models: Mapping[str, Completer] = field(default_factory=dict)
    """Language models that the run may ask, by name."""
    identities: Mapping[str, Json] = field(default_factory=dict)
    """Name and identity of actor, optimizer and judge, by role."""
    baseline: Baseline | None = None
    """What the gate will compare the final sweep with."""
    foreign_rules: bool = False
    """True when plugins add rules to the gate."""
    preflight: Mapping[str, Json] = field(default_factory=dict)
    """What was found before the first rollout: `contamination`, `evaluations`."""
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Called once, after the last call of the run, to release what its parts hold."""
    library: Library
    """The library at the start."""
    stamps: Mapping[str, str]
    versions: Mapping[str, str]
    work: Path | None
    """Folder of the rollouts' workspaces, removed when the run is complete; None: a temporary one."""
    partial_selection: bool = False
    warnings: tuple[str, ...] = ()
    recorded: Recorded = field(default_factory=Recorded)
