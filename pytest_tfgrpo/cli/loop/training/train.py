"""The command ``tfgrpo loop train``: requests a training job, or cancels one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.loop_roles import owner_name
from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.triggers.training_triggers import new_request, newest_model


def train(arguments: Arguments) -> Iterator[str]:
    """Request a training job, and print its id; a service with a project runs it."""
    with existing_bus(arguments.config) as (config, bus):
        jobs = TrainingJobs(bus, owner_name())
        if arguments.cancel is not None:
            yield _cancelled(jobs, arguments.cancel)
            return
        with current_view(config, bus) as view:
            model = newest_model(bus, view)
        request = new_request(
            "manual",
            arguments.priority,
            base_model=model,
            sample_size=arguments.sample_size,
            job_id=str(uuid.uuid4()),
        )
        if problem := jobs.submit(request):
            raise StoreError(problem)
    yield f"queued     {request.id}"
    yield "next: tfgrpo loop status"


def _cancelled(jobs: TrainingJobs, wanted: str) -> str:
    found = [job for job in jobs.listed() if wanted and job.id.startswith(wanted.lower())]
    if len(found) != 1:
        what = "several jobs have" if found else "no job has"
        raise StoreError(f"{what} an id that starts with {wanted!r}; see `tfgrpo loop status`")
    job = found[0]
    if job.ended:
        return f"unchanged  {job.id} is {job.state} already"
    return "ending     it runs, and ends soon" if jobs.cancel(job.id) == "running" else f"cancelled  {job.id}"
