"""Runs killed at named and at random points: the next command ends as if nothing was."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.attacks import KINDS, differences, model, on_file, outcome
from support.campaign import Campaign
from support.fake_model import FakeModel
from support.forks import Forks
from support.project import Project

pytestmark = pytest.mark.faults
KILLER = ("--tfgrpo", "-p", "support.killer")
RESUME = ("--tfgrpo", "--tfgrpo-resume")


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


@dataclass
class Attacked:
    """A kind of project, what its run comes to, and how often it reaches each place."""

    project: Project
    forks: Forks
    server: FakeModel | None
    expected: dict[str, Any] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    asked: int = 0
    code: int = 0
    attacks: int = 0
    killed: int = 0
    wrong: list[str] = field(default_factory=list)

    def refer(self) -> None:
        """Run it undisturbed."""
        self.code, output = self.run(*KILLER)
        assert self.code in (0, 1), output
        self.expected, self.asked = outcome(self.root), self.questions()
        self.counted = json.loads(self.mark.read_text())

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def mark(self) -> Path:
        return self.root / "mark"

    def run(self, *args: str, **env: str) -> tuple[int, str]:
        return self.forks.run(self.root, args, KILL_MARK=str(self.mark), **env)

    def questions(self) -> int:
        """Return how often the actor, and models, were asked so far."""
        if self.server is not None:
            return len(self.server.requests)
        log = self.root / "calls.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def reset(self) -> None:
        self.mark.unlink(missing_ok=True)
        shutil.rmtree(self.root / "out", ignore_errors=True)

    def attack(self, *points: tuple[str, float]) -> bool:
        """Kill a run at one point after the other, then finish it; returns whether it could be killed."""
        self.reset()
        killed = 0
        for point, delay_s in points:
            self.mark.unlink(missing_ok=True)
            begun = on_file(self.root)["run"]
            words = (*KILLER, *RESUME[1:]) if begun else KILLER
            code, output = self.run(*words, KILL=point, KILL_DELAY_S=str(delay_s))
            killed += code == -signal.SIGKILL
            assert code == -signal.SIGKILL or not self.mark.exists(), output
        known, before = on_file(self.root), self.questions()
        code, output = self.run(*RESUME)
        if code == pytest.ExitCode.USAGE_ERROR:
            assert "no incomplete run" in output  # it had not begun, or was already reported
            if not known["run"]:
                shutil.rmtree(self.root / "out", ignore_errors=True)
                code, output = self.run("--tfgrpo")
        else:
            assert code == self.code, output
        assert not differences(outcome(self.root), self.expected), points
        left = self.expected_questions() - known["rollout"] - known["call"]
        assert not self.asked or self.questions() - before == left, "what was paid for was asked again"
        return killed == len(points)

    def survive(self, *points: tuple[str, float]) -> None:
        """Attack, and note what went wrong."""
        self.attacks += 1
        try:
            self.killed += self.attack(*points)
        except Exception as error:
            self.wrong.append(f"{points}: {error!r:.2000}")

    def conclude(self, *, all_killed: bool = True) -> None:
        """Assert that all attacks were survived."""
        print(f"{self.attacks} attacks, {self.killed} killed as planned, {len(self.wrong)} wrong")
        assert not self.wrong, "\n".join(self.wrong)
        assert self.killed == self.attacks or not all_killed

    def expected_questions(self) -> int:
        return self.asked


def attacked(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Attacked]:
    monkeypatch.setenv("CALLS_LOG", str(project.root / "calls.log"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    with FakeModel(model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        KINDS[kind](project)
        one = Attacked(project, forks, server if kind == "openai" else None)
        (project.root / "calls.log").write_text("")
        one.refer()
        yield one


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_at_a_named_point_ends_as_if_it_was_not(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    if kind not in campaign.sample(sorted(KINDS), 1):
        pytest.skip("not in the sample")
    for one in attacked(kind, project, forks, monkeypatch):
        draw = campaign.random("kills", kind)
        for place in campaign.sample(sorted(one.counted.keys() - {"event"}), 2):
            point = f"{place}:{draw.randint(1, one.counted[place])}"
            one.survive((point, 0.0))
        one.conclude()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_at_random_and_again_while_it_is_resumed_ends_as_if_it_was_not(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    if kind not in campaign.sample(sorted(KINDS, reverse=True), 1):
        pytest.skip("not in the sample")
    for one in attacked(kind, project, forks, monkeypatch):
        draw = campaign.random("random kills", kind)
        for _ in range(campaign.count(1, 50)):
            points = [
                (f"event:{draw.randint(1, one.counted['event'])}", draw.choice([0.0, draw.random() / 50]))
                for _ in range(draw.choice([1, 1, 2]))
            ]
            one.survive(*points)
        one.conclude(all_killed=False)
