"""What the tests of a placebo sweep share: two domains that both learn, and agents that heed lessons."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal
from support.builders import make_pack
from support.jobs import LessonPerGroup, ScriptedActor, make_job, suite

DOMAINS = ("text", "other")
PLAIN: dict[str, Any] = {"epochs": 2, "acceptance": "off", "lesson_dropout": 0.0, "placebo_sweep": True}


class LessonPerDomain(LessonPerGroup):
    """Adds one lesson for each informative group, in its domain, which it names."""

    async def propose(self, context: LearningContext) -> Proposal:
        proposal = await super().propose(context)
        domain_of = {group.group_id: group.domain for group in context.groups}
        operations = []
        for operation in proposal.operations:
            assert operation.experience is not None
            domain = domain_of[operation.experience.group_id]
            text = f"{operation.experience.summary32} This is {domain} advice."
            changed = replace(operation.experience, domain=domain, summary32=text)
            operations.append(replace(operation, experience=changed))
        return replace(proposal, operations=tuple(operations))


def two_learning(train: int = 4, sweep: int = 6) -> list[Scenario]:
    """Return a suite whose scenarios are of two domains in turn."""
    return [replace(s, domain=DOMAINS[n % 2]) for n, s in enumerate(suite(train, sweep))]


def job(work: Path, answer: Any, **changes: Any) -> Any:
    packs = {name: make_pack(domain=name) for name in DOMAINS}
    actor = answer if isinstance(answer, ScriptedActor) else ScriptedActor(answer)
    fields: dict[str, Any] = {"scenarios": two_learning(), "job_packs": packs, "concurrency": 1}
    fields["job_optimizer"] = LessonPerDomain()
    return make_job(actor, work, **PLAIN | fields | changes)


def side_of(call: ActorCall) -> str:
    """Return which sweep a call is of, by the lessons of its prompt."""
    system = call.prompt.system
    if "<experiences" not in system:
        return "baseline"
    return "eval" if f"This is {call.task.domain} advice" in system else "placebo"


class Heeds:
    """Is right every second time in training, then on half of the seeds, or on as many as lessons make it."""

    def __init__(self, *, own: float = 1.0, any_text: float = 0.5) -> None:
        self._trained = Counter[str]()
        self._chances = {"baseline": 0.5, "placebo": any_text, "eval": own}

    def __call__(self, call: ActorCall) -> str:
        if call.temperature > 0.5:
            self._trained[call.task.id] += 1
            return "34"[self._trained[call.task.id] % 2]
        return "3" if random.Random(call.seed).random() < self._chances[side_of(call)] else "4"
