"""Configurations of promptfoo become scenarios; what promptfoo would run is named, and never runs."""

import json

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.harness.suite.imports.promptfoo import render

CONFIG = """
description: Translations
prompts:
  - 'Translate to {{language}}: {{ input }}'
  - 'In {{language}}, please: {{input}}'
providers: [openai:gpt-4o-mini, python:provider.py]
defaultTest:
  assert:
    - {type: cost, threshold: 0.002}
    - {type: not-contains, value: As an AI}
tests:
  - description: a greeting
    vars: {language: French, input: Hello world}
    assert:
      - {type: icontains, value: bonjour, weight: 2}
      - {type: llm-rubric, value: 'It greets in {{language}}'}
      - {type: javascript, value: output.length < 100}
  - vars: {language: [German, Dutch], input: yes}
    threshold: 0.5
    assert:
      - {type: contains-any, value: [ja, Ja]}
      - {type: latency, threshold: 3000}
      - {type: similar, value: ja, threshold: 0.8}
      - {type: cost}
      - {type: contains, value: 'file://ja.txt'}
"""


def test_a_test_becomes_a_scenario_with_the_first_prompt(imported):
    found = imported("promptfoo", "promptfooconfig.yaml", CONFIG)
    first, second, third = found.scenarios
    assert first == {
        "id": "a-greeting",
        "prompt": "Translate to French: Hello world",
        "checks": [
            {"kind": "limits", "cost_usd": 0.002},
            {"kind": "contains", "value": "As an AI", "not": True},
            {"kind": "regex", "pattern": "bonjour", "flags": "i", "weight": 2},
        ],
        "rubric": [{"text": "It greets in French"}],
    }
    assert [second["prompt"], third["prompt"]] == ["Translate to German: yes", "Translate to Dutch: yes"]
    assert [second["id"], third["id"]] == ["promptfooconfig-tests-1", "promptfooconfig-tests-1-2"]
    assert second["min_score"] == 0.5
    assert second["checks"][2:] == [
        {"kind": "regex", "pattern": "ja|Ja"},
        {"kind": "limits", "latency_ms": 3000},
    ]


def test_what_has_no_counterpart_is_counted_with_its_first_place(imported):
    assert list(imported("promptfoo", "c.yaml", CONFIG).report()) == [
        "not carried over, 2 times: assertion `contains` (first: tests[1].assert[6])",
        "not carried over, 2 times: assertion `cost` (first: tests[1].assert[5])",
        "not carried over, 2 times: assertion `similar` (first: tests[1].assert[4])",
        "not carried over, 1 time: assertion `javascript` (first: tests[0].assert[4])",
        "not carried over, 1 time: further prompts: a scenario has one (first: prompts[1] of 2)",
    ]


def test_programs_are_never_run_and_files_stay_beside_the_configuration(imported, tmp_path):
    (tmp_path / "planted.py").write_text("raise SystemExit('it ran')")
    (tmp_path / "text.md").write_text("a lamp")
    found = imported(
        "promptfoo",
        "c.yaml",
        """
prompts: ['What is {{a}}?']
tests:
  - file://planted.py
  - vars: {a: file://planted.py}
    assert: [{type: equals, value: x}]
  - vars: {a: file:///etc/passwd.txt}
    assert: [{type: equals, value: x}]
  - vars: {a: file://text.md}
    assert: [{type: python, value: file://planted.py}, {type: equals, value: x}]
""",
    )
    assert [one["prompt"] for one in found.scenarios] == ["What is a lamp?"]
    assert [text.partition(": ")[2] for text in found.report()] == [
        "files that promptfoo would run (first: tests[0]: planted.py)",
        "assertion `python` (first: tests[3].assert[0])",
        "files that cannot be read (first: tests[2].vars.a: '/etc/passwd.txt' must be a plain relative path "
        "that stays in its folder)",
    ]


