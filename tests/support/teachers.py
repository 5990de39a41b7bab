"""Teachers for tests: scored groups, learning contexts, and answers of a scripted teacher."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.lessons import Experience, Library, Revision
from pytest_tfgrpo.core.records import Group, ModelCall, Rollout, Score
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.learning.library.library import apply, empty, of
from pytest_tfgrpo.learning.library.screen import Screen
from pytest_tfgrpo.learning.optimizer.llm.optimizer import open_llm
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.protocol import Request
from pytest_tfgrpo.protocols import LearningContext, Proposal
from support.builders import make_frame, make_pack, make_rollout, make_scenario
from support.completers import Answer, ScriptedCompleter, make_calls

PACKS = {"text": make_pack(), "dates": make_pack("dates")}
USE_COUNT = "For counting words in a letter: call count_words, never guess."


def suite(count: int = 3, **changes: Any) -> list[Scenario]:
    """Return train tasks whose answers are words that no lesson has."""

    def one(n: int) -> Scenario:
        check = Check(kind="exact", params={"value": f"answer{n}"})
        fields = {"prompt": f"How many words has letter {n}?", "checks": (check,), "stamp": f"{n:064}"}
        return make_scenario(f"letter-{n}", **fields | changes)

    return [one(n) for n in range(count)]


def scored(
    scenario: Scenario,
    rewards: Sequence[float | None] = (1.0, 0.0),
    *,
    run: str = "run1",
    epoch: int = 1,
    answer: Callable[[int], str] = lambda index: f"answer {index}",
    **changes: Any,
) -> Group:
    """Return a group in which attempt `index` earned a reward, and said what `answer` gives."""
    group_id = f"{run}.e{epoch}.{scenario.id}"
    rollouts: list[Rollout] = []
    for index, reward in enumerate(rewards):
        frames = (make_frame("count_words" if reward else "guess"),)
        fields: dict[str, Any] = {"run_id": run, "group_id": group_id, "epoch": epoch, "frames": frames}
        fields |= {"scenario_id": scenario.id, "answer": answer(index)} | changes
        rollouts.append(make_rollout(index, reward, **fields))
    known = [reward for reward in rewards if reward is not None]
    scores = tuple(
        Score(
            rollout_id=rollout.rollout_id,
            gt_score=reward,
            reward=reward,
            relative_rank=None if reward is None else reward,
            advantage=None,
        )
        for rollout, reward in zip(rollouts, rewards, strict=True)
    )
    return Group(
        group_id=group_id,
        epoch=epoch,
        mode="train",
        scenario_id=scenario.id,
        domain=scenario.domain,
        rollouts=tuple(rollouts),
        scores=scores,
        informative=bool(known) and min(known) < max(known),
    )


def context_of(groups: Sequence[Group], scenarios: Sequence[Scenario], **changes: Any) -> LearningContext:
    run = changes.pop("run", "run1")
    fields: dict[str, Any] = {
        "run_id": run,
        "task_id": "demo",
        "epoch": 1,
        "actor": "scripted",
        "groups": tuple(groups),
        "scenarios": {s.id: s for s in scenarios},
        "packs": PACKS,
        "library": empty(),
        "max_words": 32,
        "created_at": "2026-01-01T00:00:00Z",
        "manifest_path": f"runs/{run}/manifest.json",
        "calls": make_calls(),
        "seed": 0,
        "concurrency": 8,
    }
    return LearningContext(**fields | changes)


def learn(
    context: LearningContext, answer: Answer | ScriptedCompleter, packs: Path | None = None
) -> Proposal:
    """Return what the optimizer proposes with a teacher that answers as a function of the request says."""
    teacher = answer if isinstance(answer, ScriptedCompleter) else ScriptedCompleter(answer)
    return asyncio.run(open_llm(teacher, packs).propose(context))


def revise(context: LearningContext, proposal: Proposal) -> Revision:
    """Return what the library makes of a proposal, screened as in a run."""
    screen = Screen(
        context.scenarios.values(),
        answers=lambda s: tuple(str(c.params["value"]) for c in s.checks if "value" in c.params),
        packs=context.packs,
        max_words=context.max_words,
    )
    return apply(context.library, proposal.operations, screen=screen, cap=200, epoch=context.epoch)


def operation(op: str = "ADD", lesson: str = USE_COUNT, **changes: Any) -> dict[str, Any]:
    """Return an operation as a teacher writes it."""
    fields: dict[str, Any] = {"op": op, "ids": [], "polarity": "do", "lesson": lesson, "reason": "compared"}
    return fields | changes


def says(*operations: Mapping[str, Any]) -> str:
    """Return the answer with these operations."""
    return json.dumps({"comparison": "one counted, one guessed", "operations": list(operations)})


def question(request: Request) -> str:
    """Return the last message that a request ends with."""
    return request.messages[-1].content


def stage_of(request: Request) -> str:
    """Return which stage of learning a request belongs to."""
    text = question(request)
    if "cannot be used" in text:
        return "repair"
    if "Retell one attempt" in text:
        return "summary"
    return "consolidation" if "Several tasks of one domain" in text else "critique"


def staged(**answers: str | Callable[[Request], str]) -> Callable[[Request], str]:
    """Return a teacher that answers by stage; a stage without an answer of its own is a failed test."""

    def answer(request: Request) -> str:
        given = answers[stage_of(request)]
        return given if isinstance(given, str) else given(request)

    return answer


def recorded(calls: Sequence[ModelCall]) -> Calls:
    """Return the calls of a resumed run that has these on file."""
    return make_calls(recorded={call.key: call for call in calls})


def library_of(*experiences: Experience) -> Library:
    return of(experiences)


def asked(body: Mapping[str, Any]) -> str:
    """Return the last message of a request that a server received."""
    return str(body["messages"][-1]["content"])
