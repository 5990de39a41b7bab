"""What the live line says of a reading, and how long a run is said to take."""

from dataclasses import fields, replace
from typing import Any

import pytest

from pytest_tfgrpo.core.records import Mode, Phase
from pytest_tfgrpo.engine.gauge import AttemptsReading, Reading, SweepReading
from pytest_tfgrpo.llm.batch.batches import BatchProgress
from pytest_tfgrpo.llm.limits.slots import EndpointState
from pytest_tfgrpo.plugin.progress.live_line import clock, fitted, moment_of
from pytest_tfgrpo.plugin.progress.remaining import Plan, remaining


def phase(mode: Mode, n: int, *, epoch: int = 1, **more: Any) -> Phase:
    scenarios = tuple(f"s{i}" for i in range(n))
    return Phase(epoch=epoch, mode=mode, temperature=0.5, rollouts=2, scenarios=scenarios, **more)


TRAIN, CONTROL, FINAL = (
    phase("train", 20),
    phase("baseline", 10, epoch=0, concurrent=True),
    phase("eval", 10, epoch=2),
)
PLAN = Plan.of([TRAIN, CONTROL, FINAL], 8)
SWEEP = Reading(
    at_s=75,
    stage="sweep",
    step=1,
    phase=TRAIN,
    sweep=SweepReading(planned=40, done=16, mean=0.5),
    attempts=AttemptsReading(ages_s=(10.0,) * 8, mean_s=30.0, longest_s=40.0),
    after_s=None,
    since_s=75,
    groups=0,
    asked={},
    answered=0,
    spent_usd=0.0,
    limits={},
)


def changed(**changes: Any) -> Reading:
    """Return the reading with other figures, those of its sweep and attempts by their own names."""
    parts: dict[str, Any] = {}
    for name, part in (("sweep", SWEEP.sweep), ("attempts", SWEEP.attempts)):
        own = {key: changes.pop(key) for key in [f.name for f in fields(part)] if key in changes}
        parts[name] = replace(part, **own)
    return replace(SWEEP, **parts, **changes)


def text(now: Reading, width: int = 200) -> str:
    return "".join(part.text for part in fitted(moment_of(now, PLAN).parts, width))


def test_a_sweep_says_how_far_it_is() -> None:
    assert text(SWEEP) == "tfgrpo 1/2 epoch1 16 of 40, 8 in flight, mean 0.500, ETA 3:50+"


def test_before_the_first_answer_the_line_says_how_long_the_oldest_attempt_takes() -> None:
    first = changed(done=0, mean=None, mean_s=None, ages_s=(12.0, 5.0))
    assert text(first) == "tfgrpo 1/2 epoch1 0 of 40, 2 in flight for 0:12"


def test_a_run_that_asks_its_models_for_a_first_word_says_so() -> None:
    asking = changed(stage="starting", phase=None, asked={"learn": 1}, since_s=3)
    assert text(asking) == "tfgrpo 1/2 checking the models, 0:03, ETA 5:00+"


def test_an_epoch_that_learns_says_how_many_calls_its_teacher_answered() -> None:
    learning = changed(stage="learning", groups=12, answered=3, asked={"learn": 4}, since_s=20)
    expected = "tfgrpo 1/2 epoch1: learning from 12 groups, 3 answers, 4 in flight, 0:20, ETA 2:30+"
    assert text(learning) == expected


def test_the_dev_split_and_the_judge_are_named() -> None:
    tried = changed(phase=replace(TRAIN, mode="dev", dev_sweep=1), asked={"judge": 5}, after_s=9.0)
    assert text(tried).startswith("tfgrpo 1/2 epoch1 dev split 16 of 40, 8 in flight, 5 at the judge, mean")


def test_batches_say_how_many_calls_wait_in_them() -> None:
    one = changed(batches=(BatchProgress(480, 312),))
    assert "8 in flight, mean 0.500, a batch of 480 calls, 312 done, ETA" in text(one)
    assert ", batch 312/480, ETA" in text(one, 60)
    two = changed(batches=(BatchProgress(480, 312), BatchProgress(20, 0)))
    assert ", 2 batches of 500 calls, 312 done, ETA" in text(two)


def test_endpoints_that_adapt_say_their_places_and_a_pause_of_a_second() -> None:
    one = changed(allowed=(EndpointState("http://a", 3, 8, 0.9),))
    assert ", calls 3/8, ETA" in text(one)
    two = changed(allowed=(EndpointState("big", 3, 8, 0.0), EndpointState("small", 1, 2, 1.0)))
    assert ", big 3/8, small 1/2, small held 0:01, ETA" in text(two)


def test_budgets_say_what_is_left() -> None:
    limits = {"usd": (0.12, 2.0), "tokens": (1000.0, 51_000.0), "s": (60.0, 600.0)}
    assert "$0.12 ($1.88 left), 50.0k tokens left, budget 9:00, ETA" in text(changed(limits=limits))
    assert "mean 0.500, $0.12, ETA" in text(changed(spent_usd=0.12))


