"""What the tests of learning/optimizer/test_heuristic.py share with the slow ones."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Group, Rollout, Score
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.protocols import LearningContext, Proposal
from support.builders import make_frame, make_pack, make_rollout, make_scenario
from support.completers import make_calls

PACKS = {"text": make_pack(), "dates": make_pack("dates")}


def group_of(
    scenario: Scenario,
    attempts: Sequence[tuple[float | None, dict[str, Any]]],
    epoch: int = 1,
    run: str = "run1",
) -> Group:
    """Return a scored group with ranks as in decision 10."""
    group_id = f"{run}.e{epoch}.{scenario.id}"
    rollouts: list[Rollout] = []
    scores: list[Score] = []
    known = [reward for reward, _ in attempts if reward is not None]
    for index, (reward, changes) in enumerate(attempts):
        rollouts.append(
            make_rollout(
                index, reward, scenario_id=scenario.id, epoch=epoch, group_id=group_id, run_id=run, **changes
            )
        )
        worse = sum(r < reward for r in known) if reward is not None else 0
        ties = sum(r == reward for r in known) - 1 if reward is not None else 0
        rank = (worse + ties / 2) / max(1, len(known) - 1)
        scores.append(
            Score(
                rollout_id=rollouts[-1].rollout_id, gt_score=reward, reward=reward,
                relative_rank=None if reward is None else rank, advantage=None,
            )
        )  # fmt: skip
    return Group(
        group_id=group_id, epoch=epoch, mode="train", scenario_id=scenario.id, domain=scenario.domain,
        rollouts=tuple(rollouts), scores=tuple(scores), informative=bool(known) and min(known) < max(known),
    )  # fmt: skip


def context_of(
    groups: Sequence[Group],
    scenarios: Sequence[Scenario],
    library: Library | None = None,
    epoch: int = 1,
    run: str = "run1",
    max_words: int = 32,
    packs: dict[str, PromptPack] | None = None,
) -> LearningContext:
    return LearningContext(
        run_id=run, task_id="demo", epoch=epoch, actor="scripted", groups=tuple(groups),
        scenarios={s.id: s for s in scenarios}, packs=packs or PACKS, library=library or empty(),
        max_words=max_words, created_at="2026-01-01T00:00:00Z", manifest_path=f"runs/{run}/manifest.json",
        calls=make_calls(), seed=0, concurrency=8,
    )  # fmt: skip


def propose(context: LearningContext) -> Proposal:
    return asyncio.run(open_optimizer("heuristic").propose(context))


DISTINCT = [
    make_scenario("d1", family="distinct", prompt="How many distinct words are in the note 'a b a'?"),
    make_scenario("d2", family="distinct", prompt='Count the distinct words of this memo: "tree sea tree".'),
    make_scenario(
        "d3", family="distinct", prompt="In the letter 'x y', how many distinct words stand there?"
    ),
]
SORTED = [
    make_scenario("s1", family="sorted", prompt="Put the items 'b a' into alphabetical order."),
    make_scenario("s2", family="sorted", prompt="Give the alphabetical listing of the items 'q p r'."),
]
SUITE = [*DISTINCT, *SORTED]


rollouts = st.tuples(
    st.sampled_from([None, 0.0, 0.5, 1.0]),
    st.builds(
        lambda tools, answer: {"frames": tuple(make_frame(t) for t in tools), "answer": answer},
        st.lists(st.sampled_from(["count", "sort", "split", "join"]), max_size=3),
        st.sampled_from(["", "3", "{}", "several words in a row here"]),
    ),
)
