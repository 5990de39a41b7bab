"""Screens: where the live line of a run goes: below pytest's own line on a terminal, else into the log."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import pytest

from pytest_tfgrpo.core.texts.text import wrapped
from pytest_tfgrpo.plugin.progress.live_line import Moment, Part, fitted

FIRST_S = 10.0
"""Without a terminal: before the first line, and at least between two."""
LATER_S = 60.0
"""Without a terminal: at most between two lines, while no further tenth is done."""
KEPT_ROWS = 4
"""Results shown above the live line until the list of tests is complete."""


class LiveScreen(Protocol):
    """Shows the live line, and the lines that stay."""

    every_s: float
    """How often it wants to know what goes on."""

    def show(self, moment: Moment) -> None:
        """Take what goes on."""
        ...

    def restore(self) -> None:
        """Show the live line again where pytest has wiped it."""
        ...

    def keep(self, text: str) -> None:
        """Take a line that stays."""
        ...

    def clear(self) -> None:
        """Take the live line away."""
        ...

    def finish(self) -> None:
        """Take the live line away for good; pytest's list of tests is complete."""
        ...


def open_screen(config: pytest.Config) -> LiveScreen | None:
    """Return the screen of this process; None with ``-q``, and where pytest has no terminal of its own."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        return None
    if not reporter.isatty or os.environ.get("TERM") == "dumb" or _others_write(config):
        return LogScreen(config, reporter)
    return DrawnScreen(config, reporter)


def _others_write(config: pytest.Config) -> bool:
    """Return whether tests may write to the terminal at any time, so that nothing can be drawn there."""
    if config.getoption("capture", "fd") == "no":
        return True
    logging = config.pluginmanager.hasplugin("logging-plugin")
    return logging and (bool(config.getini("log_cli")) or config.getoption("log_cli_level") is not None)


class _Terminal:
    """Pytest's terminal, past its capture of output."""

    def __init__(self, config: pytest.Config, reporter: Any) -> None:
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self.reporter = reporter
        self.writer: Any = config.get_terminal_writer()
        self._start = config.invocation_params.dir

    def uncaptured(self) -> AbstractContextManager[None]:
        """Lift pytest's capture of output: items wait while it is on."""
        if self._capture is None:
            return nullcontext()
        lifted: AbstractContextManager[None] = self._capture.global_and_fixture_disabled()
        return lifted

    def write(self, lines: Sequence[str], *, resume: bool) -> None:
        """Write whole lines; with `resume` begin pytest's own line again, so that its list stays one."""
        with self.uncaptured():
            if self.writer.width_of_current_line:
                self.writer.line()
            for text in lines:
                self.writer.line(text)
            here = self.reporter.currentfspath
            if resume and isinstance(here, Path):
                self.writer.write(f"{os.path.relpath(here, self._start)} ")
            elif resume and isinstance(here, str):
                self.writer.write(here)
            else:
                self.reporter.currentfspath = None
            self.writer.flush()

    def coloured(self, parts: Sequence[Part]) -> str:
        """Return parts as text, in colour where pytest has colour."""
        return "".join(
            self.writer.markup(part.text, **{part.colour: True}) if part.colour else part.text
            for part in parts
            if part.text
        )


class LogScreen:
    """A line after 10 s, then at each tenth and minute; what stays comes with it, or after the list."""

    every_s = 1.0

    def __init__(self, config: pytest.Config, reporter: Any) -> None:
        """Nothing is written yet."""
        self._terminal = _Terminal(config, reporter)
        self._kept: list[str] = []
        """Lines that stay, and are not yet written."""
        self._all: set[str] = set()
        self._written_s = 0.0
        self._tenths = 0

    def show(self, moment: Moment) -> None:
        """Write a line when it is time to."""
        since_s, tenths = moment.at_s - self._written_s, int(moment.share * 10)
        if since_s < FIRST_S:
            return
        lines, self._kept = self._kept, []
        if not self._written_s or since_s >= LATER_S or tenths > self._tenths:
            lines.append(self._terminal.coloured(moment.parts))
            self._tenths = tenths
        if lines:
            self._written_s = moment.at_s
            self._terminal.write(lines, resume=True)

    def restore(self) -> None:
        """Do nothing: what is in a log stays there."""

    def keep(self, text: str) -> None:
        """Keep a line for the next time; a run that goes on in another worker says again what it said."""
        if text not in self._all:
            self._all.add(text)
            self._kept += wrapped(text, self._terminal.writer.fullwidth, hanging="  ")

    def clear(self) -> None:
        """Do nothing: what is in a log stays there."""

    def finish(self) -> None:
        """Write what was kept below the list of tests."""
        if self._kept:
            self._terminal.write(self._kept, resume=False)
            self._kept = []


