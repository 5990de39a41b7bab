"""What a pattern is written of."""

from __future__ import annotations

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.patterns.shelf.pattern import PatternEvidence


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedTest:
    """A test that failed before the change and passes after it."""

    id: str
    """As its runner names it: ``tests/test_cart.py::test_total``."""
    message: str = ""
    """The first line of why it failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternSubject:
    """A proven change, and what was asked for."""

    prompt: str
    diff: str
    """As a patch of git."""
    domain: str
    evidence: PatternEvidence
    tests: tuple[FixedTest, ...] = ()
