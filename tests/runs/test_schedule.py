from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_rollout, make_scenario

from pytest_tfgrpo.core.records import CheckerResult, Failure, JudgeResult, Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.runs.judgement import judged
from pytest_tfgrpo.runs.schedule import (
    MIN_DEV,
    dev_phase,
    group_id,
    most_rollouts,
    outline,
    plan,
    require_dev,
    rollout_id,
    steps_of,
)
from pytest_tfgrpo.runs.seeds import control_first, draw, rollout_seed

DEFAULTS: dict[str, Any] = {name: setting.default for name, setting in BY_NAME.items()}


def scenarios(train: int = 3, sweep: int = 2) -> list[Scenario]:
    made = [make_scenario(f"t{i}", stamp=f"{i:064}") for i in range(train)]
    return made + [make_scenario(f"e{i}", split="eval", stamp=f"{100 + i:064}") for i in range(sweep)]


def labels(**changes: Any) -> list[str]:
    phases = outline(DEFAULTS | changes, learning=True, sweep_rollouts=2)
    return [phase.label for phase in plan(phases, scenarios(), DEFAULTS | changes)]


def test_the_last_epoch_evaluates_and_the_baseline_sweep_runs_beside_it() -> None:
    assert labels() == ["epoch1", "epoch2", "baseline", "epoch3-eval"]
    steps = steps_of(outline(DEFAULTS, learning=True, sweep_rollouts=2))
    assert [[phase.label for phase in step] for step in steps] == [
        ["epoch1"], ["epoch2"], ["baseline", "epoch3-eval"],
    ]  # fmt: skip


def test_an_epoch_of_attempts_made_elsewhere_drops_no_lesson() -> None:
    first, second, *_ = outline(DEFAULTS | {"evidence": "attempts.jsonl"}, learning=True, sweep_rollouts=2)
    assert (first.mode, first.lesson_dropout) == ("evidence", 0.0)
    assert (second.mode, second.lesson_dropout) == ("train", DEFAULTS["lesson_dropout"])
    settings = DEFAULTS | {"evidence": "attempts.jsonl"}
    given = outline(settings, learning=True, sweep_rollouts=2)
    assert [(one.mode, one.scenarios) for one in plan(given, [], settings)] == [("evidence", ())]


@pytest.mark.parametrize("broken", ["checker", "judge"])
def test_a_secret_in_why_there_is_no_score_is_taken_out(broken: str) -> None:
    reason, made = "401 for password=hunter2hunter2", make_rollout()
    if broken == "checker":
        found = judged(made, checker_result=CheckerResult(outcome="error", reason=reason))
    else:
        opinion = JudgeResult(score=None, asked=1, reason=reason)
        found = judged(made, opinion=opinion, decisive=True)
    assert found.failure == Failure(code=broken, message="401 for password=[redacted:named]")


@pytest.mark.parametrize(("choice", "sides"), [("concurrent", 3), ("early", 2), ("both", 3)])
def test_a_placebo_runs_beside_the_final_sweep_and_the_control(choice: str, sides: int) -> None:
    settings = DEFAULTS | {"placebo_sweep": True, "baseline_sweep": choice}
    last = steps_of(outline(settings, learning=True, sweep_rollouts=8))[-1]
    assert [phase.mode for phase in last] == ["baseline", "placebo", "eval"][-sides:]
    placebo = last[-2]
    assert (placebo.label, placebo.rollouts, placebo.concurrent) == ("placebo", 16, True)
    assert (placebo.seed_phase, placebo.temperature) == (last[-1].seed_phase, last[-1].temperature)
    plain = outline(settings, learning=False, sweep_rollouts=8)
    assert [phase.mode for phase in plain] == ["eval"]


def test_an_early_baseline_sweep_comes_first_and_alone() -> None:
    assert labels(baseline_sweep="early") == ["baseline", "epoch1", "epoch2", "epoch3-eval"]
    phases = outline(DEFAULTS | {"baseline_sweep": "early"}, learning=True, sweep_rollouts=2)
    assert [len(step) for step in steps_of(phases)] == [1, 1, 1, 1]


