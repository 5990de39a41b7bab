"""The outcome of a run in one plain sentence, which terminal, Markdown and page put before the statistics.

It rests on what the report has found, the claim of the gain or a rule of the gate, and says no more.
"""

from __future__ import annotations

from pytest_tfgrpo.core.records import TRAINING
from pytest_tfgrpo.core.report_blocks import (
    EpochRow,
    Gain,
    LabelsBlock,
    PlaceboBlock,
    Report,
    RuleFinding,
)
from pytest_tfgrpo.core.settings.gate import GATE_MARGIN
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.report.blocks.families import FAMILIES
from pytest_tfgrpo.report.blocks.placebo import PLACEBO, changes

CODES = 3
"""Reasons of failed attempts that it names."""
_NEVER = "No result: no attempt has an answer"


def outcome(report: Report) -> str:
    """Return the outcome of a run in one or a few short sentences; empty where nothing ran."""
    if report["status"] != "complete":
        return "No result yet: the run has not ended."
    if not report["epochs"]:
        return ""
    last = next((row for row in reversed(report["epochs"]) if row["mode"] == "eval"), None)
    found = _nothing(report, last) or _measured(report, last)
    part = " Only a part of the suite ran." if report["partial_selection"] else ""
    return found + part


def _nothing(report: Report, last: EpochRow | None) -> str:
    """Return that no attempt of the run, or of its final sweep, came to anything; else empty."""
    made = sum(row["rollouts"] + row.get("dev", {}).get("rollouts", 0) for row in report["epochs"])
    faults = {kind: sum(counts.values()) for kind, counts in report["faults"].items()}
    if made and sum(faults.values()) >= made:
        codes = report["faults"]["errors"] | report["faults"]["failed"]
        return f"{_NEVER} ({', '.join(line(code, 40) for code in [*codes][:CODES])})."
    if last is not None and last["gt_score"]["mean"] is None:
        return f"No result: all {plural(last['rollouts'], 'attempt')} of the final sweep are errors."
    return ""


def _measured(report: Report, last: EpochRow | None) -> str:
    """Return how good the agent is, and what it learned."""
    gain, learned = report["gain"], _lessons(report)
    if last is None:
        why = "was selected" if report["partial_selection"] else "has split: eval"
        return f"Not measured: no task {why}. {learned}".rstrip()
    if gain is None:
        return _scored(report, last)
    if not gain["n"]:
        return f"No result: no task has a score both before and after. {learned}".rstrip()
    if "claim" not in gain:
        return f"{_compared(report, gain)} {learned}".rstrip()
    if report["library"]["start"] == report["library"]["hash"] and gain["claim"]["side"] is None:
        return f"No new lessons, so the agent is as before: {_level(report, gain['after'], gain['n'])}."
    return " ".join(filter(None, (_gained(report, gain), learned, _untaught(report, gain))))


def _gained(report: Report, gain: Gain) -> str:
    """Return what may be said of before and after: no more than the claim of the gain."""
    labels = report.get("labels")
    if labels is not None and labels["gain"] is not None:
        return _by_people(labels, PLACEBO.of(report))
    claim, change, of = gain["claim"], _change(report, gain), f"({_tasks(gain)}){_estimated(report)}."
    if claim["side"] is not None:
        alone = "for these tasks alone" if gain["just_these"] else "enough"
        over = _over_placebo(PLACEBO.of(report)) if claim["side"] == "better" else ""
        return f"{claim['side'].capitalize()}: {change}; sure {alone} {of[:-1]}{over}."
    if (placebo := PLACEBO.of(report)) is not None and "over_nothing" in claim:
        return f"{_not_over_placebo(placebo)}: {change} {of}"
    if (equal := claim.get("equal_within")) is not None:
        return f"Equal within {equal:g}: {change} {of}"
    if gain["ci95"] is None:
        return f"Too few tasks to tell: {change} {of}"
    size, often = gain["difference"] or 0.0, ""
    if abs(size) <= GATE_MARGIN.of(report["settings"]):
        return f"No difference shown: {change} {of}"
    if claim["looks"] > 1:
        often = f" after {claim['looks']} variants on the same tasks"
    side = "better" if size > 0 else "worse"
    return f"Perhaps {side}, but not sure{often}: {change}, which may be chance {of}"


def _over_placebo(placebo: PlaceboBlock | None) -> str:
    """Return what a gain that is claimed is over a placebo."""
    return (
        "; no placebo was run"
        if placebo is None
        else f", also {placebo['over']['difference']:+.2f} over placebo"
    )


def _not_over_placebo(placebo: PlaceboBlock) -> str:
    """Return why a gain is not claimed that is one over nothing."""
    if not placebo["possible"]:
        return "Not sure, as a placebo is not possible"
    size = f"{placebo['over']['difference'] or 0.0:+.2f}"
    if placebo["gain_side"] == "better":
        return f"Any text does this ({size} over placebo; {changes(placebo)})"
    return f"Better than {placebo['beside']}, but not shown better than placebo ({size})"


def _untaught(report: Report, gain: Gain) -> str:
    """Return that a gain holds only for families that training has, where others show none."""
    known, claim = FAMILIES.of(report), gain["claim"]
    if "labels" in report or claim["side"] != "better" or known is None:
        return ""
    if known["seen"] is None or known["unseen"] is None:
        return ""
    bounds = known["unseen"]["ci95"]
    return "" if bounds and bounds[0] > 0 else "No gain shown for families that training does not have."


