"""The runner ``pytest``: reports over a private socket; a test that hangs or crashes ends alone."""

from __future__ import annotations

import contextlib
import hashlib
import json
import marshal
import math
import secrets
import tempfile
import time
from binascii import b2a_base64
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import walk
from pytest_tfgrpo.sandbox.removal import remove
from pytest_tfgrpo.scoring.runners.deciding_files import DecidingFiles
from pytest_tfgrpo.scoring.runners.edits.canaries import Canary, judged, random_word
from pytest_tfgrpo.scoring.runners.isolation import (
    Exchange,
    IsolatedProgram,
    IsolatedRun,
    interpreter,
    run_isolated,
    variables,
)
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRequest, SuiteRun
from pytest_tfgrpo.scoring.runners.python import pytest_start

START, *SCRIPTS = (
    Path(__file__).with_name(f"pytest_{name}.py")
    for name in ("start", "reporter", "guard", "kept", "returns")
)
RESTARTS = 20
"""How often the rest of the tests is run again, after one that hung or ended the process."""
CANARY_FILES = 3
LINE_MAX = 16 << 20
SPOKEN_MAX = 256 << 20
DETAIL = 2000
NO_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
"""Keeps pytest from loading the plugins that are installed."""


def run_pytest(request: SuiteRequest) -> SuiteRun:
    """Run the tests of `request` with pytest; raises CheckError where they cannot be isolated."""
    began = time.monotonic()
    request = request if request.files else replace(request, files=_found(request))
    if not request.files:
        none = "no file is called test_*.py or *_test.py"
        return SuiteRun(outcomes={}, problem=RunProblem.NOTHING_COLLECTED, detail=none)
    canaries: list[Canary] = []
    found, deciding = _Results(request.compiled), DecidingFiles(request)
    for _ in range(RESTARTS + 1):
        left = began + request.timeout_s - time.monotonic()
        fresh = _canaries(request) if request.canary else ()
        canaries += fresh
        talk, run = _run_once(request, fresh, found, max(left, 0.0))
        talk.tampered = talk.tampered or deciding.changed()
        if not talk.ended_alone(run):
            break
    for canary in canaries:
        with contextlib.suppress(OSError):
            (request.tree / canary.path).unlink()
    return _concluded(request, canaries, found, talk, run, time.monotonic() - began)


def _found(request: SuiteRequest) -> tuple[str, ...]:
    """Return the files that pytest would find by itself; canaries have to be named, so all have."""
    folder = request.tree / request.command.folder
    try:
        names = [PurePosixPath(request.command.folder) / name for name in walk(folder)]
    except (OSError, ValueError):  # more than can be looked through
        return ()
    return tuple(sorted(str(n) for n in names if n.match("test_*.py") or n.match("*_test.py")))


class _Results:
    """What is known of each test, over all restarts."""

    def __init__(self, compiled: dict[str, str] | None) -> None:
        """`compiled` is that of the request."""
        self.compiled = compiled
        self.outcomes: dict[str, CaseOutcome] = {}
        self.seconds: dict[str, float] = {}
        self.messages: dict[str, str] = {}
        self.uses: set[str] = set()

    def fail(self, id_: str, message: str, outcome: CaseOutcome = CaseOutcome.FAILED) -> None:
        self.outcomes[id_] = outcome
        self.messages.setdefault(id_, message)


