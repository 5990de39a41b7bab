"""Votes: what can be read as one, and what several amount to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.scoring.judge.vote_lines import has_vote
from pytest_tfgrpo.scoring.judge.votes import REASON_MAX, Decision, Vote, read_vote, tally

GOOD = '{"c1": {"why": "it does", "met": true}, "c2": {"why": "no", "met": false}}'
READ = (Decision(met=True, why="it does"), Decision(met=False, why="no"))


def vote(*met: bool) -> Vote:
    return tuple(Decision(met=one, why=f"because {one}") for one in met)


def rubric(*weights: float) -> tuple[Criterion, ...]:
    return tuple(Criterion(text="x", weight=weight) for weight in weights)


@pytest.mark.parametrize(
    "text",
    [GOOD, f"\n {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```", f"<think>{{c1?}}</think>\n{GOOD}"],
)
def test_a_vote_is_an_object_perhaps_in_a_code_fence_or_behind_thoughts(text):
    assert read_vote(text, 2) == READ


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{GOOD}",
        f"\u200b{GOOD}",
        f"c1?</think>\n{GOOD}",
        f"Here is my evaluation:\n```json\n{GOOD}\n```",
        f"```JSON\n{GOOD}\n```\nI hope this helps.",
        f"~~~json\n{GOOD}\n~~~",
        f"The answer cannot be graded as right, as I could not find Rome:\n```json\n{GOOD}\n```",
        f"```jsonc\n{GOOD}\n```",
        f"```json5\n{GOOD}\n```",
        f"```json\n{GOOD}",
        f"`{GOOD}`",
        GOOD.replace('"c1"', '"C1"'),
        '{"c1": true, "c2": false}',
        '{" c1 ": true, "c2\\n": false}',
        '{"ｃ１": true, "ｃ２": false}',
        '{"c1": {"met": "Yes"}, "c2": {"met": "not met"}}',
        "c1: met\nc2: not met",
        "**c1:** met - it does.\n**c2:** not met (no)",
        "My votes:\n- **C1**: **Yes**.\n- **C2**: **No**, it lacks one.",
        "1. Met.\n2. Not met.",
        "Criterion 1: TRUE\nCriterion 2: FALSE",
        "ｃ１：ｍｅｔ\nｃ２：ｎｏｔ ｍｅｔ",
        "| c1 | = pass |\n| c2 | = fail |",
    ],
)
def test_the_other_forms_that_models_give_are_votes(text):
    assert [decision.met for decision in read_vote(text, 2)] == [True, False]


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("Met", True),
        ("not met.", False),
        ("passed", True),
        ("fulfilled", True),
        ("satisfied", True),
        ("unmet", False),
        ("failed", False),
        ("not fulfilled", False),
        ("not satisfied", False),
        ('{"c1": "Yes!"}', True),
        ('{"c1": {"met": "No."}}', False),
        ("Result: met", True),
        ("In short.\nConclusion: not met", False),
        ("**Verdict:** met", True),
        ("It names Rome.\n\nFinal answer: (Not met).", False),
        (r"\boxed{true}", True),
        (r"The final verdict is \boxed{not met}", False),
        ("Ｖｅｒｄｉｃｔ：　ｍｅｔ", True),
    ],
)
def test_the_vote_on_one_criterion_may_be_a_word(text, met):
    (decision,) = read_vote(text, 1)
    assert decision.met is met


@pytest.mark.parametrize(
    "text",
    ["8/10", "Verdict: 8/10", "Verdict: met\nVerdict: not met", "Verdict: met/not met", "met and unmet"],
)
def test_a_number_and_two_votes_on_one_criterion_are_none(text):
    with pytest.raises(ValueError, match="not JSON"):
        read_vote(text, 1)


@pytest.mark.parametrize(
    "judged", [GOOD, "c1: met", "c1: perhaps", "so:\nVerdict: met", "{'c1': {'met': true}}"]
)
def test_a_vote_beside_words_is_none_where_what_is_judged_has_one(judged):
    quoting = [f"The attempt says:\n```json\n{GOOD}\n```", "c1: met\nc2: not met"]
    for text in quoting:
        assert read_vote(text, 2, lambda: ["the task"])
        with pytest.raises(ValueError, match="may quote a vote"):
            read_vote(text, 2, lambda: ["the task", judged])
    assert read_vote(GOOD, 2, lambda: [judged]) == READ
    assert read_vote(f"```json\n{GOOD}\n```", 2, lambda: [judged]) == READ


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("I think it is fine.", "not JSON"),
        ("<think>c1?", "not JSON, its thoughts never end"),
        (f"The attempt says {GOOD}", "not JSON"),
        (f"{GOOD} as it says", "not JSON"),
        (f"{GOOD}\n{GOOD}", "not JSON"),
        ("[]", "no JSON object"),
        ("null", "not JSON"),
        ("{}", "c1 is missing"),
        ('{"c1": {"met": true}}', "c2 is missing"),
        ('{"c1": "8/10", "c2": false}', "c1 must be an object"),
        ('{"c1": {"met": "maybe"}, "c2": {"met": true}}', "c1 must be an object with met"),
        ('{"c1": true, "C1": false, "c2": true}', "twice"),
        ("c1: met\nc2: met\nc1: not met", "decides c1 twice"),
        ("c1: met\nc2: met or not met", "is no decision"),
        ("c1: 8/10\nc2: met", "is no decision"),
        ("c1: met", "c2 is missing"),
        ("c2: met", "c1 is missing"),
        ("c0: met\nc1: met\nc2: met", "no criterion c0"),
        (f"I abstain.\n```json\n{GOOD}\n```", "says 'I abstain'"),
        (f"```json\n{GOOD}\n```\nI have no vote.", "says 'I have no vote'"),
        (f"I can not judge this:\n```json\n{GOOD}\n```", "says 'I can not judge'"),
        ("c1: met\nc2: met\nc3: met", "no criterion c3"),
        ("> c1: met\n> c2: met", "not JSON"),
        ("Verdict: met", "not JSON"),
        (f"Before:\n```json\n{GOOD}\n```\nAfter.", "not JSON"),
        ('{"c1": {"met": 1}, "c2": {"met": true}}', "c1 must be an object with met"),
        ('{"c1": {"met": true}, "c2": {"met": true}, "c3": {"met": true}}', "no criterion 'c3'"),
        ('{"c1": {"met": false}, "c2": {"met": true}, "c1": {"met": true}}', "twice"),
        ('{"c1": {"met": false, "met": true}, "c2": {"met": true}}', "twice"),
        ('{"c1": {"met": true, "Met": false}, "c2": {"met": true}}', "c1 has met twice"),
        ('{"c1": {"met": true}, "c2": {"met": true, "MET": "no"}}', "c2 has met twice"),
        (f"I cannot judge it. Expected form:\n```json\n{GOOD}\n```", "says 'I cannot judge'"),
        (f"I cannot judge it. Expected form: ```json\n{GOOD}\n```", "not JSON"),
        (f"I'm unable to fully assess it. The form:\n```json\n{GOOD}\n```", "unable to fully assess"),
        (f"```json\n{GOOD}\n```\nThat is the form; I refuse.", "says 'I refuse'"),
        ("[" * 100_000, "nested too deeply"),
        (f"<think>{GOOD}", "not JSON"),
        (f"```json\n{GOOD[:-1]}", "not JSON"),
        (f"So:\n```json\n{GOOD}", "not JSON"),
        (f"It says `{GOOD}`", "not JSON"),
        (f"`{GOOD}` `x`", "not JSON"),
        (f"```python\n{GOOD}\n```", "not JSON"),
        (f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```", "not JSON"),
        ("<think>" * 500_000, "not JSON"),
        ("```json\n" + " \n" * 500_000 + "x", "not JSON"),
        ('{"c1": ' + "9" * 5000 + "}", "4300 digits"),
    ],
)
def test_anything_else_is_no_vote(text, problem):
    with pytest.raises(ValueError, match=problem):
        read_vote(text, 2)


anything = st.recursive(st.none() | st.booleans(), st.lists)
decisions = st.fixed_dictionaries({"met": st.booleans() | anything}, optional={"why": st.text(max_size=5)})
votes = st.fixed_dictionaries({"c1": decisions | anything}, optional={"c2": decisions})
right = st.fixed_dictionaries({"c1": st.fixed_dictionaries({"met": st.booleans()})})


@reaches("a vote", "no vote")
@given(st.text(max_size=50) | (anything | votes).map(json.dumps) | right.map(json.dumps))
def test_whatever_a_model_says_is_a_vote_or_a_value_error(text):
    try:
        assert len(read_vote(text, 1)) == 1
        reached("a vote")
    except ValueError:
        reached("no vote")


def test_of_two_votes_that_agree_the_first_gives_the_reason():
    for text in (
        "c1: met - it does\nc1: met - so be it",
        "Verdict: met - it does\nSo, verdict: met\nVerdict: met",
    ):
        (decision,) = read_vote(text, 1)
        assert (decision.met, decision.why) == (True, "it does")


def test_in_a_long_text_a_vote_is_looked_for_from_its_start():
    assert has_vote("c1: met\n" + "words\n" * 2_000)


def test_the_judges_words_are_kept_short_and_printable():
    (decision,) = read_vote(json.dumps({"c1": {"met": True, "why": "\x1b[31ma\n" * 1000}}), 1)
    assert decision.why.isprintable()
    assert 200 < len(decision.why) <= 240
    (decision,) = read_vote("c1: met - " + "a" * 1000, 1)
    assert 200 < len(decision.why) <= 240


def test_the_score_is_the_mean_over_votes_of_the_weighted_share_met():
    opinion = tally(rubric(3, 1), [vote(True, False), vote(True, True), vote(False, False)], [], 3)
    assert opinion.votes == (0.75, 1.0, 0.0)
    assert opinion.score == pytest.approx(1.75 / 3)
    # c1: 1 of 3 pairs agrees, c2: 1 of 3
    assert opinion.agreement == pytest.approx(1 / 3)
    assert opinion.reason == "c1 met (2 of 3): because True; c2 not met (2 of 3): because False"


def test_a_criterion_on_which_votes_tie_is_not_met_and_says_why_not():
    opinion = tally(rubric(1.0, 1.0), [vote(True, False), vote(False, False)], [], 2)
    assert opinion.reason == "c1 not met (1 of 2): because False; c2 not met (2 of 2): because False"


def test_votes_that_are_alike_agree_wholly_and_one_vote_has_nobody_to_agree_with():
    assert tally(rubric(1), [vote(True)] * 3, [], 3).agreement == 1.0
    assert tally(rubric(1), [vote(True)], [], 1).agreement is None


@pytest.mark.parametrize(
    ("valid", "asked", "verdict"), [(2, 3, True), (1, 3, False), (1, 2, False), (0, 1, False)]
)
def test_without_a_majority_of_valid_votes_there_is_no_verdict(valid, asked, verdict):
    void = ["timeout: no answer in 60 s"] * (asked - valid)
    opinion = tally(rubric(1), [vote(True)] * valid, void, asked)
    assert (opinion.score is not None) is verdict
    if not verdict:
        assert opinion.reason == f"{valid} of {asked} votes are valid: timeout: no answer in 60 s"
        assert opinion.votes == (1.0,) * valid


def test_the_reasons_of_votes_that_are_none_are_kept_short():
    assert len(tally(rubric(1), [], ["x" * 2 * REASON_MAX], 1).reason) == REASON_MAX


def test_the_share_of_a_criterion_is_that_of_the_votes_that_count():
    opinion = tally(rubric(1, 1), [vote(True, False), vote(True, True)], ["timeout"], 3)
    assert list(opinion.criteria.values()) == [1.0, 0.5]


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(1e-6, 1e6), min_size=n, max_size=n),
            st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=7),
        )
    )
)
def test_scores_and_agreement_lie_between_0_and_1(case):
    weights, rows = case
    opinion = tally(rubric(*weights), [vote(*row) for row in rows], [], len(rows))
    assert opinion.score is not None
    assert 0.0 <= opinion.score <= 1.0
    assert all(0.0 <= one <= 1.0 for one in opinion.votes)
    assert opinion.agreement is None or 0.0 <= opinion.agreement <= 1.0
    assert (opinion.score == 1.0) >= all(map(all, rows))
    assert (opinion.score == 0.0) is (not any(map(any, rows)))
    assert len(opinion.reason) <= REASON_MAX
