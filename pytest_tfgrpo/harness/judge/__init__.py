"""The judge: a language model that scores rollouts by a scenario's rubric."""

from __future__ import annotations

from pytest_tfgrpo.harness.judge.model import ModelJudge
from pytest_tfgrpo.harness.judge.protocol import Judge
from pytest_tfgrpo.llm.protocol import Completer

__all__ = ["open_judge"]


def open_judge(completer: Completer, *, votes: int, seed: int, concurrency: int = 64) -> Judge:
    """Return a judge that asks `completer` for `votes` on each rollout; `seed` is that of the run.

    At most `concurrency` calls are in flight.
    """
    return ModelJudge(completer, votes=votes, seed=seed, concurrency=concurrency)
