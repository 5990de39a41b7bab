"""Configurations of promptfoo become scenarios; what promptfoo would run is named, and never runs."""

import csv
import io
import json

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.suite.imports.promptfoo_values import render

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
        "not carried over, 2 times: assertion `contains` (first: c.yaml: tests[1].assert[6])",
        "not carried over, 2 times: assertion `cost` whose threshold is null "
        "(first: c.yaml: tests[1].assert[5])",
        "not carried over, 2 times: assertion `similar` (first: c.yaml: tests[1].assert[4])",
        "not carried over, 2 times: files that cannot be read (first: c.yaml: tests[1].assert[6]: 'ja.txt' "
        "cannot be read: No such file or directory; looked beside the file that names it)",
        "not carried over, 1 time: assertion `javascript` (first: c.yaml: tests[0].assert[4])",
        "not carried over, 1 time: further prompts: a scenario has one (first: c.yaml: prompts[1] of 2)",
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
        "files that promptfoo would run (first: c.yaml: tests[0]: planted.py)",
        "assertion `python` (first: c.yaml: tests[3].assert[0])",
        "files that cannot be read (first: c.yaml: tests[2].vars.a: '/etc/passwd.txt' "
        "must be a plain relative path that stays in its folder)",
    ]


def test_a_table_of_tests_has_variables_as_columns_and_assertions_in_expected(imported, tmp_path):
    (tmp_path / "tests.csv").write_text(
        "q,__expected,__expected2,__description\n"
        "2+2?,4,not-contains: five,a sum\n"
        '"Colours?","contains-all: red, blue",,\n'
        "Is it JSON?,is-json,fn: output > 1,\n"
        "Is it kind?,eval: output > 1,grade: It is kind,\n"
        '"How many?","contains-all: ""1,000"",in stock",,\n'
    )
    found = imported("promptfoo", "c.yaml", "prompts: ['{{q}}']\ntests: file://tests.csv\n")
    assert [one.get("checks", one.get("rubric")) for one in found.scenarios] == [
        [
            {"kind": "exact", "value": "4", "strip": False},
            {"kind": "contains", "value": "five", "not": True},
        ],
        [{"kind": "contains", "values": ["red", "blue"]}],
        [{"kind": "json_schema", "schema": {}}],
        [{"text": "It is kind"}],
        [{"kind": "contains", "values": ["1,000", "in stock"]}],
    ]
    assert found.scenarios[0]["id"] == "a-sum"
    fenced = "`is-json` passes JSON in a Markdown fence, which promptfoo fails"
    assert found.notes == {fenced: (1, "c.yaml: tests.csv, row 3.assert[0]")}


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