class _Conversation:
    """What the reporter of one process says."""

    def __init__(self, found: _Results, hang_s: float | None) -> None:
        self.key = secrets.token_bytes(32)
        self.found = found
        self.over = self.heard = False
        self.tampered = self.broken = self.unimportable = ""
        self.current: str | None = None
        self._next = self.key
        self._hang_s = hang_s
        self._since = 0.0
        self._left = 0
        self._parts: dict[str, dict[str, str]] = {}
        self._text = b""
        self._room = SPOKEN_MAX

    def deadline(self) -> float:
        """Return when the test that runs counts as hung."""
        return math.inf if self.current is None or self._hang_s is None else self._since + self._hang_s

    def receive(self, data: bytes) -> bool:
        """Take what came over the socket; False when it is not from the reporter."""
        self._room -= len(data)
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            if not self.tampered:
                self._line(line)
        if len(self._text) > LINE_MAX or self._room < 0:
            self.tampered = self.tampered or "the report is too long"
        return not self.tampered

    def _line(self, line: bytes) -> None:
        mac, _, body = line.partition(b" ")
        right = hashlib.blake2b(body, key=self._next, digest_size=16).hexdigest().encode()
        self._next = hashlib.blake2b(b"next", key=self._next, digest_size=32).digest()
        if not secrets.compare_digest(mac, right) or self.over:
            self.tampered = "a line of the report is not from the reporter"
            return
        self.heard = True
        try:
            for kind, *values in load_json(body):
                getattr(self, f"_{kind}")(*values)
        except (AttributeError, TypeError, ValueError):  # code of the tests spoke to the reporter
            self.tampered = "a message of the report has another form"

    def _b(self) -> None:
        """Note that pytest was imported, before anything of the tree was: `heard` says so."""

    def _n(self, count: int) -> None:
        self._left += count

    def _c(self, id_: str, message: str) -> None:
        self.found.fail(id_, message)

    def _v(self, message: str) -> None:
        self.broken = message

    def _p(self, message: str) -> None:
        self.unimportable = message

    def _x(self, why: str) -> None:
        self.tampered = why

    def _k(self, key: str, code: str) -> None:
        if self.found.compiled is not None:
            self.found.compiled[key] = code

    def _u(self, use: str) -> None:
        self.found.uses.add(use)

    def _e(self, _code: int) -> None:
        self.over = True

    def _s(self, id_: str) -> None:
        self._left -= 1
        if self._left < 0:
            self.tampered = "more tests ran than were found"
        self.current, self._since = id_, time.monotonic()

    def _r(self, id_: str, when: str, outcome: str, seconds: float, message: str) -> None:
        """Note one phase of a test; after its teardown it is done."""
        found = self.found
        found.seconds[id_] = found.seconds.get(id_, 0.0) + seconds
        parts = self._parts.setdefault(id_, {})
        if outcome == "rerun":
            parts.clear()
            return
        if parts.get(when) != "failed":
            parts[when] = outcome
        if outcome == "skipped" and message:
            found.messages[id_] = message
        if outcome == "failed":
            found.fail(id_, message)
        elif "failed" in parts.values():
            found.outcomes[id_] = CaseOutcome.FAILED
        elif when == "teardown":
            phases = set(parts.values())
            if "skipped" in phases:
                found.outcomes[id_] = CaseOutcome.SKIPPED
            elif phases == {"passed"} and parts.keys() == {"setup", "call", "teardown"}:
                found.outcomes[id_] = CaseOutcome.PASSED
            else:
                found.fail(id_, "it ended without a report")
        if when == "teardown":
            if found.outcomes.get(id_) not in (CaseOutcome.FAILED, CaseOutcome.SKIPPED):
                found.messages.pop(id_, None)
            self.current = None

    def ended_alone(self, run: IsolatedRun) -> bool:
        """Note a test that hung, or with which the process ended; True if the others can be run again."""
        if self.current is None or self.over or self.tampered or run.stopped in ("time", "disk"):
            return False
        if run.stopped == "exchange":
            self.found.fail(self.current, "it hung", CaseOutcome.HUNG)
        else:
            self.found.fail(self.current, f"the process ended in it with {run.code}")
        return True


def _run_once(
    request: SuiteRequest,
    canaries: Sequence[Canary],
    found: _Results,
    timeout_s: float,
) -> tuple[_Conversation, IsolatedRun]:
    talk = _Conversation(found, request.hang_s)
    python, readable = interpreter(request.environment)
    cache = "/tmp/pytest-cache"
    own = Path(tempfile.mkdtemp(prefix="tfgrpo-pytest-")) if request.isolation == "none" else None
    try:
        body = json.dumps(_request(request, canaries, found, str(own or cache), talk.key)).encode()
        try:
            program = IsolatedProgram(
                argv=[python, str(START)],
                tree=request.tree,
                readable=(*readable, START, *SCRIPTS),
                environment=_environment(request, python),
                isolation=request.isolation,
                apart=True,
            )
            exchange = Exchange(
                request=pytest_start.HEADER.pack(len(body)) + body,
                receive=talk.receive,
                deadline=talk.deadline,
            )
            run = run_isolated(program, timeout_s=timeout_s, exchange=exchange)
        except OSError as error:
            talk.unimportable = f"{python} cannot be started: {error.strerror}"
            run = IsolatedRun(code=None, output="", elapsed_s=0.0)
    finally:
        if own is not None:
            remove(own)
    return talk, run


def _environment(request: SuiteRequest, python: str) -> dict[str, str]:
    """Return the variables of the run; PYTHONPATH comes later, as no file of the tree may run before ours.

    Without an environment the tests need nothing but pytest: plugins of this interpreter take no part.
    """
    found = variables(request.environment, request.tree, python)
    found.pop("PYTHONPATH", None)
    return found if request.environment else {**found, NO_PLUGINS: "1"}


def _request(
    request: SuiteRequest,
    canaries: Sequence[Canary],
    found: _Results,
    cache: str,
    key: bytes,
) -> dict[str, Json]:
    folder = request.command.folder
    start = PurePosixPath(folder)
    files = [*request.files, *(canary.path for canary in canaries)]
    imports = request.environment.imports if request.environment else ()
    return {
        "python": pytest_start.python(),
        "scripts": _scripts(),
        "key": key.hex(),
        "tree": str(request.tree),
        "folder": folder,
        "imports": [str(request.tree / name) for name in imports],
        "files": [_relative(name, start) for name in files if _is_there(request, name, canaries)],
        "protected": [name for name in request.protected if name.endswith(".py")],
        "allow": list(request.allow),
        "canaries": {canary.path: canary.text for canary in canaries},
        "words": [word for canary in canaries for pair in canary.pairs for word in pair],
        "at": [secrets.randbelow(10**6) / 10**6 for _ in range(4 * len(canaries))],
        "skipped": list(found.outcomes),
        "compiled": {**request.compiled} if request.compiled is not None else None,
        "cache": cache,
    }


