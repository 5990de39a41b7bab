"""What the dev split decided: the value `acceptance` of a report, and its lines on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.lessons import Acceptance, Experience, LessonTrial, Operation, Revision, Reward
from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import AcceptanceBlock, AcceptedEpoch, Earned, Rejected, TriedLesson
from pytest_tfgrpo.core.settings.learning import ACCEPTANCE, ACCEPTANCE_MARGIN
from pytest_tfgrpo.core.texts.text import line, plural, wrapped

SHORT = 3
"""Lines at the default verbosity."""
MIN_TRIED = 10
"""Dev rollouts under which what is said of a lesson is mostly what lessons do in general."""
SHOWN = 0.8
"""Probability to help from which other evidence, such as that of training, has spoken."""
SHRUNKEN = "expected effect on the mean score, drawn towards the other lessons, and probability to help:"


def acceptance_report(run: Run) -> AcceptanceBlock | None:
    """Return what decided on each epoch's library; None for a run that learned nothing, as in plain mode."""
    revised = [(r, r.revision) for r in run.phases if r.revision is not None]
    if not revised:
        return None
    decided = [revision.acceptance for _, revision in revised if revision.acceptance is not None]
    known = {lesson.id: lesson for lesson in lessons_of(run)}
    return {
        "rule": ACCEPTANCE.recorded(run.settings) or "off",
        "margin": ACCEPTANCE_MARGIN.recorded(run.settings),
        "alpha": decided[0].alpha if decided else None,
        "scenarios": sum(scenario.split == "dev" for scenario in run.scenarios),
        "epochs": [_epoch(result, revision, known) for result, revision in revised],
    }


def lessons_of(run: Run) -> Iterator[Experience]:
    """Yield every lesson that a prompt of the run may have carried."""
    yield from run.library_start.experiences
    yield from run.reference.library.experiences if run.reference is not None else ()
    for result in run.phases:
        if result.revision is not None:
            yield from result.revision.library.experiences
            acceptance = result.revision.acceptance
            for operation in proposed_of(acceptance) if acceptance is not None else ():
                if operation.experience is not None:
                    yield operation.experience
    yield from run.library.experiences


def proposed_of(acceptance: Acceptance) -> Iterator[Operation]:
    """Yield the operations that an epoch tried and did not carry out."""
    yield from acceptance.rejected
    for trial in acceptance.trials:
        yield from trial.operations


def _epoch(result: PhaseResult, revision: Revision, known: Mapping[str, Experience]) -> AcceptedEpoch:
    acceptance = revision.acceptance
    rejected = acceptance.rejected if acceptance is not None else ()
    kept = len(revision.applied)
    tried = "accepted" if not rejected else "in_part" if kept else "rejected"
    decided = acceptance is not None and bool(acceptance.lessons or acceptance.trials)
    return {
        "epoch": result.phase.epoch,
        "verdict": tried if decided else "not_tried",
        "note": acceptance.note if acceptance is not None else "",
        "kept": kept,
        "rejected": [_operation(operation) for operation in rejected],
        "rollouts": sum(len(group.rollouts) for group in result.dev),
        "errors": sum(r.status == "error" for group in result.dev for r in group.rollouts),
        "gain": acceptance.gain if acceptance is not None else None,
        "gain_sd": acceptance.gain_sd if acceptance is not None else None,
        "unseen": acceptance.unseen if acceptance is not None else 0,
        "unseen_gain": acceptance.unseen_gain if acceptance is not None else None,
        "unseen_sd": acceptance.unseen_sd if acceptance is not None else None,
        "hit_rate": acceptance.hit_rate if acceptance is not None else None,
        "lessons": [
            _lesson(trial, known[trial.id])
            for trial in (acceptance.lessons if acceptance is not None else ())
            if trial.id in known
        ],
    }


def _lesson(trial: LessonTrial, lesson: Experience) -> TriedLesson:
    return {
        "id": trial.id,
        "domain": lesson.domain,
        "polarity": lesson.polarity,
        "text": lesson.summary32,
        "fate": trial.fate,
        "value": trial.value,
        "sd": trial.sd,
        "helps": trial.helps,
        "included": trial.included,
        "left_out": trial.left_out,
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
            **earned(lesson.reward),
            "groups": lesson.support.groups,
        },
    }


def earned(reward: Reward) -> Earned:
    """Return what a lesson rests on, by the name of that quantity."""
    if reward.total_reward is None:
        return {"gt_score": reward.value}
    return {"total_reward": reward.value}


def acceptance_lines(value: AcceptanceBlock | None, width: int, *, every: bool) -> list[str]:
    """Return a line for each epoch that was decided on; `every` adds what is known of each lesson."""
    if value is None:
        return []
    tried = [row for row in value["epochs"] if row["verdict"] != "not_tried"]
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
            found += _details(row, width)
    return found


def _sentence(row: AcceptedEpoch) -> str:
    fates = Counter(lesson["fate"] for lesson in row["lessons"])
    words = {"accepted": "takes in", "returned": "brings back", "removed": "removes", "refused": "leaves out"}
    told = [f"{word} {plural(fates[fate], 'lesson')}" for fate, word in words.items() if fates[fate]]
    text = f"dev split  epoch{row['epoch']} {', '.join(told) or 'changes no lesson'}"
    if row["note"]:
        text += f": {line(row['note'], 200)}"
    unproven = [lesson["included"] + lesson["left_out"] for lesson in row["lessons"] if _by_default(lesson)]
    if unproven:
        number = f"{min(unproven)} to {max(unproven)}" if min(unproven) < max(unproven) else str(unproven[0])
        text += f"; keeps {plural(len(unproven), 'lesson')} by default: {number} {_rollouts(unproven)}"
    if row["gain"] is None:
        return text
    text += (
        f"; lessons change the dev mean by {row['gain']:+.3f}, measured on scenarios that did not select them"
    )
    if row["unseen_gain"] is None:
        return text
    of = f"the {row['unseen']} of families that training does not use"
    return f"{text}; {row['unseen_gain']:+.3f} (standard error {row['unseen_sd']:.3f}) on {of}"


def _rollouts(numbers: Sequence[int]) -> str:
    each = " each" if len(numbers) > 1 else ""
    return f"dev rollout{'' if max(numbers) == 1 else 's'}{each}"


def _by_default(lesson: TriedLesson) -> bool:
    """Return whether a lesson is in force with hardly any evidence, by what lessons do in general."""
    kept = lesson["fate"] in ("accepted", "kept", "returned")
    few = lesson["included"] + lesson["left_out"] < MIN_TRIED
    return kept and few and lesson["helps"] < SHOWN


def _details(row: AcceptedEpoch, width: int) -> Iterator[str]:
    if row["lessons"]:
        yield from wrapped(SHRUNKEN, width, "  ")
    for lesson in row["lessons"]:
        what = f"{lesson['polarity']} {line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
        fate = f"{lesson['fate']} by default" if _by_default(lesson) else lesson["fate"]
        text = (
            f"{fate}: {lesson['value']:+.3f}, {lesson['helps']:.0%}; "
            f"{plural(lesson['included'], 'rollout')} with it, {lesson['left_out']} without: {what}"
        )
        yield from wrapped(text, width, "  ", " " * 4)
    for operation in row["rejected"]:
        if operation["lesson"] is None:
            gone = ", ".join(line(id_, 40) for id_ in operation["targets"])
            yield from wrapped(f"not removed: {gone}", width, "  ", " " * 4)
