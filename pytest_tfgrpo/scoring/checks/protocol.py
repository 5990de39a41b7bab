"""Check kinds, and the input of a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import CheckResult, Frame
from pytest_tfgrpo.core.scenarios import Check, Task
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.wire import Json

if TYPE_CHECKING:
    from pytest_tfgrpo.sandbox.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckContext:
    """One attempt at a scenario, as its checks see it."""

    answer: str
    frames: tuple[Frame, ...]
    workspace: Workspace
    """`workspace.path` is the folder as the agent left it."""
    task: Task
    environment: str | None = None
    """Stamp of the environment that programs in the workspace run with."""
    sandbox: Literal["auto", "bwrap", "none"] = "auto"
    """What isolates programs of a check: bubblewrap hidden tests alone, all, or none."""
    latency_ms: float | None = None
    """How long the attempt took; None where that is unknown."""


class Undecided(Exception):
    """The attempt kept a check from deciding, for instance by taking too long: no credit, nor under `not`."""


class TooSlow(Exception):
    """A check takes longer than an event loop may wait."""


class BadParam(ValueError):
    """Parameters that match the kind's schema but are still wrong; `key` names the parameter."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def _as_written(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    return params


def _no_answers(_check: Check) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckKind:
    """One kind of check: a name, the schema of its parameters, and a function."""

    name: str
    params: Mapping[str, Json]
    """JSON Schema of the parameters beside ``kind`` and ``weight``; should refuse unknown keys."""
    evaluate: Callable[[Check, CheckContext], CheckResult]
    """Checks one attempt; an exception means that the check broke, not that it failed."""
    blocking: bool = True
    """True if it touches files, runs a program or may be slow: it then runs on a thread."""
    at_once: Callable[[Check, CheckContext], CheckResult] | None = None
    """Does what a blocking `evaluate` does within milliseconds, or raises TooSlow; tried before a thread."""
    answers: Callable[[Check], tuple[str, ...]] = _no_answers
    """Expected answers as texts, for the leakage screen of decision 21."""
    prepare: Callable[[Mapping[str, Json], Path], Mapping[str, Json]] = _as_written
    """Validates and completes parameters when a scenario is loaded from the given folder.

    Raises BadParam or ValueError; the result is part of the task stamp.
    """
    negatable: bool = True
    """False where a failure does not show that the opposite holds, so that `not` has no meaning."""
    after_turn: bool = True
    """False where it looks at the workspace, which a conversation leaves at its end, not after each turn."""

    def expected(self, check: Check) -> tuple[str, ...]:
        """Return the answers of a check of this kind; none where it says what an answer must not be."""
        return () if check.negated else self.answers(check)


def builtin_params(name: str) -> Mapping[str, Json]:
    """Return the packaged schema of the parameters of a built-in kind."""
    params: Mapping[str, Json] = load_schema("scenario")["$defs"][name]
    return params


def passed(check: Check) -> CheckResult:
    """Return full credit."""
    return CheckResult(kind=check.title, weight=check.weight, credit=1.0)


def failed(check: Check, reason: str) -> CheckResult:
    """Return no credit, with a reason for a reader."""
    return CheckResult(kind=check.title, weight=check.weight, credit=0.0, reason=reason)


def verdict(check: Check, reason: str | None) -> CheckResult:
    """Return full credit when there is no reason against it."""
    return passed(check) if reason is None else failed(check, reason)
