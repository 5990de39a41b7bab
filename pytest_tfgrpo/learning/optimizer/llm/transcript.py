"""Transcripts: what an attempt did, as text of bounded length for a model; each voice on lines of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_tfgrpo.core.conversations import USER, without_repeats
from pytest_tfgrpo.core.files import WORKSPACES_PREFIX
from pytest_tfgrpo.core.records import Frame, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.voices import Scrub, as_json, fitted, named, quoted, said
from pytest_tfgrpo.privacy.redact import redact

SHOWN = 2_000
"""Characters of a transcript up to which it is shown as it is; a longer one is summarised."""
READ = 24_000
"""Characters of a transcript that a summary is made from."""
FIELD = 4_000
"""Characters of an answer, and of an input or output at most: many steps share what a reader gets."""
FRAMES = 100
"""Steps that are shown, the first and the last."""
CHECKS = 20
REASON, OPINION = 500, 1_000
"""Characters of what a check, an error or a failure says, and of what the judge says."""

_FOLDERS = r"(?<![\w./-])(?:/[^\s'\":;,()]{0,400}/)?"
_WORKSPACE = rf"{WORKSPACES_PREFIX}{{run}}\.[0-9a-f]{{{{8}}}}(?:-kept)?(?:/{{run}}\.[\w.-]+)?"


def transcript(rollout: Rollout, scenario: Scenario, most: int = READ) -> str:
    """Return the steps and the answer of an attempt, with what the checks found where they hold the truth.

    It has about `most` characters at most.
    """

    def scrub(text: str) -> str:
        return without_run(redact(text), rollout.run_id)

    return fitted(lambda share: "\n".join(_voices(rollout, scenario, share * most / READ, scrub)), most)


def _voices(rollout: Rollout, scenario: Scenario, share: float, scrub: Scrub) -> Iterator[str]:
    """Yield what each voice says, its texts shortened to a share."""
    yield from _steps(tuple(without_repeats(rollout.frames)), share, scrub)
    reason, opinion = int(REASON * share), int(OPINION * share)
    yield (
        said("answer:", rollout.answer, int(FIELD * share), scrub) if rollout.answer.strip() else "no answer"
    )
    if rollout.failure is not None:
        yield said("failed:", f"{rollout.failure.code}: {rollout.failure.message}", reason, scrub)
    if scenario.truth == "checks":
        for check in rollout.checks[:CHECKS]:
            name = f"check {named(check.kind)}"
            yield f"{name}: passed" if check.passed else said(f"{name}: failed,", check.reason, reason, scrub)
    if rollout.opinion is not None and rollout.opinion.reason:
        yield said("judge:", rollout.opinion.reason, opinion, scrub)


def _steps(frames: tuple[Frame, ...], share: float, scrub: Scrub) -> Iterator[str]:
    most = max(4, min(FRAMES, int(4 * FRAMES * share)))  # texts are shortened before steps are left out
    head, left_out = most // 2, len(frames) - most
    limit = int(max(READ // 200, min(FIELD, READ // (2 * len(frames) + 1))) * share)
    for number, frame in enumerate(frames, 1):
        if head < number <= head + left_out:
            if number == head + 1:
                yield f"({left_out} steps left out)"
            continue
        yield from _step(number, frame, limit, int(REASON * share), scrub)


def _step(number: int, frame: Frame, limit: int, reason: int, scrub: Scrub) -> Iterator[str]:
    if frame.kind == USER:  # what it replies to is the answer before it
        if frame.input is not None:
            yield said("answer:", str(frame.input), limit, scrub)
        yield said(f"{number}. user says:", frame.output, limit, scrub)
        return
    step = f"{number}. {frame.kind} {named(frame.name, scrub)}"
    if frame.kind != "model" and frame.input is not None:
        step += f" {as_json(frame.input, limit, scrub)}"
    if frame.error is not None:
        step += f" failed with {quoted(frame.error, reason, scrub)}"
    yield said(f"{step} ->", frame.output, limit, scrub) if frame.output else step


def without_run(text: str, run_id: str) -> str:
    """Return `text` without the id of its run, nor the paths and longer ids that have it in them."""
    if run_id not in text:
        return text
    run = re.escape(run_id)
    path = f"{_FOLDERS}(?:{_WORKSPACE.format(run=run)}|{run})"
    return re.sub(path, "(run)", text).replace(run_id, "(run)")
