"""What follows from marks: a changed scenario that passes and fails answers as people say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reviews import as_json, false_pass, passes, reviewed

from pytest_tfgrpo.review import proposals
from pytest_tfgrpo.review.disagreements import ReviewedAnswer
from pytest_tfgrpo.review.lines import change_lines
from pytest_tfgrpo.review.patch import SuiteChange
from pytest_tfgrpo.review.proposals import CheckProposal, NeedsPerson

SECRET = "sk-proj-" + "a1B2c3D4" * 6
CALLS = [{"kind": "tool_calls", "order": "any_order", "calls": [{"name": "look"}, {"name": "buy"}]}]


@pytest.mark.parametrize(
    ("check", "said", "expected"),
    [
        pytest.param(
            {"kind": "contains", "value": "cat"},
            [("a cat", "right"), ("a category", "wrong")],
            [{"kind": "regex", "pattern": r"(?<!\w)cat(?!\w)"}],
            id="only as whole words",
        ),
        pytest.param(
            {"kind": "contains", "value": "42"},
            [("it is 42", "right"), ("420", "wrong"), ("42, no: 7", "wrong")],
            [{"kind": "number", "value": 42}],
            id="only as the last number",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris", "weight": 3},
            [("Paris", "right"), ("Paris or Rome", "wrong"), ("Rome or Paris", "wrong")],
            [{"kind": "exact", "value": "Paris", "ignore_case": True, "weight": 3}],
            id="only as the whole answer, with its weight",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris"},
            [("in Paris", "right"), ("Paris or Rome", "wrong", "Rome"), ("Paris, Rome", "")],
            [
                {"kind": "contains", "value": "Paris"},
                {"kind": "contains", "not": True, "value": "Rome"},
            ],
            id="not with the words that decide",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris"},
            [("in Paris, Romeo", "right"), ("Paris or Rome", "wrong", "Rome")],
            [
                {"kind": "contains", "value": "Paris"},
                {"kind": "regex", "not": True, "pattern": r"(?<!\w)Rome(?!\w)"},
            ],
            id="not with the words that decide as whole words",
        ),
        pytest.param(
            {"kind": "number", "value": 10, "abs_tol": 2},
            [("10", "right"), ("11", "wrong")],
            [{"kind": "number", "value": 10, "abs_tol": 0}],
            id="no tolerance",
        ),
        pytest.param(
            {"kind": "exact", "value": "yes", "ignore_case": True},
            [("yes", "right"), ("YES", "wrong")],
            [{"kind": "exact", "value": "yes", "ignore_case": False}],
            id="case counts",
        ),
        pytest.param(
            {"kind": "regex", "pattern": "a|b"},
            [("a", "right"), ("cab", "wrong")],
            [{"kind": "regex", "pattern": r"\A\s*(?:a|b)\s*\Z"}],
            id="the whole answer must match",
        ),
        pytest.param(
            CALLS[0],
            [("", "right", "", "", "look", "buy"), ("", "wrong", "", "", "buy", "look")],
            [CALLS[0] | {"order": "in_order"}],
            id="calls in order",
        ),
        pytest.param(
            {"kind": "contains", "value": "a"},
            [("ba", "right"), ("a b", "right"), ("la la", "wrong"), ("A a", "wrong")],
            [
                {"kind": "contains", "value": "a"},
                {"kind": "exact", "not": True, "value": "la la"},
                {"kind": "exact", "not": True, "value": "A a"},
            ],
            id="not these answers",
        ),
        pytest.param(
            {"kind": "exact", "value": "Paris"},
            [("PARIS", "right"), ("Rome", "wrong")],
            [{"kind": "exact", "value": "Paris", "ignore_case": True}],
            id="any case",
        ),
        pytest.param(
            {"kind": "exact", "value": "42"},
            [("it is 42.0", "right"), ("it is 43", "wrong"), ("42 or 43", "wrong")],
            [{"kind": "number", "value": 42}],
            id="a number however it is written",
        ),
        pytest.param(
            {"kind": "exact", "value": "Paris"},
            [("It is Paris.", "right"), ("Rome", "wrong")],
            [{"kind": "regex", "pattern": r"(?<!\w)Paris(?!\w)"}],
            id="anywhere in the answer",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris"},
            [("the city of light", "right", "city of light"), ("Rome, a city", "wrong")],
            [{"kind": "regex", "pattern": r"Paris|(?<!\w)city of light(?!\w)"}],
            id="other words as well",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris (FR)"},
            [("Lutetia", "right"), ("Rome", "wrong")],
            [{"kind": "regex", "pattern": r"Paris \(FR\)|\A\s*Lutetia\s*\Z"}],
            id="another answer as well",
        ),
        pytest.param(
            {"kind": "number", "value": 100},
            [("99.5", "right"), ("98", "wrong")],
            [{"kind": "number", "value": 100, "abs_tol": 0.5}],
            id="a tolerance",
        ),
        pytest.param(
            {"kind": "exact", "value": "Rome"},
            [("Rome", "wrong"), ("Paris", "right"), ("Paris ", "right")],
            [{"kind": "exact", "value": "Paris"}],
            id="another expected answer",
        ),
        pytest.param(
            CALLS[0] | {"order": "exact"},
            [("", "right", "", "", "buy", "look"), ("", "wrong", "", "", "buy")],
            [CALLS[0]],
            id="calls in any order",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris"},
            [("in Paris", "right"), ("Paris or Rome", "wrong", " Rome ")],
            [
                {"kind": "contains", "value": "Paris"},
                {"kind": "contains", "not": True, "value": "Rome"},
            ],
            id="not with the words that decide, without blanks around them",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris"},
            [
                ("so PARIS", "right"),
                ("Paris or Rome", "wrong", "Rome"),
                ("PARIS or Nice", "wrong", "Nice"),
            ],
            [
                {"kind": "regex", "pattern": "Paris", "flags": "is"},
                {"kind": "contains", "not": True, "value": "Rome"},
                {"kind": "contains", "not": True, "value": "Nice"},
            ],
            id="any case, not with what decides, also where that failed before",
        ),
        pytest.param(
            {"kind": "contains", "value": "Paris"},
            [
                ("the city of light", "right", "city of light"),
                ("Paris, Rome", "wrong"),
                ("city of light, Rome", ""),
            ],
            [
                {"kind": "regex", "pattern": r"Paris|(?<!\w)city of light(?!\w)"},
                {"kind": "exact", "not": True, "value": "Paris, Rome"},
            ],
            id="words that decide, whatever they do to an answer without a mark",
        ),
        pytest.param(
            {"kind": "contains", "value": "cat"},
            [("a category", "wrong"), ("a cat", "")],
            [{"kind": "regex", "pattern": r"(?<!\w)cat(?!\w)"}],
            id="only as whole words, which an answer without a mark shows to pass",
        ),
        pytest.param(
            {"kind": "contains", "value": "cat"},
            [("a category", "wrong")],
            [
                {"kind": "contains", "value": "cat"},
                {"kind": "exact", "not": True, "value": "a category"},
            ],
            id="not this answer, where nothing shows that another could pass",
        ),
    ],
)
def test_the_first_change_that_does_as_people_say_is_proposed(
    tmp_path: Path, check: dict[str, Any], said: list[tuple[str, ...]], expected: list[Any]
) -> None:
    found = reviewed(tmp_path, "a.scenario.json", as_json([check]), *said)
    assert found.proposal.fields == {"checks": expected}
    assert found.proposal.agreed == sum(bool(one[1]) for one in said)
    checks = found.after().checks
    for answer, opinion, *_ in (one for one in said if one[1] and check["kind"] != "tool_calls"):
        assert passes(checks, answer) is (opinion == "right")


def test_a_proposal_names_the_checks_that_were_not_tried_again(tmp_path: Path) -> None:
    kept = [{"kind": "limits", "steps": 9}, {"kind": "json_schema", "schema": {"type": "integer"}}]
    text = as_json([{"kind": "contains", "value": "1"}, *kept])
    found = reviewed(tmp_path, "a.scenario.json", text, ("1", "right"), ("11", "wrong"))
    assert found.proposal.not_tried == ("json_schema", "limits")
    assert found.proposal.fields["checks"][1:] == kept
    (_, *told) = change_lines(SuiteChange(proposals=(found.proposal,), left=(), files=()), 80)
    said = " ".join(" ".join(told).split())
    assert "not tried again, with their results in the run: json_schema, limits" in said


def test_a_right_and_a_wrong_answer_of_one_scenario_are_settled_together(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "Paris"}, {"kind": "contains", "value": "Seine"}])
    said = [("PARIS, Seine", "right"), ("Paris Seine, no: Rome", "wrong", "Rome")]
    found = reviewed(tmp_path, "a.scenario.json", text, *said)
    checks = found.after().checks
    assert passes(checks, said[0][0])
    assert not passes(checks, said[1][0])
    assert passes(checks, "Paris, Seine")


@pytest.mark.parametrize(
    ("said", "rejected"),
    [
        ([("in all 216.94", "wrong"), ("224.4", "wrong")], [{"kind": "exact", "value": "in all 216.94"}]),
        (
            [("EUR 216.94", "wrong", "EUR"), ("USD 224.4", "wrong", "USD")],
            [{"kind": "contains", "value": "EUR"}],
        ),
    ],
)
def test_a_wrong_answer_that_fails_already_needs_no_check(
    tmp_path: Path, said: list[tuple[str, ...]], rejected: list[dict[str, str]]
) -> None:
    number = {"kind": "number", "value": 216.94}
    found = reviewed(tmp_path, "a.scenario.json", as_json([number]), ("2 at 108.47: 216.94", "right"), *said)
    assert found.proposal.fields == {"checks": [number, *({"not": True} | one for one in rejected)]}
    assert found.proposal.agreed == 3


def test_a_wrong_answer_that_a_wider_check_would_pass_gets_one(tmp_path: Path) -> None:
    said = [("THE SEINE", "right"), ("the Seine, no: the Rhine", "wrong", "Rhine")]
    text = as_json([{"kind": "exact", "value": "the Seine."}])
    checks = reviewed(tmp_path, "a.scenario.json", text, *said).after().checks
    assert passes(checks, said[0][0])
    assert not passes(checks, said[1][0])


def test_what_leaves_answers_without_a_mark_alone_comes_first(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "4"}])
    said = [("4", "right"), ("41", "wrong"), ("4 or so", ""), ("4 of 9", "")]
    whole = reviewed(tmp_path, "a.scenario.json", text, *said).proposal
    assert "whole words" in whole.why
    assert (whole.now_failed, whole.now_passed) == ((), ())
    strict = reviewed(tmp_path, "b.scenario.json", text, ("4", "right"), ("4 or 9", "wrong"), ("4 of 8", ""))
    assert len(strict.proposal.now_failed) == 1
    said = [("3", "right"), ("31", "wrong"), ("5", ""), ("TIMEOUT", "")]
    text = as_json([{"kind": "contains", "value": "3"}])
    failed = reviewed(tmp_path, "c.scenario.json", text, *said).proposal
    assert (failed.now_failed, failed.now_passed) == ((), ())
    assert [answer.rollout.answer for answer in failed.answers] == ["31"]


def test_every_check_that_a_right_answer_fails_is_made_wider(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "Paris"}, {"kind": "contains", "value": "Seine"}])
    found = reviewed(tmp_path, "a.scenario.json", text, ("PARIS, SEINE", "right")).proposal
    assert [check["pattern"] for check in found.fields["checks"]] == ["Paris", "Seine"]
    assert found.why == "checks/0: in any case; checks/1: in any case"


def test_a_scenario_that_takes_fields_from_its_file_is_tried_with_them(tmp_path: Path) -> None:
    text = (
        "defaults: {prompt: p, split: eval}\nscenarios:\n- {id: a, checks: [{kind: contains, value: cat}]}\n"
    )
    said = [("a cat", "right"), ("a category", "wrong")]
    found = reviewed(tmp_path, "a.scenario.yaml", text, *said).proposal
    assert found.fields == {"checks": [{"kind": "regex", "pattern": r"(?<!\w)cat(?!\w)"}]}


def also(answer: ReviewedAnswer, opinion: Any, **changes: Any) -> ReviewedAnswer:
    """Return an answer with one more mark, of another reviewer."""
    return replace(
        answer, marks=(*answer.marks, replace(answer.marks[0], reviewer="Bob", opinion=opinion, **changes))
    )


def test_of_reviewers_only_those_who_are_sure_say_what_decides(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "Paris"}])
    made = reviewed(tmp_path, "a.scenario.json", text, ("Paris", "right"))
    wrong = also(false_pass(made.scenario, "Paris, Rome", "Rome"), "unsure", words="Paris")
    right = false_pass(made.scenario, "in Paris", "")
    right = replace(right, marks=(replace(right.marks[0], opinion="right"),))
    found = proposals.propose(made.file, [right, wrong], [], lambda *_: True)
    assert isinstance(found, CheckProposal)
    assert found.fields["checks"][1:] == [{"kind": "contains", "not": True, "value": "Rome"}]
    long = false_pass(made.scenario, "Paris" * 80, "")
    long = replace(long, marks=(replace(long.marks[0], comment="too long"),))
    found = proposals.propose(made.file, [also(long, "unsure", comment="why?")], [], lambda *_: True)
    assert isinstance(found, CheckProposal)
    assert found.fields == {"rubric": ["TODO too long"]}


@pytest.mark.parametrize(
    ("text", "said", "reason"),
    [
        (as_json([{"kind": "exact", "value": "x"}]), ("x", "wrong", "x", "no"), "expects just one answer"),
        (as_json([{"kind": "json", "value": {"a": 1}}]), ("{}", "right"), "its kinds are json"),
        (
            as_json([{"kind": "exact", "value": "x"}]),
            ("TIMEOUT", "right"),
            "failed before any check: timeout",
        ),
        (as_json([{"kind": "contains", "value": "x"}]), ("x" * 400, "wrong"), "no change of one check"),
        (as_json([{"kind": "contains", "value": "x"}]), (f"x {SECRET}", "wrong", SECRET), "no change"),
        ("id,prompt,answer\na,p,x\n", ("X", "right"), "fits its file"),
    ],
)
def test_what_no_check_settles_needs_a_person(
    tmp_path: Path, text: str, said: tuple[str, ...], reason: str
) -> None:
    name = "a.scenario.json" if text.startswith("{") else "a.scenarios.csv"
    found = reviewed(tmp_path, name, text, said).found
    assert isinstance(found, NeedsPerson), found
    assert reason in found.reason


def test_answers_that_contradict_each_other_need_a_person(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "x"}])
    found = reviewed(tmp_path, "a.scenario.json", text, ("x", "wrong"), ("x", "right")).found
    assert isinstance(found, NeedsPerson)


def test_a_comment_becomes_a_criterion_to_word_where_no_check_fits(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "x"}], rubric="It is short.")
    comment = f"not\x1b[31m polite,\n key {SECRET}"
    found = reviewed(tmp_path, "a.scenario.json", text, ("x" * 400, "wrong", "", comment))
    (known, todo) = found.proposal.fields["rubric"]
    assert known == "It is short."
    assert todo.startswith("TODO not polite, key [redacted:")
    assert found.proposal.agreed == 0
    assert [criterion.text for criterion in found.after().rubric] == [known, todo]
    again = reviewed(tmp_path, "a.scenario.json", found.text, ("x" * 400, "wrong", "", comment)).found
    assert isinstance(again, NeedsPerson)


def test_comments_become_no_more_criteria_than_a_scenario_may_have(tmp_path: Path) -> None:
    known = [f"Criterion {n}." for n in range(19)]
    said = [(f"{n} {'x' * 400}", "wrong", "", f"comment {n}") for n in range(2)]
    text = as_json([{"kind": "contains", "value": "x"}], rubric=known)
    found = reviewed(tmp_path, "a.scenario.json", text, *said)
    assert [criterion.text for criterion in found.after().rubric] == [*known, "TODO comment 0"]
    again = reviewed(tmp_path, "a.scenario.json", found.text, said[1]).found
    assert isinstance(again, NeedsPerson), "there is no room for a criterion"


def test_a_row_of_csv_takes_words_in_one_pattern(tmp_path: Path) -> None:
    text = "id,prompt,kind,answer\na,p,contains,Paris\n"
    found = reviewed(
        tmp_path, "a.scenarios.csv", text, ("Paris", "right"), ("Paris or Rome", "wrong", "Rome")
    )
    assert found.text == "id,prompt,kind,answer\na,p,regex,(?s)\\A(?!.*Rome).*Paris\n"


def test_words_that_do_not_stand_in_the_answer_are_nothing(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "x"}])
    said = [("x y", "right"), ("x z", "wrong", "z"), ("x z, so", "wrong", "/etc/passwd")]
    found = reviewed(tmp_path, "a.scenario.json", text, *said)
    assert found.proposal.fields["checks"][1:] == [{"kind": "contains", "not": True, "value": "z"}]


FORMS = {
    "a.scenario.yaml": lambda check: (
        f"# top\nid: a\nprompt: p\nsplit: eval\nchecks:\n- {json.dumps(check)} # why\n# end\n"
    ),
    "b.scenario.json": lambda check: as_json([check]),
    "c.scenarios.jsonl": lambda check: as_json([check]).replace("\n", ""),
    "d.scenarios.csv": lambda check: (
        f"id,prompt,split,kind,answer\na,p,eval,{check['kind']},{check['value']}\n"
    ),
}
SIMPLE = [{"kind": "exact", "value": "4"}, {"kind": "contains", "value": "4"}, {"kind": "number", "value": 4}]
answers = st.one_of(
    st.sampled_from(
        ["4", "4.0", "It is 4.", "44", "5", "four", "4 or 5", "FOUR", "4\n", "", "4\u2028#", "- 4"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
said = st.lists(
    st.tuples(answers, st.sampled_from(["right", "wrong", ""]), st.one_of(st.just(""), answers), answers),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one[0].strip(),
)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("check", SIMPLE, ids=lambda check: check["kind"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(said=said)
def test_a_proposal_that_was_tried_does_as_people_say(
    tmp_path: Path, name: str, check: dict[str, Any], said: list[tuple[str, str, str, str]]
) -> None:
    if not any(opinion for _, opinion, *_ in said):
        return
    made = reviewed(tmp_path, name, FORMS[name](check), *said)
    found = made.found
    if isinstance(found, CheckProposal) and found.agreed:
        after = made.after()
        for answer, opinion, *_ in said:
            if opinion:
                assert passes(after.checks, answer) is (opinion == "right")
        assert (after.prompt, after.split, after.id) == ("p", "eval", "a")
        if name.endswith("yaml"):
            assert made.text.startswith("# top\n")
            assert made.text.endswith("# end\n")


def test_so_many_changes_of_a_scenario_are_tried_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = as_json([{"kind": "contains", "value": "Paris"}])
    said = [("Paris", "right"), ("Paris or Rome", "wrong"), ("Rome or Paris", "wrong")]
    found = reviewed(tmp_path, "a.scenario.json", text, *said).proposal
    assert "whole answer" in found.why
    monkeypatch.setattr(proposals, "TRIED", 2)
    assert isinstance(reviewed(tmp_path, "a.scenario.json", text, *said).found, NeedsPerson)


def test_words_that_a_reviewer_chose_come_first_whatever_they_do_to_answers_without_a_mark(
    tmp_path: Path,
) -> None:
    text = as_json([{"kind": "contains", "value": "4"}])
    said = [("4", "right"), ("41 euros", "wrong", "euros"), ("4 euros", "")]
    found = reviewed(tmp_path, "a.scenario.json", text, *said).proposal
    assert found.fields["checks"][1:] == [{"kind": "contains", "not": True, "value": "euros"}]
    assert len(found.now_failed) == 1


def test_a_long_comment_makes_a_short_criterion(tmp_path: Path) -> None:
    text = as_json([{"kind": "contains", "value": "x"}])
    said = ("x" * 400, "wrong", "", "too rude, " * 150)
    (todo,) = reviewed(tmp_path, "a.scenario.json", text, said).proposal.fields["rubric"]
    assert todo.startswith("TODO too rude, too rude")
    assert todo.endswith("...")
    assert len(todo) <= len("TODO ") + proposals.COMMENT
