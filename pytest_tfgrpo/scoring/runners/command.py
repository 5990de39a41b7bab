"""The runner ``command``: any program that writes JUnit XML, with canaries where its language has them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.sandbox.paths import read_untrusted
from pytest_tfgrpo.sandbox.programs.programs import needed
from pytest_tfgrpo.sandbox.removal import remove
from pytest_tfgrpo.scoring.runners.edits.canary_files import CanaryFile, write_canaries
from pytest_tfgrpo.scoring.runners.isolation import (
    IsolatedProgram,
    IsolatedRun,
    interpreter,
    run_isolated,
    variables,
)
from pytest_tfgrpo.scoring.runners.javascript.launch import link_environment
from pytest_tfgrpo.scoring.runners.junit import MAX_BYTES, JunitCase, JunitProblem, read_junit
from pytest_tfgrpo.scoring.runners.names import worst
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRequest, SuiteRun

REPORT = "report.xml"


def run_command(request: SuiteRequest) -> SuiteRun:
    """Run a command that writes JUnit XML to ``{report}``, as `Runner` says.

    A test that hangs ends the run: a command does not say which one began. Where no file of tests is in a
    language of `canary_files`, or the command has no ``{tests}``, it runs without canaries.
    """
    began = time.monotonic()
    link_environment(request)
    folder = Path(tempfile.mkdtemp(prefix="tfgrpo-tests-")).resolve()
    try:
        canaries = _canaries(request)
        outcome = _run(request, folder, canaries)
    finally:
        remove(folder)
    if isinstance(outcome, SuiteRun):
        return outcome
    ended, cases = outcome
    return _judged(cases, canaries, ended, time.monotonic() - began)


def _canaries(request: SuiteRequest) -> tuple[CanaryFile, ...]:
    if not request.canary or not any("{tests}" in word for word in request.command.run):
        return ()
    return write_canaries(request.tree, request.files)


def _run(
    request: SuiteRequest, folder: Path, canaries: Sequence[CanaryFile]
) -> SuiteRun | tuple[IsolatedRun, tuple[JunitCase, ...]]:
    """Return how the command ended and the tests of its report; a run with a problem if there is none."""
    files = (*request.files, *(canary.path for canary in canaries))
    argv = command_line(request.command.run, folder / REPORT, files, request.command.folder)
    python, shown = interpreter(request.environment)
    found = variables(request.environment, request.tree, python)
    program = _program(argv[0], found["PATH"], request) if argv else None
    if program is None:
        return _failed(RunProblem.NO_RUNNER, f"the program {''.join(argv[:1])!r} is not in the environment")
    if not program.startswith(f"{request.tree}/"):  # what an agent may have written names nothing to be shown
        shown = (*shown, *needed([program], found["PATH"], request.tree))
    try:
        isolated = IsolatedProgram(
            argv=[program, *argv[1:]],
            tree=request.tree,
            folder=request.command.folder,
            readable=shown,
            writable=(folder,),
            environment={**found, "CI": "1", "NO_COLOR": "1"},
            isolation=request.isolation,
            apart=True,
        )
        ended = run_isolated(isolated, timeout_s=request.timeout_s)
        if ended.stopped == "time":
            return _failed(RunProblem.TIMEOUT, ended.output.strip() or "it took too long", ended.elapsed_s)
        cases = read_junit(read_untrusted(folder, REPORT, MAX_BYTES), request.tree)
    except FileNotFoundError:
        return _failed(RunProblem.NO_REPORT, _no_report(ended), ended.elapsed_s)
    except OSError as error:
        return _failed(RunProblem.NO_RUNNER, f"{argv[0]!r} cannot be started: {error.strerror}")
    except JunitProblem as error:
        return _failed(RunProblem.NO_REPORT, f"its report cannot be read: {error}", ended.elapsed_s)
    except ValueError as error:
        return _failed(RunProblem.TAMPERED, f"its report is not a file: {error}", ended.elapsed_s)
    return ended, cases


def command_line(run: Sequence[str], report: Path, files: Sequence[str], folder: str) -> list[str]:
    """Return the words of a command: ``{report}`` is a path, ``{tests}`` one word a file, seen from `folder`.

    A word that is more than ``{tests}`` holds the files with spaces between them.
    """
    places = [_seen(file, folder) for file in files]
    words: list[str] = []
    for word in run:
        if word == "{tests}":
            words += places
        else:
            words.append(word.replace("{report}", str(report)).replace("{tests}", " ".join(places)))
    return words


def _seen(file: str, folder: str) -> str:
    """Return a file's path from `folder`; one that begins with a dash stays no option."""
    path, start = PurePosixPath(file), PurePosixPath(folder)
    up = 0
    while not path.is_relative_to(start):
        start, up = start.parent, up + 1
    seen = "/".join([*[".."] * up, str(path.relative_to(start))])
    return f"./{seen}" if seen.startswith("-") else seen


def _program(name: str, search: str, request: SuiteRequest) -> str | None:
    """Return the path of a program: in the tree if it has a slash, else of PATH."""
    if "/" in name and not name.startswith("/"):
        return str(request.tree / request.command.folder / name)
    return shutil.which(name, path=search)


def _judged(
    cases: Sequence[JunitCase], canaries: Sequence[CanaryFile], ended: IsolatedRun, elapsed_s: float
) -> SuiteRun:
    """Return what the tests of a report came to; canaries that are missing or wrong spoil it."""
    for canary in canaries:
        for name, wanted in ((canary.passing, CaseOutcome.PASSED), (canary.failing, CaseOutcome.FAILED)):
            found = [case.outcome for case in cases if name in case.name]
            if found != [wanted]:
                said = ", ".join(found) or "not reported"
                why = f"a test of ours in {canary.path} had to be {wanted}, and was {said}"
                return _failed(RunProblem.TAMPERED, why, elapsed_s)
    names = {name for canary in canaries for name in (canary.passing, canary.failing)}
    kept = [case for case in cases if not any(name in case.name for name in names)]
    if not kept:
        return _failed(RunProblem.NOTHING_COLLECTED, ended.output.strip(), elapsed_s)
    grouped: dict[str, list[JunitCase]] = {}
    for case in kept:
        grouped.setdefault(case.id, []).append(case)
    return SuiteRun(
        outcomes={test: worst(case.outcome for case in found) for test, found in grouped.items()},
        seconds={test: sum(case.seconds for case in found) for test, found in grouped.items()},
        messages={case.id: case.message for case in kept if case.outcome is CaseOutcome.FAILED},
        detail=ended.output.strip(),
        elapsed_s=elapsed_s,
    )


def _no_report(ended: IsolatedRun) -> str:
    return f"it wrote no {{report}}; its output ends {ended.output.strip()!r}"


def _failed(problem: RunProblem, detail: str, elapsed_s: float = 0.0) -> SuiteRun:
    return SuiteRun(outcomes={}, problem=problem, detail=detail, elapsed_s=elapsed_s)
