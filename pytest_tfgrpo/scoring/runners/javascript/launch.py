"""One run of a program of ours around a project's runner: settings in, signed records out."""

from __future__ import annotations

import json
import math
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.programs.programs import needed
from pytest_tfgrpo.sandbox.removal import remove
from pytest_tfgrpo.scoring.runners.isolation import (
    Exchange,
    IsolatedProgram,
    IsolatedRun,
    run_isolated,
    variables,
)
from pytest_tfgrpo.scoring.runners.javascript.flags import node_flags
from pytest_tfgrpo.scoring.runners.javascript.outcomes import (
    Canaries,
    Reported,
    problem_of,
    read_records,
)
from pytest_tfgrpo.scoring.runners.javascript.starts import Starts
from pytest_tfgrpo.scoring.runners.protocol import RunProblem, SuiteRequest
from pytest_tfgrpo.scoring.runners.signed import KEY_BYTES, ForgedReport, read_signed

HERE = Path(__file__).parent
REPORT_MAX = 256 << 20
"""Bytes of a report; a run that sends more is ended."""
HUNG_MAX = 8
"""Tests that may hang in a run before it counts as out of time: each costs a new run."""
STARTS = "starts"
WORKERS = 2
"""Processes that run tests: a run has two processors, as the environment variables of others say too."""
SHELL = ("/bin/sh", "-c", 'exec "$@" 3<&0 </dev/null', "sh")
"""Moves the private socket away from standard input, which tests may read."""

CommandOf = Callable[[str], Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launched:
    """What came of one run of a program."""

    reported: Reported
    problem: RunProblem | None = None
    detail: str = ""


def node_of(request: SuiteRequest) -> str | None:
    """Return the path of node, the environment's before the machine's; None if there is none."""
    return shutil.which("node", path=variables(request.environment, request.tree)["PATH"])


def launch(request: SuiteRequest, program: CommandOf, files: Sequence[str], deadline: float) -> Launched:
    """Run a program on files relative to the tree until `deadline`, by the monotonic clock.

    A test that takes longer than the request's `hang_s` ends the run, which begins anew and leaves it out.
    `program` makes a command line of the path of node.
    """
    node = node_of(request)
    if node is None:
        return Launched(
            reported=Reported(), problem=RunProblem.NO_RUNNER, detail="node is not installed; install nodejs"
        )
    link_environment(request)
    hung: list[tuple[str, str]] = []
    while True:
        folder = Path(tempfile.mkdtemp(prefix="tfgrpo-tests-")).resolve()
        try:
            attempt = _Attempt(request, folder, hung)
            found = attempt.run(program(node), files, deadline)
        finally:
            remove(folder)
        if attempt.blamed is None or len(hung) == HUNG_MAX or attempt.blamed in hung:
            return found
        hung.append(attempt.blamed)


class _Attempt:
    """One start of the program."""

    def __init__(self, request: SuiteRequest, folder: Path, hung: Sequence[tuple[str, str]]) -> None:
        self._request = request
        self._folder = folder
        self._hung = hung
        self._key = secrets.token_bytes(KEY_BYTES)
        self._canaries = Canaries.named()
        self._starts = Starts(folder, STARTS, request.hang_s or math.inf)
        self._report = bytearray()
        self.blamed: tuple[str, str] | None = None
        """File and name of a test that hung."""

    def run(self, argv: Sequence[str], files: Sequence[str], deadline: float) -> Launched:
        request = self._request
        exchange = Exchange(request=self._settings(files), receive=self._receive, deadline=self._deadline)
        shown = () if request.environment is None else request.environment.readable
        found = variables(request.environment, request.tree)
        try:
            program = IsolatedProgram(
                argv=[*SHELL, *argv],
                tree=request.tree,
                folder=request.command.folder,
                readable=(HERE, *needed(argv[:1], found["PATH"], request.tree), *shown),
                writable=(self._folder,),
                environment={**found, "CI": "1", "NO_COLOR": "1"},
                isolation=request.isolation,
                apart=True,
            )
            ended = run_isolated(program, timeout_s=max(0.0, deadline - time.monotonic()), exchange=exchange)
        except OSError as error:
            return Launched(reported=Reported(), problem=RunProblem.NO_RUNNER, detail=str(error))
        return self._judged(ended)

    def _settings(self, files: Sequence[str]) -> bytes:
        """Return the program's arguments, and write what its workers need to a file of their own."""
        names, judged = self._canaries, self._request.canary
        shared: dict[str, Json] = {
            "passing": names.passing if judged else "",
            "failing": names.failing if judged else "",
            "marker": f"hung_{secrets.token_hex(12)}",
            "hung": self._hung,
            "starts": str(self._folder / STARTS),
        }
        worker = self._folder / "worker.json"
        worker.write_text(json.dumps(shared), encoding="utf-8")
        settings = shared | {
            "key": self._key.hex(),
            "early": names.early,
            "files": [str(self._request.tree / file) for file in files],
            "worker": str(worker),
            "workers": WORKERS,
            "cache": str(self._folder / "cache"),
            "loads": node_flags(self._request.command.run).loads,
        }
        return json.dumps(settings).encode() + b"\n"

    def _receive(self, data: bytes) -> bool:
        self._report += data
        return len(self._report) <= REPORT_MAX

    def _deadline(self) -> float:
        """Return when to end the run: now, if a test hung."""
        if self.blamed is None:
            self.blamed = self._starts.hung()
        return math.inf if self.blamed is None else 0.0

    def _judged(self, ended: IsolatedRun) -> Launched:
        reported, said = Reported(), ended.output.strip()
        try:
            records = read_signed(bytes(self._report), self._key)
            reported = read_records(records, self._request.tree, self._canaries)
        except ForgedReport as error:
            return Launched(reported=Reported(), problem=RunProblem.TAMPERED, detail=str(error))
        if ended.stopped in ("time", "exchange"):
            return Launched(reported=reported, problem=RunProblem.TIMEOUT, detail=said or "it took too long")
        problem, why = problem_of(reported, self._canaries if self._request.canary else None)
        return Launched(reported=reported, problem=problem, detail="\n".join(filter(None, (why, said))))


def link_environment(request: SuiteRequest) -> None:
    """Make the environment's links in the tree, in place of what the project has there."""
    if request.environment is None:
        return
    for name, target in request.environment.links.items():
        link = request.tree / name
        if not link.parent.resolve().is_relative_to(request.tree.resolve()):
            continue
        if link.is_symlink() or link.is_file():
            link.unlink()
        elif link.exists():
            remove(link)
        link.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            _link_all(link, target)
        else:
            link.symlink_to(target)


def _link_all(folder: Path, target: Path) -> None:
    """Make a folder with a link to each entry of another one: runners keep files of their own beside them."""
    folder.mkdir()
    for path in target.iterdir():
        (folder / path.name).symlink_to(path)
