"""What a harvest shows while candidates run: a live line on a terminal, and how long all may take."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, TextIO

from pytest_tfgrpo.core.texts.text import plural

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.job.progress import HarvestEstimate, HarvestReading, RunningCandidate

SAID_FROM_S = 60.0
"""A harvest that takes less says nothing of how long it takes."""


class HarvestScreen:
    """Where a harvest is shown: a terminal has a line that is written again and again, anything else none."""

    def __init__(self, stream: TextIO) -> None:
        """Nothing is written yet."""
        self._stream = stream
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = self._said = False

    def watch(self, reading: HarvestReading) -> None:
        """Show what a harvest does; the estimate stays, and is shown once."""
        if reading.estimate is not None and not self._said:
            self._said = True
            if reading.estimate.most_s >= SAID_FROM_S:
                self.clear()
                print(estimate_line(reading.estimate), file=self._stream, flush=True)
        if self._live and reading.running:
            width = shutil.get_terminal_size().columns - 1  # a full row would wrap
            self._stream.write(f"\r{live_line(reading)[:width]}\x1b[K")
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        """Take the live line away, so that another line can be written."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


def live_line(reading: HarvestReading) -> str:
    """Return what candidates run: ``3/22  run 4 of 9, 40 s  fix-prices-0123456789ab``."""
    width, first = len(str(reading.total)), reading.running[0]
    parts = [f"{one.number:>{width}}/{reading.total}  {_doing(one, reading.at_s)}" for one in reading.running]
    return "   ".join(parts) if len(parts) > 1 else f"{parts[0]}  {first.id}"


def _doing(one: RunningCandidate, at_s: float) -> str:
    what = f"run {max(1, one.run)} of {one.runs}" if one.stage == "runs" else one.stage
    return f"{what}, {max(0.0, at_s - one.began_s):.0f} s"


def estimate_line(estimate: HarvestEstimate) -> str:
    """Return how long a harvest takes, for how many candidates, and how that is known."""
    least, most = spent(estimate.least_s), spent(estimate.most_s)
    time = f"about {most}" if least == most else f"from {least} to {most}"
    return f"{time} for {plural(estimate.candidates, 'candidate')}, if all are alike: {estimate.basis}"


def spent(seconds: float) -> str:
    """Return a time in the unit that fits it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
