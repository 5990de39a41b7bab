"""Evidence: sums of rollouts, whatever is added up at once, are what the rollouts one by one say."""

import numpy as np
import pytest
from support.acceptance.evidence import LESSONS, SCENARIOS, gathered
from support.builders import PACK_STAMP, make_experience, make_group, make_pack, make_rollout, make_scenario

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.learning.acceptance.evidence import PARTS, _parts, _reach, joined, value_of
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.retrieval import raw_score


def test_what_was_gathered_before_a_sweep_stays_as_it_is() -> None:
    before = gathered([make_group([1.0], rollouts=(make_rollout(scenario_id="s0", left_out=("l0",)),))])
    rollout = make_rollout(scenario_id="s3", mode="dev", experiences=("l0",))
    after = joined(before, [make_group([0.0], rollouts=(rollout,))], LESSONS, SCENARIOS)
    assert (before.cells.n_C.sum(), after.cells.n_C.sum()) == (1, 2)
    assert not before.included
    assert after.included == {content_key(LESSONS["l0"]): 1}


def test_evidence_of_many_rollouts_holds_sums_and_none_of_them() -> None:
    group = make_group(
        [1.0, 0.0], rollouts=tuple(make_rollout(n, scenario_id="s0", left_out=("l1",)) for n in (0, 1))
    )
    found = gathered([group] * 3000)
    assert found.cells.n_C.tolist() == [6000.0]
    assert found.cells.sum_C.tolist() == [3000.0]


def test_what_a_majority_voted_is_no_evidence() -> None:
    voted, checked = (
        make_group([1.0], rollouts=(make_rollout(scenario_id=id_, left_out=("l0",)),))
        for id_ in ("voted", "s0")
    )
    assert gathered([voted]).is_empty
    assert gathered([voted, checked]).cells.n_C.sum() == 1


@pytest.mark.parametrize("fails_with", [True, False])
def test_of_two_readings_of_errors_the_one_that_says_less_for_a_lesson_counts(fails_with: bool) -> None:
    """Half the prompts carry a lesson; every other one of those with it, or without it, is an error."""

    def groups(errors: bool) -> list[Group]:
        rollouts, scores = [], []
        for n in range(40):
            carries, fails = n % 2 == 0, n % 4 == (0 if fails_with else 1)
            if not fails or errors:
                rollouts.append(
                    make_rollout(
                        n,
                        None if fails else 1.0,
                        scenario_id="s0",
                        experiences=("l0",) if carries else (),
                        left_out=() if carries else ("l0",),
                        tossed=("l0",),
                    )
                )
                scores.append(None if fails else (0.8, 0.7)[carries] + n % 3 / 10)
        return [make_group(scores, rollouts=tuple(rollouts))]

    lesson = sorted({content_key(e) for e in LESSONS.values()}).index(content_key(LESSONS["l0"]))
    left_out, both = (value_of(gathered(groups(errors)), None) for errors in (False, True))
    worse = bool(both.value_L[lesson] < left_out.value_L[lesson] - 0.1)
    assert worse is fails_with
    if not fails_with:
        assert both.helps_L[lesson] == pytest.approx(left_out.helps_L[lesson])


WORDS = (
    *("apple", "river", "chair", "cloud", "stone"),
    *("tiger", "piano", "lemon", "train", "glove"),
    *("bread", "horse", "spoon", "ocean", "tower"),
    *("candy", "mouse", "pearl", "frost", "olive"),
)


def test_each_part_has_as_many_tasks_of_each_family() -> None:
    scenarios = [
        make_scenario(f"s{n}", prompt=f"Spell {w}.", family="ab"[n % 2], stamp=f"{n:064x}")
        for n, w in enumerate(WORDS)
    ]
    part = _parts(scenarios, frozenset())
    for first in (0, 1):
        assert np.bincount(part[first::2]).tolist() == [2] * PARTS
    apart = _parts(scenarios, {s.id for s in scenarios})
    assert [len({*apart[first::2]}) for first in (0, 1)] == [1, 1]
    assert len({*apart}) == 2


@pytest.mark.parametrize(("retrieval", "stands"), [("relevant", [True, False]), ("top", [True, True])])
def test_a_prompt_has_a_use_for_what_its_pack_would_pick(retrieval: str, stands: list[bool]) -> None:
    lessons = [
        make_experience(n, summary32=text, stamp_signature=PACK_STAMP)
        for n, text in enumerate(("For apples use count_items.", "For rivers use map_items."))
    ]
    packs = {"text": make_pack(retrieval=retrieval)}
    about_SL, stands_SL = _reach(lessons, [make_scenario("s", prompt="Count the apples.")], packs)
    assert about_SL.tolist() == [[True, False]]
    assert stands_SL.tolist() == [stands]
    other, _ = lessons
    foreign = [make_experience(5, summary32=other.summary32, stamp_signature="b" * 64)]
    assert not _reach(foreign, [make_scenario("s", prompt="Count the apples.")], packs)[1].any()


def test_what_was_carried_without_a_coin_is_no_evidence_and_what_was_left_out_adds_up() -> None:
    sure = make_rollout(scenario_id="s0", experiences=("l0",), tossed=())
    assert gathered([make_group([1.0], rollouts=(sure,))]).is_empty
    missed = make_group(
        [1.0], mode="dev", rollouts=(make_rollout(scenario_id="s3", mode="dev", left_out=("l0",)),)
    )
    twice = joined(gathered([missed]), [missed], LESSONS, SCENARIOS)
    assert twice.left_out == {content_key(LESSONS["l0"]): 2}


def test_a_lesson_of_the_least_reward_of_a_pack_stands() -> None:
    lesson = make_experience(stamp_signature=PACK_STAMP)
    least = raw_score(lesson, make_pack().weights)
    for min_reward, stands in ((least, True), (least + 0.01, False)):
        packs = {"text": make_pack(retrieval="top", min_reward=min_reward)}
        assert _reach([lesson], [make_scenario("s")], packs)[1].tolist() == [[stands]]