def test_a_table_of_tests_has_variables_as_columns_and_assertions_in_expected(imported, tmp_path):
    (tmp_path / "tests.csv").write_text(
        "q,__expected,__expected2,__description\n"
        "2+2?,4,not-contains: five,a sum\n"
        '"Colours?","contains-all: red, blue",,\n'
        "Is it JSON?,is-json,fn: output > 1,\n"
    )
    found = imported("promptfoo", "c.yaml", "prompts: ['{{q}}']\ntests: file://tests.csv\n")
    assert [one["checks"] for one in found.scenarios] == [
        [
            {"kind": "exact", "value": "4", "strip": False},
            {"kind": "contains", "value": "five", "not": True},
        ],
        [{"kind": "contains", "values": ["red", "blue"]}],
        [{"kind": "json_schema", "schema": {}}],
    ]
    assert found.scenarios[0]["id"] == "a-sum"


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("{% if x %}a{% endif %}", "templates with more than {{ variable }}"),
        ("{{ q | upper }}", "templates with more than {{ variable }}"),
        ("{{ other }}", "templates with a variable that has no value: other"),
        ('[{"role": "tool", "content": "{{q}}"}]', "chats with a tool's message"),
    ],
)
def test_a_prompt_that_is_more_than_a_text_is_named(imported, prompt, told):
    config = {
        "prompts": [prompt],
        "tests": [{"vars": {"q": "x"}, "assert": [{"type": "equals", "value": "x"}]}],
    }
    found = imported("promptfoo", "c.json", json.dumps(config))
    assert found.scenarios == []
    assert told in next(found.report())


ONE_TEST = {"vars": {"q": "x"}, "assert": [{"type": "equals", "value": "x"}]}


def test_a_chat_prompt_is_what_its_user_says(imported):
    chat = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Is it {{q}}?"},
    ]
    found = imported("promptfoo", "c.json", json.dumps({"prompts": [json.dumps(chat)], "tests": [ONE_TEST]}))
    assert found.scenarios[0]["turns"] == ["Hello", "Is it x?"]
    assert [what.partition(" ")[0] for what in found.left_out] == ["system", "messages"]


def test_prompts_tests_and_values_in_files_are_read_in_every_form(imported, tmp_path):
    (tmp_path / "p.txt").write_text("Is it {{q}}?")
    (tmp_path / "t.jsonl").write_text(json.dumps(ONE_TEST) + "\n")
    (tmp_path / "t.csv").write_text("q,__expected,__metric\ny,y,speed\n")
    (tmp_path / "v.yaml").write_text("q: z\n")
    (tmp_path / "d.yaml").write_text("assert: [{type: is-json}]\n")
    text = """
prompts: {p.txt: first}
defaultTest: file://d.yaml
tests:
  - {path: file://t.csv, config: {rows: 3}}
  - t.jsonl
  - {vars: v.yaml}
  - {path: make.py}
  - huggingface://datasets/squad
"""
    found = imported("promptfoo", "c.yaml", text)
    assert [one["prompt"] for one in found.scenarios] == ["Is it y?", "Is it x?", "Is it z?"]
    assert all(one["checks"][0]["kind"] == "json_schema" for one in found.scenarios)
    assert set(found.left_out) == {
        "`config` of a file of tests",
        "`__metric` of a table",
        "files that promptfoo would run",
        "addresses that promptfoo would fetch",
    }


def test_tests_in_an_object_with_a_path_are_those_of_its_file(imported, tmp_path):
    (tmp_path / "t.yaml").write_text(json.dumps([ONE_TEST, {"path": "t.yaml"}]))
    found = imported("promptfoo", "c.yaml", "prompts: ['{{q}}']\ntests: {path: t.yaml}\n")
    assert len(found.scenarios) == 1
    assert list(found.left_out) == ["tests in a file that are no object, or name another file"]


def test_prompts_of_which_none_can_be_read_are_refused_with_the_reason(imported):
    config = json.dumps({"prompts": ["prompts.py", {"function": "f"}, "missing.txt"], "tests": [ONE_TEST]})
    assert len(imported("promptfoo", "c.json", config.replace("prompts.py", "{{q}}")).scenarios) == 1
    config = config.replace("prompts.py", "file://prompts.py")
    with pytest.raises(
        ScenarioError, match=r"(?s)c\.json: none of its prompts .*missing.*promptfoo would run"
    ):
        imported("promptfoo", "c.json", config)


def test_every_key_without_a_counterpart_is_counted(imported):
    config = {
        "prompts": [{"raw": "{{q}}", "label": "l", "config": {"a": 1}}],
        "scenarios": [{}],
        "defaultTest": {"options": {"transform": "x"}},
        "tests": [
            {
                "vars": {"q": "x"},
                "assert": [
                    {"type": "equals", "value": "x", "metric": "m", "transform": "output.trim()"},
                    {"type": "not-latency", "threshold": 3},
                    5,
                ],
                "disabled": True,
            }
        ],
    }
    found = imported("promptfoo", "c.json", json.dumps(config))
    assert set(found.left_out) == {
        "`config` of a prompt",
        "`scenarios` of the configuration",
        "`options` of a test",
        "`disabled` of a test",
        "`metric` of an assertion",
        "`transform` of an assertion",
        "assertions that are no object",
    }


