"""Misses: what a replay needs that its recording does not have, and what differs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pytest_tfgrpo.recording.entries import CallEntry, RolloutEntry

SHOWN = 3
NEVER = "it was never recorded"
PROMPT = "the prompt changed: its prompt pack, or the lessons in it"
STAMP = "what the agent meets of the scenario changed: its prompt, input, attachments, tools, files or turns"
OLD_STAMP = (
    "the scenario changed: its prompt, input, attachments, tools, checks or rubric; the recording is of a "
    "version that does not say which, so record it again"
)
FILES = "its checks look at the workspace now, whose files are not recorded"
CALL = "what the model receives changed: its prompts, the rollouts or the lessons in them"
OPTIONS = "the same text is recorded with another seed, temperature, limit or schema"


def why_no_rollout(
    known: Sequence[RolloutEntry],
    *,
    asked: Collection[str] | None,
    prompt: str,
    temperature: float,
    seed: int,
) -> tuple[str, str]:
    """Return how a rollout differs from those `known` of its scenario and actor, in short and in full.

    `asked` has the stamps that the scenario may be known by; None: unknown. `prompt` is that of the prompt.
    """
    if not known:
        return NEVER, NEVER
    near = [entry for entry in known if asked is None or entry.asked in asked]
    if not near:
        why = STAMP if all(entry.seen for entry in known) else OLD_STAMP
        return why, why
    same = [entry for entry in near if entry.prompt == prompt]
    if not same:
        return PROMPT, PROMPT
    warm = [entry for entry in same if entry.temperature == temperature]
    if not warm:
        recorded = _several(f"{entry.temperature:g}" for entry in same)
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
