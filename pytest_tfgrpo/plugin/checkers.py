"""Checkers: what pytest's verdict on a marked test function means for its rollout (design 5)."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from pytest_tfgrpo.core.records import Judgement, Rollout, Scenario
from pytest_tfgrpo.core.text import block
from pytest_tfgrpo.plugin import markers, score
from pytest_tfgrpo.plugin.failures import Shortfall, judge_group, note_rollout
from pytest_tfgrpo.plugin.run_monitor import LiveRun

SHOWN = 2000
"""Characters of an actor's own words that a failing item shows."""
FAILED = (AssertionError, pytest.fail.Exception)


class Checkers:
    """Stands around the items of marked test functions; registered with the run."""

    def __init__(
        self, config: pytest.Config, live: LiveRun, scenarios: Mapping[str, Scenario], *, learning: bool
    ) -> None:
        """`scenarios` are those of marked test functions, by the node id that their items share."""
        self._config = config
        self._live = live
        self._scenarios = scenarios
        self._learning = learning
        self._judged: dict[str, dict[int, Judgement]] = {}
        """Judgements by group id and index."""
        config.pluginmanager.register(Unneeded(self), "tfgrpo-unneeded")

    def rollout(self, item: pytest.Item) -> Rollout:
        """Return the rollout that an item judges, waiting for it; raises Shortfall when there is none."""
        slot, scenario = markers.slot_of(item), self._scenarios.get(markers.base_id(item))
        if slot is None or scenario is None:
            raise pytest.UsageError(f"{item.nodeid}: the mark `tfgrpo` is missing on the test function")
        self._live.enter(slot.epoch)
        rollout = self._live.rollout(slot.epoch, scenario.id, slot.index)
        if rollout is None:
            self._live.stop_when_broken(item.session)
            raise Shortfall(f"{scenario.id} was not run to its end: {self._live.why}")
        return rollout

    def workspace(self, item: pytest.Item) -> Path:
        """Return the workspace of the rollout that an item judges."""
        return self._live.workspace(self.rollout(item))

    def decided(self, rollout: Rollout) -> Judgement | None:
        """Return the judgement of a rollout that no test function needs to look at, else None."""
        if rollout.status != "ok":
            failure = rollout.failure
            reason = f"no answer to check: {block(failure.message, SHOWN) if failure else rollout.status}"
            return Judgement(outcome="error" if rollout.status == "error" else "score", reason=reason)
        return self._live.job.recorded.judgements.get(rollout.rollout_id)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Turn what the test function does into a judgement, and into the item's outcome."""
        if markers.slot_of(pyfuncitem) is None:
            return (yield)
        rollout = self.rollout(pyfuncitem)
        declared = score.begin()
        error: Exception | None = None
        try:
            yield
            judgement = Judgement(outcome="score", score=1.0)
        except FAILED as failed:
            error = failed  # type: ignore[assignment]
            judgement = Judgement(outcome="score", score=0.0, reason=_first_line(failed))
        except pytest.skip.Exception as skipped:
            self._judge(rollout, Judgement(outcome="skip", reason=str(skipped)))
            raise
        except Exception as broken:  # noqa: BLE001 - a broken checker is an error of the rollout
            error = broken
            reason = f"the test function broke: {type(broken).__name__}: {_first_line(broken)}"
            judgement = Judgement(outcome="error", reason=reason)
        finally:
            score.end()
        if declared.score is not None and judgement.outcome == "score":
            judgement = Judgement(outcome="score", score=declared.score, reason=declared.reason)
        judgement = self._judge(rollout, judgement)
        note_rollout(pyfuncitem, rollout, judgement)
        self._settle(pyfuncitem, rollout, judgement, error)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Take a fixture that breaks as an error, and one that skips as an exclusion."""
        report = yield
        if call.when != "setup" or call.excinfo is None or markers.slot_of(item) is None:
            return report
        if isinstance(call.excinfo.value, Shortfall):
            return report
        skipped = report.skipped
        reason = f"a fixture {'skipped' if skipped else 'broke'}: {_first_line(call.excinfo.value)}"
        self._judge(self.rollout(item), Judgement(outcome="skip" if skipped else "error", reason=reason))
        judged = self._judged[self.rollout(item).group_id].values()
        whole_group_broke = len(judged) == self._size(item) and all(j.outcome == "error" for j in judged)
        if self._learning and report.failed and not whole_group_broke:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, reason)
        return report

    def _judge(self, rollout: Rollout, judgement: Judgement) -> Judgement:
        judgement = self.decided(rollout) or judgement
        self._live.judge(rollout, judgement)
        self._judged.setdefault(rollout.group_id, {})[rollout.index] = judgement
        return judgement

    def _settle(
        self, item: pytest.Item, rollout: Rollout, judgement: Judgement, error: Exception | None
    ) -> None:
        """Raise what makes the item fail: in plain mode its own score, in learning mode that of its group."""
        scenario = self._scenarios[markers.base_id(item)]
        if self._learning:
            judged = self._judged[rollout.group_id]
            if len(judged) == self._size(item) and all(j.outcome != "skip" for j in judged.values()):
                group = self._live.group(rollout.epoch, scenario.id)
                try:
                    judge_group(self._config, scenario, group, item.nodeid, strict=False, why=self._live.why)
                except Shortfall as shortfall:
                    pytest.fail(str(shortfall), pytrace=False)
            return
        least = 1.0 if scenario.min_score is None else scenario.min_score
        if judgement.outcome == "score" and judgement.score >= least:
            return
        if error is not None:
            raise error
        pytest.fail(f"score {judgement.score:g} is below {least:g}: {judgement.reason}", pytrace=False)

    def _size(self, item: pytest.Item) -> int:
        slot = markers.slot_of(item)
        return self._live.group_size(slot.epoch) if slot is not None else 0


class Unneeded:
    """Keeps a test function from running where its rollout is decided already."""

    def __init__(self, checkers: Checkers) -> None:
        """`checkers` knows what is decided."""
        self._checkers = checkers

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """End the call without the function when there is nothing to look at."""
        if markers.slot_of(pyfuncitem) is None:
            return None
        judgement = self._checkers.decided(self._checkers.rollout(pyfuncitem))
        if judgement is None:
            return None
        if judgement.outcome == "score" and judgement.score >= 1.0:
            return True
        raise pytest.fail.Exception(judgement.reason, pytrace=False)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
