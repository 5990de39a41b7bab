"""What the tests of learning/acceptance/test_engine.py share with the slow ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.lessons import Acceptance, Operation
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.wire.stamp import identify, stamp
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal
from support.builders import make_experience, make_scenario
from support.jobs import ScriptedActor, make_job, run_job

DEV = 24
WORDS = ("alpha", "bravo", "cedar", "delta", "ember", "frost", "gamma", "hotel")


def one(split: str, n: int, **changes: Any) -> Scenario:
    fields = {"prompt": f"How many words are in the {split} letter number {n}?"} | changes
    return make_scenario(
        f"{split}-{n}",
        split=split,
        stamp=stamp([split, n, str(fields)]),
        checks=(Check(kind="exact", params={"value": "3"}),),
        **fields,
    )


def suite(train: int = 4, dev: int = DEV, sweep: int = 3) -> list[Scenario]:
    counts = {"train": train, "dev": dev, "eval": sweep}
    return [one(split, n) for split, count in counts.items() for n in range(count)]


class Teacher:
    """Proposes the same lessons after every epoch, given by kind: ``good``, ``bad`` or ``idle``."""

    name = "teacher"
    identity: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *kinds: str, epochs: Sequence[int] = (1,)) -> None:
        self.contexts: list[LearningContext] = []
        self._kinds = kinds
        self._epochs = epochs

    async def propose(self, context: LearningContext) -> Proposal:
        self.contexts.append(context)
        if context.epoch not in self._epochs:
            return Proposal()
        return Proposal(
            operations=tuple(
                Operation(
                    kind="add",
                    experience=make_experience(
                        id=identify(context.run_id, context.epoch, n),
                        run_id=context.run_id,
                        epoch=context.epoch,
                        group_id=f"{context.run_id}.e{context.epoch}.{n}",
                        summary32=f"How many words, {WORDS[n % 8] * (1 + n // 8)}: {kind}.",
                        created_at=context.created_at,
                    ),
                )
                for n, kind in enumerate(self._kinds)
            )
        )


def swayed(call: ActorCall) -> str:
    """Be right on half of the seeds, and as the lessons in the prompt say, a bad one before a good one."""
    told = call.prompt.system
    if ": bad." in told:
        return "4"
    return "3" if ": good." in told or call.seed % 2 else "4"


def settle(
    path: Path, *kinds: str, folder: Path | None = None, actor: Any = None, **changes: Any
) -> tuple[Run, list[object], ScriptedActor]:
    actor = actor or ScriptedActor(swayed)
    fields: dict[str, Any] = {
        "epochs": 2,
        "lesson_dropout": 0.0,
        "scenarios": suite(),
        "job_optimizer": Teacher(*kinds),
    }
    run, seen = run_job(make_job(actor, path, **fields | changes), folder)
    return run, seen, actor


def acceptance(run: Run, epoch: int = 1) -> Acceptance:
    revision = next(r.revision for r in run.phases if r.phase.epoch == epoch)
    assert revision is not None
    assert revision.acceptance is not None
    return revision.acceptance
