"""The majority as reward: who agrees with most is taken to be right, and ties are nobody's luck."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_rollout, make_scenario

from pytest_tfgrpo.core.records import Failure
from pytest_tfgrpo.scoring.rewarders.majority import majority_scores, normalised
from pytest_tfgrpo.scoring.rewarders.scoring import group_of, score

VOTED = make_scenario(checks=(), truth="majority")
FAILED = {"status": "failed", "answer": "3", "failure": Failure(code="timeout", message="slow")}


def group(*answers: str, **changes):
    return [make_rollout(i, answer=answer, checks=(), **changes) for i, answer in enumerate(answers)]


@pytest.mark.parametrize(
    ("answers", "scores"),
    [
        (["3", "3", "4"], [1, 1, 0]),
        (["3", "4", "3", "4"], [0.5] * 4),
        (["3", "4", "4", "3", "5"], [0.5, 0.5, 0.5, 0.5, 0]),
        (["1", "2", "3", "4"], [0.25] * 4),
        (["3", "3"], [1, 1]),
        (["3", "", "3", " . "], [1, 0, 1, 0]),
    ],
)
def test_the_most_frequent_answer_is_right_and_a_tie_is_shared(answers, scores):
    assert majority_scores(group(*answers)) == scores


@given(st.lists(st.sampled_from(["1", "2", "3", ""]), min_size=1, max_size=9), st.randoms())
def test_scores_owe_nothing_to_the_order_of_rollouts(answers, rng: random.Random):
    found = dict(zip(answers, majority_scores(group(*answers)), strict=True))
    mixed = list(answers)
    rng.shuffle(mixed)
    again = majority_scores(group(*mixed))
    assert [str(one) for one in again] == [str(found[answer]) for answer in mixed]


def test_of_long_answers_the_end_votes():
    talk = ("First I look at it.\n" * 2000, "Let me see.\n" * 4000, "Well.\n" * 9000)
    answers = [
        f"It is {other}.\n{before}{said}" for before, other, said in zip(talk, "445", "334", strict=True)
    ]
    assert majority_scores(group(*answers)) == [1, 1, 0]


@pytest.mark.parametrize("answers", [["3"], ["3", ""], ["", ""]])
def test_fewer_than_two_answers_give_no_score_at_all(answers):
    assert all(map(math.isnan, majority_scores(group(*answers))))


def test_failed_rollouts_and_errors_vote_for_nothing():
    three, four = group("4", "4")
    failed = [make_rollout(i, **FAILED) for i in (2, 3, 4)]
    scores = majority_scores([three, four, *failed, make_rollout(5, None, answer="3")])
    assert scores[:5] == [1, 1, 0, 0, 0]
    assert math.isnan(scores[5])


def test_groups_vote_apart():
    rollouts = [*group("3", "3", "4", group_id="a"), *group("4", "4", "3", group_id="b")]
    assert majority_scores(rollouts) == [1, 1, 0, 1, 1, 0]


def test_a_group_is_scored_and_learned_from_without_ground_truth():
    rollouts = group("3", "3", "4")
    scores = score(rollouts, {VOTED.id: VOTED})
    assert [s.gt_score for s in scores] == [s.reward for s in scores] == [1, 1, 0]
    assert group_of(rollouts, scores, VOTED).informative


def test_a_tie_of_all_has_no_spread_to_learn_from():
    rollouts = group("1", "2", "3")
    scores = score(rollouts, {VOTED.id: VOTED})
    assert {s.advantage_reason for s in scores} == {"zero_variance"}
    assert not group_of(rollouts, scores, VOTED).informative


def test_without_votes_scores_are_null_and_never_0():
    (one, failed) = score([*group("3"), make_rollout(1, **FAILED)], {VOTED.id: VOTED})
    assert (one.gt_score, one.reward, one.relative_rank, one.advantage) == (None, None, None, None)
    assert failed.gt_score == 0


def test_scenarios_with_and_without_ground_truth_are_scored_side_by_side():
    known = make_scenario("known")
    mixed = [
        *[make_rollout(i, credit, scenario_id="known") for i, credit in enumerate((1, 0))],
        *group("3", "3", "4"),
    ]
    scores = score(mixed, {"known": known, VOTED.id: VOTED})
    assert [s.gt_score for s in scores] == [1, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Let me see.\n\nThe answer is 42.", "the  ANSWER is 42"),
        ("x\n42\n\n  \n", "42"),
        (r"So \boxed{42} it is, surely.", "42"),
        (r"\boxed{1} or rather \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\boxed{ \frac{1}{2} }"),
        (r"\boxed{7} and then \boxed{8", "7"),
        ("**42**", "42"),
        ("$1,000$", "1000.0"),
        ("1e3", "1000"),
        ("-0", "0.00"),
        ("+5", "5"),
        (".5", "0.50"),
        ("\N{MINUS SIGN}5", "-5"),
        ("```\n42\n```", "42"),
        ("1.234,50", "1234.5"),
        ("1\u00a0000", "1000"),
        ("٤٢", "42"),
        ("½", "0.5"),
        ("1.5 × 10^3", "1500"),
        (r"\boxed{1{,}000}", "1000"),
        ("-$5.00", "-5"),
        (r"\fbox{7} it is.", "7"),
        (r"\boxed {7} it is.", "7"),
        ("\\boxed{Cafe\u0301} it is.", "Caf\u00e9"),
        ("STRASSE", "straße"),
        ("_42_", "42"),
        ("`42`", "42"),
        ("42。", "42"),
        ("42;", "42"),
        ("42:", "42"),
        ("42!", "42"),
        ("42?", "42"),
        (f"1{'0' * 60}.0", f"1{'0' * 60}"),
    ],
)
def test_answers_that_mean_the_same_are_the_same(one, other):
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", "-42"),
        ("1,00", "100"),
        ("1.000000000000000000000000000001", "1"),
        ("Paris", "Lyon"),
        (r"\boxed{1}", r"\boxed{2}"),
        ("1 2", "12"),
        ("42 kg", "42"),
        ("1,2,3", "3"),
        ("5", "5 million"),
        ("-$5.00", "5"),
    ],
)
def test_answers_that_differ_stay_different(one, other):
    assert normalised(one) != normalised(other)


@given(st.text() | st.text(alphabet=r"\boxed{}0123456789.,e+-$* " + "\n"))
def test_normalising_takes_any_text_and_settles_at_once(text):
    found = normalised(text)
    assert "\n" not in found
    if "boxed" not in found and "fbox" not in found:
        assert normalised(found) == found


def test_spellings_of_unicode_and_colours_are_no_other_answer() -> None:
    assert normalised("\x1b[1mCafe\u0301\x1b[0m") == normalised("Caf\u00e9")


def test_a_box_far_before_the_end_of_a_long_answer_is_its_answer():
    assert normalised("so \\boxed{7} as " + "I said " * 2_000) == "7"
