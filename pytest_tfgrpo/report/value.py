"""The report: one JSON value of a run; terminal text, ``report.json`` and ``report.html`` are made from it.

Equal runs give equal reports, except for times, ids, and the count of earlier runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from pytest_tfgrpo import features
from pytest_tfgrpo.core.files import REPORT_SCHEMA
from pytest_tfgrpo.core.lessons import Experience, Revision
from pytest_tfgrpo.core.records import Group, Mode, Run
from pytest_tfgrpo.core.report_blocks import (
    Control,
    Counts,
    Gain,
    GateBlock,
    Lesson,
    LibraryBlock,
    RefusedLesson,
    Regression,
    Report,
    RuleFinding,
    ScenarioBlock,
    ScenarioEpoch,
)
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.gate import GATE_MARGIN
from pytest_tfgrpo.core.texts.text import cut, plural
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.gate.baseline import actor_name
from pytest_tfgrpo.gate.rules import skipped
from pytest_tfgrpo.learning.library.flags import flags_of
from pytest_tfgrpo.learning.library.refusals import redacted
from pytest_tfgrpo.metrics import costs, noise, significance
from pytest_tfgrpo.metrics.comparison import Comparison, Sweeps, compare, figures
from pytest_tfgrpo.metrics.epochs import per_epoch
from pytest_tfgrpo.metrics.looks import evaluations
from pytest_tfgrpo.metrics.placebo import held_to_placebo
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.report.acceptance import acceptance_report, earned
from pytest_tfgrpo.report.blocks import table
from pytest_tfgrpo.report.blocks.block import BlockSources
from pytest_tfgrpo.report.blocks.fault_messages import uneven_faults
from pytest_tfgrpo.report.blocks.placebo import PLACEBO
from pytest_tfgrpo.report.failures.failure_clusters import failures_report
from pytest_tfgrpo.report.judging.judge import judge_report
from pytest_tfgrpo.suite.families import sweeps_of

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.verdict import RuleResult, Verdict

REGRESSIONS = 5
REFUSALS = 20
"""Refused lessons that the report lists."""
LONGEST_LESSON = 600
"""Characters of one of them."""


def build(
    run: Run,
    verdict: Verdict | None,
    *,
    sections: Sequence[str] = (),
    files: str = "",
    sweeps: Sweeps | None = None,
) -> Report:
    """Return the report of a run; `sections` are extra lines, `files` says where the run's files are.

    `sweeps` are those of the run, if they are counted already.
    """
    sweeps = sweeps or sweeps_of(run)
    before, after = sweeps.rows_before, sweeps.rows_after
    placebo = None if sweeps.placebo is None else sweeps.rows_placebo
    compared = compare(before, after)
    seen = evaluations(run, sweeps)
    looks = seen["looks"] if seen else 1
    value: Report = {
        "schema": REPORT_SCHEMA,
        "run_id": run.run_id,
        "task_id": run.task_id,
        "actor": actor_name(run),
        "status": run.status,
        "reason": run.reason,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "partial_selection": run.partial_selection,
        "files": files,
        "epochs": per_epoch(run)["epochs"],
        "gain": _gain(run, sweeps, compared, looks),
        "domains": significance.domains(run, before, after, looks, placebo=placebo),
        "regressions": _regressions(run, sweeps, compared),
        "scenarios": _scenarios(run),
        "faults": _faults(run),
        "library": _library(run),
        "attribution": features.effects_of_lessons(run),
        "judge": judge_report(run),
        "acceptance": acceptance_report(run),
        "cost": costs.of_run(run),
        "gate": None if verdict is None else _gate(verdict),
        "settings": to_wire(run.settings),
        "stamps": dict(run.stamps),
        "versions": dict(run.versions),
        "warnings": list(run.warnings),
        "sections": list(sections),
    }
    _add_blocks(value, BlockSources(run, sweeps, compared, verdict, value))
    value["warnings"] += _warnings(run, sweeps)
    return value


def _add_blocks(value: Report, at: BlockSources) -> None:
    for block in table.BLOCKS:
        found = at.of(block)
        if found is not None or block.null:
            value[block.key] = found  # type: ignore[literal-required]
        if found is not None:
            value["warnings"] += block.warnings(found)
    if value["gain"] is not None and "claim" in value["gain"]:
        value["gain"]["claim"] = held_to_placebo(value["gain"]["claim"], PLACEBO.of(value))
    if (failures := failures_report(at.run)) is not None:
        value["failures"] = failures


def _gate(verdict: Verdict) -> GateBlock:
    return {
        "outcome": verdict.outcome,
        "results": [_finding(result) for result in verdict.results],
        "strict": verdict.strict,
        "gates": to_wire(verdict.gates),
    }


def _finding(result: RuleResult) -> RuleFinding:
    value: RuleFinding = to_wire(result)
    return {**value, "message": redact(result.message), "advice": redact(result.advice)}


def _gain(run: Run, sweeps: Sweeps, compared: Comparison, looks: int) -> Gain | None:
    """Return the paired gain of the final over the baseline sweep after `looks`; None without both.

    Where a gate compares with a reference, its answer is what may be claimed.
    """
    before, after = sweeps.rows_before, sweeps.rows_after
    if not before or not after or sweeps.after is None:
        return None
    errors = any(row.errors for rows in (before, after) for row in rows.values())
    as_zero = compare(before, after, errors_as_zero=True) if errors else None
    found: Gain = {
        **figures(compared),
        "errors_as_zero": None if as_zero is None else figures(as_zero),
        "planned": significance.planned(compared, sweeps.after),
        "claim": significance.gain_claim(compared, as_zero or compared, looks, GATE_MARGIN.of(run.settings)),
        "control": _control(run, sweeps),
    }
    if run.reference is not None:
        del found["claim"]
    return found


def _control(run: Run, sweeps: Sweeps) -> Control:
    """Return when the baseline sweep ran, and what its early part shows of the time between."""
    before, drift = sweeps.before, sweeps.drift
    concurrent = before is not None and before.phase.concurrent
    value: Control = {
        "asked": "concurrent" if concurrent else "early",
        "shared": len(before.shared) if before is not None else 0,
        "drift": figures(drift) if drift is not None and drift.ids else None,
    }
    if (against := run.reference) is not None:
        value["reference"] = {"name": against.name, "kind": against.kind, "stamp": against.stamp}
    return value


def _regressions(run: Run, sweeps: Sweeps, compared: Comparison) -> list[Regression]:
    """Return the scenarios that lost most from the baseline to the final sweep, worst first.

    Those whose loss is within their own spread over seeds come last, and are marked `flaky`.
    """
    domain_of = {s.id: s.domain for s in run.scenarios}
    old, new = sweeps.rows_before, sweeps.rows_after
    lost = [
        (noise.within_spread(old[id_], new[id_]), after - before, id_, before, after)
        for id_, before, after in zip(compared.ids, compared.before_K, compared.after_K, strict=True)
        if after < before
    ]
    return [
        {
            "scenario": id_,
            "domain": domain_of[id_],
            "before": before,
            "after": after,
            "difference": difference,
            "flaky": flaky,
        }
        for flaky, difference, id_, before, after in sorted(lost)[:REGRESSIONS]
    ]


def _scenarios(run: Run) -> list[ScenarioBlock]:
    """Return every scenario with its mean in each sweep and epoch it took part in; equal rows are one."""
    rows: dict[str, list[ScenarioEpoch]] = {s.id: [] for s in run.scenarios}
    known: dict[tuple[object, ...], ScenarioEpoch] = {}
    for result in run.phases:
        last = {group.scenario_id: group for group in result.dev}  # of several sweeps the last
        parts: list[tuple[Mode, Iterable[Group]]]
        parts = [(result.phase.mode, result.counted), ("dev", last.values())]
        for mode, groups in parts:
            for group in groups:
                row = _place(result.phase.epoch, mode, group)
                rows[group.scenario_id].append(known.setdefault(tuple(row.values()), row))
    return [_scenario(s, rows[s.id]) for s in run.scenarios]


def _scenario(scenario: Scenario, epochs: list[ScenarioEpoch]) -> ScenarioBlock:
    value: ScenarioBlock = {
        "id": scenario.id,
        "domain": scenario.domain,
        "split": scenario.split,
        "source": scenario.source,
        "stamp": scenario.stamp,
        "truth": scenario.truth,
        "epochs": epochs,
    }
    if scenario.truth == "checks":
        del value["truth"]
    return value


def _place(epoch: int, mode: Mode, group: Group) -> ScenarioEpoch:
    scores = [score.gt_score for score in group.scores if score.gt_score is not None]
    mean = fsum(scores) / len(scores) if scores else None
    return {"epoch": epoch, "mode": mode, "mean": mean, "n": len(scores), "errors": group.errors}


def _faults(run: Run) -> dict[str, Counts]:
    """Count rollouts without an answer by reason code: `errors` are ours, `failed` are the agent's."""
    codes: dict[str, Counter[str]] = {"errors": Counter(), "failed": Counter()}
    for result in run.phases:
        for rollout in (r for group in result.with_dev for r in group.rollouts):
            if rollout.status != "ok":
                code = rollout.failure.code if rollout.failure else "unknown"
                codes["errors" if rollout.status == "error" else "failed"][code] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in codes.items()}