@pytest.mark.parametrize(("rollouts", "early"), [(4, 1), (5, 1), (8, 2), (12, 3)])
def test_of_both_controls_a_quarter_is_early_out_of_the_same_total(rollouts: int, early: int) -> None:
    phases = outline(DEFAULTS | {"baseline_sweep": "both"}, learning=True, sweep_rollouts=rollouts)
    assert [(p.label, p.rollouts, p.concurrent) for p in phases if p.mode != "train"] == [
        ("early", early, False),
        ("baseline", rollouts - early, True),
        ("epoch3-eval", rollouts, False),
    ]
    assert len({p.epoch for p in phases}) == len(phases)


def test_which_side_of_a_pair_starts_is_a_fair_coin_that_the_seed_fixes() -> None:
    known = [make_scenario(f"e{i}", stamp=f"{i:064}") for i in range(200)]
    coins = [control_first(7, scenario, index) for scenario in known for index in range(5)]
    assert coins == [control_first(7, scenario, index) for scenario in known for index in range(5)]
    assert 430 < sum(coins) < 570
    assert coins != [control_first(8, scenario, index) for scenario in known for index in range(5)]


def test_separate_evaluation_trains_in_every_epoch_and_sweeps_afterwards() -> None:
    assert labels(eval_mode="separate") == ["epoch1", "epoch2", "epoch3", "baseline", "epoch4-eval"]


def test_the_baseline_sweep_can_be_saved() -> None:
    assert labels(baseline_sweep="off") == ["epoch1", "epoch2", "epoch3-eval"]


def test_a_phase_without_scenarios_is_left_out() -> None:
    phases = outline(DEFAULTS, learning=True, sweep_rollouts=2)
    assert [p.label for p in plan(phases, scenarios(sweep=0), DEFAULTS)] == ["epoch1", "epoch2"]


def test_temperatures_follow_the_mode() -> None:
    phases = outline(DEFAULTS, learning=True, sweep_rollouts=2)
    assert [(p.mode, p.temperature) for p in phases] == [
        ("train", 0.7),
        ("train", 0.7),
        ("baseline", 0.3),
        ("eval", 0.3),
    ]


def test_plain_mode_is_one_sweep_over_the_eval_split() -> None:
    (phase,) = plan(outline(DEFAULTS, learning=False, sweep_rollouts=1), scenarios(), DEFAULTS)
    assert (phase.mode, phase.rollouts, phase.scenarios) == ("eval", 1, ("e0", "e1"))


@given(size=st.integers(1, 12), seed=st.integers(0, 99), epoch=st.integers(1, 9), data=st.data())
def test_a_draw_is_without_replacement_and_ignores_the_order_of_collection(
    size: int, seed: int, epoch: int, data: st.DataObject
) -> None:
    known = scenarios(train=8, sweep=0)
    drawn = draw(known, size=size, seed=seed, epoch=epoch)
    assert len(drawn) == len(set(drawn)) == min(size, 8)
    shuffled = data.draw(st.permutations(known))
    assert set(draw(shuffled, size=size, seed=seed, epoch=epoch)) == set(drawn)


@given(size=st.integers(1, 40), seed=st.integers(0, 99), stamps=st.lists(st.integers(0, 20), max_size=30))
def test_a_draw_from_a_stream_takes_the_first_of_the_whole_ranking(
    size: int, seed: int, stamps: list[int]
) -> None:
    known = [make_scenario(f"t{i}", stamp=f"{stamp:064}") for i, stamp in enumerate(stamps)]  # some are equal
    ranked = sorted(known, key=lambda s: (seed_of(seed, "draw", 1, s.stamp), s.id))
    first = {s.id for s in ranked[:size]}
    assert draw(iter(known), size=size, seed=seed, epoch=1) == tuple(s.id for s in known if s.id in first)


def test_epochs_draw_differently() -> None:
    known = scenarios(train=50, sweep=0)
    settings = DEFAULTS | {"sample_size": 10, "seed": 3, "group_size": 6, "lesson_dropout": 0.4}
    first, second = plan(outline(settings, learning=True, sweep_rollouts=2), known, settings)
    for one in (first, second):
        assert one.scenarios == draw(known, size=10, seed=3, epoch=one.epoch)
        assert (one.rollouts, one.lesson_dropout) == (6, 0.4)
    assert first.scenarios != second.scenarios
    assert draw(known, size=10, seed=0, epoch=1) != draw(known, size=10, seed=0, epoch=2)


