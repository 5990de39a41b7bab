"""Worlds of rollouts that are no results."""

from dataclasses import replace
from pathlib import Path

from support.jobs import ScriptedActor, make_job, run_job, suite

from pytest_tfgrpo.core.scenarios import WorldStep
from pytest_tfgrpo.engine.attempts.first_crashes import ALIKE, SEVERAL
from pytest_tfgrpo.protocols import ActorCall


def test_a_tear_down_that_breaks_after_an_attempt_that_is_no_result_is_a_warning(tmp_path: Path) -> None:
    def crash(call: ActorCall) -> str:
        raise KeyError("MODEL")

    breaks = WorldStep(target="shop.worlds:tear_down")  # there is no such module
    scenarios = [replace(one, teardown=breaks) for one in suite(0, SEVERAL)]
    job = make_job(ScriptedActor(crash), tmp_path, scenarios=scenarios, epochs=0, baseline_sweep="off")
    run, _ = run_job(job)
    assert "rollouts all failed with one message" in run.reason
    told = [text for text in run.warnings if "teardown 'shop.worlds:tear_down' raised" in text]
    assert [text.partition(":")[0][:5] for text in told] == ["run1."] * len(told)
    assert len(told) >= ALIKE
