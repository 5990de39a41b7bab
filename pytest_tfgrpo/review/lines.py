"""A review as text: where checks and people disagree, and what is proposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.texts.text import few, line, plural, wrapped
from pytest_tfgrpo.review.disagreements import Review, ReviewedAnswer
from pytest_tfgrpo.review.patch import SuiteChange
from pytest_tfgrpo.review.proposals import CheckProposal, NeedsPerson

SHOWN = 200
"""Characters of an answer or a comment."""
LISTED = 20
"""Answers of one kind that are listed."""
INDENT = "            "
KINDS = {
    "false pass": "checks passed it, people call it wrong",
    "false fail": "checks failed it, people call it right",
    "disputed": "reviewers disagree, so it does not count until they agree",
}


def review_lines(review: Review, width: int) -> Iterator[str]:
    """Yield where checks and people disagree."""
    n = Counter(answer.opinion for answer in review.answers)
    names = dict.fromkeys(mark.reviewer for answer in review.answers for mark in answer.marks)
    by = f" by {few(list(names))}" if names else ""
    text = (
        f"run {line(review.run_id)}: {plural(len(review.answers), 'marked answer')}{by}: {n['right']} right, "
        f"{n['wrong']} wrong, {n['unsure']} unsure, {n[None]} disputed"
    )
    yield from wrapped(text, width, hanging=INDENT)
    decided = [answer for answer in review.answers if answer.opinion in ("right", "wrong")]
    off = len(review.false_passes) + len(review.false_fails)
    if decided:
        yield from wrapped(
            f"checks and people agree on {len(decided) - off} of {len(decided)}: "
            f"{len(review.false_passes)} false pass{'' if len(review.false_passes) == 1 else 'es'}, "
            f"{plural(len(review.false_fails), 'false fail')}. "
            "People chose what to mark, so this is not a rate for the suite",
            width,
            hanging=INDENT,
        )
    for kind, answers in zip(KINDS, (review.false_passes, review.false_fails, review.disputed), strict=True):
        yield from _answers(kind, answers, width)
    yield from not_applied_lines(review, width)


def _answers(kind: str, answers: Sequence[ReviewedAnswer], width: int) -> Iterator[str]:
    if answers:
        yield ""
        yield from wrapped(f"{kind}: {KINDS[kind]}", width, hanging=INDENT)
    for answer in answers[:LISTED]:
        yield f"  {_short(answer.rollout.rollout_id)}"
        yield from _fact("scenario", f"{answer.scenario.id}, {answer.scenario.source}", width)
        yield from _fact("answer", line(answer.rollout.answer, SHOWN) or "(empty)", width)
        reasons = [f"{check.kind}: {check.reason}" for check in answer.rollout.checks if check.reason]
        if reasons:
            yield from _fact("checks", line("; ".join(reasons), SHOWN), width)
        for mark in answer.marks:
            words = f' for "{line(mark.words, SHOWN)}"' if mark.words.strip() else ""
            comment = f": {line(mark.comment, SHOWN)}" if mark.comment.strip() else ""
            yield from _fact("mark", f"{mark.opinion} by {mark.reviewer}{words}{comment}", width)
    if len(answers) > LISTED:
        yield f"  ... {len(answers) - LISTED} more"


def _short(rollout_id: str) -> str:
    """Return the id of a rollout without its run, as ``tfgrpo show`` takes it."""
    return line(rollout_id.partition(".")[2] or rollout_id, 200)


def _fact(name: str, text: str, width: int) -> list[str]:
    return wrapped(f"{name:<8}  {line(text)}", width, "    ", "              ")


def not_applied_lines(review: Review, width: int) -> Iterator[str]:
    """Yield which marks do not count, by reason."""
    if not review.not_applied:
        return
    yield ""
    yield f"not applied: {plural(len(review.not_applied), 'mark')}"
    of: dict[str, list[str]] = {}
    for mark, reason in review.not_applied.items():
        of.setdefault(reason, []).append(_short(mark.rollout_id))
    for reason, ids in of.items():
        yield from wrapped(f"{len(ids)}  {reason}: {few(ids, 3)}", width, "  ", "     ")


def change_lines(change: SuiteChange, width: int) -> Iterator[str]:
    """Yield what is proposed for each scenario, and what a person has to do."""
    for one in change.proposals:
        yield from wrapped(f"{line(one.scenario.id)}: {line(one.why)}", width, hanging="  ")
        yield from wrapped(_grounds(one), width, "  ")
    for left in change.left:
        yield from _left(left, width)


def _grounds(one: CheckProposal) -> str:
    parts = []
    if one.agreed:
        parts.append(f"tried on {plural(one.agreed, 'marked answer')}, and agrees with people on all")
    if one.not_tried:
        parts.append(f"not tried again, with their results in the run: {', '.join(one.not_tried)}")
    if one.by_heart:
        parts.append("it says nothing about other answers, so write a better check if you can")
    for ids, what in ((one.now_failed, "would fail"), (one.now_passed, "would pass")):
        if ids:
            parts.append(
                f"{plural(len(ids), 'answer')} without a mark {what}: {few([_short(id_) for id_ in ids], 3)}"
            )
    return "; ".join(parts) or "choose the wording and weight yourself"


def _left(left: NeedsPerson, width: int) -> Iterator[str]:
    ids = [_short(answer.rollout.rollout_id) for answer in left.answers]
    yield from wrapped(f"{line(left.scenario.id)}: needs a person: {line(left.reason)}", width, hanging="  ")
    yield from wrapped(
        f"see tfgrpo show {line(ids[0])}" + (f", and {len(ids) - 1} more" if ids[1:] else ""), width, "  "
    )