def phase(epoch: int, mode: Any) -> Phase:
    return Phase(epoch=epoch, mode=mode, temperature=0.3, rollouts=2, scenarios=())


def test_ids_tell_run_epoch_sweep_scenario_and_place() -> None:
    swept = replace(phase(2, "dev"), dev_sweep=1)
    assert (group_id("r", swept, "a"), rollout_id("r", swept, "a", 3)) == ("r.e2d1.a", "r.e2d1.a.r3")
    assert rollout_id("r", phase(0, "baseline"), "a", 0) == "r.e0.a.r0"


def test_sweeps_share_seeds_so_that_they_pair_and_training_epochs_do_not() -> None:
    scenario = make_scenario()
    baseline, final = (rollout_seed(7, scenario, phase(e, m), 0) for e, m in ((0, "baseline"), (3, "eval")))
    first, second = (rollout_seed(7, scenario, phase(e, "train"), 0) for e in (1, 2))
    assert baseline == final
    assert len({baseline, first, second}) == 3


@pytest.mark.parametrize("change", [{"stamp": "1" * 64}, {}])
def test_a_seed_depends_on_the_task_not_on_its_name_or_split(change: dict[str, Any]) -> None:
    one = rollout_seed(7, make_scenario("a"), phase(1, "train"), 0)
    other = rollout_seed(7, make_scenario("b", split="eval", tags=("x",), **change), phase(1, "train"), 0)
    assert (one == other) is (not change)


def test_only_dev_scenarios_decide_on_what_an_epoch_learned() -> None:
    known = [make_scenario(name, split=split) for name, split in (("d", "dev"), ("t", "train"))]
    phase = Phase(epoch=1, mode="train", temperature=0.0, rollouts=1, scenarios=("t",), dev=("d",))
    require_dev(known, phase)
    with pytest.raises(ValueError, match="scenario 't' of split 'train' must not decide on a library"):
        require_dev(known, replace(phase, dev=("d", "t")))


@pytest.mark.parametrize(
    ("count", "most", "sweep", "asked", "each"),
    [
        (0, 100, 5, 0, 0),
        (3, 100, 5, 3, 10),
        (3, 30, 5, 3, 10),
        (3, 29, 5, 3, 9),
        (3, 100, None, 3, 2),
        (3, 6, 5, 3, 2),
        (3, 5, 5, 2, 2),
        (3, 4, 5, 2, 2),
        (3, 2, 5, 1, 2),
        (3, 1, 5, 0, 0),
    ],
)
def test_the_dev_sweep_asks_the_first_scenarios_twice_as_often_within_its_limit(
    count: int, most: int, sweep: int | None, asked: int, each: int
) -> None:
    ids = tuple(f"d{n}" for n in range(count))
    trained = replace(phase(2, "train"), temperature=0.7, dev=ids)
    settings = DEFAULTS | {"acceptance_rollouts": most, "eval_rollouts": sweep, "temperature_eval": 0.0}
    found = dev_phase(trained, ids, settings)
    assert most_rollouts(trained, settings) == asked * each <= most
    assert found == Phase(
        epoch=2, mode="dev", temperature=0.0, rollouts=each, scenarios=ids[:asked], dev_sweep=1
    )


@pytest.mark.parametrize(
    ("count", "acceptance", "decides"),
    [(0, "safe", False), (MIN_DEV - 1, "safe", False), (MIN_DEV, "safe", True), (MIN_DEV, "off", False)],
)
def test_enough_dev_scenarios_decide_unless_acceptance_is_off(
    count: int, acceptance: str, decides: bool
) -> None:
    settings = DEFAULTS | {"acceptance": acceptance}
    dev = [make_scenario(f"d{n}", split="dev", stamp=f"{500 + n:064}") for n in range(count)]
    phases = plan(outline(settings, learning=True, sweep_rollouts=2), [*scenarios(), *dev], settings)
    found = {one.mode: one.dev for one in phases}
    assert found["train"] == (tuple(s.id for s in dev) if decides else ())
    assert found["eval"] == ()
