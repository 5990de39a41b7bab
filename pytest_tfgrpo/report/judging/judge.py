"""Calibration: how far a judge can be trusted, measured where ground truth is there too. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum
from typing import NamedTuple

from pytest_tfgrpo.core.records import JudgeResult, Run
from pytest_tfgrpo.core.report_blocks import Calibration, JudgeBlock, LabelsBlock, Opinions
from pytest_tfgrpo.core.texts.text import interval, line, number, plural, signed, table, wrapped
from pytest_tfgrpo.numerics.agreement import cohen_kappa, spearman, wilson_interval
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL

PASSED = 0.5
"""Scores from here on count as a yes where yes and no are compared."""
FEW = 20
"""Labelled tasks under which a report warns."""


class Judged(NamedTuple):
    """One rollout with a judge's result."""

    domain: str
    opinion: JudgeResult
    gt_score: float | None
    """Score of its checks; None if they are not its ground truth or have no score."""
    checked: bool
    """True when its scenario is scored by checks."""


def judge_report(run: Run) -> JudgeBlock | None:
    """Return the judge's block of a report; None if the run has no judge.

    Beside counts over all opinions it has the judge's calibration: over rollouts that checks score too.
    """
    judged = list(_judged(run))
    who = run.identities.get("judge")
    if who is None and not judged:
        return None
    checked = [one for one in judged if one.checked]
    domains = sorted({one.domain for one in checked})
    identity = who["identity"] if who else {}
    return {
        "model": who["name"] if who else None,
        "votes": identity.get("votes"),
        **_opinions([one.opinion for one in judged]),
        "calibration": _calibration(checked) if checked else None,
        "domains": [
            {"domain": domain, **_calibration([one for one in checked if one.domain == domain])}
            for domain in domains
        ],
    }


def _judged(run: Run) -> Iterator[Judged]:
    scenarios = {s.id: s for s in run.scenarios}
    for group in (group for result in run.phases for group in result.with_dev):
        checked = scenarios[group.scenario_id].truth == "checks"
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            if rollout.opinion is not None:
                gt_score = score.gt_score if checked else None
                yield Judged(group.domain, rollout.opinion, gt_score, checked)


def _opinions(opinions: Sequence[JudgeResult]) -> Opinions:
    """Return counts over opinions: how many have no result, and how far their votes agree."""
    agreements = [o.agreement for o in opinions if o.agreement is not None]
    return {
        "opinions": len(opinions),
        "no_verdict": sum(o.score is None for o in opinions),
        "vote_agreement": fsum(agreements) / len(agreements) if agreements else None,
    }


def _calibration(judged: Sequence[Judged]) -> Calibration:
    """Return the agreement of the judge with checks; null where it is unknown."""
    pairs = [
        (one.gt_score, one.opinion.score)
        for one in judged
        if one.gt_score is not None and one.opinion.score is not None
    ]
    truth_N, verdict_N = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    yes_N, said_N = [x >= PASSED for x in truth_N], [x >= PASSED for x in verdict_N]
    n = len(pairs)
    alike = sum(a == b for a, b in zip(yes_N, said_N, strict=True))
    return {
        **_opinions([one.opinion for one in judged]),
        "n": n,
        "agreement": alike / n if n else None,
        "ci95": list(wilson_interval(alike, n)) if n else None,
        "kappa": cohen_kappa(yes_N, said_N),
        "bias": fsum(b - a for a, b in pairs) / n if n else None,
        "rank_correlation": spearman(truth_N, verdict_N),
    }


TITLE = "judge  "


HEAD = ("judge by domain", "rollouts", "agreement", "kappa", "bias", "no result", "votes agree")


def judge_lines(judge: JudgeBlock | None, width: int, *, by_domain: bool) -> list[str]:
    """Return the lines about the value `judge` of a report; `by_domain` adds a table of several domains."""
    if judge is None:
        return []
    found: list[str] = []
    for sentence in sentences(judge):
        indent = " " * len(TITLE) if found else TITLE
        found += wrapped(sentence, width, indent, " " * len(TITLE))
    if by_domain and len(judge["domains"]) > 1:
        found += table(HEAD, list(rows(judge)))
    return found


