"""Runs of training jobs, as records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.lessons import Experience, Operation, Revision
from pytest_tfgrpo.core.records import Phase, PhaseResult, Run
from pytest_tfgrpo.learning.library.library import empty, of
from support.builders import make_experience, make_pack

NOON = "2026-01-01T12:00:00Z"


def lesson(n: int, task: str = "evidence-g1", **changes: Any) -> Experience:
    return make_experience(n, group_id=f"run-{n}.e1.{task}", **changes)


def learned(n: int, *operations: Operation, kept: tuple[Experience, ...] = (), **changes: Any) -> Run:
    """Return the complete run `n`, whose only epoch applied some operations."""
    library = of([*kept, *(one.experience for one in operations if one.experience is not None)])
    phase = Phase(epoch=1, mode="train", temperature=0.7, rollouts=2, scenarios=())
    revision = Revision(epoch=1, library=library, applied=operations)
    result = PhaseResult(
        phase=phase, groups=(), status="complete", library_hash=empty().hash, revision=revision
    )
    run = Run(
        run_id=f"run-{n}",
        task_id="demo",
        started_at="2026-01-01T11:00:00Z",
        settings={},
        stamps={},
        versions={},
        scenarios=(),
        identities={"actor": {"name": "openai:small", "identity": {"model": "small"}}},
        status="complete",
        finished_at=NOON,
        phases=(result,),
        library_start=of(kept),
        library=library,
        packs=(make_pack(),),
    )
    return replace(run, **changes)