def test_further_forms_of_files_are_read_and_what_is_none_is_counted(imported, tmp_path):
    (tmp_path / "p.md").write_text("First {{q}}\n---\nSecond {{q}}")
    (tmp_path / "v.yml").write_text("a: 1\n")
    (tmp_path / "v.json").write_text("[1]")
    (tmp_path / "a.yaml").write_text("[{type: equals, value: x}, 5, null]\n")
    (tmp_path / "t.csv").write_text("q,__expected\none,x\ntwo,x,more\n")
    text = """
prompts: [file://./p.md]
tests:
  - {vars: {q: file://v.yml}, assert: file://a.yaml}
  - {vars: {q: z}, assert: {type: equals, value: x}}
  - {vars: 5, assert: [{type: equals, value: x}]}
  - {vars: file://v.json}
  - file://t.csv
  - 3
  - null
"""
    found = imported("promptfoo", "c.yaml", text)
    prompts = [one["prompt"] for one in found.scenarios]
    assert prompts == ['First {"a":1}', "First z", "First one"]
    assert all(one["checks"] == [{"kind": "exact", "value": "x", "strip": False}] for one in found.scenarios)
    assert {what: count for what, (count, _) in found.left_out.items() if "template" not in what} == {
        "further prompts: a scenario has one": 1,
        "assertions that are no object": 1,
        "values that are no object": 2,
        "rows of a table that do not fit": 1,
        "tests that are neither an object nor a file": 1,
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
    assert found.left_out == {
        "the rest of criteria of more than 2,000 characters": (1, "c.json: tests[0].assert[1]")
    }


@pytest.mark.parametrize("threshold", [50, -0.5, "0.5", True])
def test_a_threshold_that_is_no_score_is_counted(imported, threshold):
    tests = [ONE_TEST | {"threshold": threshold}, ONE_TEST | {"threshold": 1}]
    config = {"prompts": ["{{q}}"], "tests": [*tests, ONE_TEST], "defaultTest": {"threshold": 0}}
    found = imported("promptfoo", "c.json", json.dumps(config))
    assert [one.get("min_score") for one in found.scenarios] == [None, 1, 0]
    assert found.left_out == {"`threshold` of a test that is no number from 0 to 1": (1, "c.json: tests[0]")}


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
    assert "assertion `contains` whose value is an object with the keys a" in next(found.report())


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


@pytest.mark.parametrize(
    ("words", "value", "meant"),
    [
        ("[[x, y]]", "{{w}}", ["x", "y"]),
        ("[[x, 5, null]]", "{{w}}, z", ["x", "5", "z"]),
        ("[['1,000', y]]", "{{w}}", ["1", "000", "y"]),
    ],
)
def test_a_list_in_a_variable_is_its_texts_with_commas_between(imported, words, value, meant):
    test = f"{{vars: {{q: Oslo, w: {words}}}, assert: [{{type: contains-all, value: '{value}'}}]}}"
    found = imported("promptfoo", "c.yaml", f"prompts: ['{{{{q}}}}']\ntests: [{test}]\n")
    assert found.scenarios[0]["checks"] == [{"kind": "contains", "values": meant}]


def one_check(imported, assertion, **variables):
    test = {"vars": {"q": "x", **variables}, "assert": [assertion]}
    return imported("promptfoo", "c.json", json.dumps({"prompts": ["{{q}}"], "tests": [test]}))


CITY = {"type": "object", "required": ["city"]}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (CITY, CITY),
        (json.dumps(CITY), CITY),
        ("{type: object, required: [city]}", CITY),
        ("type: object\nrequired:\n- city\n", CITY),
        ('{"type": "object", "required": ["{{key}}"]}', CITY),
        ("file://s.json", CITY),
        ("file://s.yaml", CITY),
        ("file://s.txt", CITY),
        (CITY | {"$schema": "http://json-schema.org/draft-07/schema#"}, CITY),
        (True, {}),
        (False, {"not": {}}),
        (None, {}),
        ("", {}),
    ],
)
def test_a_schema_is_an_object_a_text_or_a_file(imported, tmp_path, value, schema):
    (tmp_path / "s.json").write_text(json.dumps(CITY))
    (tmp_path / "s.yaml").write_text("type: object\nrequired: [city]\n")
    (tmp_path / "s.txt").write_text(json.dumps(CITY) + "\n")
    found = one_check(imported, {"type": "not-is-json", "value": value, "weight": 2}, key="city")
    check = {"kind": "json_schema", "schema": schema, "weight": 2, "not": True}
    assert found.scenarios[0]["checks"] == [check]
    assert found.left_out == {}


