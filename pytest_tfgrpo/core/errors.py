"""Errors, named by the boundary that was crossed.

TfgrpoError
├── SettingError (ValueError)        a flag, environment variable or ini key
├── ScenarioError (ValueError)       a scenario file or marked test function
├── PackError (ValueError)           a prompt pack
├── ActorError (RuntimeError)        an actor cannot be opened or used: misuse, found before money is spent
├── ProviderError (RuntimeError)     the provider or the infrastructure failed: status ``error``
├── AgentFailure (RuntimeError)      the agent failed: status ``failed``, score 0
├── ToolFailure (RuntimeError)       a tool failed in front of its agent, which gets the message and goes on
├── ModelError (RuntimeError)        a language model gave no usable answer, after all retries
├── BudgetError (RuntimeError)       a model call was not made, or a harvest stopped: no budget is left
├── OutageError (RuntimeError)       a model answers nobody: the run stops, and can be resumed
├── RecordingError (ValueError)      a recording is malformed, or lacks what a replay needs
│   └── EvidenceError               a file of attempts made elsewhere is malformed, or has changed
├── CheckError (RuntimeError)        a check itself broke: status ``error``
├── RewarderError (RuntimeError)     a rewarder broke its contract: the run stops
├── OptimizerError (RuntimeError)    an optimizer broke its contract: the run stops
├── SnapshotError (RuntimeError)     a commit that cannot be taken out of its repository: an object is missing
├── PatternError (ValueError)        the file of a pattern is malformed, or a move on the shelf is not allowed
├── StoreError (OSError)             the lesson store or a library file
├── JournalError (OSError)           the journal of a run
├── BaselineError (ValueError)       a stored baseline
├── BusError (OSError)               the bus: its file, its server, or an event or key that it cannot hold
│   └── RevisionConflict             a row of a table has changed since it was read
├── ExportError (ValueError)         a run that cannot be exported, or has nothing to export
└── ResumeError (ValueError)         a run that cannot be resumed

A message says what happened, the value by repr, and what to do next; lower-case start, no full stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Frame

BUDGET = "budget"
"""Reason code of an attempt that a budget ended: not a result, and repeated when the run is resumed."""
USER_AWAY = "user_away"
"""Reason code of an attempt whose user no model plays any more: not a result either."""
UNMADE = frozenset({BUDGET, USER_AWAY})
"""Reason codes of attempts that are no results, and that a resumed run makes again."""
TIMEOUT = "timeout"
"""Reason code of an attempt that exceeded its time limit."""
LOST_WORKER = "lost_worker"
"""Reason code of an attempt whose worker was lost through no fault of the agent."""

AWAY = frozenset(
    {
        LOST_WORKER,
        *("auth", "bad_response", "connection", "network", "not_found", "provider", "rate_limit", "server"),
        TIMEOUT,
    }
)
"""Reason codes of errors that a provider's being away, or a lost worker, may explain: the same attempt may
work later."""


class TfgrpoError(Exception):
    """Any error that pytest-tfgrpo raises on purpose."""


class SettingError(TfgrpoError, ValueError):
    """A setting is unknown, malformed or outside its guard."""


class ScenarioError(TfgrpoError, ValueError):
    """A scenario is malformed; the message names file, line and JSON pointer."""


class PackError(TfgrpoError, ValueError):
    """A prompt pack is malformed, unstamped or changed; the message names the file."""


class ActorError(TfgrpoError, RuntimeError):
    """An actor cannot be opened or used."""


class RolloutFault(TfgrpoError, RuntimeError):
    """A rollout ended without an answer; `code` is a short reason code, `str(self)` the message.

    `frames` are the calls made so far; `answer` is the partial answer, if any.
    """

    _default_code = ""

    def __init__(
        self,
        message: str,
        code: str | None = None,
        *,
        frames: tuple[Frame, ...] = (),
        answer: str = "",
        latency_ms: float | None = None,
    ) -> None:
        """`latency_ms` is how long the attempt took when it was recorded; None: it was measured."""
        super().__init__(message)
        self.code = self._default_code if code is None else code
        self.frames = frames
        self.answer = answer
        self.latency_ms = latency_ms


class ProviderError(RolloutFault):
    """The provider or the infrastructure failed: the rollout counts as an error and has no score."""

    _default_code = "provider"


class AgentFailure(RolloutFault):
    """The agent failed (timeout, crash, garbage, oversize): the rollout scores 0."""

    _default_code = "crash"


class ToolFailure(TfgrpoError, RuntimeError):
    """A tool failed in front of its agent, which gets the message as it stands and goes on."""


class ModelError(TfgrpoError, RuntimeError):
    """A language model gave no usable answer; `code` says why.

    auth, not_found, rate_limit, server, connection, timeout, rejected, bad_response, oversize,
    content_filter; budget when only a further attempt was not made.
    """

    def __init__(self, message: str, code: str, *, cost_usd: float | None = None) -> None:
        """`cost_usd` is what the failed call cost; None if unknown."""
        super().__init__(message)
        self.code = code
        self.cost_usd = cost_usd


class BudgetError(TfgrpoError, RuntimeError):
    """A model call was not made, because it could have overrun the budget; nothing was paid for it.

    Or a harvest stopped because its time is up, with something left.
    """


class OutageError(TfgrpoError, RuntimeError):
    """A model that the run cannot do without answers nobody; the message has the server's words."""


class RecordingError(TfgrpoError, ValueError):
    """A recording is malformed, or lacks a needed answer; the message says what differs."""


class EvidenceError(RecordingError):
    """A file of attempts made elsewhere is malformed, or has changed; the message names the file."""


class CheckError(TfgrpoError, RuntimeError):
    """A check itself broke (not: did not pass)."""


class RewarderError(TfgrpoError, RuntimeError):
    """A rewarder broke its contract."""


class OptimizerError(TfgrpoError, RuntimeError):
    """An optimizer broke its contract."""


class SnapshotError(TfgrpoError, RuntimeError):
    """A commit cannot be taken out of its repository: an object is missing, or a name leads out."""


class PatternError(TfgrpoError, ValueError):
    """The file of a pattern is malformed, or a move on the shelf is not allowed, with every reason why."""


class StoreError(TfgrpoError, OSError):
    """The lesson store or a library file cannot be read or written, or refuses a record."""


class JournalError(TfgrpoError, OSError):
    """The journal of a run cannot be read or written."""


class BaselineError(TfgrpoError, ValueError):
    """A stored baseline is missing or malformed."""


class BusError(TfgrpoError, OSError):
    """The bus cannot be opened, read or written, or does not take an event or a key."""


class RevisionConflict(BusError):
    """A row of a table is not at the revision that a writer read; read it again."""


class ExportError(TfgrpoError, ValueError):
    """A run is not finished, its file exists, or no row of it can be exported."""


class ResumeError(TfgrpoError, ValueError):
    """A run cannot be resumed; the message names what differs."""


def describe(error: BaseException) -> str:
    """Return type and message of an error, which may be anything."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - an agent's error may be anything
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