def _by_people(labels: LabelsBlock, placebo: PlaceboBlock | None) -> str:
    """Return the same of a judge's gain as people's labels correct it."""
    size, tasks = labels["gain"] or 0.0, plural(labels["used"], "labelled task")
    if labels["claim"] is None:
        return f"No difference shown by people's labels: {size:+.2f} in the mean score ({tasks})."
    sure = "sure for these tasks alone" if labels["just_these"] else "sure enough"
    side, over = labels["claim"].capitalize(), ""
    if labels["claim"] == "better":
        if placebo is not None and placebo["side"] != "better":
            return (
                f"{_not_over_placebo(placebo)}: {size:+.2f} in the mean score by people's labels ({tasks})."
            )
        over = _over_placebo(placebo)
    return f"{side} by people's labels: {size:+.2f} in the mean score; {sure} ({tasks}){over}."


def _scored(report: Report, last: EpochRow) -> str:
    """Return the outcome of a run that measured and taught nothing, beside the baseline where it has one."""
    rule, level = _rule(report, "baseline"), _level(report, last["gt_score"]["mean"], last["gt_score"]["n"])
    return _against(rule, "baseline", level + _estimated(report))


def _compared(report: Report, gain: Gain) -> str:
    """Return the outcome beside a gate's reference, whose rule is the claim."""
    reference = "reference" in gain.get("control", {})
    change = f"{_change(report, gain)} ({_tasks(gain)}){_estimated(report)}"
    return _against(_rule(report, "baseline") if reference else None, "reference", change)


def _against(rule: RuleFinding | None, what: str, figures: str) -> str:
    """Return some figures with what the rule of the gate found that compares them."""
    alone = f"{figures[0].upper()}{figures[1:]}"
    if rule is None or not rule["figures"]:
        return f"{alone}."
    incomplete = {"lost", "changed"} & rule["figures"].keys()
    match "" if incomplete else rule["figures"].get("answer"):
        case "worse":
            return f"Worse than the {what}: {figures}."
        case "not worse":
            return f"{alone}; not worse than the {what} by more than {rule['figures']['margin']:g}."
        case _:
            return f"{alone}; not sure whether it is worse than the {what}."


def _rule(report: Report, name: str) -> RuleFinding | None:
    """Return what a rule of the default gate found; None where it is not set."""
    results = report["gate"]["results"] if report["gate"] else []
    return next((one for one in results if one["name"] == name and one["outcome"] != "skipped"), None)


def _lessons(report: Report) -> str:
    """Return how many lessons there are, and that no dev scenario tried them before they were kept."""
    n, learned = len(report["library"]["lessons"]), report.get("acceptance")
    if not any(row["mode"] in TRAINING for row in report["epochs"]):
        return ""
    if not n:
        return "No lessons."
    untried = learned is not None and all(row["verdict"] == "not_tried" for row in learned["epochs"])
    return f"{plural(n, 'lesson')}{', kept untested' if untried else ''}."


def _is_pass_fail(report: Report) -> bool:
    """Return whether each attempt of both sweeps passed or failed as a whole, so that a mean is a share."""
    swept = [row for row in report["epochs"] if row["mode"] in ("eval", "baseline")]
    pairs = [(row["gt_score"]["mean"], row["pass_at_1"]) for row in swept]
    known = [(mean, share) for mean, share in pairs if mean is not None and share is not None]
    return len(known) == len(pairs) and all(abs(mean - share) < 1e-9 for mean, share in known)


def _change(report: Report, gain: Gain) -> str:
    before, after = gain["before"] or 0.0, gain["after"] or 0.0
    if _is_pass_fail(report):
        shown = _percents(before, after)
        return (
            f"{shown[0]} of the tasks before and after"
            if len(set(shown)) == 1
            else f"{' to '.join(shown)} of the tasks"
        )
    shown = _means(before, after)
    return (
        f"mean score {shown[0]} before and after"
        if len(set(shown)) == 1
        else f"mean score {' to '.join(shown)}"
    )


def _level(report: Report, mean: float | None, n: int) -> str:
    if _is_pass_fail(report):
        return f"{_percents(mean or 0.0)[0]} of {plural(n, 'task')} solved"
    return f"mean score {_means(mean or 0.0)[0]} over {plural(n, 'task')}"


def _percents(*shares: float) -> list[str]:
    """Return shares as whole per cent; with a decimal where that hides a difference, or says all or none."""
    whole = [f"{100 * share:.0f} %" for share in shares]
    hides = len(set(whole)) < len(set(shares))
    ends = any(
        text in ("0 %", "100 %") and share not in (0.0, 1.0)
        for text, share in zip(whole, shares, strict=True)
    )
    return [f"{100 * share:.1f} %" for share in shares] if hides or ends else whole


def _means(*means: float) -> list[str]:
    shown = [f"{mean:.2f}" for mean in means]
    hides = len(set(shown)) < len(set(means))
    ends = any(
        text in ("0.00", "1.00") and mean not in (0.0, 1.0) for text, mean in zip(shown, means, strict=True)
    )
    return [f"{mean:.3f}" for mean in means] if hides or ends else shown


def _tasks(gain: Gain) -> str:
    """Return what a gain is over: families where tasks share some."""
    n, families = gain["n"], gain["families"]
    if families == n:
        return plural(n, "task")
    return "one family" if families == 1 else f"{families} families"


def _estimated(report: Report) -> str:
    """Return that no ground truth scored the eval tasks, where that is so."""
    truths = {row.get("truth", "checks") for row in report["scenarios"] if row["split"] == "eval"}
    named = [
        name for truth, name in (("judge", "a judge"), ("majority", "a majority vote")) if truth in truths
    ]
    return f", scored by {' and '.join(named)}" if named else ""
