"""Reviews for tests: a scenario in a file, answers to it, and what people think of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_tfgrpo.core.records import Failure, Frame, Rollout
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.review.disagreements import ReviewedAnswer
from pytest_tfgrpo.review.marks import Mark
from pytest_tfgrpo.review.proposals import CheckProposal, NeedsPerson, propose
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.suite.scenario_edits import FileEditor
from pytest_tfgrpo.suite.scenario_files import scenarios_in
from pytest_tfgrpo.suite.suite_files import SuiteFile, suite_files
from support.builders import make_frame, make_rollout, make_scenario

Said: TypeAlias = tuple[str, Literal["right", "wrong", "unsure", ""], str, str] | tuple[str, str]
"""An answer, what a reviewer thinks of it (empty: no mark), the words that decide, a comment."""


@dataclass(frozen=True)
class Reviewed:
    """What was proposed for a scenario, and how to try it."""

    folder: Path
    file: SuiteFile
    scenario: Scenario
    found: CheckProposal | NeedsPerson

    @property
    def proposal(self) -> CheckProposal:
        assert isinstance(self.found, CheckProposal), self.found
        return self.found

    @property
    def text(self) -> str:
        """The file with what is proposed."""
        return FileEditor(self.file).text({self.scenario.id: self.proposal.fields})

    def after(self) -> Scenario:
        """Return the scenario as the changed file has it."""
        found = scenarios_in(self.text, self.file.path, root=self.folder, kinds=KINDS)
        return next(one for one in found if one.id == self.scenario.id)


def passes(checks: Sequence[Check], answer: str, frames: tuple[Frame, ...] = ()) -> bool:
    return all(result.passed for result in evaluate(checks, _context(answer, frames), KINDS))


def _context(answer: str, frames: tuple[Frame, ...]) -> CheckContext:
    return CheckContext(
        answer=answer, frames=frames, workspace=Workspace(Path("/nonexistent")), task=make_scenario().task()
    )


def reviewed(folder: Path, name: str, text: str, *said: Sequence[str]) -> Reviewed:
    """Return what follows from what people said of answers to the scenario ``a`` of a file."""
    (folder / name).write_bytes(text.encode())
    files, refused = suite_files([make_scenario(source=f"{name}:1")], folder)
    assert refused == {}
    scenario = files[name].scenarios["a"]
    answers, others = [], []
    for n, (answer, opinion, *more) in enumerate(said):
        words, comment, *calls = (*more, "", "")[: max(2, len(more))]
        rollout = answered(scenario, n, answer, calls)
        passed = rollout.status == "ok" and all(check.passed for check in rollout.checks)
        if not opinion:
            others.append((rollout, passed))
            continue
        mark = Mark(
            reviewer="Ann",
            run_id="run1",
            rollout_id=rollout.rollout_id,
            scenario_id="a",
            stamp=scenario.stamp,
            opinion=opinion,  # type: ignore[arg-type]
            comment=comment,
            words=words,
        )
        answers.append(ReviewedAnswer(rollout=rollout, scenario=scenario, marks=(mark,), passed=passed))
    return Reviewed(
        folder, files[name], scenario, propose(files[name], answers, others, FileEditor(files[name]).can_hold)
    )


def false_pass(scenario: Scenario, answer: str, words: str) -> ReviewedAnswer:
    """Return an answer that passed, and that is wrong by some words."""
    id_ = f"run1.e1.{scenario.id}.r0"
    rollout = replace(answered(scenario, 0, answer), scenario_id=scenario.id, rollout_id=id_)
    mark = Mark(
        reviewer="Ann",
        run_id="run1",
        rollout_id=id_,
        scenario_id=scenario.id,
        stamp=scenario.stamp,
        opinion="wrong",
        words=words,
    )
    return ReviewedAnswer(rollout=rollout, scenario=scenario, marks=(mark,), passed=True)


def answered(scenario: Scenario, n: int, answer: str, calls: Sequence[str] = ()) -> Rollout:
    """Return a rollout with this answer and these calls, checked; ``TIMEOUT`` is none."""
    if answer == "TIMEOUT":
        return make_rollout(
            n, 0.0, scenario_id="a", status="failed", failure=Failure(code="timeout", message="")
        )
    frames = tuple(make_frame(call) for call in calls)
    results = evaluate(scenario.checks, _context(answer, frames), KINDS)
    return make_rollout(n, scenario_id="a", answer=answer, frames=frames, checks=results)


def as_json(checks: Sequence[Mapping[str, Any]], **fields: Any) -> str:
    return json.dumps({"id": "a", "prompt": "p", "split": "eval", "checks": checks, **fields}, indent=1)
