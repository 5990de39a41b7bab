"""What ``tfgrpo learn work --rollouts`` does with a proven job, and says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_tfgrpo.cli.learn.open_learning import OpenLearning
from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.optimise.better_fix import propose
from pytest_tfgrpo.patterns.optimise.fix_size import read_fix
from pytest_tfgrpo.patterns.optimise.rollouts import FixGroup, FixRollouts, ranked, write_rollouts
from pytest_tfgrpo.sandbox.archives import ArchiveProblem


def optimise(learning: OpenLearning, group: FixGroup, job: JobManifest) -> Iterator[str]:
    """Have the agent try a job that was proven just now, and yield what came of it.

    Whatever goes wrong, the job stays proven. One that an agent made so is not tried again.
    """
    if job.captured.improves:
        return
    try:
        found = _optimise(learning, group, job)
    except (TfgrpoError, ArchiveProblem, OSError) as error:
        yield f"no better fix was looked for: {line(str(error), 300)}"
        return
    yield from learning.settle()
    yield rollouts_line(found)


def _optimise(learning: OpenLearning, group: FixGroup, job: JobManifest) -> FixRollouts:
    folder = learning.queue.folder_of(job.job_id)
    fix = read_fix(folder, job.scenario)
    run = group.run(folder, job.scenario)
    tried, source = ranked(run, fix)
    found = FixRollouts(
        agent=group.agent,
        run_id=run.run_id,
        status=run.status,
        reason="; ".join(filter(None, (phase.reason for phase in run.phases))),
        approved_lines=fix.lines,
        rollouts=tuple(tried),
    )
    write_rollouts(folder, found)
    if source is None:
        return found
    made = propose(
        job, folder, source, fix=fix, agent=group.agent, environ=group.environ, queue=learning.queue
    )
    if made is not None:
        waits = made.status is LearningStatus.QUEUED
        found = replace(found, job=made.job_id if waits else "", refused=made.reason)
        write_rollouts(folder, found)
    return found


def rollouts_line(found: FixRollouts) -> str:
    """Return what a group came to."""
    sizes = [one.lines for one in found.rollouts if one.lines is not None]
    said = f"{len(sizes)} of {plural(len(found.rollouts), 'rollout')} of {line(found.agent, 100)} passed"
    if found.status != "complete":
        said += f" (the run is {found.status}: {line(found.reason, 200)})"
    if sizes:
        said += (
            f"; the smallest changes {plural(min(sizes), 'line')}, the approved fix {found.approved_lines}"
        )
    if found.refused:
        said += f"; it became no job: {line(found.refused, 300)}"
    if found.job:
        said += f"; job {found.job[:8]} waits for `tfgrpo learn approve`"
    return said