def _library(run: Run) -> LibraryBlock:
    revisions = [result.revision for result in run.phases if result.revision is not None]
    refused = Counter(refusal.code for revision in revisions for refusal in revision.refused)
    value: LibraryBlock = {
        "start": run.library_start.hash,
        "hash": run.library.hash,
        "groups": sum(len(result.groups) for result in run.phases if result.revision is not None),
        "informative_groups": sum(revision.informative_groups for revision in revisions),
        "lesson_groups": sum(revision.lesson_groups for revision in revisions),
        "refused": dict(sorted(refused.items())),
        "failures": _failures(run),
        "lessons": [_lesson(experience) for experience in run.library.experiences],
    }
    if refused:
        value["refusals"] = _refusals(revisions)
    return value


def _refusals(revisions: Iterable[Revision]) -> list[RefusedLesson]:
    """Return the first lessons that were refused, each once, repetitions of known lessons last."""
    rows: dict[tuple[str, str, str], RefusedLesson] = {}
    for revision in revisions:
        for refusal in revision.refused:
            safe = redacted(refusal.operation)
            text = safe.experience.summary32 if safe.experience is not None else ""
            row: RefusedLesson = {
                "code": refusal.code,
                "text": cut(text, LONGEST_LESSON),
                "reason": redact(refusal.reason),
                "epoch": revision.epoch,
                "n": 0,
            }
            rows.setdefault((refusal.code, text, refusal.reason), row)["n"] += 1
    return sorted(rows.values(), key=lambda row: row["code"] == "duplicate")[:REFUSALS]


