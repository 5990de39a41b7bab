"""Workspace files: what an attempt left, made safe for checks, searched and kept for a replay."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.records import Failure, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.agents import RECORD
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.judgement import as_error
from pytest_tfgrpo.sandbox.changes import changes_in
from pytest_tfgrpo.sandbox.pictures import names_pictures, pictures_named
from pytest_tfgrpo.scoring.checks.registry import is_blocking

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.context import RunContext


async def with_files(context: RunContext, call: ActorCall, scenario: Scenario, rollout: Rollout) -> Rollout:
    """Return a rollout with what it left, where that counts; checks can look there afterwards."""
    workspace = call.workspace
    try:
        if rollout.status == "ok" and scenario.checker is not None and not workspace.made:
            await asyncio.to_thread(workspace.make)  # a resumed run knows by it that nothing was lost
    except ProviderError as error:
        return as_error(rollout, error.code, str(error))
    try:
        workspace.secure()
        workspace.withdraw()
    except ProviderError as error:  # only its agent can have brought it into such a state
        return replace(rollout, status="failed", failure=Failure(code=error.code, message=str(error)))
    used = await context.decoys.used(rollout, call.prompt, workspace)
    if used is not None:
        rollout = replace(rollout, decoy=used)
    if rollout.status == "ok" and workspace.made and names_pictures(rollout.answer):
        pictures = await asyncio.to_thread(pictures_named, rollout.answer, workspace.path)
        rollout = replace(rollout, pictures=pictures)
    if rollout.status != "ok" or not _are_needed(context.job, scenario):
        return rollout
    files = await asyncio.to_thread(changes_in, workspace) if workspace.made else ()
    return replace(rollout, files=files, files_kept=True)


def _are_needed(job: Job, scenario: Scenario) -> bool:
    if not RECORD.of(job.settings):
        return False
    return scenario.checker is not None or is_blocking(scenario.checks, job.kinds)
