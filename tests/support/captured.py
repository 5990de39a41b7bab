"""Captured jobs of small repositories, as the capture writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.harvest.job.plan import HarvestTools
from pytest_tfgrpo.patterns.jobs.manifest import CapturedWork, JobManifest, RanCommand, WorkSnapshot
from pytest_tfgrpo.patterns.synthesis.prove import JobProof, ProofTools, prove
from support.repositories import Repository, git

JOB = "0b5e7c1a-6f0e-4a51-9d3c-3f1f3c9a8b11"
PROMPT = (
    "The total of a cart is always zero\n\nEvery cart that customers fill says it costs nothing; add up.\n"
)

Files = Mapping[str | bytes, str | bytes | None]


class CapturedJob:
    """A repository with one commit, and a job of what was changed after it."""

    def __init__(self, folder: Path, base: Files, change: Files) -> None:
        self.repository = Repository(folder / "shop")
        self.first = self.repository.commit(base, "First")
        self.commit = self.repository.commit(change, "Snapshot", branch="taken", parents=[self.first])
        self.files = tuple(sorted(str(name) for name in change))
        self.folder = folder / "jobs" / JOB
        self.folder.mkdir(parents=True)
        self.write(PROMPT)

    def write(self, prompt: str, history: Sequence[RanCommand] = ()) -> None:
        """Write the prompt and what ran."""
        (self.folder / "prompt.md").write_text(prompt)
        rows = "".join(json.dumps(to_wire(ran)) + "\n" for ran in history)
        (self.folder / "history.jsonl").write_text(rows)

    @property
    def manifest(self) -> JobManifest:
        """The manifest of the job."""
        trees = [
            git(self.repository.folder, "rev-parse", f"{one}^{{tree}}") for one in (self.commit, self.first)
        ]
        snapshot = WorkSnapshot(
            ref=f"refs/learning/{JOB}",
            commit=self.commit,
            base=self.first,
            tree=trees[0],
            base_tree=trees[1],
            tarball_sha256="0" * 64,
            diff_sha256="0" * 64,
        )
        captured = CapturedWork(
            task_id="task",
            repository=str(self.repository.folder),
            created_at="2026-01-02T03:04:05Z",
            approver="ada",
            files=self.files,
        )
        return JobManifest(job_id=JOB, captured=captured, snapshot=snapshot)

    def tools(self, tools: HarvestTools, **more: Any) -> ProofTools:
        """Return the tools of its proof."""
        return ProofTools(harvest=tools, domain="shop", **more)

    def prove(self, tools: HarvestTools, **more: Any) -> JobProof:
        """Prove the job."""
        return prove(self.manifest, self.folder, self.tools(tools, **more))
