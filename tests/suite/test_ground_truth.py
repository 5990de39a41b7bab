"""Scenarios with a rubric, and scenarios without ground truth."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.schema_accepts import accepts
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.ground_truth import criteria_of, misfits, with_checks
from pytest_tfgrpo.suite.scenario import build_scenario, split_of
from pytest_tfgrpo.suite.scenario_files import load_scenarios

EXACT = {"kind": "exact", "value": "3"}
ASKED = {"id": "a", "prompt": "p"}


def one(load, **fields):
    (scenario,) = load("x.scenario.json", json.dumps(ASKED | fields))
    return scenario


@pytest.mark.parametrize(
    ("rubric", "criteria"),
    [
        ("It greets.", [("It greets.", 1)]),
        (["It greets.", "It ends."], [("It greets.", 1), ("It ends.", 1)]),
        (["It greets.", {"text": "It ends.", "weight": 2}], [("It greets.", 1), ("It ends.", 2)]),
        ([{"text": "It ends."}], [("It ends.", 1)]),
    ],
)
def test_a_rubric_is_a_text_or_a_list_of_criteria(load, rubric, criteria):
    scenario = one(load, checks=[EXACT], rubric=rubric)
    assert scenario.rubric == tuple(Criterion(text=text, weight=weight) for text, weight in criteria)
    assert scenario.truth == "checks"


def test_without_checks_a_judge_or_the_majority_stands_in(load):
    judged = one(load, truth="judge", rubric="It greets.", split="eval")
    voted = one(load, truth="majority")
    assert (judged.truth, judged.checks, judged.split) == ("judge", (), "eval")
    assert (voted.truth, voted.checks, voted.split) == ("majority", (), "train")


def eval_ids() -> Iterator[str]:
    return (f"s{n}" for n in range(100) if split_of(f"s{n}") == "eval")


def test_the_hash_never_puts_a_majority_into_the_eval_split(load):
    id_ = next(eval_ids())
    assert one(load, id=id_, checks=[EXACT]).split == "eval"
    assert one(load, id=id_, truth="majority").split == "train"
    assert one(load, truth="majority", family=id_).split == "train"
    assert one(load, id=id_, truth="judge", rubric="x").split == "eval"


@pytest.mark.parametrize(
    ("expected", "check"),
    [
        ("three", {"kind": "exact", "value": "three"}),
        ("3", {"kind": "exact", "value": "3"}),
        (3, {"kind": "number", "value": 3}),
        (-0.5, {"kind": "number", "value": -0.5}),
    ],
)
def test_what_is_expected_is_short_for_one_check(load, expected, check):
    plain, short = one(load, checks=[check]), one(load, expected=expected)
    assert (short.checks, short.stamp) == (plain.checks, plain.stamp)


def test_an_expectation_may_be_a_default_and_comes_with_a_scenario_made_by_code(load):
    text = "defaults: {expected: 3}\nscenarios: [{id: a, prompt: p}, {id: b, prompt: q, expected: x}]"
    assert [scenario.checks[0].kind for scenario in load("x.scenario.yaml", text)] == ["number", "exact"]
    (own,) = load("y.scenario.yaml", f"{text.partition('{id: a')[0]}{{id: d, prompt: s, checks: [{EXACT}]}}]")
    assert [check.kind for check in own.checks] == ["exact"]
    made = build_scenario(
        {"id": "c", "prompt": "r", "expected": "y"}, source="here", checker=None, folder=Path()
    )
    assert made.checks[0].params == {"value": "y"}


def test_checks_may_stand_beside_an_estimate(load):
    assert len(one(load, truth="majority", checks=[EXACT]).checks) == 1


@pytest.mark.parametrize(
    ("fields", "place", "message"),
    [
        ({}, "#:", "missing key 'checks'; without ground truth write truth: majority, or truth: judge"),
        ({"truth": "checks"}, "#:", "missing key 'checks'"),
        ({}, "#:", "; with one answer write expected: ANSWER"),
        ({"expected": "3", "checks": [EXACT]}, "#/expected:", "is short for one check; leave it or checks"),
        ({"expected": True}, "#/expected:", "True is not of type string or number"),
        ({"expected": ["3"]}, "#/expected:", "is not of type string or number"),
        ({"expected": ""}, "#/expected:", "'' should be non-empty"),
        ({"rubric": "x"}, "#:", "missing key 'checks'"),
        ({"truth": "judge"}, "#/truth:", "truth: judge needs a rubric"),
        ({"truth": "judge", "checks": [EXACT]}, "#/truth:", "truth: judge needs a rubric"),
        ({"truth": "majority", "split": "eval"}, "#/split:", "truth: majority is only for split: train"),
        ({"truth": "vote"}, "#/truth:", "'vote' is not one of ['checks', 'majority', 'judge']"),
        ({"truth": ["judge"]}, "#/truth:", "is not one of"),
        ({"truth": "judge", "rubric": []}, "#/rubric:", "[] should be non-empty"),
        ({"truth": "judge", "rubric": " "}, "#/rubric:", "' ' does not match"),
        ({"truth": "judge", "rubric": ["x", ""]}, "#/rubric/1:", "should be non-empty"),
        ({"truth": "judge", "rubric": ["x"] * 21}, "#/rubric:", "at most 20 are allowed, not 21"),
        ({"truth": "judge", "rubric": "x" * 2001}, "#/rubric:", "is too long; at most 2000 are allowed"),
        ({"truth": "judge", "rubric": 7}, "#/rubric:", "7 is not of type string or array; quote it"),
        ({"truth": "judge", "rubric": [{"weight": 1}]}, "#/rubric/0:", "missing key 'text'"),
        ({"truth": "judge", "rubric": [{"text": "x", "weight": 0}]}, "#/rubric/0/weight:", "minimum of 0"),
        ({"truth": "judge", "rubric": [{"text": "x", "wieght": 2}]}, "#/rubric/0/wieght:", "'weight'?"),
    ],
)  # fmt: skip
def test_what_is_missing_or_malformed_is_told_with_its_place(refusal, fields, place, message):
    lines = refusal("x.scenario.json", json.dumps(ASKED | fields))
    assert any(place in line and message in line for line in lines), lines


def test_a_marked_function_is_its_own_truth(tmp_path):
    def build(**fields):
        return build_scenario(ASKED | fields, source="x:1", checker="test_x", folder=tmp_path)

    assert build(rubric=["It greets."], truth="checks").rubric == (Criterion(text="It greets."),)
    for truth in ("majority", "judge"):
        with pytest.raises(ScenarioError, match="#/truth: a marked test function scores its rollouts itself"):
            build(truth=truth, rubric="x")


def test_truth_and_rubric_can_be_defaults_of_a_file(load):
    text = json.dumps({"defaults": {"truth": "majority"}, "scenarios": [ASKED, ASKED | {"id": "b"}]})
    assert [s.truth for s in load("x.scenario.json", text)] == ["majority", "majority"]


def test_a_csv_file_has_columns_for_both(load, refusal):
    judged, voted, known = load(
        "x.scenarios.csv",
        "prompt,answer,truth,rubric,split\n"
        "Greet me.,,judge,It greets.,eval\n2 + 2?,,majority,,\n2 + 3?,5,,,\n",
    )
    assert (judged.truth, judged.rubric, judged.checks) == ("judge", (Criterion(text="It greets."),), ())
    assert (voted.truth, voted.split) == ("majority", "train")
    assert (known.truth, len(known.checks)) == ("checks", 1)
    (only,) = load("y.scenarios.csv", "prompt,truth\n2 + 2?,majority\n")
    assert only.truth == "majority"
    assert "an answer is missing" in refusal("z.scenarios.csv", "prompt,truth\n2 + 2?,\n")[0]
    assert "an answer is missing" in refusal("z.scenarios.csv", "prompt,answer,truth\n2 + 2?,,checks\n")[0]
    assert "no column 'answer'" in refusal("z.scenarios.csv", "prompt,rubric\np,x\n")[0]


def test_the_task_stamp_covers_rubric_and_truth_only_where_they_are(load):
    plain = one(load, checks=[EXACT])
    assert one(load, checks=[EXACT], truth="checks").stamp == plain.stamp
    stamps = {
        one(load, checks=[EXACT], rubric="x").stamp,
        one(load, checks=[EXACT], rubric=["x", "y"]).stamp,
        one(load, checks=[EXACT], rubric=[{"text": "x", "weight": 2}]).stamp,
        one(load, checks=[EXACT], rubric="x", truth="judge").stamp,
        one(load, checks=[EXACT], truth="majority").stamp,
        plain.stamp,
    }
    assert len(stamps) == 6
    assert one(load, checks=[EXACT], rubric=["x"]).stamp in stamps


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").glob("*.scenario*")), ids=lambda path: path.name)
def test_shipped_scenarios_have_the_stamps_they_had_before_there_were_rubrics(path):
    for scenario in load_scenarios(path, root=ROOT, kinds=KINDS):
        assert scenario.stamp == stamp(
            {
                "prompt": scenario.prompt,
                "input": scenario.input,
                "attachments": [[attachment.name, attachment.sha256] for attachment in scenario.attachments],
                "tools": None if scenario.tools is None else list(scenario.tools),
                "checks": [[check.kind, check.weight, check.params] for check in scenario.checks],
            }
        )


def test_the_fast_path_takes_both_keys():
    accept = accepts(load_schema("scenario"))
    assert accept(ASKED | {"truth": "judge", "rubric": ["x", {"text": "y", "weight": 2}]})
    assert accept(ASKED | {"truth": "majority"})


@pytest.mark.parametrize("expected", ["", True, None, [], {}])
def test_what_no_check_can_expect_is_left_for_the_schema(expected):
    assert with_checks({"expected": expected}) == {"expected": expected}
    assert with_checks([expected]) == [expected]


def said(data, checker=None):
    return [(list(found.path), found.message) for found in misfits({**ASKED, **data}, checker)]


@pytest.mark.parametrize(
    ("data", "path", "words"),
    [
        ({"truth": "majority", "split": "dev"}, ["split"], "only for split: train"),
        ({"truth": "majority", "split": "eval"}, ["split"], "only for split: train"),
        ({"truth": "judge"}, ["truth"], "needs a rubric"),
        ({}, [], "missing key 'checks'"),
        ({"checks": [], "expected": 3}, ["expected"], "leave it or checks out"),
        ({"checks": [], "turns": ["a"]}, ["prompt"], "leave prompt out"),
        ({"checks": [], "user": {}}, ["user"], "a user needs turns"),
        ({"checks": [], "rubric": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, ["rubric"], "called 'a'"),
    ],
)
def test_what_does_not_fit_together_is_said_with_its_place(data, path, words):
    (found,) = said(data)
    assert found[0] == path
    assert words in found[1]


@pytest.mark.parametrize(
    "data",
    [
        {"truth": "majority", "split": "train"},
        {"truth": "majority"},
        {"checks": [], "rubric": [{"name": "a"}, {"name": "b"}, {}, {}, "text", "text"]},
        {"expected": 3},
        {"checks": [], "rubric": "text"},
    ],
)
def test_what_fits_together_is_let_pass(data):
    assert said(data) == []


def test_a_marked_test_function_sets_up_and_scores_its_rollouts_itself():
    assert said({}, "test_a.py::test_b") == []
    after = {"turns": ["a", {"user": "b", "checks": []}]}
    found = [
        said({"setup": {}, "teardown": {}}, "f"),
        said({"truth": "judge", "rubric": "x"}, "f"),
        [one for one in said(after, "f") if one[0] == ["turns"]],
    ]
    assert [[path for path, _ in one] for one in found] == [
        [["setup"], ["teardown"]],
        [["truth"]],
        [["turns"]],
    ]
    assert found[0][1][1].endswith("leave teardown out")


def test_what_a_user_says_is_not_checked_beforehand():
    data = {"turns": ["a", {"user": "b", "checks": []}], "user": {"goal": "g"}}
    found = list(misfits({"id": "a", **data}, None))
    assert [(list(one.path), one.message) for one in found] == [
        (["turns"], "what a user says is not known beforehand: check at the end")
    ]


def test_a_criterion_has_the_weight_and_the_name_that_are_written():
    written = [{"text": "Is it kind?", "name": "kind", "weight": 2}, {"text": "Is it short?"}, "Is it true?"]
    assert criteria_of(written) == (
        Criterion(text="Is it kind?", name="kind", weight=2.0),
        Criterion(text="Is it short?"),
        Criterion(text="Is it true?"),
    )
    assert criteria_of("Is it true?") == (Criterion(text="Is it true?"),)
