"""Evidence as a source of rows: attempts that production made and rewarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from pytest_tfgrpo.core.records import Group, Rollout, Score
from pytest_tfgrpo.core.scenarios import Prompt, Scenario
from pytest_tfgrpo.export.source import CALLS_TOOLS
from pytest_tfgrpo.runs.evidence_epoch import PREFIX, FiledAttempts, task_of
from pytest_tfgrpo.suite.evidence_file import EvidenceFile, GroupOnFile


class EvidenceSource:
    """The groups of an evidence file; see `ExportSource`. Methods raise EvidenceError.

    A prompt is the agent's task: what stood around it is not in the file.
    """

    actor = ""

    def __init__(self, file: EvidenceFile, run_id: str, keep: Callable[[GroupOnFile], bool]) -> None:
        """Take the groups that `keep` accepts; `run_id` is what the rows name as their run."""
        self.run_id = self.task_id = run_id
        self.name = f"the evidence of {run_id}"
        self.left_out: Counter[str] = Counter()
        self._file, self._filed = file, FiledAttempts(file)
        kept = [
            task_of(one, one.domain, f"{file.path.name}:{one.line}")
            for one in file.groups.values()
            if keep(one)
        ]
        self.scenarios: Mapping[str, Scenario] = {one.id: one for one in kept}

    def groups(self) -> Iterator[tuple[str, str]]:
        """See `ExportSource`."""
        return ((id_, id_) for id_ in self.scenarios)

    def flags(self, id_: str) -> int:
        """See `ExportSource`."""
        attempts = self._file.attempts(id_.removeprefix(PREFIX))
        return CALLS_TOOLS * any(step.kind == "tool" for one in attempts for step in one.steps)

    def load(self, id_: str) -> Group:
        """See `ExportSource`."""
        scenario, attempts = self.scenarios[id_], self._file.attempts(id_.removeprefix(PREFIX))
        stamp = self.bare_prompt(scenario).stamp
        rollouts = [
            self._filed.filled(
                Rollout(
                    rollout_id=one.trajectory_id or f"{id_}.{n}",
                    group_id=id_,
                    run_id=self.run_id,
                    scenario_id=id_,
                    epoch=1,
                    mode="evidence",
                    index=n,
                    seed=0,
                    temperature=0.0,
                    status="ok",
                    experiences=one.lessons,
                    prompt_stamp=stamp,
                )
            )
            for n, one in enumerate(attempts)
        ]
        scores = tuple(
            Score(
                rollout_id=rollout.rollout_id,
                gt_score=None,
                reward=one.total_reward,
                relative_rank=None,
                advantage=None,
            )
            for rollout, one in zip(rollouts, attempts, strict=True)
        )
        return Group(
            group_id=id_,
            epoch=1,
            mode="evidence",
            scenario_id=id_,
            domain=scenario.domain,
            rollouts=tuple(rollouts),
            scores=scores,
            informative=len({one.total_reward for one in attempts}) > 1,
        )

    def prompt(self, scenario: Scenario, rollout: Rollout) -> Prompt:  # noqa: ARG002 - of all attempts
        """See `ExportSource`."""
        return self.bare_prompt(scenario)

    def bare_prompt(self, scenario: Scenario) -> Prompt:
        """See `ExportSource`."""
        return Prompt(system="", user=scenario.prompt)
