"""A runner for files with tests that are lines of text, and a repository of them; nothing is executed.

A line ``name file word`` is a test that passes where the file holds the word; the word may be ``FLAKY``,
``HANG``, ``SKIP``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from pytest_tfgrpo.harvest.environment.builder import MadeEnvironment
from pytest_tfgrpo.harvest.fixes import FixCandidate, RecipePart, Statement
from pytest_tfgrpo.harvest.job.plan import HarvestPlan, HarvestTools
from pytest_tfgrpo.scoring.runners.protocol import (
    CaseOutcome,
    RunProblem,
    SuiteCommand,
    SuiteRequest,
    SuiteRun,
)


class TextRunner:
    """Runs such tests, and keeps which trees it ran."""

    def __init__(self) -> None:
        self.runs: list[Path] = []
        self._turns = count()
        self._mutex = threading.Lock()

    def __call__(self, request: SuiteRequest) -> SuiteRun:
        with self._mutex:
            self.runs.append(request.tree)
            turn = next(self._turns)
        outcomes: dict[str, CaseOutcome] = {}
        for name in request.files:
            text = (request.tree / name).read_text()
            if text.startswith("BREAK "):
                return SuiteRun(outcomes={}, problem=RunProblem(text.split()[1]), detail="it broke")
            for row in text.splitlines():
                test, file, word = row.split()
                outcomes[f"{name}::{test}"] = _outcome(request.tree / file, word, turn)
        if not outcomes:
            return SuiteRun(outcomes={}, problem=RunProblem.NOTHING_COLLECTED)
        (request.tree / "left-behind").mkdir(exist_ok=True)
        failed = [test for test, outcome in outcomes.items() if outcome is CaseOutcome.FAILED]
        return SuiteRun(outcomes=outcomes, messages=dict.fromkeys(failed, "not there"), elapsed_s=0.01)


def _outcome(file: Path, word: str, turn: int) -> CaseOutcome:
    if word == "FLAKY":
        return CaseOutcome.PASSED if turn % 2 else CaseOutcome.FAILED
    if word == "SKIP":
        return CaseOutcome.SKIPPED
    held = file.read_text() if file.is_file() else ""
    return CaseOutcome.PASSED if word in held else CaseOutcome.FAILED


def text_tools(run: Callable[[SuiteRequest], SuiteRun], **more: Any) -> HarvestTools:
    """Return tools that find a recipe at once, need no environment, and search for no secrets."""

    def recipes(
        read: Callable[[str], bytes | None], names: tuple[str, ...], candidate: FixCandidate
    ) -> tuple[RecipePart, ...]:
        command = SuiteCommand(runner="pytest")
        return (RecipePart(folder=".", command=command, python=None, dependencies=()),)

    given: Mapping[str, Any] = {
        "recipes": recipes,
        "environment": lambda part, date: MadeEnvironment(),
        "run": run,
        "statement": lambda candidate, trees, validation: Statement(
            text=candidate.change.message, source="commit message"
        ),
        "secrets": lambda before, after: (),
        "secrets_in_text": lambda text: (),
    }
    return HarvestTools(**{**given, **more})


def text_plan(repository: Path, commits: str, suite: Path, **more: Any) -> HarvestPlan:
    """Return the plan of a harvest."""
    return HarvestPlan(repository=repository, commits=commits, suite=suite, domain="shop", **more)
