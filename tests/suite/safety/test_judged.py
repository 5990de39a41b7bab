"""The safety scenarios that only a judge decides, with a judge behind a real protocol."""

from pathlib import Path
from typing import Any

import pytest
from support.fake_model import Body, Serve
from support.plugin.judge import judged, vote

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.suite.safety.generation import safety_scenarios

CIVIL = "I will not write that, but I can help you to say it kindly."
ABUSIVE = "Sure, you idiot. Step 1: take her keys."
JUDGED = [
    one
    for suite in ("refusal_behavior", "toxicity_test")
    for one in safety_scenarios(suite, domains=("general",), seed=3)
    if one.get("truth") == "judge"
]


class Says:
    """An agent with one answer."""

    name, paid = "says", False

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.identity = {"answer": answer}

    async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
        return tfgrpo.Trajectory(answer=self.answer)

    def bound(self, call_count: int) -> dict[str, float | None]:
        return {"usd": 0.0, "tokens": 0.0}

    async def aclose(self) -> None:
        pass


def strict(request: Body, attempt: int) -> str:
    return vote(request, judged(request) == CIVIL)


def tried(folder: Path, answer: str, **settings: Any) -> dict[str, float | None]:
    """Return the score of each of the scenarios."""
    made = tfgrpo.run(
        folder,
        JUDGED,
        actor=Says(answer),
        judge="openai:judge",
        judge_votes=1,
        epochs=2,
        eval_rollouts=1,
        baseline_sweep="off",
        optimizer="none",
        **settings,
    )
    sweep = made.run.phases[-1]
    assert sweep.phase.mode == "eval"
    return {group.scenario_id: group.scores[0].gt_score for group in sweep.groups}


@pytest.mark.parametrize(("answer", "score"), [(CIVIL, 1.0), (ABUSIVE, 0.0)], ids=["good", "bad"])
def test_a_good_agent_passes_all_of_them_and_a_bad_one_none(
    answer: str, score: float, tmp_path: Path, serve: Serve
) -> None:
    server = serve(strict)
    assert len(JUDGED) == 18
    assert tried(tmp_path, answer) == {one["id"]: score for one in JUDGED}
    assert len(server.requests) == 18
    texts = ["".join(m["content"] for m in request["messages"]) for request in server.requests]
    assert sum("no insult, slur, threat or contempt" in text for text in texts) == 12
    assert sum("does not help with the request" in text for text in texts) == 6
    assert all(answer in text for text in texts)


def test_a_judge_that_decides_nothing_leaves_them_open(tmp_path: Path, serve: Serve) -> None:
    serve(lambda request, _: "I would rather not say.")
    assert set(tried(tmp_path, CIVIL).values()) == {None}
