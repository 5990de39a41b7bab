"""Agents of other frameworks in the process that serves: their spans as events, and marks of choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.intake.spans import CHOICE_MARK, RunIdentity, events_of, mark_of, score_of
from pytest_tfgrpo.production.live.records import LiveEvent
from pytest_tfgrpo.telemetry.traces.provider import recording_span
from pytest_tfgrpo.telemetry.traces.span_processor import open_span_processor
from pytest_tfgrpo.telemetry.traces.turns import AgentRun

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor


class SurroundingRun(Protocol):
    """A run of the application, within which an agent of another framework serves."""

    key: str
    owner: str

    def turn(self) -> None:
        """Report a turn."""
        ...

    def tool(self, name: str, error: object = None) -> None:
        """Report a call of a tool."""
        ...


class EventQueue(Protocol):
    """Where events go."""

    @property
    def held(self) -> bool:
        """Whether nothing is collected."""
        ...

    def put(self, event: LiveEvent) -> bool:
        """Enqueue an event; never blocks or raises."""
        ...


def open_live_processor(
    queue: EventQueue,
    current: Callable[[], SurroundingRun | None],
    *,
    texts: bool,
    swallow: Callable[[str, Exception], None],
) -> SpanProcessor:
    """Return a span processor that reports agents; `current` is the run around the caller.

    Raises SettingError where the extra is missing.
    """

    def take(run: AgentRun, around: SurroundingRun | None) -> None:
        if queue.held:
            return
        score, _ = score_of(run)
        if around is not None:
            _report_within(around, run)
            score = None if score is None else score._replace(run=around.key, owner=around.owner)
        elif not run.marks:  # one that is marked reports itself
            for event in events_of(run, texts=texts):
                queue.put(event)
        if score is not None:
            queue.put(score)

    return open_span_processor(take=take, around=current, failed=swallow)


def _report_within(around: SurroundingRun, run: AgentRun) -> None:
    for step in run.steps:
        if step.kind == "turn":
            around.turn()
        else:
            around.tool(step.name, error=step.error)


def mark_choice(
    run: str, owner: str, category: str, attempt: int, choice: Mapping[str, Json], *, version: str
) -> None:
    """Mark the current span with a choice, so that who reads the span later knows run and propensity.

    `version` is the stamp of all arms that the attempt took, by which the feedback loop compares policies.
    """
    if (span := recording_span()) is not None:
        span.add_event(CHOICE_MARK, mark_of(RunIdentity(run, owner, category), attempt, choice))
        span.set_attributes(
            {
                "tfgrpo.live.run": run,
                f"tfgrpo.live.arm.{choice['point']}": str(choice["arm"]),
                "tfgrpo.policy_version": version,
            }
        )
