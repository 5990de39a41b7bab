"""The context of a tool's call: what a tool may know of the rollout that it is called in."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from pytest_tfgrpo.core.records import Task
from pytest_tfgrpo.harness.sandbox.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolContext:
    """What a tool gets whose first parameter is annotated with this type; one per rollout."""

    task: Task
    """The scenario without its checks."""
    seed: int
    """In [0, 2**63)."""
    folder: Workspace
    """Makes the folder of `workspace` when that is first asked for."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def scenario(self) -> Task:
        """The same as `task`, its name before 0.2."""
        return self.task

    @property
    def workspace(self) -> Path:
        """A private folder with the scenario's attachments in it; raises ProviderError."""
        with self._lock:  # tools of one turn run side by side
            return self.folder.path