def test_a_criterion_that_is_too_long_is_cut_and_counted(imported):
    rubric = {"type": "llm-rubric", "value": ["{{q}}" + "a" * 2_000, "b" * 2_000]}
    test = {"vars": {"q": "x"}, "assert": [{"type": "is-json"}, rubric]}
    found = imported("promptfoo", "c.json", json.dumps({"prompts": ["{{q}}"], "tests": [test]}))
    assert found.scenarios[0]["rubric"] == [{"text": "x" + "a" * 1_999}, {"text": "b" * 2_000}]
    assert found.left_out == {"the rest of criteria of more than 2,000 characters": (1, "tests[0].assert[1]")}


@pytest.mark.parametrize("threshold", [50, -0.5, "0.5", True])
def test_a_threshold_that_is_no_score_is_counted(imported, threshold):
    tests = [ONE_TEST | {"threshold": threshold}, ONE_TEST | {"threshold": 1}]
    config = {"prompts": ["{{q}}"], "tests": [*tests, ONE_TEST], "defaultTest": {"threshold": 0}}
    found = imported("promptfoo", "c.json", json.dumps(config))
    assert [one.get("min_score") for one in found.scenarios] == [None, 1, 0]
    assert found.left_out == {"`threshold` of a test that is no number from 0 to 1": (1, "tests[0]")}


def test_a_value_of_a_variable_is_never_a_template(imported):
    assert render("{{a}}", {"a": "{{b}}", "b": "secret"}) == "{{b}}"
    assert render("{{ a.b }}", {"a": {"b": 1}}) == "1"


@pytest.mark.parametrize("text", ["[1, 2]", "prompts: [a]", "tests: [\n"])
def test_a_file_that_is_no_configuration_is_refused_by_name(imported, text):
    with pytest.raises(ScenarioError, match=r"c\.yaml"):
        imported("promptfoo", "c.yaml", text)


def test_tests_with_too_many_combinations_are_left_out(imported):
    test = {"vars": {"a": list(range(40)), "b": list(range(40))}, "assert": [{"type": "is-json"}]}
    config = json.dumps({"prompts": ["{{a}}"], "tests": [test]})
    assert "more than 1,000 combinations" in next(imported("promptfoo", "c.yaml", config).report())


def test_what_is_no_list_where_one_belongs_is_left_out(imported, tmp_path):
    (tmp_path / "three.yaml").write_text("3")
    for tests in ("file://three.yaml", "[{vars: {prompt: a}, assert: 5}]"):
        assert imported("promptfoo", "c.yaml", f"tests: {tests}").scenarios == []


def test_a_value_that_is_no_text_is_no_text_check(imported):
    test = {"vars": {"a": "x"}, "assert": [{"type": "contains", "value": {"a": 1}}, {"type": "is-json"}]}
    found = imported("promptfoo", "c.json", json.dumps({"prompts": ["{{a}}"], "tests": [test]}))
    assert found.scenarios[0]["checks"] == [{"kind": "json_schema", "schema": {}}]
    assert "assertion `contains`" in next(found.report())


@pytest.mark.parametrize(
    ("kind", "value", "check"),
    [
        ("icontains-any", "yes, of course", {"kind": "regex", "pattern": "yes|of\\ course", "flags": "i"}),
        ("contains-any", '"a, b",c', {"kind": "regex", "pattern": "a,\\ b|c"}),
        ("contains-all", "red,green", {"kind": "contains", "values": ["red", "green"]}),
        ("contains-all", ["a,b"], {"kind": "contains", "values": ["a,b"]}),
        ("contains-any", ",", {"kind": "regex", "pattern": ","}),
        ("contains", "a,b", {"kind": "contains", "value": "a,b"}),
    ],
)
def test_texts_in_one_text_are_told_apart_by_commas(imported, kind, value, check):
    test = {"vars": {"a": "x"}, "assert": [{"type": kind, "value": value}]}
    found = imported("promptfoo", "c.json", json.dumps({"prompts": ["{{a}}"], "tests": [test]}))
    assert found.scenarios[0]["checks"] == [check]
