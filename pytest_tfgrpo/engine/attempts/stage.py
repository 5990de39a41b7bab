"""The two sockets of a rollout: stages, which surround its attempts, and sources of answers that exist.

What every attempt needs is no stage: the budget, the gauge and the workspace are `Attempts`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from pytest_tfgrpo.core.errors import JournalError, describe
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Failure, Rollout
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.runs.judgement import as_error

if TYPE_CHECKING:
    from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces
    from pytest_tfgrpo.sandbox.workspace import Workspace

BROKE = "stage"
"""Reason code of a rollout one of whose stages raised: an error, never the agent's failure."""

MakeAttempt: TypeAlias = Callable[[Slot], Awaitable[AttemptResult | None]]
"""Makes an attempt, and returns how it ended; None: the run may not make it."""


class Stage:
    """What surrounds attempts; one for a run, used on the event loop only.

    What a method raises becomes an error of its rollout with the code ``stage``, or a warning where there is
    none; JournalError ends the run.
    """

    async def begin(self, workspaces: RunWorkspaces) -> None:
        """Go on after the process that a resumed run had before; called once, before the first attempt."""

    async def around(self, slot: Slot, make: MakeAttempt) -> AttemptResult | None:
        """Call `make` at most once, and return how the attempt ended.

        Second tries, and what finds out whether the provider is away, pass here too. Cancelled, it gives
        back what it took, and raises.
        """
        return await make(slot)

    async def checked(self, slot: Slot, rollout: Rollout) -> Rollout:  # noqa: ARG002 - for those below
        """Return a rollout whose checks are done, as itself or as an error; its place is free by now."""
        return rollout

    async def undo(self, slot: Slot) -> None:
        """Undo what is left of an attempt that is no result, before another one or none."""

    async def close(self) -> None:
        """End what is still open; called once, after the last attempt, also of a cancelled run."""


class Stages:
    """The stages of a run, outermost first."""

    def __init__(self, stages: Sequence[Stage], warn: Callable[[str], None]) -> None:
        """`warn` takes what went wrong where no rollout counts that could be the error."""
        self._stages = tuple(stages)
        self._warn = warn

    def around(self, make: MakeAttempt) -> MakeAttempt:
        """Return what makes an attempt within all stages."""
        for stage in reversed(self._stages):
            if type(stage).around is not Stage.around:
                make = partial(_within, stage, make)
        return make

    async def begin(self, workspaces: RunWorkspaces) -> None:
        """Begin all, outermost first."""
        for stage in self._stages:
            await self._guarded(stage, stage.begin(workspaces))

    async def checked(self, slot: Slot, rollout: Rollout) -> Rollout:
        """Return a rollout whose checks are done as all stages leave it, innermost first."""
        for stage in reversed(self._stages):
            try:
                rollout = await stage.checked(slot, rollout)
            except JournalError:
                raise
            except Exception as error:  # noqa: BLE001 - a broken stage costs its rollout, not the run
                rollout = as_error(rollout, BROKE, _broke(stage, error))
        return rollout

    async def undo(self, slot: Slot) -> None:
        """Undo what is left of an attempt, innermost first."""
        for stage in reversed(self._stages):
            await self._guarded(stage, stage.undo(slot))

    async def close(self) -> None:
        """Close all, innermost first, also when an interrupt or JournalError ends one of them."""
        async with AsyncExitStack() as closing:
            for stage in self._stages:
                closing.push_async_callback(self._close, stage)

    async def _close(self, stage: Stage) -> None:
        await self._guarded(stage, stage.close())

    async def _guarded(self, stage: Stage, done: Awaitable[None]) -> None:
        try:
            await done
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken stage does not end the run
            self._warn(redact(_broke(stage, error)))


async def _within(stage: Stage, make: MakeAttempt, slot: Slot) -> AttemptResult | None:
    """Make an attempt within a stage; one that raises leaves of it what it cost."""
    made: AttemptResult | None = None
    inner: Exception | None = None

    async def make_once(slot: Slot) -> AttemptResult | None:
        nonlocal made, inner
        try:
            made = await make(slot)
        except Exception as error:
            inner = error
            raise
        return made

    try:
        return await stage.around(slot, make_once)
    except JournalError:
        raise
    except Exception as error:
        if error is inner:  # the stage did not cause it
            raise
        failure = Failure(code=BROKE, message=redact(_broke(stage, error)))
        if made is None:
            return AttemptResult(status="error", failure=failure, started_at=utc_now(), latency_ms=0.0)
        return replace(made, status="error", failure=failure)


def _broke(stage: Stage, error: Exception) -> str:
    return f"{type(stage).__name__} broke: {describe(error)}"


class KnownAnswer(NamedTuple):
    """A rollout that exists already, before its test function and judge."""

    rollout: Rollout
    workspace: Workspace
    """What it left."""
    on_file: bool
    """Whether the journal has it; else it is written there."""


class AnswerSource(Protocol):
    """Has answers already; looked up before a rollout waits for fixtures, the budget or an agent."""

    def find(self, slot: Slot) -> KnownAnswer | None:
        """Return the answer to a slot; None: it has none."""
        ...
