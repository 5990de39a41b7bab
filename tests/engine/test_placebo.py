"""A placebo sweep beside the control and the final sweep: who is asked what, resumed and read again."""

from collections import Counter
from pathlib import Path
from typing import Any

from support.engine.placebo import Heeds, job, side_of, two_learning
from support.jobs import ScriptedActor, run_job

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_to_resume


def value(run: Run) -> Any:
    return build(run, judge(run, baseline=None, settings=run.settings))


def test_all_three_sides_are_asked_together_in_random_order_with_one_seed(tmp_path: Path) -> None:
    actor = ScriptedActor(Heeds())
    run, _ = run_job(job(tmp_path, actor))
    assert run.status == "complete"
    last = actor.calls[-4 * 4 * 6 :]
    scenarios = [last[n : n + 16] for n in range(0, len(last), 16)]
    together = [calls[n : n + 3] for calls in scenarios for n in (0, 3, 6, 9)]
    alone = [call for calls in scenarios for call in calls[12:]]
    assert {side_of(call) for call in alone} == {"placebo"}, "it has twice the rollouts"
    assert len({(call.task.id, call.seed) for call in (*alone, *(calls[0] for calls in together))}) == 8 * 6
    assert all(len({(call.task.id, call.seed) for call in calls}) == 1 for calls in together)
    assert all({side_of(call) for call in calls} == {"baseline", "placebo", "eval"} for calls in together)
    assert len({tuple(map(side_of, calls)) for calls in together}) == 6
    again = ScriptedActor(Heeds())
    run_job(job(tmp_path / "b", again))
    assert [str(call.prompt) for call in again.calls] == [str(call.prompt) for call in actor.calls]


def test_a_prompt_has_as_many_lessons_as_with_its_own(tmp_path: Path) -> None:
    run, _ = run_job(job(tmp_path, Heeds()))
    sweeps = Sweeps(run)
    assert sweeps.placebo is not None
    assert sweeps.after is not None
    carried = [{group.scenario_id: group.rollouts[0].experiences for group in s.groups}
               for s in (sweeps.placebo, sweeps.after)]  # fmt: skip
    assert carried[0].keys() == carried[1].keys()
    for id_, placebo in carried[0].items():
        assert len(placebo) == len(carried[1][id_]) > 0
        assert set(placebo).isdisjoint(carried[1][id_])
    hashes = {s.library_hash for s in (sweeps.before, sweeps.placebo, sweeps.after) if s is not None}
    assert len(hashes) == 3


def test_in_one_domain_without_families_it_is_not_possible_and_costs_nothing(tmp_path: Path) -> None:
    known = [s for s in two_learning(8, 40) if s.domain == "text"]
    actor = ScriptedActor(Heeds())
    run, _ = run_job(job(tmp_path, actor, scenarios=known))
    assert Counter(map(side_of, actor.calls))["placebo"] == 0
    found = value(run)
    assert (found["placebo"]["possible"], found["placebo"]["impossible"]) == (0, 20)
    assert (found["gain"]["claim"]["side"], found["gain"]["claim"]["over_nothing"]) == (None, "better")
    assert found["placebo"]["over"]["n"] == 0
    (rule,) = [one for one in found["gate"]["results"] if one["name"] == "placebo"]
    assert rule["outcome"] == "inconclusive"
    assert rule["message"].startswith("placebo not possible")


def test_a_run_cut_short_and_resumed_and_one_read_again_report_the_same(tmp_path: Path) -> None:
    folder, few = tmp_path / "run1", two_learning(4, 4)
    whole = value(run_job(job(tmp_path, Heeds(), scenarios=few), folder)[0])
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    (folder / JOURNAL).write_bytes(b"".join(lines[: 3 * len(lines) // 4]))
    actor = ScriptedActor(Heeds())
    resumed, _ = run_job(job(tmp_path, actor, scenarios=few, job_resumed=read_to_resume(folder)), folder)
    assert 0 < len(actor.calls) < 3 * 4 * 4
    for run in (resumed, load_run(folder)):
        again = value(run)
        assert run.status == "complete"
        assert [again[key] for key in ("placebo", "gain", "domains", "gate")] == [
            whole[key] for key in ("placebo", "gain", "domains", "gate")
        ]


def test_without_the_setting_there_is_none(tmp_path: Path) -> None:
    actor = ScriptedActor(Heeds())
    run, _ = run_job(job(tmp_path, actor, placebo_sweep=False))
    assert Counter(map(side_of, actor.calls))["placebo"] == 0
    found = value(run)
    assert "placebo" not in found
    assert "placebo" not in {one["name"] for one in found["gate"]["results"]}
