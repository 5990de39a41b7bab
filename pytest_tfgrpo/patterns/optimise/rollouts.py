"""The agent's group at the scenario of a proven job: run, ranked, and held against the approved fix."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import FileChange, Rollout, Run, Score
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.learning import TEMPERATURE_TRAIN
from pytest_tfgrpo.core.settings.runs import BUDGET_TOKENS, BUDGET_USD
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.engine.preparation.components import open_components
from pytest_tfgrpo.engine.request import RunRequest, SharedLimits
from pytest_tfgrpo.engine.supplied import Supplied
from pytest_tfgrpo.harvest.suite.suite_files import SuitePaths
from pytest_tfgrpo.launch.choice import planned
from pytest_tfgrpo.launch.launch import open_launch
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.patterns.optimise.fix_size import ProvenFix
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect

if TYPE_CHECKING:
    from pytest_tfgrpo.launch.launch import Launch
    from pytest_tfgrpo.launch.result import RunResult

OPTIMISE, ROLLOUTS = "optimise", "rollouts.json"
"""In the folder of a job: the run of its group, and what came of it."""


class FixGroup:
    """The agent of a project, which tries proven jobs one after another within one budget."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        environ: Mapping[str, str],
        rollouts: int,
        carry_out: Callable[[Launch], Awaitable[RunResult]],
    ) -> None:
        """Open the agent, of which nothing is asked yet; raises TfgrpoError where it cannot be used.

        `carry_out` carries a launch out, as `arun_launch` does.
        """
        self.root, self.environ, self._carry_out = root, environ, carry_out
        self._settings = settings.with_values(
            task_id="rollouts",
            eval_rollouts=rollouts,
            temperature_eval=TEMPERATURE_TRAIN.of(settings),
            **dict.fromkeys(("baseline", "gates", "gate_min_mean", "limit")),
        )
        self._budget = Budget(settings.values)
        request = RunRequest(
            root=root, settings=self._settings, scenarios=(), phases=(), supplied=Supplied(), environ=environ
        )
        actor = open_components(request, self._budget).actor
        self.agent = actor.name
        if actor.paid and BUDGET_USD.of(settings) is None and BUDGET_TOKENS.of(settings) is None:
            raise SettingError(
                f"actor {actor.name!r} costs money, and nothing says how much; set tfgrpo_budget_usd or "
                "tfgrpo_budget_tokens"
            )

    def run(self, folder: Path, scenario: str) -> Run:
        """Run the group at the scenario in a job's folder, at the temperature of training.

        The run's files go into the folder. Raises TfgrpoError.
        """
        file = SuitePaths(suite=folder, id=scenario).scenario
        (found,) = collect(self.root, [file], KINDS)
        with tempfile.TemporaryDirectory(prefix="tfgrpo-optimise-") as name:
            settings = self._settings.with_values(
                out=str(folder / OPTIMISE),
                record=str(Path(name) / "recording.jsonl"),  # by which what it did to files is kept
            )
            request = RunRequest(
                root=self.root,
                settings=settings,
                scenarios=[found],
                phases=planned([found], settings, self.root),
                supplied=Supplied(),
                environ=self.environ,
                shared=SharedLimits(budget=self._budget),
            )
            launch = open_launch(request)
            return asyncio.run(_carried(launch, self._carry_out))


async def _carried(launch: Launch, carry_out: Callable[[Launch], Awaitable[RunResult]]) -> Run:
    return (await carry_out(launch)).run


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedFix:
    """One rollout of a group."""

    index: int
    status: str
    gt_score: float | None = None
    relative_rank: float | None = None
    lines: int | None = None
    """Changed lines of its source; None where it passed not every test, or what it did is not kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FixRollouts:
    """``rollouts.json`` of a job: what its group came to."""

    agent: str
    run_id: str
    status: str
    """Of the run."""
    reason: str = ""
    """Why it is not complete."""
    approved_lines: int
    """Changed lines of source of the approved fix, which stays the reference."""
    rollouts: tuple[TriedFix, ...] = ()
    """The best first."""
    job: str = ""
    """Id of the job that the smallest became, where it is smaller than the approved fix."""
    refused: str = ""
    """Why it became none, such as a secret in it."""


def ranked(run: Run, fix: ProvenFix) -> tuple[list[TriedFix], tuple[FileChange, ...] | None]:
    """Return the rollouts of a group, the best first, and the source of a fix that is better than `fix`.

    Better is what passes every test and changes fewer lines of source; None: nothing is.
    """
    known = dict[int, Rollout]()
    tried = list[TriedFix]()
    for phase in run.phases:
        for group in phase.groups:
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                known[rollout.index] = rollout
                tried.append(_tried(rollout, score, fix))
    tried.sort(key=lambda one: (-(one.relative_rank or 0.0), one.lines is None, one.lines or 0, one.index))
    best = next((one for one in tried if one.lines is not None), None)
    if best is None or best.lines is None or best.lines >= fix.lines:
        return tried, None
    return tried, fix.source_of(known[best.index].files or ())


def _tried(rollout: Rollout, score: Score, fix: ProvenFix) -> TriedFix:
    files = rollout.files
    passed = rollout.status == "ok" and score.gt_score == 1.0 and rollout.decoy is None
    return TriedFix(
        index=rollout.index,
        status=rollout.status,
        gt_score=score.gt_score,
        relative_rank=score.relative_rank,
        lines=fix.lines_of(files) if passed and files is not None else None,
    )


def write_rollouts(folder: Path, rollouts: FixRollouts) -> None:
    """Write the file into a job's folder, whole or not at all; raises JournalError."""
    write_json(folder / OPTIMISE / ROLLOUTS, to_wire(rollouts))


def read_rollouts(folder: Path) -> FixRollouts | None:
    """Return what the file in a job's folder says; None where there is none. Raises StoreError."""
    path = folder / OPTIMISE / ROLLOUTS
    try:
        return from_wire(FixRollouts, load_json(read_plain(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: {error}; move it away, nothing rests on it") from error