@lru_cache(maxsize=1)
def _scripts() -> dict[str, Json]:
    """Return the compiled scripts by name."""
    return {
        path.stem: b2a_base64(
            marshal.dumps(compile(path.read_bytes(), str(path), "exec", dont_inherit=True))
        ).decode()
        for path in SCRIPTS
    }


def _relative(name: str, start: PurePosixPath) -> str:
    """Return a path of the tree as it is called in the folder `start`, which is never taken for an option."""
    up = "../" * len([part for part in start.parts if part != "."])
    return f"./{up}{name}"


def _is_there(request: SuiteRequest, name: str, canaries: Sequence[Canary]) -> bool:
    return (request.tree / name).is_file() or any(canary.path == name for canary in canaries)


def _canaries(request: SuiteRequest) -> tuple[Canary, ...]:
    """Return canaries for some of the folders where the tests are."""
    folders = sorted({str(PurePosixPath(name).parent) for name in request.files})
    there = [name for name in folders if (request.tree / name).is_dir()]
    secrets.SystemRandom().shuffle(there)
    return tuple(_canary(folder) for folder in there[:CANARY_FILES])


def _canary(folder: str) -> Canary:
    """Return two pairs of tests: functions, and methods of a unittest class, which run in another way."""
    words = [random_word() for _ in range(4)]
    name, first, second = (secrets.randbelow(10**6) + 10 for _ in range(3))
    functions = [
        f"def NAMED_{words[0]}():\n    assert {first} + {second} == {first + second}\n\n",
        f"def NAMED_{words[1]}():\n    assert {first} + {second} == {first + second + 1}\n\n",
    ]
    methods = [
        f"    def test_{words[2]}(self):\n        self.assertEqual({first} * 2, {first * 2})\n\n",
        f"    def test_{words[3]}(self):\n        self.assertEqual({first} * 2, {first * 2 + 1})\n\n",
    ]
    for two in (functions, methods):
        secrets.SystemRandom().shuffle(two)
    text = f"import unittest\n\n\n{functions[0]}\n{functions[1]}\n"
    text += f"class {random_word().title()}(unittest.TestCase):\n{''.join(methods)}"
    path = str(PurePosixPath(folder) / f"test_{random_word()}{name}.py")
    return Canary(path=path, text=text, pairs=((words[0], words[1]), (words[2], words[3])))


def _concluded(
    request: SuiteRequest,
    canaries: Sequence[Canary],
    found: _Results,
    talk: _Conversation,
    run: IsolatedRun,
    elapsed_s: float,
) -> SuiteRun:
    """Return what came of it all, without the canaries."""
    problem, detail = _problem(request, canaries, found, talk, run)
    if talk.broken and problem is None:  # the project's own conftest cannot be imported
        for name in request.files:
            if (request.tree / name).is_file():
                found.fail(name, talk.broken)
    paths = {canary.path for canary in canaries}
    kept = {id_ for id_ in found.outcomes if id_.partition("::")[0] not in paths}
    return SuiteRun(
        outcomes={id_: outcome for id_, outcome in found.outcomes.items() if id_ in kept},
        seconds={id_: seconds for id_, seconds in found.seconds.items() if id_ in kept},
        messages={id_: message for id_, message in found.messages.items() if id_ in kept},
        problem=problem,
        detail=detail,
        elapsed_s=elapsed_s,
        uses=tuple(sorted(found.uses)),
    )


def _problem(
    request: SuiteRequest,
    canaries: Sequence[Canary],
    found: _Results,
    talk: _Conversation,
    run: IsolatedRun,
) -> tuple[RunProblem | None, str]:
    """Return why the run cannot be used, if it cannot, and what a reader should see of it."""
    tail = run.output[-DETAIL:].strip()
    paths = {canary.path for canary in canaries}
    own = [id_ for id_ in found.outcomes if id_.partition("::")[0] not in paths]
    doubt = talk.tampered or judged(canaries, found.outcomes)
    if doubt:
        return RunProblem.TAMPERED, doubt
    if run.stopped == "time":
        return RunProblem.TIMEOUT, f"the tests took more than {request.timeout_s:g} s"
    if run.stopped == "disk":
        return RunProblem.NO_REPORT, "the tests filled the disk"
    if talk.unimportable:
        return RunProblem.NO_RUNNER, talk.unimportable
    if not talk.heard and run.code in (126, 127):
        return RunProblem.NO_RUNNER, tail
    if not talk.over:
        return RunProblem.NO_REPORT, tail or "pytest ended without its report"
    if not talk.broken and not own:
        return RunProblem.NOTHING_COLLECTED, tail
    return None, tail
