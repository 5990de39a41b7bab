"""A policy version: what is deployed, as model, prompt packs and library (decision 37)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import SPARSE, Json
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.production.training.versions.validation import Validation
from pytest_tfgrpo.production.training.versions.verdict import VersionVerdict, judged

POLICY = "tfgrpo.policy/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyVersion:
    """One version; `name` counts them, and `content` is what it is."""

    name: str
    """``v<n>``; ``v1`` is the agent without lessons."""
    model: str
    """Of the actor, or its spec where it names none; the checkpoint where there is one."""
    actor: str
    """Spec of the actor."""
    packs: Mapping[str, str]
    """Stamps of the prompt packs by domain."""
    library: str
    """Hash of the library."""
    lessons: int
    parents: tuple[str, ...] = ()
    """Names of the versions that it was learned from."""
    job: str = ""
    """Id of the training job; empty for v1."""
    run: str = ""
    """Id of the run that learned it."""
    dataset: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """Header of the evidence that it was learned from."""
    validation: Validation | None = field(default=None, metadata=SPARSE)
    """As its job found it; `judged` adds the verdict."""
    verdict: VersionVerdict | None = field(default=None, metadata=SPARSE)
    checkpoint: str = field(default="", metadata=SPARSE)
    """Weights that an external trainer made; empty where the project's own model answers."""
    created_at: str

    @property
    def content(self) -> str:
        """Hash of what is deployed; equal versions have equal ones, whatever their names."""
        return stamp(
            {"model": self.model, "actor": self.actor, "packs": dict(self.packs), "library": self.library}
        )

    @property
    def judged(self) -> Validation | None:
        """Its validation with what people said; None for v1."""
        return None if self.validation is None else judged(self.validation, self.verdict)


def policy_of(
    run: Run,
    *,
    name: str,
    parents: tuple[str, ...],
    job: str,
    dataset: Mapping[str, Json],
    validation: Validation,
    checkpoint: str = "",
) -> PolicyVersion:
    """Return the version that a run learned; raises StoreError where the run is not complete.

    `checkpoint` are the weights of its model, where an external trainer made them.
    """
    if run.status != "complete":
        raise StoreError(f"run {run.run_id} is {run.status}: {run.reason or 'it did not end'}; resume it")
    return PolicyVersion(
        name=name,
        model=checkpoint or _model(run),
        actor=_actor(run),
        packs={pack.domain: pack.stamp for pack in run.packs},
        library=run.library.hash,
        lessons=len(run.library.experiences),
        parents=parents,
        job=job,
        run=run.run_id,
        dataset=dataset,
        validation=validation,
        checkpoint=checkpoint,
        created_at=run.finished_at,
    )


def first_version(run: Run) -> PolicyVersion:
    """Return v1 as a run knows it: its agent and prompt packs, without lessons."""
    return PolicyVersion(
        name="v1",
        model=_model(run),
        actor=_actor(run),
        packs={pack.domain: pack.stamp for pack in run.packs},
        library=empty().hash,
        lessons=0,
        created_at=run.started_at,
    )


def _actor(run: Run) -> str:
    return str(run.identities["actor"]["name"])


def _model(run: Run) -> str:
    return str(run.identities["actor"].get("identity", {}).get("model") or _actor(run))
