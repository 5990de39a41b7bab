"""What the tests of runs/test_stored_groups.py share with the slow ones."""

from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.named_scores import NamedScore
from pytest_tfgrpo.core.records import Failure, FileChange, Group, JudgeResult, Usage
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.runs.journal.stored_groups import (
    GroupsById,
    GroupStore,
)
from support.builders import make_frame, make_group, make_rollout


def rich(n: int = 0, text: str = "words") -> Group:
    """Return a group of which every field of every record is set somewhere."""
    frames = (
        make_frame(input={"text": [1, 2.5, None, True, {"a": text}]}, output=text, extra={"k": [text]}),
        make_frame(
            kind="model",
            cost_usd=0.1,
            usage=Usage(prompt=3, completion=4, cached=1),
            sampled=Sampled(kind="raw", logprobs=(-0.5, -1e-300), token_ids=(1, 2**40), temperature=0.7),
            started_at="2026-01-01T00:00:00.000Z",
            error="none",
        ),
    )
    change = FileChange(name="a/b", text=text, executable=True)
    made = (
        make_rollout(0, 1.0, frames=frames, files=(change, FileChange(name="c", link="a"))),
        make_rollout(1, None, failure=Failure(code="provider", message=text), files=None, tossed=()),
        make_rollout(2, 0.5, opinion=JudgeResult(score=0.5, votes=(0.0, 1.0), criteria={"kind": 0.5})),
        make_rollout(3, 0.0, scores=(NamedScore(name="speed", value=0.25),), experiences=("a", "b")),
    )
    rollouts = tuple(replace(one, seed=2**62 + 1, extra={"x": {"y": [text]}}) for one in made)
    group = make_group([1.0, None, 0.5, 0.0], rollouts=rollouts, scenario_id=f"s{n}", shared=n % 2 == 1)
    scores = (replace(group.scores[0], extra={"style": None}, evidence={"style": text}), *group.scores[1:])
    return replace(group, group_id=f"run.e1.s{n}", scores=scores)


def kept(store: GroupStore, *groups: Group) -> Any:
    by_id = GroupsById(store)
    for group in groups:
        by_id[group.group_id] = group
    return by_id.of((group.scenario_id, group.group_id) for group in groups)
