"""The block `fault_messages`: rollouts without an answer by what they say, with one of each to look at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypedDict

from pytest_tfgrpo.core.records import PhaseResult, Rollout, Run
from pytest_tfgrpo.core.report_blocks import Counts, FailuresBlock
from pytest_tfgrpo.core.texts.text import gist, line, plural, wrapped
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.report.blocks.block import ReportBlock

MOST = 20
"""Messages that a report keeps."""
LONGEST_ID = 40
"""Characters of a rollout's id in a line."""
SHORT = 3
"""Messages that the terminal shows without ``-v``."""
TEXT = 300
_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
"""Addresses, ports and times: messages that differ in them alone are one."""
TRUNCATED = "truncated"
"""Code of a failure whose answer was cut off."""
RAISE = "the answer reached max_tokens; set tfgrpo_max_tokens, or max_tokens of the endpoint, higher"


class FaultRow(TypedDict):
    """A message, how often it came in each sweep, and its first rollout."""

    kind: str
    code: str
    text: str
    n: int
    sweeps: Counts
    example: str


def fault_rows(run: Run) -> list[FaultRow]:
    """Return the messages of rollouts without an answer, most frequent first, each with its first rollout."""
    rows: dict[tuple[str, str, str], FaultRow] = {}
    for result in run.phases:
        for rollout in _without_answer(result):
            code = rollout.failure.code if rollout.failure else "unknown"
            text = gist(rollout.failure.message, TEXT) if rollout.failure else ""
            kind = "errors" if rollout.status == "error" else "failed"
            fresh: FaultRow = {
                "kind": kind,
                "code": code,
                "text": text,
                "n": 0,
                "sweeps": {},
                "example": rollout.rollout_id,
            }
            alike = _VARIES.sub("#", text.replace(rollout.rollout_id, ""))
            row = rows.setdefault((kind, code, alike), fresh)
            row["n"] += 1
            label = result.phase.label + (" dev" if rollout.mode == "dev" else "")
            row["sweeps"][label] = row["sweeps"].get(label, 0) + 1
    return sorted(rows.values(), key=lambda row: -row["n"])[:MOST]


def fault_lines(
    rows: Sequence[FaultRow], width: int, *, every: bool, kept: bool, told: FailuresBlock | None = None
) -> Iterator[str]:
    """Yield the messages for the terminal; `kept` says that the run has files for ``tfgrpo show``.

    Unless `every` is set, what the clusters of failures on the terminal have `told` is left out, and the rest
    has a line each.
    """
    rows = rows if every else [row for row in rows if not _is_told(row, told)]
    shown = rows if every else rows[:SHORT]
    for row in shown:
        if told is not None and not every:
            yield _in_one_line(row, width, kept)
            continue
        sweeps = ", ".join(f"{label} {n}" for label, n in row["sweeps"].items())
        text = f"{row['n']} x {line(row['code'], 40)}: {line(row['text'], TEXT)} ({sweeps})"
        yield from wrapped(text, width, "  ", "    ")
        if kept:
            yield f"    tfgrpo show {line(row['example'])}"
    if len(shown) < len(rows):
        yield f"  ... {len(rows) - len(shown)} more messages; -v shows all"


def _is_told(row: FaultRow, told: FailuresBlock | None) -> bool:
    """Return whether one of the clusters that the terminal shows is of the failures of a row."""
    if told is None or told["sweep"] not in row["sweeps"]:
        return False
    shown = told["views"]["reason"]["clusters"][:SHORT]
    return any(cluster["label"].startswith(line(row["code"], 40)) for cluster in shown)


def _in_one_line(row: FaultRow, width: int, kept: bool) -> str:
    id_ = line(row["example"].partition(".")[2], LONGEST_ID) if kept else ""
    size = f"  {row['n']} x "
    room = max(20, width - len(size) - len(id_) - 2)
    text = line(f"{row['code']}: {row['text']}", room)
    return f"{size}{text:{room}}  {id_}".rstrip()


def uneven_faults(sweeps: Sweeps) -> str:
    """Return a warning where the compared sweeps differ in rollouts without an answer, else nothing."""
    before, after = sweeps.before, sweeps.after
    if before is None or after is None:
        return ""
    common = {g.scenario_id for g in before.counted} & {g.scenario_id for g in after.groups}
    found = [_counts(result, common) for result in (before, after)]
    if found[0] == found[1]:
        return ""
    told = [
        f"{result.phase.label} has {plural(counts['error'], 'error')} and "
        f"{plural(counts['failed'], 'rollout')} without an answer"
        + (f" and {counts[TRUNCATED]} cut off" if found[0][TRUNCATED] or found[1][TRUNCATED] else "")
        for result, counts in zip((before, after), found, strict=True)
    ]
    return f"{', '.join(told)}: a part of the difference between them may come from that, not from lessons"


def _counts(result: PhaseResult, scenarios: set[str]) -> dict[str, int]:
    own = (r for group in result.counted if group.scenario_id in scenarios for r in group.rollouts)
    counts = Counter(TRUNCATED if _is_cut_off(rollout) else rollout.status for rollout in own)
    return {status: counts[status] for status in ("error", "failed", TRUNCATED)}


def _is_cut_off(rollout: Rollout) -> bool:
    """Return whether the model's answer was cut off: there is one, and it scores 0."""
    return rollout.status == "failed" and rollout.failure is not None and rollout.failure.code == TRUNCATED


def _without_answer(result: PhaseResult) -> Iterator[Rollout]:
    for group in result.with_dev:
        yield from (rollout for rollout in group.rollouts if rollout.status in ("error", "failed"))


FAULT_MESSAGES = ReportBlock("fault_messages", lambda at: fault_rows(at.run) or None, caveat=False)