@pytest.mark.parametrize(
    ("assertion", "told"),
    [
        ({"type": "is-json", "value": [1]}, "assertion `is-json` whose schema is a list"),
        ({"type": "is-json", "value": 3}, "assertion `is-json` whose schema is a number"),
        ({"type": "is-json", "value": "just a text"}, "assertion `is-json` whose schema is a text"),
        ({"type": "is-json", "value": "{a: [}"}, "assertion `is-json` whose schema cannot be read: not YAML"),
        ({"type": "is-json", "value": "file://none.json"}, "assertion `is-json`"),
        ({"type": "is-json", "value": "file://../s.json"}, "assertion `is-json`"),
        ({"type": "is-json", "value": "file://s.py"}, "assertion `is-json`"),
        ({"type": "contains-json", "value": CITY}, "assertion `contains-json`"),
        ({"type": "is-valid-openai-tools-call", "value": CITY}, "assertion `is-valid-openai-tools-call`"),
        ({"type": "assert-set", "assert": []}, "assertion `assert-set`"),
        ({"type": "contains", "value": ["a", "b"]}, "assertion `contains` whose value is a list"),
        ({"type": "contains", "value": ""}, "assertion `contains` whose value is an empty text"),
        ({"type": "contains"}, "assertion `contains` whose value is null"),
        ({"type": "contains", "value": True}, "assertion `contains` whose value is a boolean"),
        ({"type": "icontains", "value": {"a": 1}}, "assertion `icontains` whose value is an object with the"),
        ({"type": "contains-any", "value": []}, "assertion `contains-any` whose value is an empty list"),
        (
            {"type": "contains-any", "value": ["a", ""]},
            "assertion `contains-any` of which one value is an em",
        ),
        ({"type": "contains-all", "value": [["a"]]}, "assertion `contains-all` of which one value is a list"),
        ({"type": "icontains-all", "value": 5}, "assertion `icontains-all` whose value is a number"),
        ({"type": "starts-with", "value": 5}, "assertion `starts-with` whose value is a number"),
        ({"type": "regex", "value": None}, "assertion `regex` whose value is null"),
        ({"type": "regex", "value": "(?i)a"}, "assertion `regex` with '(?i)', which not every JavaScript"),
        ({"type": "not-regex", "value": "a("}, "assertion `regex` 'a(' is not a regular expression: missing"),
        ({"type": "equals"}, "assertion `equals` whose value is null"),
        ({"type": "llm-rubric"}, "assertion `llm-rubric` whose value is null"),
        ({"type": "llm-rubric", "value": {"a": 1}}, "assertion `llm-rubric` whose value is an object with"),
        ({"type": "llm-rubric", "value": "file://none.txt"}, "assertion `llm-rubric`"),
        ({"type": "not-llm-rubric", "value": "It is kind"}, "assertion `llm-rubric`"),
        ({"type": "latency", "threshold": "5"}, "assertion `latency` whose threshold is a text"),
        ({"type": "cost", "threshold": True}, "assertion `cost` whose threshold is a boolean"),
        ({"type": "equals", "value": "x", "weight": "2"}, "assertions whose weight is a text"),
        ({"type": "equals", "value": "x", "weight": True}, "assertions whose weight is a boolean"),
        (
            {"type": "equals", "value": "x", "weight": 0},
            "assertions of weight 0, which only count as metrics",
        ),
        ({"type": "equals", "value": "x", "weight": -1}, "assertions of a weight below 0"),
        ({"$ref": "#/assertionTemplates/a"}, "assertions whose type is null"),
        ({"type": ["equals"]}, "assertions whose type is a list"),
    ],
)
def test_an_assertion_of_another_shape_is_counted_and_no_check_of_anything(imported, assertion, told):
    found = one_check(imported, assertion)
    assert found.scenarios == []
    assert any(what.startswith(told) for what in found.left_out), found.left_out


