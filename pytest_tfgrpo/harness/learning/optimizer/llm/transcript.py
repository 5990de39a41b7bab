"""Transcripts: what an attempt did, as text of bounded length for a model."""

from __future__ import annotations

import json
import re

from pytest_tfgrpo.core.conversations import USER, without_repeats
from pytest_tfgrpo.core.files import WORKSPACES_PREFIX
from pytest_tfgrpo.core.records import Frame, Rollout
from pytest_tfgrpo.core.redact import redact
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.text import joined
from pytest_tfgrpo.core.wire import Json

SHOWN = 2_000
"""Characters of a transcript up to which it is shown as it is; a longer one is summarised."""
READ = 24_000
"""Characters of a transcript that a summary is made from."""
FIELD = 4_000
"""Characters of an answer, and of an input or output at most: many steps share what a reader gets."""
FRAMES = 100
"""Steps that are shown, the first and the last."""
SLACK = 200
"""Characters beyond a cut that are searched for secrets: half of one has no known shape."""

_FOLDERS = r"(?<![\w./-])(?:/[^\s'\":;,()]{0,400}/)?"
_WORKSPACE = rf"{WORKSPACES_PREFIX}{{run}}\.[0-9a-f]{{{{8}}}}(?:-kept)?(?:/{{run}}\.[\w.-]+)?"


def transcript(rollout: Rollout, scenario: Scenario) -> str:
    """Return the steps and the answer of an attempt, with what the checks found where they hold the truth."""
    frames = tuple(without_repeats(rollout.frames))
    limit = max(READ // 200, min(FIELD, READ // (2 * len(frames) + 1)))
    lines = [_step(number, frame, limit) for number, frame in enumerate(frames[: FRAMES // 2], 1)]
    if len(frames) > FRAMES:
        lines.append(f"({len(frames) - FRAMES} steps left out)")
    rest = max(FRAMES // 2, len(frames) - FRAMES // 2)
    lines += [_step(number, frame, limit) for number, frame in enumerate(frames[rest:], rest + 1)]
    lines.append(f"answer: {clean(rollout.answer, FIELD)}" if rollout.answer.strip() else "no answer")
    if rollout.failure is not None:
        lines.append(f"failed: {clean(f'{rollout.failure.code}: {rollout.failure.message}', 500)}")
    if scenario.truth == "checks":
        lines += [
            f"check {c.kind}: {'passed' if c.passed else clean(c.reason, 500)}" for c in rollout.checks[:20]
        ]
    if rollout.opinion is not None and rollout.opinion.reason:
        lines.append(f"judge: {clean(rollout.opinion.reason, 1_000)}")
    return without_run("\n".join(lines), rollout.run_id)


def clean(text: str, limit: int) -> str:
    """Return `text` without secrets and control characters, its middle left out beyond `limit` characters."""
    if len(text) > limit:
        head, tail = 2 * limit // 3, limit // 3
        start, end = redact(text[: head + SLACK])[:head], redact(text[-tail - SLACK :])[-tail:]
        return _printable(joined(start, len(text) - head - tail, end))
    return _printable(redact(text))


def without_run(text: str, run_id: str) -> str:
    """Return `text` without the id of its run, nor the paths and longer ids that have it in them."""
    if run_id not in text:
        return text
    run = re.escape(run_id)
    path = f"{_FOLDERS}(?:{_WORKSPACE.format(run=run)}|{run})"
    return re.sub(path, "(run)", text).replace(run_id, "(run)")


def as_json(value: Json, limit: int) -> str:
    """Return a JSON value as text of about `limit` characters."""
    return clean(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str), limit)


def _step(number: int, frame: Frame, limit: int) -> str:
    if frame.kind == USER:  # what it replies to is the answer before it
        replied = f"answer: {clean(str(frame.input), limit)}\n" if frame.input is not None else ""
        return f"{replied}{number}. user says: {clean(frame.output, limit)}"
    given = "" if frame.kind == "model" or frame.input is None else f" {as_json(frame.input, limit)}"
    ended = f" failed: {clean(frame.error, 500)}" if frame.error is not None else ""
    output = f" -> {clean(frame.output, limit)}" if frame.output else ""
    return f"{number}. {frame.kind} {clean(frame.name, 80)}{given}{output}{ended}"


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
