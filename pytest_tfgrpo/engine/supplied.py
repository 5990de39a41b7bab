"""What the caller of a run brings itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.protocols import Actor, Optimizer, Rewarder, Tracing
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.verdict import GateRule


@dataclass(frozen=True, kw_only=True, slots=True)
class Supplied:
    """What a caller brings itself: hooks of pytest plugins, or arguments."""

    actor: Actor | None = None
    """Stands in for the setting `actor`."""
    optimizer: Optimizer | None = None
    """Stands in for the setting `optimizer`."""
    rewarders: tuple[Rewarder, ...] = ()
    """Score beside ground truth and relative rank."""
    kinds: Mapping[str, CheckKind] = field(default_factory=lambda: KINDS)
    """All check kinds, the built-in ones included."""
    rules: tuple[GateRule, ...] = ()
    """Judge beside the built-in rules of the gate."""
    tracing: Tracing | None = None
    """Where the run's spans go."""
