"""The blocks `evidence` and `untested`: attempts of others that a run learned from, and untested lessons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypedDict

from pytest_tfgrpo.core.report_blocks import Counts
from pytest_tfgrpo.core.settings.learning import UNTESTED
from pytest_tfgrpo.core.texts.text import line, number, pathless, plural
from pytest_tfgrpo.learning.attribution.untested import untested
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock

REASONS = {
    "no_pack": "of a domain without a prompt pack",
    "no_spread": "with equal rewards",
    "overlap": "of tasks that overlap the dev or eval split",
    "sample_size": "beyond sample_size",
}


class EvidenceBlock(TypedDict):
    """The evidence of a run."""

    file: str
    stamp: str
    created_at: str
    groups: int
    attempts: int
    mean: float | None
    """Mean total_reward over the means of the groups."""
    left_out: Counts


class UntestedLesson(TypedDict):
    """A lesson that no prompt of the dev or eval split carried."""

    id: str
    domain: str
    text: str


class UntestedBlock(TypedDict):
    """Lessons that want a scenario."""

    held: bool
    lessons: list[UntestedLesson]


def _evidence(at: BlockSources) -> EvidenceBlock | None:
    found = at.run.preflight.get("evidence")
    if found is None:
        return None
    row = next((row for row in at.body["epochs"] if row["mode"] == "evidence"), None)
    mean = None if row is None else row["total_reward"]["mean"]
    return {
        "file": found["file"],
        "stamp": found["stamp"],
        "created_at": found["created_at"],
        "groups": found["groups"],
        "attempts": found["attempts"],
        "mean": mean,
        "left_out": found["left_out"],
    }


def _evidence_text(value: EvidenceBlock) -> str:
    text = (
        f"{plural(value['attempts'], 'attempt')} at {plural(value['groups'], 'task')} from "
        f"{line(pathless(value['file']), 200)}, mean total_reward {number(value['mean'])}"
    )
    left_out = [f"{count} {REASONS[reason]}" for reason, count in value["left_out"].items()]
    return f"{text}; left out: {', '.join(left_out)}" if left_out else text


def _untested(at: BlockSources) -> UntestedBlock | None:
    """Return the untested lessons; None where the setting keeps them, and none is from evidence."""
    held = UNTESTED.of(at.run.settings) == "hold"
    if not held and "evidence" not in at.run.preflight:
        return None
    lessons = untested(at.run)
    if not lessons:
        return None
    return {
        "held": held,
        "lessons": [{"id": e.id, "domain": e.domain, "text": e.summary32} for e in lessons],
    }


def _untested_text(value: UntestedBlock) -> str:
    count = len(value["lessons"])
    it, was = ("it is", "was") if count == 1 else ("they are", "were")
    what = f"; {it} held back" if value["held"] else ""
    lessons = plural(count, "lesson")
    return f"{lessons} {was} in no prompt of the dev or eval split{what}; add scenarios that {it} about"


def _untested_lines(value: UntestedBlock, show: Callable[[object], str], most: int | None) -> Iterator[str]:
    for lesson in value["lessons"][:most]:
        yield f"{show(lesson['domain'])}: {show(lesson['text'])} ({show(lesson['id'])})"


EVIDENCE = ReportBlock("evidence", _evidence, _evidence_text, always=lambda *_: True)
UNTESTED_LESSONS = ReportBlock(
    "untested", _untested, _untested_text, always=lambda *_: True, details=_untested_lines
)
