"""How far runs are, on one line that is written again: in a terminal, or below the cell of a notebook."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from pytest_tfgrpo.core.records import PhaseResult
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.observers import Notice, Record
from pytest_tfgrpo.plugin.progress.live_line import Moment, fitted
from pytest_tfgrpo.plugin.progress.progress import Progress

if TYPE_CHECKING:
    from pytest_tfgrpo.launch.engine_thread import EngineThread
    from pytest_tfgrpo.launch.launch import Launch
    from pytest_tfgrpo.launch.running import Follow

NOTEBOOK_WIDTH = 110


class LinePlace(Protocol):
    """Where a line is shown."""

    @property
    def width(self) -> int:
        """Columns that fit."""
        ...

    def show(self, text: str) -> None:
        """Show a line in place of the one before; an empty one takes it away."""
        ...

    def keep(self, text: str) -> None:
        """Show a line that stays."""
        ...


class TerminalPlace:
    """The line of a terminal that the cursor is in."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`, which is a terminal."""
        self._stream = stream

    @property
    def width(self) -> int:
        """Columns of the terminal, without the last one, where it would wrap."""
        return shutil.get_terminal_size().columns - 1

    def show(self, text: str) -> None:
        """Write the line again from its start."""
        self._stream.write(f"\r{text}\x1b[K" if text else "\r\x1b[K")
        self._stream.flush()

    def keep(self, text: str) -> None:
        """Write a line above."""
        self._stream.write(f"\r{text}\x1b[K\n")
        self._stream.flush()


class NotebookPlace:
    """An output below the cell that runs, which is updated; the latest line that stays is above the other."""

    width = NOTEBOOK_WIDTH

    def __init__(self, display: Callable[..., Any]) -> None:
        """`display` is IPython's."""
        self._display = display
        self._handle: Any = None
        self._kept = ""

    def show(self, text: str) -> None:
        """Update the output; the first line makes it."""
        told = f"{self._kept}\n{text}".strip() if text else ""
        shown = {"text/plain": told, "text/html": f"<pre>{escape(told)}</pre>" if told else ""}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def keep(self, text: str) -> None:
        """Show a line above the other from the next time on."""
        self._kept = text


class LineScreen:
    """The part of the line that one run has."""

    every_s = 0.2

    def __init__(self, lines: Lines, agent: str) -> None:
        """`agent` is whose run it is."""
        self._lines, self._agent = lines, agent

    def show(self, moment: Moment) -> None:
        """Take what goes on."""
        self._lines.set(self._agent, moment)

    def restore(self) -> None:
        """Do nothing: nobody else wipes the line."""

    def keep(self, text: str) -> None:
        """Take a line that stays."""
        self._lines.keep(text)

    def clear(self) -> None:
        """Do nothing: the follower takes the line away."""

    def finish(self) -> None:
        """Do nothing: the follower takes the line away."""


class Lines:
    """The parts of all runs on one line; a place that breaks is left alone."""

    def __init__(self, place: LinePlace, count: int) -> None:
        """`count` runs share the line."""
        self._place: LinePlace | None = place
        self._count = max(count, 1)
        self._moments: dict[str, Moment] = {}
        self._shown = ""

    def set(self, agent: str, moment: Moment) -> None:
        """Show what goes on in one run beside the others."""
        self._moments[agent] = moment
        self._draw(self._text)

    def keep(self, text: str) -> None:
        """Show a line that stays."""
        self._draw(lambda place: place.keep(line(text, place.width)))
        self._shown = ""
        self._draw(self._text)

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            self._draw(lambda place: place.show(""))
        self._place = None

    def _text(self, place: LinePlace) -> None:
        each = (place.width - 3 * (self._count - 1)) // self._count
        parts = (fitted(moment.parts, each) for moment in self._moments.values())
        text = " | ".join("".join(part.text for part in found) for found in parts)
        if text != self._shown:
            self._shown = text
            place.show(text)

    def _draw(self, draw: Callable[[LinePlace], None]) -> None:
        try:
            if self._place is not None:
                draw(self._place)
        except Exception:  # noqa: BLE001 - a closed stream or a kernel without display does not end a run
            self._place = None


class _Follower:
    """Shows how far runs are while they go on."""

    def __init__(
        self, place: LinePlace, threads: Mapping[str, EngineThread], launches: Mapping[str, Launch]
    ) -> None:
        self._lines = Lines(place, len(threads))
        self._progress = {
            name: Progress(LineScreen(self._lines, name), thread.gauge, launches[name].prepared.job, name)
            for name, thread in threads.items()
        }

    def tick(self) -> None:
        for one in self._progress.values():
            one.tick()

    def take(self, agent: str, record: Record) -> None:
        if isinstance(record, PhaseResult):
            self._progress[agent].phase(record)
        elif isinstance(record, Notice):
            self._progress[agent].notice(record.text)

    def close(self) -> None:
        self._lines.close()


def follow() -> Follow | None:
    """Return what opens a follower of runs; None without a notebook and without a terminal."""
    place = _place()
    return None if place is None else lambda threads, launches: _Follower(place, threads, launches)


def _place() -> LinePlace | None:
    """Return the output of the notebook that runs this, else standard error where it is a terminal."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    shows: Any = sys.modules.get("IPython.display")
    if shows is not None and getattr(shell, "kernel", None) is not None:
        return NotebookPlace(shows.display)
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return TerminalPlace(stream)
