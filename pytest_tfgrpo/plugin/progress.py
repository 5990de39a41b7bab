"""Progress on long epochs: a live line on a terminal, periodic plain lines otherwise."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from pytest_tfgrpo.core.lessons import Acceptance
from pytest_tfgrpo.core.records import Phase, PhaseResult, Rollout
from pytest_tfgrpo.core.text import line, plural

LIVE_EVERY_S = 0.2
PLAIN_EVERY_S = 5.0


class Progress:
    """Tells how far the current phase is; silent with ``-q`` and in xdist workers."""

    def __init__(self, config: pytest.Config) -> None:
        """Find out where lines go."""
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        if config.get_verbosity() < 0 or hasattr(config, "workerinput"):
            self._reporter = None
        self._live = self._reporter is not None and self._reporter.isatty
        self._phase: Phase | None = None
        self._done = self._errors = 0
        self._started = self._shown = time.monotonic()
        self._writer: Any = config.get_terminal_writer() if self._reporter is not None else None
        self._drawn = False
        self._column = 0

    def rollout(self, rollout: Rollout, phase: Phase) -> None:
        """Count a finished rollout; the final sweep tells how far a control beside it is."""
        if phase.concurrent:
            self.tick()
            return
        if self._phase is None or self._phase.label != phase.label:
            self._phase, self._done, self._errors = phase, 0, 0
            self._started = self._shown = time.monotonic()
        self._done += 1
        self._errors += rollout.status == "error"
        self.tick()

    def tick(self) -> None:
        """Show the state when it is time to."""
        now = time.monotonic()
        every = LIVE_EVERY_S if self._live else PLAIN_EVERY_S
        if self._reporter is None or self._phase is None or now - self._shown < every:
            return
        self._shown = now
        total = self._phase.rollouts * len(self._phase.scenarios)
        text = f"tfgrpo {self._phase.label}: {self._done}/{total} rollouts"
        if self._errors:
            text += f", {plural(self._errors, 'error')}"
        text += f", {now - self._started:.0f} s"
        self._show(text) if self._live else self._keep(text)

    def phase(self, result: PhaseResult) -> None:
        """Show a line for a phase that ended."""
        self._phase = None
        if self._reporter is None:
            return
        scores = [s.gt_score for g in result.counted for s in g.scores if s.gt_score is not None]
        mean = f"gt mean {sum(scores) / len(scores):.3f}" if scores else "nothing scored"
        text = f"tfgrpo {result.phase.label}: {plural(len(scores), 'rollout')} scored, {mean}"
        if result.shared:
            text += f", {plural(len(result.shared), 'scenario')} with the answers of the final sweep"
        if result.revision is not None:
            text += f", {plural(len(result.revision.library.experiences), 'active lesson')}"
            text += _tried(result.revision.acceptance)
        if result.status != "complete":
            text += f" ({result.status}: {result.reason})"
        self._keep(text)

    def notice(self, text: str) -> None:
        """Show what the run says of itself: that it pauses and why, or what can be gained."""
        if self._reporter is not None:
            self._keep(f"tfgrpo {line(text, 800)}")

    def clear(self) -> None:
        """Take the live line away and put the cursor back, before pytest writes on."""
        if self._drawn:
            right = f"\x1b[{self._column}C" if self._column else ""
            self._draw(f"\r\x1b[2K\x1b[1A{right}")
            self._drawn = False

    def _keep(self, text: str) -> None:
        """Write a line that stays."""
        self.clear()
        with self._uncaptured():
            self._reporter.ensure_newline()
            self._reporter.write_line(text)

    def _show(self, text: str) -> None:
        """Draw the live line below the line that pytest is writing, which stays as it is."""
        if not self._drawn:
            self._column = self._writer.width_of_current_line
            self._draw("\n")
        self._drawn = True
        self._draw(f"\r\x1b[2K{text[: self._writer.fullwidth - 1]}")

    def _draw(self, text: str) -> None:
        # Past the reporter: it must not take what is drawn for a part of its own line.
        with self._uncaptured():
            sys.stdout.write(text)
            sys.stdout.flush()

    def _uncaptured(self) -> AbstractContextManager[None]:
        """Lift pytest's capture of output: items wait while it is on."""
        if self._capture is None:
            return nullcontext()
        lifted: AbstractContextManager[None] = self._capture.global_and_fixture_disabled()
        return lifted


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
