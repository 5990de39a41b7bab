"""Progress on long epochs: a live line on a terminal, periodic plain lines otherwise."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import pytest

from pytest_tfgrpo.core.records import Phase, PhaseResult, Rollout

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
        self._drawn = 0

    def rollout(self, rollout: Rollout, phase: Phase) -> None:
        """Count a finished rollout."""
        if self._phase is None or self._phase.epoch != phase.epoch:
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
            text += f", {self._errors} errors"
        self._write(f"{text}, {now - self._started:.0f} s", keep=not self._live)

    def phase(self, result: PhaseResult) -> None:
        """Show a line for a phase that ended."""
        if self._reporter is None:
            return
        scores = [s.gt_score for g in result.groups for s in g.scores if s.gt_score is not None]
        mean = f"gt mean {sum(scores) / len(scores):.3f}" if scores else "nothing scored"
        text = f"tfgrpo {result.phase.label}: {len(scores)} rollouts scored, {mean}"
        if result.revision is not None:
            text += f", {len(result.revision.library.experiences)} experiences in force"
        if result.status != "complete":
            text += f" ({result.status}: {result.reason})"
        self._write(text, keep=True)

    def _write(self, text: str, *, keep: bool) -> None:
        # Items wait while pytest captures output: lift the capture for this line alone.
        lift = self._capture.global_and_fixture_disabled() if self._capture else nullcontext()
        with lift:
            if not self._drawn:
                self._reporter.ensure_newline()
            padding = " " * max(0, self._drawn - len(text))
            self._reporter.write(("\r" if self._drawn else "") + text + padding + ("\n" if keep else ""))
            self._reporter.flush()
        self._drawn = 0 if keep else len(text)
