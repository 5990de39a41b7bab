"""Work of a job whose result becomes a policy version, validated and kept, before the job ends."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.production.training.jobs.versioned.trials import VersionTrials
from pytest_tfgrpo.production.training.jobs.work import JobWork


class KeepVersion(Protocol):
    """Makes a version of what a job made."""

    def __call__(self, outcome: JobOutcome, trials: VersionTrials) -> JobOutcome | None:
        """Return the outcome with the version; None where the job is to end. Raises TfgrpoError, OSError."""
        ...


class VersionedWork:
    """Work, then its version; see `JobWork`."""

    def __init__(self, work: JobWork, trials: VersionTrials, keep: KeepVersion) -> None:
        self._work, self._trials, self._keep_version = work, trials, keep
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tfgrpo-version")
        self._keeping: Future[JobOutcome] | None = None

    def look(self) -> JobOutcome | None:
        """See `JobWork`."""
        if self._keeping is None:
            outcome = self._work.look()
            if outcome is None or outcome.trigger != "finish":
                return outcome
            self._keeping = self._pool.submit(self._keep, outcome)
        if not self._keeping.done():
            return None
        self._pool.shutdown(wait=False)
        return self._keeping.result()

    def parts(self) -> Mapping[str, Json]:
        """See `JobWork`."""
        return self._billed(self._work.parts())

    def interrupt(self) -> None:
        """See `JobWork`."""
        self._trials.stop()
        self._work.interrupt()

    def kill(self) -> None:
        """See `JobWork`."""
        self._trials.stop()
        self._work.kill()
        self._pool.shutdown()

    def leave(self) -> bool:
        """See `JobWork`."""
        left = self._trials.leave()
        return self._work.leave() and left and (self._keeping is None or self._keeping.done())

    def _keep(self, outcome: JobOutcome) -> JobOutcome:
        self._trials.trained_usd = (outcome.parts.get("resource_usage") or {}).get("cost_usd") or 0.0
        kept = self._keep_version(outcome, self._trials)
        if kept is None:
            usage = self._billed(outcome.parts).get("resource_usage")
            return JobOutcome(trigger="cancel", parts={} if usage is None else {"resource_usage": usage})
        return JobOutcome(trigger=kept.trigger, parts=self._billed(kept.parts))

    def _billed(self, parts: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return parts of a status whose bill has what the trials cost."""
        spent, usage = self._trials.spent_usd(), parts.get("resource_usage", {})
        if not spent:
            return parts
        whole = round((usage.get("cost_usd") or 0.0) + spent, 6)
        return {**parts, "resource_usage": {**usage, "cost_usd": whole}}
