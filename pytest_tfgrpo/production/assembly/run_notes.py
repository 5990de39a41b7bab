"""What an application says of a run by attributes ``tfgrpo.*``: its task, its outcome, its policy version.

``tfgrpo.outcome.tests.passed`` is `outcome.tests.passed` of the trajectory; the part ``outcome.`` may be
missing. A value that the trajectory cannot have is left out, and its name kept in the metadata.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.wire.fitting import fit_text
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import AgentRun

DOMAINS = ("coding", "research", "data_analysis", "general")
STATUSES = ("completed_successfully", "partial_completion", "failed", "unknown")
PROFILES = ("researcher", "developer", "rl-trainer")
FEEDBACK = ("thumbs_up", "thumbs_down", "rating")
_LONGEST = 256
_MOST_LESSONS = 1000
_LARGEST = 2**53 - 1


class _Unusable(ValueError):
    pass


def task_of(run: AgentRun) -> dict[str, Json]:
    """Return the task context of a run: the question, and what the notes say."""
    found = _found(run.notes, _TASK)
    return {"domain": "general"} | ({"instructions": run.prompt} if run.prompt else {}) | found.values


def profile_of(run: AgentRun) -> str | None:
    """Return the profile of a subordinate agent, where the notes name one."""
    found: str | None = _found(run.notes, _PROFILE).values.get("subordinate_profile")
    return found


def outcome_of(run: AgentRun) -> dict[str, Json]:
    """Return the outcome of a run: as noted; one that ended in an error has failed, of others nothing is
    known."""
    outcome: dict[str, Json] = {"task_status": "unknown" if run.error is None else "failed"}
    noted = _noted_outcome(run)
    return outcome | {name: value for name, value in noted.items() if name not in _torn(noted)}


def metadata_of(run: AgentRun) -> dict[str, Json]:
    """Return model, tokens and costs of a run, its place among the spans, and what else is noted."""
    trace, span = run.key
    said: dict[str, Json] = {
        "model": fit_text(run.model)[:_LONGEST] or None,
        "temperature": run.temperature,
        "total_tokens": run.tokens,
        "total_cost_usd": run.cost_usd,
        "user_ref": fit_text(run.user)[:_LONGEST] or None,
    }
    found = _found(run.notes, _METADATA)
    known = {name: value for name, value in said.items() if value is not None} | found.values
    others = _found(run.notes, {**_TASK, **_PROFILE, **_OUTCOME}).unusable
    torn = [f"outcome.{name}" for name in _torn(_noted_outcome(run))]
    unused = sorted({*found.unusable, *others, *torn})
    refused = {"unusable_notes": unused} if unused else {}
    return {**known, **refused, "trace_id": trace, "span_id": span}


def _noted_outcome(run: AgentRun) -> dict[str, Json]:
    outcome: dict[str, Json] = {}
    for name, value in _found(run.notes, _OUTCOME).values.items():
        whole, _, part = name.partition(".")
        if part:
            outcome.setdefault(whole, {})[part] = value
        else:
            outcome[name] = value
    return outcome


def _torn(outcome: Mapping[str, Json]) -> list[str]:
    """Return the parts of an outcome that lack something, or contradict themselves."""
    torn = []
    if (tests := outcome.get("tests")) is not None:
        whole = {"passed", "total"} == tests.keys() and tests["passed"] <= tests["total"]
        torn += [] if whole else ["tests"]
    if (said := outcome.get("user_feedback")) is not None:
        if "rating" in said:
            said.setdefault("type", "rating")
        torn += [] if said and ("rating" in said) == (said["type"] == "rating") else ["user_feedback"]
    return torn


class _FoundNotes(NamedTuple):
    values: dict[str, Json]
    unusable: list[str]


def _found(notes: Mapping[str, Json], readers: Mapping[str, Callable[[Json], Json]]) -> _FoundNotes:
    values: dict[str, Json] = {}
    unusable = []
    for name, read in readers.items():
        key = f"outcome.{name}" if f"outcome.{name}" in notes else name
        if notes.get(key) is None:
            continue
        try:
            values[name] = read(notes[key])
        except (ValueError, TypeError, OverflowError, RecursionError):
            unusable.append(key)
    return _FoundNotes(values, unusable)


def _name(value: Json) -> str:
    found = fit_text(value.strip() if isinstance(value, str) else str(_count(value)))
    if not found or len(found) > _LONGEST:
        raise _Unusable(found)
    return found


def _count(value: Json) -> int:
    found = int(value) if isinstance(value, str) else value
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= _LARGEST:
        raise _Unusable(value)
    return found


def _flag(value: Json) -> bool:
    said = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise _Unusable(value)
    return said


def _between(low: float, high: float) -> Callable[[Json], float]:
    def read(value: Json) -> float:
        if isinstance(value, bool):
            raise _Unusable(value)
        found = float(value)
        if not (math.isfinite(found) and low <= found <= high):
            raise _Unusable(value)
        return found

    return read


def _one_of(names: tuple[str, ...]) -> Callable[[Json], str]:
    def read(value: Json) -> str:
        if value not in names:
            raise _Unusable(value)
        return str(value)

    return read


def _lessons(value: Json) -> list[str]:
    """Return ids: of a list, of a list as JSON, or of a text with commas."""
    if isinstance(value, str):
        value = (
            load_json(value) if value.startswith("[") else [one for one in value.split(",") if one.strip()]
        )
    if not isinstance(value, list) or len(value) > _MOST_LESSONS:
        raise _Unusable(value)
    return [_name(one) for one in value]


_TASK: Mapping[str, Callable[[Json], Json]] = {
    "domain": _one_of(DOMAINS),
    "task_id": _name,
    "task_key": _name,
    "complexity_score": _between(0, 1),
}
_PROFILE: Mapping[str, Callable[[Json], Json]] = {"subordinate_profile": _one_of(PROFILES)}
_OUTCOME: Mapping[str, Callable[[Json], Json]] = {
    "task_status": _one_of(STATUSES),
    "completion": _between(0, 1),
    "contains_code": _flag,
    "linter.score": _between(0, 10),
    "tests.passed": _count,
    "tests.total": _count,
    "security.critical_issues": _count,
    "user_feedback.type": _one_of(FEEDBACK),
    "user_feedback.rating": _between(1, 5),
    "correction_requested": _flag,
    "task_abandoned": _flag,
    "safety_blocked": _flag,
}
_METADATA: Mapping[str, Callable[[Json], Json]] = {"policy_version": _name, "lessons": _lessons}
