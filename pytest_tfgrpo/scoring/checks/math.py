"""The check on mathematics: numbers, LaTeX, intervals and sets that are equivalent to the expected one."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.answer import number_texts
from pytest_tfgrpo.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    Undecided,
    builtin_params,
    failed,
    verdict,
)
from pytest_tfgrpo.scoring.numerals.formula import with_plain_numerals, without_latex_groups
from pytest_tfgrpo.scoring.numerals.place import UnsureNumeral

ANSWER_MAX_CHARACTERS = 5_000
"""The end of an answer that is read: what it comes to stands there."""
LIMIT_S = 5.0
"""Longest time that one answer may take."""
START_S = 60.0
"""Longest time until a worker is ready."""
GRACE_S = 1.0
"""How much longer a worker may live than it is waited for; it then ends itself, for want of a parent."""
MEMORY_BYTES = 1 << 30
WORKERS = min(4, os.cpu_count() or 1)
REQUESTS_MAX = 1_000
"""Most questions per worker: the parser's tables grow with every new input."""
INSTALL = "install it: pip install 'pytest-tfgrpo[math]'"


_alive: set[subprocess.Popen[bytes]] = set()


class _Slow(Exception):
    """A worker did not reply in time."""


class _Died(Exception):
    """A worker ended without a reply."""


class _DiedOfValue(_Died):
    """It ended over the expected value, before it came to the answer."""


class _Worker:
    """A process that reads and compares; must be ended."""

    def __init__(self) -> None:
        """Raises CheckError when it cannot start."""
        self._left = REQUESTS_MAX
        self._buffer = b""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(Path(__file__).with_name("math_worker.py"))],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise CheckError(f"the worker of check 'math' cannot be started: {error}") from error
        _alive.add(self._process)
        folders = [folder for folder in sys.path if Path(folder).is_absolute()]
        try:
            self._send({"path": folders, "memory": MEMORY_BYTES})
            ready = self._receive(time.monotonic() + START_S)
        except (_Slow, _Died) as error:
            self.end()
            raise CheckError(f"the worker of check 'math' did not start: {type(error).__name__}") from error
        if not ready["ready"]:
            self.end()
            raise CheckError(f"check 'math' lacks a library: {ready['why']}; {INSTALL}")

    @property
    def is_fit(self) -> bool:
        """Whether it can be used again."""
        return self._left > 0

    def compare(self, params: Mapping[str, Json], answer: str) -> Mapping[str, Any]:
        """Return the worker's reply; raises CheckError over the value, _Slow and _Died over the answer."""
        self._left -= 1
        deadline = time.monotonic() + LIMIT_S
        value = params["value"]
        value = without_latex_groups(value) if isinstance(value, str) else value
        request = {"value": value, "decimals": params.get("decimals"), "answer": answer}
        try:
            self._send({**request, "limit_s": LIMIT_S + GRACE_S})
            wrong = self._receive(deadline)["wrong"]
        except _Slow:
            wrong = f"it takes more than {LIMIT_S:g} s to read"
        except _Died as error:
            raise _DiedOfValue from error
        if wrong is not None:
            raise CheckError(f"check 'math' cannot use the value {short(params['value'])}: {wrong}")
        return self._receive(deadline)

    def end(self) -> None:
        """End the process and let go of its pipes."""
        _end(self._process)

    def _send(self, value: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise _Died from error

    def _receive(self, deadline: float) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        output, ready = self._process.stdout.fileno(), select.poll()
        ready.register(output, select.POLLIN)
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not ready.poll(1000 * left):
                raise _Slow
            chunk = os.read(output, 65_536)
            if not chunk:
                raise _Died
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply: Mapping[str, Any] = json.loads(line)
        return reply


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError), process:
        process.kill()
    _alive.discard(process)


@atexit.register
def _end_all() -> None:
    for process in tuple(_alive):
        _end(process)


_places = threading.BoundedSemaphore(WORKERS)
_idle: deque[_Worker] = deque()


@contextlib.contextmanager
def _worker(*, fresh: bool = False) -> Iterator[_Worker]:
    """Lend a worker, a new one if it must be `fresh`; one that failed is ended."""
    with _places:
        try:
            worker = _idle.pop()
            if fresh:
                worker.end()
                worker = _Worker()
        except IndexError:
            worker = _Worker()
        try:
            yield worker
        except BaseException:
            worker.end()
            raise
        if worker.is_fit:
            _idle.append(worker)
        else:
            worker.end()


def _compare(params: Mapping[str, Json], answer: str) -> Mapping[str, Any]:
    """Ask a worker, and a fresh one where the first ended: it may have been worn, or killed by somebody."""
    with contextlib.suppress(_Died), _worker() as worker:
        return worker.compare(params, answer)
    with _worker(fresh=True) as worker:
        return worker.compare(params, answer)


def _math(check: Check, context: CheckContext) -> CheckResult:
    wanted, shown = short(check.params["value"]), short(context.answer[-200:])
    try:
        answer = with_plain_numerals(context.answer[-ANSWER_MAX_CHARACTERS:], str(check.params["value"]))
        found = _compare(check.params, answer[-ANSWER_MAX_CHARACTERS:])
    except UnsureNumeral as unsure:
        raise Undecided(f"expected {wanted}; the last number, {unsure}") from None
    except _Slow:
        raise Undecided(f"expected {wanted}; reading {shown} took more than {LIMIT_S:g} s") from None
    except _DiedOfValue as error:
        raise CheckError(
            f"check 'math' cannot use the value {wanted}: it is too much for the reader"
        ) from error
    except _Died:
        raise Undecided(f"expected {wanted}; reading {shown} was too much for the reader") from None
    if not found["found"]:
        return failed(check, f"expected {wanted}, found no mathematics in {shown}")
    return verdict(check, None if found["equal"] else f"expected {wanted}, got {short(found['written'])}")


@cache
def _is_installed() -> bool:
    return find_spec("math_verify") is not None


def _prepare(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    if not _is_installed():
        raise ValueError(f"check 'math' needs a library that is not here; {INSTALL}")
    value = params["value"]
    if isinstance(value, str) and not value.strip():
        raise BadParam("value", f"{value!r} is blank")
    return params


_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]{1,100})\}\{([^{}]{1,100})\}")
_MARKS = re.compile(r"\\boxed|\\left|\\right|\\[,;!()\[\]]|[${}]")


def _texts(check: Check) -> tuple[str, ...]:
    """Return the expected value as it is written, and without LaTeX."""
    value = check.params["value"]
    if not isinstance(value, str):
        return number_texts(value)
    plain = _MARKS.sub("", _FRACTION.sub(r"\1/\2", value)).replace("\\", "").strip()
    bare = value.strip().strip("$").strip()
    return tuple(dict.fromkeys((value.strip(), bare, plain)))


MATH = CheckKind(name="math", params=builtin_params("math"), evaluate=_math, prepare=_prepare, answers=_texts)
