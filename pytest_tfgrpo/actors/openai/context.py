"""The context of a tool call: what a tool may know about the rollout that calls it."""

from __future__ import annotations

import threading
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Task

if TYPE_CHECKING:
    from pytest_tfgrpo.sandbox.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolContext:
    """The context of a tool whose first parameter has this type; one per rollout."""

    task: Task
    """The scenario without its checks."""
    seed: int
    """In [0, 2**63)."""
    folder: Workspace
    """Creates the folder of `workspace` on first use."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def scenario(self) -> Task:
        """The same as `task`, its name before 0.2."""
        return self.task

    @property
    def workspace(self) -> Path:
        """A private folder that contains the scenario's attachments; raises ProviderError."""
        with self._lock:  # tools of one turn run side by side
            return self.folder.path