@pytest.mark.parametrize(
    ("assertion", "check"),
    [
        ({"type": "equals", "value": {"a": 1}}, {"kind": "json_schema", "schema": {"const": {"a": 1}}}),
        ({"type": "equals", "value": [1.0]}, {"kind": "json_schema", "schema": {"const": [1]}}),
        ({"type": "equals", "value": True}, {"kind": "exact", "value": "true", "strip": False}),
        ({"type": "equals", "value": 1.0}, {"kind": "exact", "value": "1", "strip": False}),
        ({"type": "equals", "value": "{{n}}"}, {"kind": "exact", "value": "1", "strip": False}),
        ({"type": "equals", "value": "{{t}}{{f}}"}, {"kind": "exact", "value": "truefalse", "strip": False}),
        ({"type": "equals", "value": "<{{none}}>"}, {"kind": "exact", "value": "<>", "strip": False}),
        ({"type": "equals", "value": "{{o}}"}, {"kind": "exact", "value": '{"a":[1,"b"]}', "strip": False}),
        ({"type": "contains", "value": 1000.5}, {"kind": "contains", "value": "1000.5"}),
        ({"type": "contains", "value": "file://a.txt"}, {"kind": "contains", "value": "a lamp"}),
        (
            {"type": "contains-all", "value": [True, None, 2.0]},
            {"kind": "contains", "values": ["true", "null", "2"]},
        ),
        ({"type": "contains-any", "value": "file://a.yaml"}, {"kind": "regex", "pattern": "a|b"}),
        ({"type": "regex", "value": r"^\d$"}, {"kind": "regex", "pattern": r"^[0-9]\Z"}),
    ],
)
def test_values_are_what_javascript_makes_of_them(imported, tmp_path, assertion, check):
    (tmp_path / "a.txt").write_text("a lamp\n")
    (tmp_path / "a.yaml").write_text("- a\n- b\n")
    variables = {"n": 1.0, "t": True, "f": False, "none": None, "o": {"a": [1, "b"]}}
    assert one_check(imported, assertion, **variables).scenarios[0]["checks"] == [check]


def test_a_fact_is_an_expected_answer_and_a_file_a_criterion(imported, tmp_path):
    (tmp_path / "r.txt").write_text("It is kind.\n")
    (one,) = one_check(imported, {"type": "llm-rubric", "value": "file://r.txt"}).scenarios
    (other,) = one_check(imported, {"type": "factuality", "value": "Lima is big"}).scenarios
    assert one["rubric"] == [{"text": "It is kind."}]
    assert other["rubric"] == [{"text": "The answer agrees with this expected answer: Lima is big"}]


@pytest.mark.parametrize(
    ("written", "text", "told"),
    [
        ("yes", "yes", 0),
        ("no", "no", 0),
        ("1e3", "1000", 0),
        ("1.0", "1", 0),
        ("1.50", "1.5", 0),
        ("010", "10", 0),
        ("0o17", "15", 0),
        ("0x1F", "31", 0),
        ("'010'", "010", 0),
        ("1e21", "1e+21", 0),
        ("1e16", "10000000000000000", 0),
        ("0.0000001", "1e-7", 0),
        ("0.00001", "0.00001", 0),
        ("12:30", "12:30", 0),
        ("~", "<>", 0),
        ("True", "true", 0),
        ("2026-11-27", "2026-11-27", 1),
        ("'2026-11-27'", "2026-11-27", 0),
        (".inf", ".inf", 1),
        ("1_000", "1_000", 1),
    ],
)
def test_yaml_is_read_as_javascript_does_and_what_differs_is_told(imported, written, text, told):
    test = f"{{vars: {{q: {written}}}, assert: [{{type: equals, value: a}}]}}"
    config = f"prompts: ['<{{{{q}}}}>']\ntests: [{test}]\n"
    found = imported("promptfoo", "c.yaml", config)
    assert found.scenarios[0]["prompt"] == ("<>" if text == "<>" else f"<{text}>")
    assert len(found.notes) == told


def test_merge_keys_of_a_configuration_are_carried_out(imported):
    config = """
prompts: ['{{q}} {{r}}']
usual: &usual {vars: {q: a, r: b}, assert: [{type: is-json}]}
tests:
- <<: *usual
- {<<: [{threshold: 0.5}, *usual], vars: {q: c, r: d}}
"""
    found = imported("promptfoo", "c.yaml", config)
    assert [(one["prompt"], one.get("min_score")) for one in found.scenarios] == [("a b", None), ("c d", 0.5)]
    with pytest.raises(ScenarioError, match=r"c\.yaml: a merge key `<<` that names no object"):
        imported("promptfoo", "c.yaml", "tests: [{<<: 3}]")