class DrawnScreen:
    """Draws below the line that pytest is writing; the cursor always goes back to where pytest left it.

    So pytest writes on as if nothing were there. Only what begins a new line needs the rows below wiped.
    """

    every_s = 0.2

    def __init__(self, config: pytest.Config, reporter: Any) -> None:
        """Nothing is drawn yet."""
        self._terminal = _Terminal(config, reporter)
        self._kept: list[str] = []
        self._rows: list[str] = []
        """What is drawn, or was until pytest began a new line."""
        self._drawn = False
        self._drawn_at = 0.0
        self._lock = threading.RLock()  # with workers, what they say arrives on a thread of its own
        config.pluginmanager.register(self, "tfgrpo-screen")

    def show(self, moment: Moment) -> None:
        """Draw what goes on, under the latest of the lines that stay."""
        with self._lock:
            width = self._terminal.writer.fullwidth - 1
            kept = [_plain(text)[:width] for text in self._kept[-KEPT_ROWS:]]
            self._rows = [*kept, self._terminal.coloured(fitted(moment.parts, width))]
            self._draw_rows()

    def restore(self) -> None:
        """Draw again what pytest has wiped by a new line."""
        with self._lock:
            if self._rows and not self._drawn:
                self._draw_rows()

    def keep(self, text: str) -> None:
        """Keep a line for the rows above the live line, and for the end.

        A run that goes on in another worker says again what it said.
        """
        with self._lock:
            if text not in self._kept:
                self._kept.append(text)

    def clear(self) -> None:
        """Wipe the rows below pytest's line."""
        with self._lock:
            if self._drawn:
                self._draw("\x1b[J")
                self._drawn = False

    def finish(self) -> None:
        """Write what was kept below the list of tests."""
        with self._lock:
            self.clear()
            self._rows = []
            if self._kept:
                width = self._terminal.writer.fullwidth
                lines = [row for text in self._kept for row in wrapped(text, width, hanging="  ")]
                self._terminal.write(lines, resume=False)
                self._kept = []

    def _draw_rows(self) -> None:
        writer = self._terminal.writer
        column = writer.width_of_current_line % writer.fullwidth
        below = "".join(f"\n\r{row}\x1b[K" for row in self._rows)
        back = f"\x1b[{len(self._rows)}A\r" + (f"\x1b[{column}C" if column else "")
        self._draw(f"{below}\x1b[J{back}")
        self._drawn, self._drawn_at = True, monotonic()

    def _draw(self, text: str) -> None:
        # Past the reporter: it must not take what is drawn for a part of its own line.
        with self._terminal.uncaptured():
            sys.stdout.write(text)
            sys.stdout.flush()

    def _around(self) -> Generator[None, object, object]:
        """Let pytest write; wipe what is below if that began a new line."""
        with self._lock:
            before = self._terminal.reporter.currentfspath, self._terminal.writer.width_of_current_line
            result = yield
            where, column = self._terminal.reporter.currentfspath, self._terminal.writer.width_of_current_line
            if self._drawn and (where != before[0] or column < before[1]):
                self.clear()
                if monotonic() - self._drawn_at > self.every_s:  # not each time where items end in a burst
                    self._draw_rows()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Stay out of the way of an item's first words."""
        return (yield from self._around())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, object, object]:
        """Stay out of the way of an item's result."""
        return (yield from self._around())

    def pytest_enter_pdb(self) -> None:
        """Leave the terminal to the debugger."""
        self.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self) -> None:
        """Leave the terminal to the debugger."""
        self.clear()


def _plain(text: str) -> str:
    """Return text whose characters are one column wide."""
    return text.encode("ascii", "replace").decode()
