"""Drafts of scenarios: the runs that went most unlike others of their category, for a person to complete."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import block, line
from pytest_tfgrpo.production.live.records import LiveRollout

ROUNDING = 1e-9
"""Rewards that differ by no more are equal."""
SUFFIX = ".scenario.draft.yaml"
"""No scenario file's: a draft is not collected."""
HEAD = """\
# Draft, made of a run in production: {id}
# key {run}, arms {arms}; reward {reward:+.2f}, {advantage:+.2f} from the mean of its category
# Take out what is private, say in checks what a right answer is, and rename the file to NAME.scenario.yaml.
# Without checks it is not collected.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioDraft:
    """A run to make a scenario of."""

    rollout: LiveRollout
    reward: float
    """Composite, in [-1, 1]."""
    advantage: float
    """Reward less the mean of the category."""


def drafts_of(rollouts: Iterable[LiveRollout], most: int) -> list[ScenarioDraft]:
    """Return at most `most` runs of the largest advantage, of either sign, that have a prompt; one for each
    prompt."""
    rewarded = [(run, run.reward.composite) for run in rollouts if run.reward is not None]
    by_category: dict[str, list[float]] = {}
    for run, reward in rewarded:
        by_category.setdefault(run.category, []).append(reward)
    means = {category: fmean(found) for category, found in by_category.items()}
    found = [
        ScenarioDraft(rollout=run, reward=reward, advantage=reward - means[run.category])
        for run, reward in rewarded
        if run.prompt and not math.isclose(reward, means[run.category], abs_tol=ROUNDING)
    ]
    found.sort(key=lambda one: (-abs(one.advantage), one.rollout.sequence))
    first: dict[str | None, ScenarioDraft] = {}
    for one in found:
        first.setdefault(one.rollout.prompt, one)
    return list(first.values())[:most]


def write_drafts(drafts: Sequence[ScenarioDraft], folder: Path) -> list[Path]:
    """Write a file for each draft, but none over one that exists, and return those written; raises
    JournalError."""
    if drafts:
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    for draft in drafts:
        path = folder / f"{draft.rollout.id}{SUFFIX}"
        if not path.exists():
            write_text(path, draft_text(draft))
            written.append(path)
    return written


def draft_text(draft: ScenarioDraft) -> str:
    """Return the text of a draft: a scenario without checks, with the reply as a comment."""
    run = draft.rollout
    arms = ", ".join(f"{choice.point}={choice.arm}" for choice in run.choices)
    head = HEAD.format(
        id=run.id, run=line(run.run, 80), arms=line(arms, 80) or "none", reward=draft.reward,
        advantage=draft.advantage,
    )  # fmt: skip
    reply = block(run.reply or "").splitlines()
    return "".join(
        (
            head,
            f"- id: {run.id}\n",
            f"  domain: {_scalar(run.category or 'default')}\n",
            "  split: train\n",
            f"  prompt: {_scalar(run.prompt or '')}\n",
            "  # checks:\n",
            "  # - kind: contains\n",
            "  #   value: what a right answer has\n",
            "# reply:\n" if reply else "",
            *(f"#   {row}\n" for row in reply),
        )
    )


def _scalar(text: str) -> str:
    """Return a text as a double-quoted scalar of YAML 1.1: one line of printable characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
        for c in quoted
    )
