"""Misses: what a replay needs that its recording does not have, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_tfgrpo.harness.recording.entries import CallEntry, RolloutEntry

SHOWN = 3
NEVER = "it was never recorded"
PROMPT = "the prompt changed: its prompt pack, or the lessons in it"
STAMP = "the scenario's stamp changed: its prompt, input, attachments, tools, checks or rubric"
CALL = "what the model receives changed: its prompts, the rollouts or the lessons in them"
OPTIONS = "the same text is recorded with another seed, temperature, limit or schema"


def why_no_rollout(
    known: Sequence[RolloutEntry], *, stamp: str | None, prompt: str, temperature: float, seed: int
) -> tuple[str, str]:
    """Return how a rollout differs from those `known` of its scenario and actor, in short and in full.

    `stamp` and `prompt` are those of scenario and prompt as they are now; None: unknown.
    """
    if not known:
        return NEVER, NEVER
    near = [entry for entry in known if stamp in (None, entry.stamp)]
    if not near:
        return STAMP, STAMP
    asked = [entry for entry in near if entry.prompt == prompt]
    if not asked:
        return PROMPT, PROMPT
    warm = [entry for entry in asked if entry.temperature == temperature]
    if not warm:
        recorded = _several(f"{entry.temperature:g}" for entry in asked)
        return "the temperature changed", f"temperature {temperature:g}, recorded {recorded}"
    recorded = _several(str(entry.seed) for entry in warm)
    return "the seed changed", f"seed {seed} is not recorded (recorded: {recorded})"


def why_no_call(known: Iterable[CallEntry], prompt: str) -> str:
    """Return how a model call with the stamped `prompt` differs from those `known` of its model."""
    prompts = {entry.prompt for entry in known}
    if not prompts:
        return NEVER
    return OPTIONS if prompt in prompts else CALL


def _several(values: Iterable[str]) -> str:
    found = list(dict.fromkeys(values))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
