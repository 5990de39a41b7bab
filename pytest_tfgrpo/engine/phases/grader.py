"""The grader: collects the results of checks, marked test function and judge for a rollout."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import BudgetError, CheckError, OutageError
from pytest_tfgrpo.core.records import CheckResult, Rollout
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.settings.permissions import CHECK_SANDBOX
from pytest_tfgrpo.core.settings.runs import TIMEOUT_S
from pytest_tfgrpo.engine.observers import AwaitingChecker
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.runs.judgement import as_error, judged
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, TooSlow
from pytest_tfgrpo.scoring.checks.registry import evaluate

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.context import RunContext

CHECK_THREADS = 8
"""Rollouts whose blocking checks are evaluated at once."""
CHECK_GRACE_S = 1.0
"""What a check may take beyond its own time limit, to end what it started."""


class Grader:
    """Examines the rollouts of one phase; what was found before it is on file, and taken from there."""

    def __init__(self, context: RunContext) -> None:
        """Observers are called with rollouts that wait for a marked test function."""
        self._context = context
        self._job = context.job
        self._places = asyncio.Semaphore(CHECK_THREADS)
        self.excluded: set[str] = set()
        """Ids of groups that a marked test function skipped."""

    async def evaluate(self, scenario: Scenario, rollout: Rollout, workspace: Workspace) -> Rollout:
        """Return the rollout with the results of its checks; an error where a check cannot be made."""
        kinds = self._job.kinds
        context = CheckContext(
            answer=rollout.answer,
            frames=rollout.frames,
            workspace=workspace,
            task=scenario.task(),
            environment=scenario.environment,
            sandbox=CHECK_SANDBOX.of(self._job.settings),
            latency_ms=rollout.latency_ms,
        )
        try:
            try:
                results = evaluate(scenario.checks, context, kinds, at_once=True)
            except TooSlow:
                results = await self._evaluate_aside(scenario.checks, context)
        except CheckError as error:
            return as_error(rollout, "check", str(error))
        return replace(rollout, checks=results)

    async def _evaluate_aside(
        self, checks: tuple[Check, ...], context: CheckContext
    ) -> tuple[CheckResult, ...]:
        """Evaluate checks on a thread that is left to itself when one of them does not end in time.

        Each check has its own ``timeout_s``, else that of a rollout. Raises CheckError.
        """
        limits = (check.params.get("timeout_s") for check in checks)
        usual = TIMEOUT_S.of(self._job.settings)
        limit_s = sum(limit if isinstance(limit, int | float) else usual for limit in limits)
        async with self._places:
            try:
                async with asyncio.timeout(limit_s + CHECK_GRACE_S):
                    return await self._context.check_threads.call(evaluate, checks, context, self._job.kinds)
            except TimeoutError:
                raise CheckError(f"the checks did not end within {limit_s:g} s") from None

    async def judge(self, rollout: Rollout, workspace: Workspace) -> Rollout | None:
        """Return the rollout with the result of its marked test function, once that has run.

        None: it will not run any more; a resumed run runs it.
        """
        checker_result = self._job.resumed.checker_results.get(rollout.rollout_id)
        if checker_result is None:
            await self._context.writer.commit()
            self._context.observe(AwaitingChecker(rollout=rollout, workspace=workspace))
            checker_result = await self._context.tests.checker_results.of(rollout.rollout_id)
            if checker_result is None:
                return None
            scores = tuple(replace(one, why=redact(one.why)) for one in checker_result.scores)
            checker_result = replace(checker_result, reason=redact(checker_result.reason), scores=scores)
            self._context.writer.checker_result(rollout.rollout_id, checker_result)
        if checker_result.outcome == "skip":
            self.excluded.add(rollout.group_id)
        return judged(rollout, checker_result=checker_result)

    async def ask_judge(self, scenario: Scenario, rollout: Rollout) -> Rollout | None:
        """Return the rollout with the judge's result, if its scenario has a rubric.

        None: the budget does not allow the call, or the judge is away; a resumed run makes it.
        """
        judge = self._job.judge
        if judge is None or not scenario.rubric or rollout.status != "ok":
            return rollout
        opinion = self._job.resumed.opinions.get(rollout.rollout_id)
        if opinion is None:
            try:
                opinion = await judge.ask_judge(scenario, rollout, self._context.calls)
            except BudgetError:
                return None
            except OutageError as error:
                self._context.breaker.stop(str(error))
                return None
            self._context.writer.opinion(rollout.rollout_id, opinion)
        return judged(rollout, opinion=opinion, decisive=scenario.truth == "judge")


def unreached(scenario: Scenario, rollout: Rollout) -> tuple[CheckResult, ...]:
    """Return zero credit for every planned check of a rollout that failed before any (decision 9)."""
    code = rollout.failure.code if rollout.failure else "failed"
    reason = f"not reached: {code}"
    if scenario.checker is not None:
        return (CheckResult(kind="test", weight=1.0, credit=0.0, reason=reason),)
    return tuple(
        CheckResult(kind=c.title, weight=c.weight, credit=0.0, reason=reason) for c in scenario.checks
    )
