"""Checkers: what the outcome of a marked test function means for its rollout."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.records import CheckerResult, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.gate import MIN_SCORE
from pytest_tfgrpo.core.texts.text import block
from pytest_tfgrpo.plugin.fixtures.fresh_fixtures import FreshFixtures
from pytest_tfgrpo.plugin.items import markers, score_function
from pytest_tfgrpo.plugin.items.failures import (
    InOtherProcess,
    ItemFailed,
    ItemNotRun,
    MarkedFailed,
    end_unrun,
    fail_marked,
    judge_group,
    note_rollout,
    report_low,
)

if TYPE_CHECKING:
    from pytest_tfgrpo.plugin.progress.run_monitor import RunMonitor

SHOWN = 2000
"""Characters of an actor's own words that a failing item shows."""
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")
FAILED = (AssertionError, pytest.fail.Exception)


class Checkers:
    """Stands around the items of marked test functions; registered with the run."""

    def __init__(
        self,
        config: pytest.Config,
        live: RunMonitor,
        scenarios: Mapping[str, Scenario],
        *,
        excused: frozenset[str],
    ) -> None:
        """`scenarios` are those of marked test functions, by the node id that their items share.

        `excused` are the ids of those that a gate judges in place of their items.
        """
        self._config = config
        self._live = live
        self._scenarios = scenarios
        self._settings = live.launch.settings
        self._excused = excused
        self._judged: dict[str, dict[int, CheckerResult]] = {}
        """Judgements by group id and index."""
        self._worlds = frozenset(s.id for s in scenarios.values() if s.fixtures is not None)
        """Ids of the scenarios whose agents act on fixtures."""
        self._beside = bool(live.agent) or any(s.fixtures is None for s in live.job.scenarios)
        """True where rollouts of other scenarios or agents run beside theirs."""
        for plugin, name in ((self, "tfgrpo-checkers"), (SkipJudged(self), "tfgrpo-unneeded")):
            config.pluginmanager.register(plugin, f"{name}-{live.agent}" if live.agent else name)
        self._fresh = FreshFixtures()
        if self._worlds:
            name = "tfgrpo-fresh-fixtures"
            config.pluginmanager.register(self._fresh, f"{name}-{live.agent}" if live.agent else name)
        if self._worlds and not self._beside:
            from pytest_tfgrpo.plugin.fixtures.leaked_threads import LeakedThreads

            config.pluginmanager.register(LeakedThreads(live.warnings.append), "tfgrpo-leaked-threads")

    def judges(self, item: pytest.Item) -> bool:
        """Return whether an item judges a rollout of this run, and not of another agent beside it."""
        slot = markers.slot_of(item)
        return slot is not None and slot.agent == self._live.agent

    def rollout(self, item: pytest.Item) -> Rollout:
        """Return the rollout that an item judges, waiting for it; ends the item where there is none."""
        rollout = self._wait_for(item)
        if rollout is None:
            self._live.stop_when_broken(item.session)
            scenario, slot = self._scenarios[markers.base_id(item)], markers.slot_of(item)
            if slot is not None and self._live.records.is_shared(slot.epoch, scenario.id):
                pytest.skip("no lesson changed its prompt: the answers of the final sweep count here too")
            unrun = f"{scenario.id} did not run to the end: {self._live.why}"
            if self._live.error is not None:
                pytest.fail(unrun, pytrace=False)
            end_unrun(item, ItemNotRun(unrun))
        return rollout

    def _wait_for(self, item: pytest.Item) -> Rollout | None:
        slot, scenario = markers.slot_of(item), self._scenarios.get(markers.base_id(item))
        if slot is None or scenario is None:
            raise pytest.UsageError(f"{item.nodeid}: the mark `tfgrpo` is missing on the test function")
        self._live.enter(slot.epoch)
        return self._live.rollout(slot.epoch, scenario.id, slot.index)

    def set_up(self, item: pytest.Item, value_of: Callable[[str], Any], *, again: bool = False) -> None:
        """Set up the fixtures that an item's agent needs, and let it run.

        `value_of` returns the value of a fixture. Where its provider was away, as it seemed, it is asked once
        `again` with fresh ones. Raises what fixtures raise.
        """
        scenario, slot = self._scenarios.get(markers.base_id(item)), markers.slot_of(item)
        if scenario is None or slot is None or scenario.fixtures is None:
            return
        from pytest_tfgrpo.plugin.fixtures.fixture_agents import fixture_agent

        own, *others = scenario.fixtures
        for name in others:
            value_of(name)
        live = self._live
        agent = fixture_agent(own, value_of(own), live.post) if own else live.job.actor
        live.supply(slot.epoch, scenario.id, slot.index, agent)
        if not again and live.is_lost(slot.epoch, scenario.id, slot.index):
            self._fresh.renew(item)
            self.set_up(item, value_of, again=True)

    def _end_set_up(self, item: pytest.Item, *, skipped: bool, reason: str) -> None:
        """Say that the fixtures which an item's agent needs could not be set up."""
        scenario, slot = self._scenarios.get(markers.base_id(item)), markers.slot_of(item)
        if scenario is not None and slot is not None and scenario.fixtures is not None:
            from pytest_tfgrpo.plugin.fixtures.fixture_agents import broken_fixtures, skipped_fixtures

            agent = skipped_fixtures() if skipped else broken_fixtures(reason)
            self._live.supply(slot.epoch, scenario.id, slot.index, agent)

    def workspace(self, rollout: Rollout) -> Path:
        """Return the workspace of the rollout that an item judges."""
        return self._live.records.workspace(rollout)

    def decided(self, rollout: Rollout) -> CheckerResult | None:
        """Return the checker_result of a rollout that no test function needs to look at, else None."""
        if rollout.status != "ok":
            failure = rollout.failure
            reason = f"no answer to check: {block(failure.message, SHOWN) if failure else rollout.status}"
            return CheckerResult(outcome="error" if rollout.status == "error" else "score", reason=reason)
        if rollout.scenario_id in self._worlds:  # who runs an item again has fixtures that no agent has seen
            judged = self._judged.get(rollout.group_id, {}).get(rollout.index)
            if judged is not None:
                return judged
        return self._live.job.resumed.checker_results.get(rollout.rollout_id)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let what fixtures assert read the same with and without ``-v``, and change nothing that all share.

        Where all scenarios have fixtures, rollouts come one after the other, and share nothing.
        """
        scenario = self._scenarios.get(markers.base_id(item)) if self.judges(item) else None
        if scenario is None or scenario.fixtures is None:
            return (yield from self._at_one_verbosity(item))
        names: list[str] = getattr(item, "fixturenames", [])
        if markers.ROLLOUT[0] not in names:  # it runs the agent, also where no argument says so
            names.append(markers.ROLLOUT[0])
        if not self._beside:
            return (yield from self._at_one_verbosity(item))
        from pytest_tfgrpo.plugin.fixtures.shared_place import unchanged

        with unchanged(scenario.id):
            return (yield from self._at_one_verbosity(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let what the test function asserts read the same with and without ``-v``."""
        return (yield from self._at_one_verbosity(item))

    def _at_one_verbosity(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run the rest of a hook as if without ``-v`` where a teacher reads what comes of it.

        pytest cuts the values in its texts by that flag, and the prompts of a replay must be those recorded.
        """
        option = self._config.option
        before = getattr(option, "verbose", 0)  # without pytest's terminal there is no such option
        if not before or not self._settings.learning or not self.judges(item):
            return (yield)
        option.verbose = 0
        try:
            return (yield)
        finally:
            option.verbose = before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Turn what the test function does into a checker_result, and into the item's outcome."""
        if not self.judges(pyfuncitem):
            return (yield)
        rollout = self.rollout(pyfuncitem)
        declared = score_function.begin()
        error: Exception | None = None
        try:
            yield
            checker_result = CheckerResult(outcome="score", score=1.0)
        except FAILED as failed:
            error = failed  # type: ignore[assignment]
            checker_result = CheckerResult(outcome="score", score=0.0, reason=_first_line(failed))
        except pytest.exit.Exception:  # somebody ends pytest; that says nothing about the rollout
            raise
        except pytest.skip.Exception as skipped:
            self._judge(rollout, CheckerResult(outcome="skip", reason=str(skipped)))
            raise
        except Exception as broken:  # noqa: BLE001 - a broken checker is an error of the rollout
            error = broken
            reason = f"the test function raised {type(broken).__name__}: {_first_line(broken)}"
            checker_result = CheckerResult(outcome="error", reason=reason)
        finally:
            score_function.end()
        if declared.score is not None and checker_result.outcome == "score":
            checker_result = CheckerResult(outcome="score", score=declared.score, reason=declared.reason)
        if declared.named:  # an error or a skip has no place for them
            checker_result = replace(checker_result, scores=tuple(declared.named.values()))
        checker_result = self._judge(rollout, checker_result)
        note_rollout(pyfuncitem, rollout, checker_result)
        self._settle(pyfuncitem, rollout, checker_result, error)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Take a fixture that breaks as an error, and one that skips as an exclusion."""
        report = yield
        if call.when != "setup" or call.excinfo is None or not self.judges(item):
            return report
        if isinstance(call.excinfo.value, (KeyboardInterrupt, pytest.exit.Exception, InOtherProcess)):
            return report
        skipped = report.skipped
        reason = f"a fixture {'skipped' if skipped else 'failed'}: {_first_line(call.excinfo.value)}"
        self._end_set_up(item, skipped=skipped, reason=reason)
        rollout = self._wait_for(item)
        if rollout is None:
            return report
        self._judge(rollout, CheckerResult(outcome="skip" if skipped else "error", reason=reason))
        judged = self._judged[rollout.group_id].values()
        whole_group_broke = len(judged) == self._size(item) and all(j.outcome == "error" for j in judged)
        if self._settings.learning and report.failed and not whole_group_broke:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, reason)
        return report

    def _judge(self, rollout: Rollout, checker_result: CheckerResult) -> CheckerResult:
        checker_result = self.decided(rollout) or checker_result
        self._live.judge(rollout, checker_result)
        self._judged.setdefault(rollout.group_id, {})[rollout.index] = checker_result
        return checker_result

    def _settle(
        self, item: pytest.Item, rollout: Rollout, checker_result: CheckerResult, error: Exception | None
    ) -> None:
        """Raise what makes the item fail: in plain mode its own score, in learning mode that of its group.

        What a gate's reference scores in plain mode fails nothing.
        """
        scenario = self._scenarios[markers.base_id(item)]
        if self._settings.learning:
            judged = self._judged[rollout.group_id]
            if len(judged) == self._size(item) and all(j.outcome != "skip" for j in judged.values()):
                group = self._live.group(rollout.epoch, scenario.id)
                try:
                    judge_group(self._config, scenario, group, item.nodeid, why=self._live.why)
                except ItemNotRun as unrun:
                    end_unrun(item, unrun)
                except ItemFailed as shortfall:
                    raise MarkedFailed(str(shortfall), shortfall.reason) from None
            return
        if rollout.mode != "eval":
            return
        least = MIN_SCORE.of(self._settings) if scenario.min_score is None else scenario.min_score
        if checker_result.outcome == "score" and checker_result.score >= least:
            return
        if checker_result.outcome == "score" and scenario.id in self._excused:
            report_low(checker_result.score, least)
        why = f"score {checker_result.score:g} is below {least:g}: {checker_result.reason}"
        fail_marked(item, scenario, rollout, why, error)

    def _size(self, item: pytest.Item) -> int:
        slot = markers.slot_of(item)
        return self._live.records.phases[slot.epoch].rollouts if slot is not None else 0


class SkipJudged:
    """Keeps a test function from running where its rollout is decided already."""

    def __init__(self, checkers: Checkers) -> None:
        """`checkers` knows what is decided."""
        self._checkers = checkers

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """End the call without the function when there is nothing to look at."""
        if not self._checkers.judges(pyfuncitem):
            return None
        checker_result = self._checkers.decided(self._checkers.rollout(pyfuncitem))
        if checker_result is None:
            return None
        if checker_result.outcome == "score" and checker_result.score >= 1.0:
            return True
        if checker_result.outcome == "skip":
            pytest.skip(checker_result.reason)
        raise pytest.fail.Exception(checker_result.reason, pytrace=False)


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's text, without addresses, which each process has anew."""
    return ADDRESS.sub("", (str(error).strip().splitlines() or [type(error).__name__])[0][:300])
