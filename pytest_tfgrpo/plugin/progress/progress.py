"""Progress of a run: what goes on now, read from its gauge, and the line that each phase leaves."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, process_time, thread_time
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.lessons import Acceptance
from pytest_tfgrpo.core.records import PhaseResult
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.engine.executors.registry import most_in_flight
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.runs.job import Job

if TYPE_CHECKING:
    from pytest_tfgrpo.plugin.progress.live_line import Moment
    from pytest_tfgrpo.plugin.progress.screen import LiveScreen

SHARE = 0.01
"""Of the processor time of a run, what showing it may take."""
AT_LEAST_EVERY_S = 5.0


class Progress:
    """Says on a screen how far a run is; without one it says nothing."""

    def __init__(self, screen: LiveScreen | None, gauge: Gauge, job: Job, agent: str = "") -> None:
        """Nothing is shown yet; `agent` is whose run it is, where several run side by side."""
        self._screen = screen
        self._name = f"tfgrpo {agent}" if agent else "tfgrpo"
        self._moment = _moments(gauge, job, self._name)
        self._next = self._latest = 0.0
        self._affordable = 0.0
        """Processor time of this process at which it is worth showing what goes on again."""

    def tick(self) -> None:
        """Show what goes on when it is time to."""
        if self._screen is None:
            return
        now = monotonic()
        if now < self._next:
            return
        if now < self._latest and process_time() < self._affordable:
            self._next = now + self._screen.every_s
            self._screen.restore()
            return
        began = thread_time()
        self._screen.show(self._moment())
        self._next, self._latest = now + self._screen.every_s, now + AT_LEAST_EVERY_S
        self._affordable = process_time() + (thread_time() - began) / SHARE

    def phase(self, result: PhaseResult) -> None:
        """Keep a line for a phase that ended."""
        if self._screen is None:
            return
        scores = [s.gt_score for g in result.counted for s in g.scores if s.gt_score is not None]
        mean = f"gt mean {sum(scores) / len(scores):.3f}" if scores else "nothing scored"
        text = f"{self._name} {result.phase.label}: {plural(len(scores), 'rollout')} scored, {mean}"
        if result.shared:
            text += f", {plural(len(result.shared), 'scenario')} with the answers of the final sweep"
        if result.revision is not None:
            text += f", {plural(len(result.revision.library.experiences), 'active lesson')}"
            text += _tried(result.revision.acceptance)
        if result.status != "complete":
            text += f" ({result.status}: {result.reason})"
        self._keep(text)

    def notice(self, text: str) -> None:
        """Keep what the run says of itself: that it pauses and why, or what can be gained."""
        self._keep(f"{self._name} {line(text, 800)}")

    def clear(self) -> None:
        """Take the live line away."""
        if self._screen is not None:
            self._screen.clear()

    def finish(self) -> None:
        """Take the live line away, and leave what stays below the list of tests."""
        if self._screen is not None:
            self._screen.finish()

    def _keep(self, text: str) -> None:
        if self._screen is not None:
            self._screen.keep(text)


def _moments(gauge: Gauge, job: Job, name: str) -> Callable[[], Moment]:
    """Return what shows the present moment; a run that shows nothing loads nothing for it."""

    def moment() -> Moment:
        from pytest_tfgrpo.plugin.progress.live_line import moment_of
        from pytest_tfgrpo.plugin.progress.remaining import Plan

        return moment_of(gauge.read(), Plan.of(job.phases, most_in_flight(job)), name)

    return moment


def _tried(acceptance: Acceptance | None) -> str:
    """Return what the dev split made of an epoch's candidate; nothing where it was not tried."""
    if acceptance is None or not acceptance.lessons:
        return ""
    refused = sum(trial.fate == "refused" for trial in acceptance.lessons)
    return (
        f", {plural(refused, 'lesson')} left out by the dev split"
        if refused
        else ", accepted on the dev split"
    )
