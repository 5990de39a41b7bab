"""Headroom: what learning can gain and what the plan can show, before anything is learned."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from support.builders import make_scenario
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not
from support.sweeps import SETTINGS, evenly, make_result

from pytest_tfgrpo.core.lessons import Revision
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.numerics.planning import planned_effect, uneven_effect
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.headroom import (
    Headroom,
    headroom,
    headroom_notice,
    headroom_text,
    look_ahead,
    why_stop,
)
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents, read_to_resume


def scenarios(train: Iterable[str], sweep: int, family: int = 1) -> list[Scenario]:
    """Return train scenarios by id and so many of the eval split, `family` to a family."""
    return [
        *(make_scenario(id_, split="train", stamp=f"{n:064}") for n, id_ in enumerate(train)),
        *(
            make_scenario(f"e{n}", split="eval", stamp=f"{1000 + n:064}", family=f"f{n // family}")
            for n in range(sweep)
        ),
    ]


def found(credited: Any, *, sweep: int = 40, family: int = 1, **settings: Any) -> Headroom:
    known = scenarios(credited, sweep, family)
    groups = make_result(credited, mode="train", scenarios=known).groups
    value = headroom(known, SETTINGS | {"eval_rollouts": 5} | settings, groups)
    assert value is not None
    return value


def test_it_counts_mixed_groups_and_bounds_the_gain_by_what_is_not_solved() -> None:
    value = found(evenly(10, [1, 0]) | evenly(10, [0, 0], "n") | evenly(20, [1, 1], "w"))
    assert (value["groups"], value["informative"]) == (40, 10)
    assert value["mean"] == pytest.approx(0.625)
    assert value["bound"] == pytest.approx(0.375)
    low, high = value["bound_ci95"] or (0, 0)
    assert low < 0.375 < high
    assert (value["pass_at_1"], value["pass_at_k"]) == (pytest.approx(0.625), pytest.approx(0.75))


def test_what_the_plan_shows_is_that_of_coins_where_every_rollout_is_one() -> None:
    value = found({f"s{n}": [1, 0] * 10 for n in range(40)}, group_size=20)
    within = 0.25 * 20 / 19  # unbiased
    assert value["detectable"] == pytest.approx((planned_effect(40, 5) or 0) * (within / 0.25) ** 0.5)


def test_gains_of_whole_families_take_more() -> None:
    alone, pairs = found(evenly(40, [1, 0])), found(evenly(40, [1, 0]), family=2)
    assert alone["detectable"] == pairs["detectable"]
    assert (pairs["families"], alone["families"]) == (20, 40)
    uneven = [value["detectable_uneven"] or 0 for value in (alone, pairs)]
    assert (alone["detectable"] or 0) < uneven[0] < uneven[1]
    eight, sixteen = (found(evenly(40, [1, 0]), sweep=16, family=size) for size in (2, 1))
    assert (eight["families"], sixteen["families"]) == (8, 16)
    assert (eight["detectable_uneven"] or 0) > (sixteen["detectable_uneven"] or 0)


def test_more_than_is_left_cannot_be_uneven_and_is_said_so() -> None:
    value = found(evenly(10, [1, 0]), sweep=8, eval_rollouts=1)
    assert value["detectable"] == value["detectable_uneven"]
    assert "which is more than is left, in 4 of 5 runs" in headroom_text(value)


def test_the_uneven_effect_has_four_of_five_runs_above_its_interval() -> None:
    """Simulated: a share d of 100 families gains 1, whatever else is noise."""
    import numpy as np

    effect = uneven_effect(0.25, 1.0, 100, 5, 100.0) or 0
    rng = np.random.default_rng(3)
    gains = (rng.random((4000, 100)) < effect) + rng.normal(0, (2 * 0.25 / 5) ** 0.5, (4000, 100))
    clear = gains.mean(axis=1) > 1.96 * gains.std(axis=1, ddof=1) / 10
    assert 0.75 < clear.mean() < 0.85


def test_too_few_eval_scenarios_show_nothing_and_stop_nothing_by_the_bound() -> None:
    value = found(evenly(20, [1, 1]) | {"m": [1, 0]}, sweep=7)
    assert value["detectable"] is value["detectable_uneven"] is None
    assert "what the plan can show is unknown" in headroom_text(value)
    assert value["stop"] == ""


def test_no_mixed_group_is_a_reason_to_stop_but_not_among_fewer_than_eight() -> None:
    assert "none of the first 8 training groups had mixed results" in found(evenly(8, [0, 0]))["stop"]
    assert "easier" in found(evenly(8, [0, 0]))["stop"]
    assert "harder" in found(evenly(8, [1, 1]))["stop"]
    assert found(evenly(7, [0, 0]))["stop"] == ""


def test_a_bound_below_what_the_plan_shows_is_a_reason_to_stop() -> None:
    credited = evenly(2, [1, 0]) | evenly(98, [1, 1], "w")
    few, many = found(credited, sweep=10, eval_rollouts=1), found(credited, sweep=400)
    assert "no gain above" in few["stop"]
    assert "10 eval scenarios x 1 rollout show gains from" in few["stop"]
    assert many["stop"] == ""
    low, high = few["bound_ci95"] or (0.0, 0.0)
    assert why_stop(few | {"detectable": high}) == ""  # type: ignore[arg-type]
    assert why_stop(few | {"detectable": high + 1e-9}) != ""  # type: ignore[arg-type]
    assert low < high


def test_what_was_never_solved_stops_nothing() -> None:
    """pass@G - pass@1 is nearly 0 here, and a lesson may yet teach all of it."""
    value = found(evenly(60, [0, 0]) | evenly(2, [1, 0], "m"))
    assert (value["pass_at_k"] or 0) - (value["pass_at_1"] or 0) < 0.02
    assert value["stop"] == ""


def test_errors_are_no_part_of_it() -> None:
    value = found({"a": [None, None], "b": [1, None], "c": [1, 0]})
    assert (value["groups"], value["mean"]) == (2, 0.75)
    known = scenarios(["s0"], 8)
    groups = make_result({"s0": [None, None]}, mode="train", scenarios=known).groups
    assert headroom(known, SETTINGS, groups) is None


def test_the_plan_is_counted_in_rollouts() -> None:
    assert found(evenly(10, [1, 0]), sweep=10, group_size=2, epochs=3)["rollouts_per_claim"] == [90, 140]
    known = scenarios(["s0", "s1"], 8)
    groups = make_result(evenly(2, [1, 0]), mode="train", scenarios=known).groups
    for lacks in ("acceptance", "acceptance_rollouts", "baseline_sweep", "epochs", "sample_size", "seed"):
        old = {key: value for key, value in SETTINGS.items() if key != lacks}
        value = headroom(known, old, groups)
        assert value is not None
        assert value["rollouts_per_claim"] is None
    assert headroom_text(value).endswith("in 4 of 5 runs")


def test_without_a_number_of_its_own_a_sweep_has_as_many_rollouts_as_a_group() -> None:
    assert found(evenly(10, [1, 0]), eval_rollouts=None, group_size=3)["rollouts"] == 3


def unsolved(call: Any) -> str:
    return "4"


def test_a_run_says_it_before_it_learns_and_its_report_keeps_it(tmp_path: Path) -> None:
    run, seen = run_job(make_job(ScriptedActor(three_or_not), tmp_path), tmp_path / "run")
    texts = [record.text for record in seen if isinstance(record, Notice)]
    assert [text for text in texts if text.startswith("headroom: ")] == texts[:1]
    report = build(run, None)
    assert violations("report", report) == []
    assert texts[0] == f"headroom: {headroom_notice(report['headroom'])}"
    assert "headroom  " in "\n".join(terminal(report, verbosity=1))


def test_stopped_by_it_a_run_asks_nothing_more_and_can_go_on(tmp_path: Path) -> None:
    actor, known = ScriptedActor(unsolved), suite(train=8, sweep=3)
    job = make_job(actor, tmp_path, scenarios=known, headroom="stop")
    run, _ = run_job(job, tmp_path / "run")
    assert (run.status, run.reason.split(":")[0]) == ("incomplete", "headroom = stop")
    assert "--tfgrpo-headroom=show" in run.reason
    assert len(actor.calls) == 4 * 8  # nothing of the sweeps
    assert build(run, None)["headroom"]["stop"]
    log = read_to_resume(tmp_path / "run")
    log.reopen()
    shown = replace(job, settings=job.settings | {"headroom": "show"}, resumed=log)
    again, _ = run_job(shown, tmp_path / "run")
    assert again.status == "complete"
    assert sum(call.task.id.startswith("train") for call in actor.calls) == 4 * 8 * 2


def test_a_resumed_run_that_has_learned_is_beyond_it(tmp_path: Path) -> None:
    job = make_job(ScriptedActor(unsolved), tmp_path, scenarios=suite(train=8, sweep=3), headroom="stop")
    phase = next(phase for phase in job.phases if phase.mode == "train")
    groups = make_result(
        {id_: [0, 0] for id_ in phase.scenarios}, mode="train", scenarios=job.scenarios
    ).groups
    text, reason = look_ahead(job, phase, groups)
    assert text.startswith("headroom: 0 of 8 first training groups")
    assert reason.startswith("headroom = stop: none of the first 8")
    learned = JournalContents(revisions={phase.epoch: Revision(epoch=phase.epoch, library=job.library)})
    assert look_ahead(replace(job, resumed=learned), phase, groups) == ("", "")
    shown = replace(job, settings=job.settings | {"headroom": "show"})
    assert look_ahead(shown, phase, groups) == (text, "")


@pytest.mark.parametrize("mode", ["baseline", "train", "eval", "dev"])
def test_a_run_that_trained_in_an_earlier_phase_is_beyond_it(mode: Any, tmp_path: Path) -> None:
    job = make_job(ScriptedActor(unsolved), tmp_path, scenarios=suite(train=8, sweep=3))
    phase = next(phase for phase in job.phases if phase.mode == "train")
    groups = make_result(
        {id_: [0, 0] for id_ in phase.scenarios}, mode="train", scenarios=job.scenarios
    ).groups
    told = look_ahead(job, phase, groups)
    assert told[0].startswith("headroom: 0 of 8")
    earlier = [make_result({"eval-0": [1]}, mode="baseline"), make_result({"train-0": [1]}, mode=mode)]
    assert look_ahead(job, phase, groups, earlier) == (("", "") if mode == "train" else told)
    assert look_ahead(job, replace(phase, mode="evidence"), groups) == ("", "")
    drafted = replace(job, resumed=JournalContents(candidates={phase.epoch: cast("Any", None)}))
    assert look_ahead(drafted, phase, groups) == ("", "")
    other = replace(job, resumed=JournalContents(candidates={phase.epoch + 1: cast("Any", None)}))
    assert look_ahead(other, phase, groups) == told


def test_train_scenarios_of_a_family_are_one_piece_of_evidence_and_eval_ones_are_not_theirs() -> None:
    credited = {f"s{n}": [float(n // 4 % 2)] * 2 for n in range(48)}
    known = scenarios(credited, 8)
    groups = make_result(credited, mode="train", scenarios=known).groups
    together = [replace(s, family=f"t{n // 4}") if s.split == "train" else s for n, s in enumerate(known)]
    ends = []
    for suite_ in (known, together):
        value = headroom(suite_, SETTINGS, groups)
        assert value is not None
        assert (value["scenarios"], value["families"], value["bound"]) == (8, 8, 0.5)
        low, high = value["bound_ci95"] or (0.0, 0.0)
        ends.append(high - low)
    assert ends[1] > 1.5 * ends[0]


def test_a_single_rollout_each_has_no_spread_to_plan_with() -> None:
    value = found({f"s{n}": [float(n % 2)] for n in range(20)}, group_size=4)
    assert (value["detectable"], value["detectable_uneven"], value["pass_at_k"]) == (None, None, None)
    assert "pass@" not in headroom_text(value)
    assert headroom_text(value).endswith("; what the plan can show is unknown")
    assert headroom_notice(value) == "0 of 20 first training groups had mixed results; at most 0.500 to gain"


def test_groups_at_the_middle_ask_for_easier_scenarios() -> None:
    middle = found(evenly(4, [1, 1]) | evenly(4, [0, 0], "n"))
    assert middle["mean"] == 0.5
    assert "take easier train scenarios" in middle["stop"]


def test_what_the_plan_shows_is_said_with_its_size_and_price() -> None:
    known: Any = found(evenly(20, [1, 0]), sweep=8, eval_rollouts=1)
    half = known | {
        "detectable": 0.25,
        "detectable_uneven": 0.375,
        "bound": 0.25,
        "rollouts_per_claim": [8, 16],
    }
    size = (
        "8 eval scenarios x 1 rollout show gains from 0.250 on (0.375 if whole families gain all or nothing)"
    )
    assert headroom_text(half).endswith(f"; {size} in 4 of 5 runs, for 8 to 16 rollouts")
    assert headroom_text(half | {"rollouts_per_claim": [8, 8]}).endswith(" runs, for 8 rollouts")
    assert f"{size}, which is more than is left, in 4 of 5 runs" in headroom_text(half | {"bound": 0.2})
    for lacks in ("detectable", "detectable_uneven"):
        assert headroom_text(half | {lacks: None}).endswith("; what the plan can show is unknown")
    bare = half | {"bound_ci95": None, "pass_at_1": None}
    assert "no gain above 0.250; " in headroom_text(bare)
    assert why_stop(bare) == ""
    assert "; pass@" in headroom_text(half)
