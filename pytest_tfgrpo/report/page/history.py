"""The history of a library for a page: the changes of each epoch, their evidence, and the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.lessons import Acceptance, Experience, Operation, Revision
from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import EffectRow, Lesson

SIGNS = {"add": "+", "update": "~", "merge": "&", "remove": "-"}
WORDS = {"add": "added", "update": "updated", "merge": "merged", "remove": "removed"}


def history(run: Run, effects: Mapping[str, EffectRow]) -> list[dict[str, Any]]:
    """Return one entry per training epoch; `effects` are what lessons were found to do, by id."""
    known = {e.id: e for e in run.library_start.experiences}
    entries = []
    before = run.library_start.hash
    for result in run.phases:
        revision = result.revision
        if revision is None:
            continue
        entries.append(_entry(result, revision, before, known, effects))
        before = revision.library.hash
    return entries


def anchored(entries: list[dict[str, Any]], lessons: Sequence[Lesson]) -> list[dict[str, Any]]:
    """Return the entries with the places that links to lessons lead to, except for the active `lessons`."""
    placed = {lesson["id"] for lesson in lessons}
    for change in (change for entry in entries for change in entry["changes"]):
        own = [id_ for id_, _ in change["old"]] + ([change["id"]] if change["id"] else [])
        change["anchors"] = {id_ for id_ in own if id_ not in placed}
        placed |= change["anchors"]
    return entries


def _entry(
    result: PhaseResult,
    revision: Revision,
    before: str,
    known: dict[str, Experience],
    effects: Mapping[str, EffectRow],
) -> dict[str, Any]:
    acceptance = revision.acceptance
    proposed = [*revision.applied, *(acceptance.rejected if acceptance is not None else ())]
    for operation in (*proposed, *(refusal.operation for refusal in revision.refused)):
        if operation.experience is not None:
            known.setdefault(operation.experience.id, operation.experience)
    known.update((e.id, e) for e in revision.library.experiences)
    changes = [_change(operation, "", known, effects) for operation in revision.applied]
    if acceptance is not None:
        changes += [_change(o, "rejected", known, effects) for o in acceptance.rejected]
    changes += [
        _change(refusal.operation, "refused", known, effects) | {"code": refusal.code, "why": refusal.reason}
        for refusal in revision.refused
    ]
    return {
        "label": result.phase.label,
        "before": before,
        "after": revision.library.hash,
        "in_force": len(revision.library.experiences),
        "note": revision.note,
        "changes": changes,
        "counts": list(_counts(changes)),
        "acceptance": None if acceptance is None else _acceptance(acceptance, known),
    }


def _change(
    operation: Operation, fate: str, known: Mapping[str, Experience], effects: Mapping[str, EffectRow]
) -> dict[str, Any]:
    """Return one operation; `fate` is empty for those that came into force."""
    new = operation.experience
    old = [(id_, known[id_].summary32 if id_ in known else "") for id_ in operation.targets]
    evidence = new or next((known[id_] for id_ in operation.targets if id_ in known), None)
    return {
        "kind": operation.kind,
        "sign": SIGNS[operation.kind],
        "word": WORDS[operation.kind] if not fate else f"{fate}: {operation.kind}",
        "fate": fate,
        "code": "",
        "why": operation.reason,
        "id": new.id if new else "",
        "new": new.summary32 if new else "",
        "old": old,
        "domain": evidence.domain if evidence else "",
        "polarity": evidence.polarity if evidence else "",
        "evidence": evidence,
        "effect": effects.get(evidence.id) if evidence else None,
    }


def _counts(changes: list[dict[str, Any]]) -> Iterator[str]:
    for kind, word in WORDS.items():
        n = sum(change["kind"] == kind and not change["fate"] for change in changes)
        if n:
            yield f"{n} {word}"
    for fate in ("rejected", "refused"):
        n = sum(change["fate"] == fate for change in changes)
        if n:
            yield f"{n} {fate}"


def _acceptance(acceptance: Acceptance, known: Mapping[str, Experience]) -> dict[str, Any]:
    return {
        "rule": acceptance.rule,
        "scenarios": acceptance.scenarios,
        "note": acceptance.note,
        "rollouts": acceptance.rollouts,
        "errors": acceptance.errors,
        "gain": acceptance.gain,
        "gain_sd": acceptance.gain_sd,
        "unseen": acceptance.unseen,
        "unseen_gain": acceptance.unseen_gain,
        "unseen_sd": acceptance.unseen_sd,
        "hit_rate": acceptance.hit_rate,
        "lessons": [
            {"lesson": known[trial.id], "trial": trial} for trial in acceptance.lessons if trial.id in known
        ],
    }