@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_a_key_that_stands_twice_is_refused_with_its_line(imported, name):
    with pytest.raises(ScenarioError, match=rf"{name}:2: duplicate key 'tests'; first on line 1"):
        imported("promptfoo", name, '{"tests": [],\n"tests": []}')


JSON_CHAT = '[{"role":"system","content":"Be short."},{"role":"user","content":"{{q}}"}]'


@pytest.mark.parametrize(
    "prompt",
    [
        JSON_CHAT,
        f'{{"messages": {JSON_CHAT}}}',
        "- role: system\n  content: Be short.\n- role: user\n  content: {{q}}\n",
        '- role: user\n  content: "{{ q }}"\n',
        "- role: user\n  content: |\n    {{q}}",
        "file://p.json",
        "file://p.yaml",
    ],
)
@pytest.mark.parametrize(
    "value", ['What is a "lamp"?', "C:\\temp", "a: b\n- c # d", "it's", "{x}", "[1", "%", "variable0e"]
)
def test_a_chat_is_parsed_before_its_variables_are_filled_in(imported, tmp_path, prompt, value):
    (tmp_path / "p.json").write_text(JSON_CHAT)
    (tmp_path / "p.yaml").write_text("- role: user\n  content: '{{q}}'\n")
    test = {"vars": {"q": value}, "assert": [{"type": "contains", "value": "light"}]}
    found = imported("promptfoo", "c.json", json.dumps({"prompts": [prompt], "tests": [test]}))
    assert found.scenarios[0]["prompt"].strip() == value


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ('[{"role": "user", "content": {{q}}}]', "chats that are no JSON before their variables"),
        ("[{'role': 'user', 'content': '{{q}}'}]", "chats that are no JSON before their variables"),
        ("- role: user\n content: [", "chats that are no YAML before their variables"),
        ("{# a comment #}{{q}}", "templates with more than {{ variable }}"),
        ("{{- q }}", "templates with more than {{ variable }}"),
        ("{{ q[0] }}", "templates with more than {{ variable }}"),
        ("{{ env.KEY }}", "templates with a variable that has no value: env.KEY"),
        ('[{"role": "user", "content": "{{ q | dump }}"}]', "templates with more than {{ variable }}"),
    ],
)
def test_a_prompt_that_cannot_be_filled_in_for_certain_is_named(imported, prompt, told):
    found = imported("promptfoo", "c.json", json.dumps({"prompts": [prompt], "tests": [ONE_TEST]}))
    assert found.scenarios == []
    assert any(what.startswith(told) for what in found.left_out), found.left_out


def test_a_prompt_that_is_other_json_is_a_text_and_told(imported):
    config = {"prompts": ['{"query": "{{q}}"}'], "tests": [ONE_TEST | {"vars": {"q": 'a "b"'}}]}
    found = imported("promptfoo", "c.json", json.dumps(config))
    assert found.scenarios[0]["prompt"] == '{\n  "query": "a \\"b\\""\n}'
    told = "prompts that are JSON, but no chat, are a text, indented as promptfoo sends it"
    assert found.notes == {told: (1, "c.json: tests[0]")}


