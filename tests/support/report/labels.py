"""What the tests of report/test_labels.py share with the slow ones."""

import csv
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.records import JudgeResult, PhaseResult, Run
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.report.judging.labels import Labels, Sample
from support.builders import make_scenario
from support.sweeps import make_run

RUBRIC = (Criterion(text="It greets."), Criterion(text="It is short.", weight=3.0))
Scores = dict[str, list[float | None]]


def judged(before: Scores, after: Scores, answers: Iterable[str] = (), **changes: Any) -> Run:
    """Return a run whose judge gave these scores; ids like ``a-1`` are of the family ``a``."""
    scenarios = tuple(
        replace(
            make_scenario(id_, split="eval", rubric=RUBRIC, stamp=f"{n:064x}", prompt=f"Write letter {id_}."),
            family=id_.partition("-")[0] if "-" in id_ else None,
        )
        for n, id_ in enumerate(before)
    )
    run = make_run(before, final=after, scenarios=scenarios, **changes)
    told = iter(answers)
    return replace(
        run,
        scenarios=tuple(replace(s, truth="judge") for s in scenarios),
        phases=tuple(with_opinions(result, told) for result in run.phases),
    )


def with_opinions(result: PhaseResult, told: Iterable[str] = iter(())) -> PhaseResult:
    """Return a phase in which the judge gave each scored rollout its score."""
    answers = iter(told)
    groups = []
    for group in result.groups:
        rollouts = []
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            fallback = f"{result.phase.mode} {group.scenario_id} {rollout.index}"
            text = next(answers, fallback) if rollout.status == "ok" else ""
            opinion = JudgeResult(score=score.gt_score, votes=(1.0,), asked=1, agreement=1.0, reason="r")
            rollouts.append(
                replace(rollout, answer=text, checks=(), opinion=opinion if rollout.status == "ok" else None)
            )
        groups.append(replace(group, rollouts=tuple(rollouts)))
    return replace(result, groups=tuple(groups))


def forty(**changes: Any) -> Run:
    """Return a run of 40 scenarios in families of 4: solved by 1 of 4, later 3 of 4, says the judge."""
    ids = [f"f{n // 4}-{n}" for n in range(40)]
    return judged(
        {id_: [float(n % 4 == 0), 0.0] for n, id_ in enumerate(ids)},
        {id_: [float(n % 4 != 0), 1.0] for n, id_ in enumerate(ids)},
        **changes,
    )


def labels_of(sample: Sample, run: Run, values: dict[str, float], **changes: Any) -> Labels:
    fields = {"tasks": len(sample.tasks), "answers": sample.answers, "sample": sample.stamp, "labels": values}
    return Labels(**{"run_id": run.run_id, "seed": sample.seed, **fields, **changes})


def filled(path: Path, label: str = "1") -> list[list[str]]:
    """Return the rows of a form with `label` in each."""
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8-sig"))))
    return [rows[0], *([label, *row[1:]] for row in rows[1:])]


def save(
    path: Path, rows: Iterable[Iterable[str]], delimiter: str = ",", encoding: str = "utf-8-sig"
) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter).writerows(rows)
    path.write_bytes(file.getvalue().encode(encoding, "replace"))