def sentences(judge: JudgeBlock) -> Iterator[str]:
    """Yield what the judge did, and how its results compare with checks."""
    votes = "" if judge["votes"] is None else f", {plural(judge['votes'], 'vote')} each"
    head = f"{line(judge['model'] or 'unknown', 80)}{votes}: {plural(judge['opinions'], 'rollout')} judged"
    if judge["no_verdict"]:
        head += f", {judge['no_verdict']} without a result"
    if judge["vote_agreement"] is not None:
        head += f"; votes agree {judge['vote_agreement']:.3f}"
    yield head
    against = judge["calibration"]
    if against is not None and against["n"]:
        yield (
            f"against the checks of {plural(against['n'], 'rollout')}: agreement {against['agreement']:.3f} "
            f"({interval(against['ci95'])}), kappa {number(against['kappa'])}, bias {against['bias']:+.3f}, "
            f"rank correlation {number(against['rank_correlation'])}"
        )
    elif judge["opinions"]:
        yield "not calibrated: no rollout has both a judge score and a check score"


def rows(judge: JudgeBlock) -> Iterator[list[str]]:
    """Yield the calibration of each domain, as cells under `HEAD`."""
    for row in judge["domains"]:
        yield [
            line(row["domain"], 20),
            str(row["n"]),
            number(row["agreement"]),
            number(row["kappa"]),
            "-" if row["bias"] is None else f"{row['bias']:+.3f}",
            str(row["no_verdict"]),
            number(row["vote_agreement"]),
        ]


def label_lines(labels: LabelsBlock | None, width: int) -> list[str]:
    """Return the lines about the value `labels` of a report: the gain as people see it."""
    if labels is None:
        return []
    found = [*label_sentences(labels), *(f"warning: {text}" for text in label_warnings(labels))]
    return [text for one in found for text in wrapped(one, width, hanging="  ")]


def label_markdown(labels: LabelsBlock | None, escaped: Callable[[object, int], str]) -> list[str]:
    """Return the same for a summary; `escaped` makes Markdown of a text."""
    if labels is None:
        return []
    found = [*label_sentences(labels), *(f"warning: {text}" for text in label_warnings(labels))]
    return ["", *(f"- {escaped(text, 500)}." for text in found)]


def label_sentences(labels: LabelsBlock) -> Iterator[str]:
    """Yield the gain that the labels correct, and how far the judge agrees with them in each sweep."""
    told = f"{plural(labels['labelled'], 'label')} of {labels['asked']}"
    if labels["gain"] is None:
        yield f"gain by people: unknown; {told}, and no task has all its answers labelled"
        return
    spread = (
        f"95 % interval {interval(labels['ci95'], '+.3f')}" if labels["ci95"] else "too few for an interval"
    )
    of = f" of {labels['families']} families" if labels["families"] != labels["used"] else ""
    these = "just these scenarios, " if labels["just_these"] else ""
    yield (
        f"gain by people {labels['gain']:+.3f}, {spread}, {these}{told}, on "
        f"{plural(labels['used'], 'task')}{of} drawn at random from {labels['judged']}; "
        f"by the judge alone {labels['judge_gain']:+.3f}"
    )
    each = "; ".join(
        f"{arm['arm']} {number(arm['agreement'])} ({interval(arm['ci95'])}), bias {signed(arm['bias'])}"
        for arm in labels["arms"]
    )
    yield f"judge and people agree: {each}"


def label_warnings(labels: LabelsBlock) -> Iterator[str]:
    """Yield what stands against a gain that labels correct."""
    bounds = labels["correction_ci95"]
    if bounds and (bounds[0] > 0 or bounds[1] < 0):
        more, size = ("more" if bounds[1] < 0 else "less"), sorted(map(abs, bounds))
        yield (
            f"the judge is {more} generous in the final than in the baseline sweep, by "
            f"{abs(labels['correction'] or 0.0):.3f} ({interval(size)}): its own gain misleads"
        )
    if labels["used"] < MIN_INTERVAL:
        yield f"{plural(labels['used'], 'labelled task')} are too few for an interval; label {FEW} or more"
    elif labels["used"] < FEW:
        yield f"{plural(labels['used'], 'labelled task', 'is', 'are')} few; label {FEW} or more"
    if labels["skipped"]:
        yield (
            f"{plural(labels['skipped'], 'task')} passed over before the last labelled one: "
            "what people leave out is not random, so nothing is claimed; label from the top down"
        )
    if len(labels["reads"]) > 1:
        yield (
            f"labels were added or changed after a look at the gain ({', '.join(map(str, labels['reads']))} "
            f"labels), so a claim is at {labels['level']:.3g}: choose how many to label beforehand"
        )
