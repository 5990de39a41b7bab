"""What a dataset holds and what was left out, as lines of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.core.evidence import EvidenceHeader
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.production.report.figure_lines import labelled
from pytest_tfgrpo.production.training.dataset.draw import PARTS
from pytest_tfgrpo.production.training.dataset.pool import SPREAD

REASONS = {
    "safety_blocked": "safety blocked them",
    "no_reward": "they have no reward yet",
    "no_prompt": "what was asked for was not recorded",
    "too_long": "they have more turns than asked for",
    "other_date": "they ended on another date",
    "other_domain": "they are of other domains",
    "excluded_profile": "they are of an excluded profile",
    "single": "alone at their task: attempts belong together by tfgrpo.task_key, or else wording, by agent, "
    "model and policy version",
    "no_spread": f"the rewards at their task are less than {SPREAD:g} apart",
    "low_reward": "the best reward at their task is below the minimum",
    "user_share": f"one user, or else session, has 1 attempt in {PARTS} at most",
    "not_drawn": "the sample is full, or their task has as many as a group may",
    "gone": "they are no longer on the bus",
    "unreadable": "their turns cannot be read",
}
"""Why attempts are left out."""


def dataset_lines(header: EvidenceHeader) -> Iterator[str]:
    """Yield what was read, kept and left out, and why."""
    counts = header.counts
    read = counts["trajectories"]
    yield from labelled("read", f"{read:,} {'trajectory' if read == 1 else 'trajectories'}")
    kept = f"{plural(counts['attempts'], 'attempt')} at {plural(counts['groups'], 'task')}"
    alone = counts["without_session"]
    mark = f"; of {alone:,} neither user nor session is known, so that nobody's share limits them"
    yield from labelled("kept", kept + mark * bool(alone))
    label = "left out"
    for reason, count in sorted(counts["left_out"].items(), key=lambda item: (-item[1], item[0])):
        yield from labelled(label, f"{count:,} {reason}: {REASONS[reason]}")
        label = ""
