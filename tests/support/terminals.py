"""A terminal of 80 columns, and a model that takes 30 s by a clock that the test moves."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

COLUMNS, ROWS = 80, 60
CLOCK = "clock.txt"
DEADLINE_S = 100.0
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider")
SLOW_MODEL = f'''
import asyncio
from pathlib import Path

from pytest_tfgrpo.engine import gauge

CLOCK = Path(__file__).with_name("{CLOCK}")
now = 0.0
gauge.monotonic = lambda: now


async def solve(context):
    """Answer 30 s after the call, by the clock of the file."""
    global now
    until = now + 30
    with CLOCK.with_name("calls.log").open("a") as log:
        log.write("asked\\n")
    while now < until:
        now = max(now, float(CLOCK.read_text() or 0))
        await asyncio.sleep(0.005)
    if context.seed % 5 == 0 and "train" in context.prompt.user:
        raise ValueError("no answer")
    frames = [{{"kind": "tool", "name": "count", "output": "3", "tokens": 9, "cost_usd": 0.004}}]
    return {{"answer": "3" if context.seed % 3 else "4", "frames": frames}}
'''
LEARNER = f'''
import asyncio
from collections import Counter
from pathlib import Path

from pytest_tfgrpo.engine import gauge

CLOCK = Path(__file__).with_name("{CLOCK}")
asked = Counter()


def now():
    return float(CLOCK.read_text() or 0)


gauge.monotonic = now


async def solve(context):
    """Answer 30 s after the call, at the end at once; right at the first of two attempts, or by a lesson."""
    until = now() + 30
    asked[context.prompt.user] += 1
    right = "count each" in context.prompt.system or asked[context.prompt.user] % 2
    while now() < min(until, 500):
        await asyncio.sleep(0.005)
    return "3" if right else "4"
'''
_ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]+")


class Display:
    """What a terminal shows of what is written to it; raises AssertionError on what it does not know."""

    def __init__(self) -> None:
        self.rows: list[str] = [""]
        self.row = self.column = 0
        self._rest = ""

    def feed(self, text: str) -> None:
        """Take what a program writes; an escape sequence may come in two pieces."""
        text = self._rest + text
        cut = re.search(r"\x1b(\[[0-9;]*)?$", text)
        text, self._rest = (text[: cut.start()], text[cut.start() :]) if cut else (text, "")
        at = 0
        for match in _ESCAPE.finditer(text):
            assert match.start() == at, f"unknown sequence {text[at : match.end()]!r}"
            at = match.end()
            if match[2]:
                self._control(match[2], match[1])
            elif match[0] == "\r":
                self.column = 0
            elif match[0] == "\n":
                self.row += 1
                self.rows += [""] * (self.row >= len(self.rows))
            else:
                self._write(match[0])
        assert at == len(text), f"unknown sequence {text[at:]!r}"

    def _write(self, text: str) -> None:
        for character in text:
            if self.column == COLUMNS:
                self.feed("\r\n")
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + character + row[self.column + 1 :]
            self.column += 1

    def _control(self, name: str, numbers: str) -> None:
        if name == "m":
            return
        if name == "A":
            self.row = max(self.row - int(numbers or 1), 0)
        elif name == "C":
            self.column = min(self.column + int(numbers or 1), COLUMNS - 1)
        elif name in "JK":
            assert numbers in ("", "0"), f"unknown sequence {numbers}{name}"
            self.rows[self.row] = self.rows[self.row][: self.column]
            del self.rows[self.row + 1 :][: len(self.rows) if name == "J" else 0]
            if name == "J":
                self.rows = self.rows[: self.row + 1]
        else:
            raise AssertionError(f"unknown sequence {name}")

    @property
    def text(self) -> str:
        """The rows, without blanks at their ends."""
        return "\n".join(row.rstrip() for row in self.rows)


class Watched:
    """A process whose output is followed, on a terminal or without one."""

    def __init__(self, process: subprocess.Popen[bytes], source: int) -> None:
        self.process = process
        self._source = source
        self.display = Display()
        self.written = ""

    def read(self, timeout_s: float) -> bool:
        """Take what was written; returns whether more can come."""
        if not select.select([self._source], [], [], timeout_s)[0]:
            return True
        try:
            part = os.read(self._source, 65536)
        except OSError:  # Linux's way to say that nobody has the other end any more
            part = b""
        self.written += part.decode()
        self.display.feed(part.decode().replace("\r\n", "\n").replace("\n", "\r\n"))
        return bool(part)

    def wait_for(self, condition: Callable[[str], object]) -> str:
        """Return what is shown once it fulfils a condition; raises AssertionError if it never does."""
        deadline = time.monotonic() + DEADLINE_S
        more = True
        while not condition(self.display.text):
            assert more, f"the process ended, and shows:\n{self.display.text}"
            assert time.monotonic() < deadline, f"after {DEADLINE_S:g} s it shows:\n{self.display.text}"
            more = self.read(0.1)
        return self.display.text

    def end(self) -> str:
        """Return what is shown when the process has ended."""
        deadline = time.monotonic() + DEADLINE_S
        while self.read(0.1):
            assert time.monotonic() < deadline, f"after {DEADLINE_S:g} s it shows:\n{self.display.text}"
        self.process.wait(DEADLINE_S)
        return self.display.text


@contextmanager
def watching(
    folder: Path, args: Sequence[str], *, terminal: bool, program: Sequence[str] = PYTEST
) -> Iterator[Watched]:
    """Run pytest in `folder`, or other words of the interpreter, on a terminal or without one."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    if terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    process = subprocess.Popen(
        [sys.executable, *program, *args],
        cwd=folder,
        stdin=theirs if terminal else subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.STDOUT,
        env=environ | {"TERM": "xterm", "COLUMNS": str(COLUMNS)},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Watched(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