@pytest.mark.parametrize(
    ("variables", "prompts"),
    [
        ({"q": ["a", "b"], "r": [1, 2]}, ["a 1", "a 2", "b 1", "b 2"]),
        ({"q": ["a", True, 2.50], "r": ""}, ["a", "true", "2.5"]),
        ({"q": "{{r}}!", "r": "x\n"}, ["x! x"]),
        ({"q": "{{r}}", "r": "{{q}}"}, "variables whose values refer to each other"),
        ({"q": "{{ r | upper }}", "r": "x"}, "templates with more than {{ variable }}"),
        ({"q": [], "r": 1}, "tests with a variable that is an empty list"),
        ({"q": "x" * 100, "r": "{{q}}" * 200_000}, "templates that become more than 10,000,000 characters"),
    ],
)
def test_variables_become_one_text_or_several(imported, variables, prompts):
    test = {"vars": variables, "assert": [{"type": "is-json"}]}
    found = imported("promptfoo", "c.json", json.dumps({"prompts": ["{{q}} {{r}}"], "tests": [test]}))
    told = list(found.left_out) if isinstance(prompts, str) else [one["prompt"] for one in found.scenarios]
    assert told == ([prompts] if isinstance(prompts, str) else prompts)


def test_options_change_what_is_merged(imported):
    usual = {"assert": [{"type": "is-json"}], "vars": {"q": "a", "r": "b"}}
    own = {"vars": {"q": ["c", "d"]}, "assert": [{"type": "equals", "value": "x"}]}
    options = {"disableDefaultAsserts": True, "disableVarExpansion": True}
    config = {"prompts": ["{{q}} {{r}}"], "defaultTest": usual, "tests": [own | {"options": options}, own]}
    first, *others = imported("promptfoo", "c.json", json.dumps(config)).scenarios
    assert (first["prompt"], len(first["checks"])) == ('["c","d"] b', 1)
    assert [(one["prompt"], len(one["checks"])) for one in others] == [("c b", 2), ("d b", 2)]


@pytest.mark.parametrize(
    ("cell", "check"),
    [
        ("note: the sun", {"kind": "exact", "value": "note: the sun", "strip": False}),
        ("contains:a", {"kind": "contains", "value": "a"}),
        ("latency(3000)", {"kind": "limits", "latency_ms": 3000}),
        ("contains-all", {"kind": "exact", "value": "contains-all", "strip": False}),
        ("x(1.2.3): y", {"kind": "exact", "value": "x(1.2.3): y", "strip": False}),
        ("is-json: {type: object}", {"kind": "json_schema", "schema": {"type": "object"}}),
    ],
)
def test_a_cell_names_an_assertion_only_by_a_known_type(imported, tmp_path, cell, check):
    out = io.StringIO()
    csv.writer(out).writerows([("", "q", "__expected", ""), ("0", "x", cell, "")])
    (tmp_path / "t.csv").write_text("\ufeff" + out.getvalue())
    found = imported("promptfoo", "c.yaml", "prompts: ['{{q}}']\ntests: file://t.csv\n")
    assert found.scenarios[0]["checks"] == [check]
    assert found.left_out == {"a column without a name": (1, "c.yaml: t.csv, row 1")}


def test_a_table_with_semicolons_is_named(imported, tmp_path):
    (tmp_path / "t.csv").write_text("q;__expected\nx;y\n")
    found = imported("promptfoo", "c.yaml", "prompts: ['{{q}}']\ntests: file://t.csv\n")
    ((what, (_, where)),) = found.left_out.items()
    assert (what, "separated by semicolons" in where) == ("files that cannot be read", True)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"tests": ' + "[" * 100_000, "- " * 10_000])
@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_a_configuration_that_is_nested_too_deeply_is_a_file_error(imported, text, name):
    with pytest.raises(ScenarioError, match="c\\."):
        imported("promptfoo", name, text)


def test_a_combination_that_becomes_nothing_does_not_take_the_others_along(imported):
    test = {"vars": {"q": ["a", None, "b"]}, "assert": [{"type": "is-json"}]}
    found = imported("promptfoo", "c.json", json.dumps({"prompts": ["{{q}}"], "tests": [test]}))
    assert [one["prompt"] for one in found.scenarios] == ["a", "b"]
    assert found.left_out == {"prompts that are empty": (1, "c.json: tests[0]")}
