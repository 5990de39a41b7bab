"""One scenario of a comparison on the terminal: what two runs answered where most was lost, or gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.records import Rollout, Run
from pytest_tfgrpo.core.texts.text import line, number
from pytest_tfgrpo.report.comparison.compare_columns import pairs
from pytest_tfgrpo.report.page.beside import final_groups, telling_pair
from pytest_tfgrpo.report.page.previews import task_text

READ = 4000
"""Characters of an answer that are searched for its first difference."""
ALIKE = 20
"""Characters that stay before the first difference of answers whose starts are alike."""


def example_lines(value: Mapping[str, Any], compared: Sequence[Run], width: int = 80) -> list[str]:
    """Return the scenario that lost most, else gained most, with an answer of A and one of the other run.

    `compared` are the runs of `value`, A first. The answers are those that its page sets side by side.
    """
    rows = [
        (row["difference"], n, letter, row)
        for n, (letter, one) in enumerate(pairs(value), 1)
        for row in one["scenarios"]
        if row["difference"]
    ]
    if not rows:
        return []
    change, n, letter, row = min(rows, key=lambda one: (one[0] > 0, -abs(one[0]), one[1], one[3]["scenario"]))
    id_, groups = row["scenario"], [final_groups(run)[row["scenario"]] for run in (compared[0], compared[n])]
    shown = [group.rollouts[i] for group, i in zip(groups, telling_pair(*groups), strict=True)]
    room, means = width - 8, f" ({number(row['before'])} to {number(row['after'])})"
    kind = "largest loss: " if change < 0 else "largest gain: "
    texts = {
        "example": kind + line(id_, room - len(kind) - len(means)) + means,
        "task": line(next(task_text(s) for s in compared[n].scenarios if s.id == id_), room),
        **dict(zip(("A", letter), _around_difference([_answer(one) for one in shown], room), strict=True)),
        "": f"tfgrpo show {line(shown[1].rollout_id)}",
    }
    return [f"{name:8}{text}".rstrip() for name, text in texts.items()]


def _answer(rollout: Rollout) -> str:
    if rollout.failure is not None:
        return line(f"no answer, {rollout.failure.code}: {rollout.failure.message}", READ)
    return line(rollout.answer, READ) or "(empty)"


def _around_difference(texts: Sequence[str], room: int) -> list[str]:
    """Return texts cut to `room`, without most of a common start that would leave none for the difference."""
    alike = 0 if len(set(texts)) == 1 else min(map(len, texts))
    start = next((n for n, them in enumerate(zip(*texts, strict=False)) if len(set(them)) > 1), alike)
    if start < room - ALIKE:
        return [line(text, room) for text in texts]
    return [line(f"...{text[start - ALIKE :]}", room) for text in texts]
