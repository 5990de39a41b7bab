"""Summaries: what one rollout did, its tools and its result, in a few words (decision 14)."""

from __future__ import annotations

from itertools import groupby, islice

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.privacy.redact import redact

TASK_WORDS = 8
ANSWER_WORDS = 5
ANSWER_CHARACTERS = 60
MAX_CALLS = 1000
"""Tool calls that a summary looks at."""


def summarise(rollout: Rollout, scenario: Scenario, max_words: int = 32) -> str:
    """Return what `rollout` did about `scenario` on one line of at most `max_words` words."""
    task = f"{_start(scenario.prompt, TASK_WORDS, 120) or scenario.id}:".split()
    deeds, outcome = _deeds(rollout).split(), _outcome(rollout).split()
    if len(task) + len(deeds) + len(outcome) > max_words:  # how it ended says more than a long list of tools
        deeds = [*deeds[: max(0, max_words - len(task) - len(outcome) - 1)], "...;"]
    return " ".join([*task, *deeds, *outcome][:max_words])


def _start(text: str, words: int, characters: int) -> str:
    """Return the first words of `text`, printable, with dots where something was left out."""
    known = redact(text[: 4 * characters])  # before the cut: half a secret has no known shape
    shown = "".join(c if c.isprintable() else " " for c in known).split()
    head = " ".join(shown[:words])[:characters].rstrip(":;,")
    return head if len(text) <= 4 * characters and len(shown) <= words else f"{head}..."


def _deeds(rollout: Rollout) -> str:
    """Return the tools called, in order, repeats counted and failed calls marked."""
    tools = islice((f for f in rollout.frames if f.kind == "tool"), MAX_CALLS)
    calls = [(_start(f.name, 1, 40), f.error is not None) for f in tools]
    named: list[str] = []
    for (name, failed), run in groupby(calls):
        times = sum(1 for _ in run)
        named.append(name + (f" x{times}" if times > 1 else "") + (" (failed)" if failed else ""))
    turns = sum(frame.kind == USER for frame in rollout.frames)
    talk = f"{turns} turns, " if turns > 1 else ""
    return talk + (", ".join(named) + ";" if named else "no tool;")


def _outcome(rollout: Rollout) -> str:
    if rollout.failure is not None:
        return f"{rollout.status}: {_start(rollout.failure.code, 1, 40)}"
    passed = sum(check.passed for check in rollout.checks)
    answer = _start(rollout.answer, ANSWER_WORDS, ANSWER_CHARACTERS)
    said = f"answered {answer!r}" if answer else "returned no answer"
    if rollout.checks:
        said = f"{said}, {passed} of {len(rollout.checks)} checks passed"
    verdict = rollout.opinion.score if rollout.opinion is not None else None
    return said if verdict is None else f"{said}, judge {verdict:.2f}"