def test_a_narrow_terminal_gets_a_shorter_line() -> None:
    full = changed(failed=3, errors=1, limits={"usd": (0.12, 2.0)}, asked={"judge": 12})
    assert all(len(text(full, width)) <= width for width in range(130))
    shown = "1/2 epoch1 16/40, mean 0.50, 3 no answer, 1 error, $1.88 left, ETA 3:50+"
    assert text(full, 73) == shown
    assert text(full, 88) == shown.replace("16/40", "16/40, 8 in flight")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0:00"),
        (59.4, "0:59"),
        (59.6, "1:00"),
        (75, "1:15"),
        (3599, "59:59"),
        (3600, "1:00:00"),
        (36_610, "10:10:10"),
    ],
)
def test_spans_of_time_are_read_at_a_glance(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


@pytest.mark.parametrize(
    ("changes", "coloured"),
    [
        ({}, {"epoch1": "bold", ", ETA 3:50+": "cyan"}),
        ({"phase": None, "mean_s": None}, {"starting": "bold"}),
        ({"phase": None, "mean_s": None, "asked": {"judge": 0}}, {"starting": "bold"}),
        (
            {"failed": 2, "errors": 1},
            {"epoch1": "bold", ", 2 no answer": "yellow", ", 1 error": "red", ", ETA 3:50+": "cyan"},
        ),
        (
            {"allowed": (EndpointState("big", 3, 8, 1.0),)},
            {"epoch1": "bold", ", calls held 0:01": "yellow", ", ETA 3:50+": "cyan"},
        ),
    ],
)
def test_what_goes_wrong_has_a_colour_of_its_own(changes: dict[str, Any], coloured: dict[str, str]) -> None:
    parts = moment_of(changed(**changes), PLAN).parts
    assert {part.text: part.colour for part in parts if part.colour} == coloured


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"mean": 0.0, "ages_s": ()}, "tfgrpo 1/2 epoch1 16 of 40, mean 0.000, ETA 4:00+"),
        ({"mean": None}, "tfgrpo 1/2 epoch1 16 of 40, 8 in flight, ETA 3:50+"),
        ({"stage": "learning", "groups": 1}, "tfgrpo 1/2 epoch1: learning from 1 group, 1:15, ETA 2:30+"),
        (
            {"stage": "learning", "groups": 0, "asked": {"learn": 0}, "answered": 1},
            "tfgrpo 1/2 epoch1: learning from 0 groups, 1 answer, 1:15, ETA 2:30+",
        ),
        (
            {"limits": {"usd": (3.0, 2.0), "tokens": (9.0, 8.0), "s": (60.0, 50.0)}},
            "tfgrpo 1/2 epoch1 16 of 40, 8 in flight, mean 0.500, $3.00 ($0.00 left), 0 tokens left, "
            "budget 0:00, ETA 3:50+",
        ),
        (
            {"batches": (BatchProgress(1, 0), BatchProgress(2, 2))},
            "tfgrpo 1/2 epoch1 16 of 40, 8 in flight, mean 0.500, 2 batches of 3 calls, 2 done, ETA 3:50+",
        ),
        ({"after_s": 0.0}, "tfgrpo 1/2 epoch1 16 of 40, 8 in flight, mean 0.500, ETA 3:50"),
        ({"mean_s": 0.0}, "tfgrpo 1/2 epoch1 16 of 40, 8 in flight, mean 0.500, ETA 0:30+"),
    ],
)
def test_nothing_and_zero_are_two_things(changes: dict[str, Any], shown: str) -> None:
    assert text(changed(**changes)) == shown


def test_a_line_of_one_agent_among_several_begins_with_its_name() -> None:
    parts = moment_of(SWEEP, PLAN, "tfgrpo big").parts
    assert "".join(part.text for part in fitted(parts, 200)).startswith("tfgrpo big 1/2 epoch1 16 of 40")
    assert "".join(part.text for part in fitted(parts, 62)).startswith("big 1/2 epoch1 16 of 40")


# ETA


def seconds(**changes: Any) -> float:
    found = remaining(changed(**changes), PLAN)
    assert found is not None
    return found.seconds


def test_nothing_is_promised_before_an_attempt_has_ended() -> None:
    assert remaining(changed(mean_s=None), PLAN) is None


def test_the_time_left_counts_what_is_in_flight_what_waits_and_what_is_to_come() -> None:
    # 8 in flight with 20 s each and 16 that wait, at 8 places; then 40 rollouts in 5 waves
    assert seconds() == pytest.approx((8 * 20 + 16 * 30) / 8 + 5 * 30)


def test_answers_that_serve_both_sides_of_a_pair_take_no_time_twice() -> None:
    assert seconds(done=16, free=8) == pytest.approx((8 * 20 + 8 * 30) / 8 + 5 * 30)


def test_the_last_attempts_of_a_sweep_take_their_time_however_many_places_are_free() -> None:
    assert seconds(done=39, ages_s=(5.0,)) == pytest.approx(25 + 5 * 30)
    assert seconds(done=39, ages_s=(35.0,)) == pytest.approx(5 + 5 * 30)  # up to the longest so far
    assert seconds(done=39, ages_s=(99.0,)) == pytest.approx(5 * 30)


def test_the_time_to_learn_counts_once_an_epoch_has_shown_it() -> None:
    unknown, known = (remaining(changed(after_s=after), PLAN) for after in (None, 60.0))
    assert unknown is not None
    assert known is not None
    assert (unknown.complete, known.complete) == (False, True)
    assert known.seconds == unknown.seconds + 60
    assert seconds(stage="learning", after_s=60.0, since_s=45.0) == pytest.approx(15 + 5 * 30)


def test_the_share_of_a_run_grows_from_0_to_1() -> None:
    shares = [
        PLAN.share(now)
        for now in (
            changed(step=0, stage="starting", phase=None, done=0),
            SWEEP,
            changed(stage="learning", done=40),
            changed(phase=replace(TRAIN, mode="dev"), done=1),
            changed(step=2, phase=FINAL, planned=30, done=15),
            changed(step=2, phase=FINAL, planned=30, done=30),
        )
    ]
    assert shares == pytest.approx([0, 0.2, 0.5, 0.5, 0.75, 1])
