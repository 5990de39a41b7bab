"""What the paths of training answer: jobs requested, looked at and cancelled, and what they made."""

from __future__ import annotations

from uuid import UUID

from pytest_tfgrpo.core.events import EventRefusal
from pytest_tfgrpo.core.wire.fitting import ValueScrubber
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.service.answers import HttpAnswer, json_answer
from pytest_tfgrpo.production.service.bodies import RefusedRequest
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob, TrainingJobs, queue_depth
from pytest_tfgrpo.production.training.jobs.request import DUPLICATE, read_request

MOST_QUEUED = 100
"""Jobs that wait; beyond that a client is to come again."""
_AGAIN_S = 60


class TrainingApi:
    """Answers requests in the threads of the service. Methods raise BusError and RefusedRequest."""

    def __init__(self, jobs: TrainingJobs, scrubber: ValueScrubber) -> None:
        self._jobs, self._scrubber = jobs, scrubber

    def start(self, body: bytes) -> HttpAnswer:
        """Queue the job that a body requests."""
        try:
            value = load_json(body)
        except ValueError as error:
            raise RefusedRequest(400, f"the body is no JSON: {error}") from None
        request = read_request(value, self._scrubber)
        if isinstance(request, EventRefusal):
            refusal = {"error": request.message, "code": str(request.fault), "pointer": request.pointer}
            return json_answer(422, refusal)
        if queue_depth(self._jobs.listed()) >= MOST_QUEUED:
            headers = {"Retry-After": str(_AGAIN_S)}
            raise RefusedRequest(429, f"{MOST_QUEUED} jobs wait already; ask again later", headers)
        if problem := self._jobs.submit(request):
            return json_answer(409, {"error": problem, "code": DUPLICATE})
        return json_answer(202, {"training_job_id": request.id, "status": "queued"})

    def queue(self) -> HttpAnswer:
        """Return how many jobs wait, and which one runs."""
        jobs = self._jobs.listed()
        running = next((job.id for job in jobs if job.state == "running"), None)
        return json_answer(200, {"depth": queue_depth(jobs), "running": running})

    def status(self, job_id: str) -> HttpAnswer:
        """Return the newest status of a job."""
        return json_answer(200, dict(self._known(job_id).status))

    def cancel(self, job_id: str) -> HttpAnswer:
        """Cancel a job, at once where it waits; one that runs ends soon."""
        job = self._known(job_id)
        if job.ended:
            return json_answer(409, {"error": f"the job is {job.state} already", "code": "ended"})
        return json_answer(202, {"training_job_id": job.id, "status": self._jobs.cancel(job.id)})

    def models(self) -> HttpAnswer:
        """Return what the jobs that completed made, the newest first."""
        done = [job for job in self._jobs.listed() if job.state == "completed"]
        newest = sorted(done, key=lambda job: str(job.status["timestamp"]), reverse=True)
        return json_answer(200, {"models": [_model(job) for job in newest]})

    def _known(self, job_id: str) -> TrainingJob:
        try:
            found = self._jobs.find(str(UUID(job_id)))
        except ValueError:
            found = None
        if found is None:
            raise RefusedRequest(404, "there is no such job; POST /training/start asks for one")
        return found


def _model(job: TrainingJob) -> Json:
    status = job.status
    results = status.get("evaluation_results", {})
    version = status.get("metadata", {}).get("policy_version")
    shown = ("holdout_reward", "improvement_over_baseline")
    return {
        "training_job_id": job.id,
        "base_model": job.request.payload["training_config"]["base_model"],
        "algorithm": job.request.algorithm,
        "final_checkpoint": status["artifacts"]["final_checkpoint"],
        "timestamp": status["timestamp"],
        **({"version": version} if version else {}),
        **{name: results[name] for name in shown if name in results},
    }
