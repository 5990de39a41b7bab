"""A run as you request it: one value from the faces to the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.keys.setting_parsers import default_task_id
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.runs import OUT, TASK_ID
from pytest_tfgrpo.metrics.looks import Looks

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.supplied import Supplied
    from pytest_tfgrpo.gate.config import NamedGate
    from pytest_tfgrpo.llm.limits.budget import Budget
    from pytest_tfgrpo.llm.limits.slots import EndpointSlots


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedLimits:
    """What a run shares with others; None: it has its own."""

    budget: Budget | None = None
    slots: EndpointSlots | None = None
    """Places at endpoints."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What you request, before any of it is opened."""

    root: Path
    settings: Settings
    scenarios: Sequence[Scenario]
    phases: Sequence[Phase]
    supplied: Supplied
    environ: Mapping[str, str]
    """Holds the keys that model endpoints name."""
    gates: Sequence[NamedGate] = ()
    resume: str | None = None
    """Names the run to go on with, or is ``latest``."""
    run_id: str | None = None
    """Of the run; one that has a journal is gone on with too."""
    again: bool = False
    """The run to go on with may have ended: it is read from its journal."""
    partial: str = ""
    """Says what left out a part of the suite."""
    elsewhere: Callable[[Sequence[str]], str] | None = None
    """Says which scenarios of a baseline are where nobody looked; empty where none is."""
    looks: Looks = field(default_factory=dict)
    """Those that the baselines remember."""
    shared: SharedLimits = SharedLimits()
    dry: bool = False
    """Nobody is called, so the keys of endpoints may be missing."""

    @cached_property
    def values(self) -> Mapping[str, object]:
        """Settings with the number of rollouts that measured phases have."""
        return {**self.settings.values, "eval_rollouts": self.settings.eval_rollouts}

    @cached_property
    def task_id(self) -> str:
        """Names the suite in the output folder."""
        return TASK_ID.of(self.settings) or default_task_id(self.root.name)

    @cached_property
    def out(self) -> Path | None:
        """The output folder; None where nothing is to be written (plain mode, `out` unset)."""
        return out_folder(self.root, self.settings)


def out_folder(root: Path, settings: Settings) -> Path | None:
    """Return the output folder, or None where nothing is to be written (plain mode, `out` unset)."""
    out = OUT.of(settings) or ("out" if settings.learning else None)
    return root / out if out else None
