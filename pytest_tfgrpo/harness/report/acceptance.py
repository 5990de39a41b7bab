"""What the dev split decided: the value `acceptance` of a report, and its lines on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_tfgrpo.core.lessons import Operation, Revision, Trial
from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import AcceptanceBlock, AcceptedEpoch, Rejected, TrialRow
from pytest_tfgrpo.core.text import interval, line, plural, wrapped

SHORT = 3
"""Lines at the default verbosity."""
LEVEL = re.compile(r", p [\d.]+( < [\d.]+)?")
"""The level of significance in a reason."""


def acceptance_report(run: Run) -> AcceptanceBlock | None:
    """Return what decided on each epoch's library; None for a run that learned nothing, as in plain mode."""
    revised = [(r, r.revision) for r in run.phases if r.revision is not None]
    if not revised:
        return None
    decided = [revision.acceptance for _, revision in revised if revision.acceptance is not None]
    return {
        "rule": run.settings.get("acceptance", "off"),
        "margin": run.settings.get("acceptance_margin"),
        "alpha": decided[0].alpha if decided else None,
        "scenarios": sum(scenario.split == "dev" for scenario in run.scenarios),
        "epochs": [_epoch(result, revision) for result, revision in revised],
    }


def _epoch(result: PhaseResult, revision: Revision) -> AcceptedEpoch:
    acceptance = revision.acceptance
    trials = acceptance.trials if acceptance is not None else ()
    rejected = acceptance.rejected if acceptance is not None else ()
    kept = len(revision.applied)
    tried = "accepted" if not rejected else "in_part" if kept else "rejected"
    return {
        "epoch": result.phase.epoch,
        "verdict": tried if trials else "not_tried",
        "note": acceptance.note if acceptance is not None else "",
        "kept": kept,
        "rejected": [_operation(operation) for operation in rejected],
        "rollouts": sum(len(group.rollouts) for group in result.dev),
        "trials": [_trial(trial) for trial in trials],
    }


def _trial(trial: Trial) -> TrialRow:
    return {
        "n": trial.n,
        "changes": len(trial.operations),
        "lessons": [o.experience.id for o in trial.operations if o.experience is not None],
        "before": trial.before,
        "after": trial.after,
        "scenarios": trial.scenarios,
        "changed": trial.changed,
        "difference": trial.difference,
        "ci95": None if trial.ci95 is None else list(trial.ci95),
        "p": trial.p,
        "p_adjusted": trial.p_adjusted,
        "rollouts": trial.rollouts,
        "errors": trial.errors,
        "verdict": trial.verdict,
        "reason": trial.reason,
    }


def _operation(operation: Operation) -> Rejected:
    lesson = operation.experience
    return {
        "kind": operation.kind,
        "targets": list(operation.targets),
        "reason": operation.reason,
        "lesson": None
        if lesson is None
        else {
            "id": lesson.id,
            "domain": lesson.domain,
            "polarity": lesson.polarity,
            "text": lesson.summary32,
            "gt_score": lesson.reward.gt_score,
            "groups": lesson.support.groups,
        },
    }


def acceptance_lines(value: AcceptanceBlock | None, width: int, *, every: bool) -> list[str]:
    """Return a line for each epoch that was decided on; `every` adds its trials and what was rejected."""
    tried = [row for row in value["epochs"] if row["trials"]] if value is not None else []
    if value is None:
        return []
    shown = tried
    found: list[str] = []
    if len(tried) > SHORT and not every:
        kept, rejected = sum(row["kept"] for row in tried), sum(len(row["rejected"]) for row in tried)
        changes = f"{plural(kept, 'change')} kept, {rejected} rejected"
        found = [f"dev split  {len(tried)} epochs: {changes}; -v shows each"]
        shown = tried[1 - SHORT :]
    for row in shown:
        found += wrapped(_sentence(row), width, hanging=" " * 11)
        if every:
            found += _details(row, value["rule"], width)
    return found


def _sentence(row: AcceptedEpoch) -> str:
    whole, kept = row["trials"][0], row["kept"]
    n = kept + len(row["rejected"])
    if kept == n:
        text = f"keeps {'its one change' if n == 1 else f'all {n} changes'}:"
    elif kept:
        text = f"keeps {kept} of {n} changes; all together"
    else:
        text = f"{'rejects its one change' if n == 1 else f'keeps none of {n} changes'}:"
    found = LEVEL.sub("", line(whole["reason"], 300))
    if whole["difference"] is not None:
        found = f"{_difference(whole)}, {'better' if _is_better(whole) else found}"
    return f"dev split  epoch{row['epoch']} {text} {found}"


def _is_better(trial: TrialRow) -> bool:
    return bool(trial["verdict"] == "accepted" and trial["ci95"] and trial["ci95"][0] > 0)


def _difference(trial: TrialRow) -> str:
    if trial["difference"] is None:
        return "not measured"
    spread = f" ({interval(trial['ci95'], '+.3f')})" if trial["ci95"] else ""
    return f"{trial['difference']:+.3f}{spread}"


def _figures(trial: TrialRow, rule: str) -> str:
    shown = "better" if rule == "strict" else "worse"
    unknown = trial["difference"] is None or trial["p_adjusted"] is None
    return _difference(trial) + ("" if unknown else f", p {shown} {trial['p_adjusted']:.3f}")


def _details(row: AcceptedEpoch, rule: str, width: int) -> Iterator[str]:
    for trial in row["trials"]:
        verdict = trial["verdict"].replace("_", " ")
        figures = "" if trial["verdict"] == "not_tested" else f" {_figures(trial, rule)},"
        text = (
            f"{trial['n']}. {verdict}:{figures} {plural(trial['changes'], 'change')}, {trial['changed']} of "
            f"{plural(trial['scenarios'], 'prompt')} differ, {plural(trial['rollouts'], 'rollout')}"
            + (f", {plural(trial['errors'], 'error')}" if trial["errors"] else "")
            + f"; {line(trial['reason'], 300)}"
        )
        yield from wrapped(text, width, "  ", " " * 5)
    for operation in row["rejected"]:
        lesson = operation["lesson"]
        what = (
            f"{lesson['polarity']} {line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
            if lesson is not None
            else f"remove {', '.join(line(id, 40) for id in operation['targets'])}"
        )
        yield from wrapped(f"not active: {what}", width, "  ", " " * 5)