def _failures(run: Run) -> dict[str, int]:
    """Count by reason code what of the optimizer's own work failed."""
    failures: Counter[str] = Counter()
    for result in run.phases:
        if result.revision is not None:
            failures.update(result.revision.failures)
    return dict(sorted(failures.items()))


def _lesson(experience: Experience) -> Lesson:
    flags = flags_of(experience.summary32)
    lesson: Lesson = {
        "id": experience.id,
        "domain": experience.domain,
        "polarity": experience.polarity,
        "text": experience.summary32,
        "epoch": experience.epoch,
        "groups": experience.support.groups,
        "rollouts": experience.support.rollouts,
        "actor": experience.actor,
        "parents": list(experience.parents),
    }
    lesson.update(earned(experience.reward))  # type: ignore[typeddict-item]
    if flags:
        lesson["flags"] = list(flags)
    return lesson


def _estimates(run: Run) -> Iterator[str]:
    """Yield what a reader must know of scores that rest on no ground truth."""
    scenarios = {s.id: s for s in run.scenarios if s.truth != "checks"}
    tried, mute = set[str](), 0
    for group in (g for result in run.phases for g in result.groups if g.scenario_id in scenarios):
        tried.add(group.scenario_id)
        mute += scenarios[group.scenario_id].truth == "majority" and _is_mute(group)
    for split in ("train", "eval"):
        by = Counter(s.truth for id_, s in scenarios.items() if id_ in tried and s.split == split)
        if by:
            how = ", ".join(f"{n} by {'the ' * (truth == 'judge')}{truth}" for truth, n in sorted(by.items()))
            of = plural(by.total(), f"{split} scenario")
            yield f"the scores of {of} are estimates without ground truth: {how}"
    if mute:
        yield f"{plural(mute, 'group', 'has', 'have')} no score: fewer than two answers of a group could vote"


def _is_mute(group: Group) -> bool:
    """Return whether a group has answers, and its majority none."""
    pairs = zip(group.rollouts, group.scores, strict=True)
    return any(rollout.status == "ok" and score.gt_score is None for rollout, score in pairs)


def _warnings(run: Run, sweeps: Sweeps) -> Iterator[str]:
    """Yield what a reader must know; engine and blocks have warned of the rest."""
    yield from _estimates(run)
    for result in run.phases:
        label, revision = result.phase.label, result.revision
        if result.status != "complete" and result.reason != run.reason:  # that is said of the run
            yield f"{label} is {result.status}" + (f": {result.reason}" if result.reason else "")
        if result.excluded:
            yield f"{skipped(result)}: they do not count"
        if revision is not None and revision.note:
            yield f"{label}: {revision.note}"
    if failures := _failures(run):
        yield "failed in learning: " + ", ".join(f"{code} {n}" for code, n in failures.items())
    if uneven := uneven_faults(sweeps):
        yield uneven
