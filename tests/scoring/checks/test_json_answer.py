"""Checks on an answer that is JSON: json (subset) and json_schema."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.errors import CheckError, ScenarioError
from pytest_tfgrpo.scoring.checks import patterns
from pytest_tfgrpo.scoring.checks.json_answer import composed_json, mismatch, parse_answer
from pytest_tfgrpo.scoring.checks.registry import KINDS

texts = st.text(max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3),
    max_leaves=8,
)


@given(
    values,
    st.sampled_from(["{}", " {}\n", "Here:\n```json\n{}\n```\nDone.", "```\n1\n```\nno:\n```\n{}\n```"]),
)
def test_json_is_found_bare_or_in_the_last_fenced_block(value, frame):
    assert parse_answer(frame.replace("{}", json.dumps(value)))[0] == composed_json(value)


@pytest.mark.parametrize(
    ("answer", "value"),
    [('{"a": "```x```"}', {"a": "```x```"}), ("```[1]```", [1]), ("```json\n[1]\n```\n```", [1])],
)
def test_a_fence_is_one_only_where_the_answer_is_not_json_itself(answer, value):
    assert parse_answer(answer)[0] == value


@pytest.mark.parametrize(
    "answer",
    [
        '\ufeff{"a": 1}',
        '\u200b{"a": 1}\u200b',
        '```json\n\ufeff{"a": 1}\n```',
        '```py\n{"a": 0}\n```\n```js\n{"a": 1}\n```',
        '```jsonc\n{"a": 1}\n```\n```\n{"a": 0}\n```',
        '```JSON\n{"a": 1}\n```',
        '~~~json\n{"a": 1}\n~~~',
        'Here: ```json {"a": 1}``` as asked',
        '- so:\n\n   ```json\n   {"a": 1}\n   ```',
        '```json\n{"a": 1}\n``` Hope this helps!',
        '```json\n{"a": 1}\n```\nRun it:\n```bash\ncat x.json\n```',
        'First:\n```json\n{"a": 0}\n```\nNo:\n```json\n{"a": 1}\n```',
        '```json\n{"a": 1}',
        '`{"a": 1}`',
        '```json\n{"a": 1, "b": "```js\\nx\\n```"}\n```',
    ],
)
def test_json_is_read_from_fences_wherever_models_put_them(judge, answer):
    assert judge("json", answer, value={"a": 1}).reason == ""


def test_json_with_a_comma_at_its_end_is_none_and_said_so(judge):
    for answer in ('{"a": 1,}', "[1, ]", '```json\n{"a": [1,]}\n```'):
        assert "a comma before the end" in judge("json", answer, value={"a": 1}).reason


def test_which_of_several_blocks_was_read_is_said(judge):
    answer = '```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```'
    assert judge("json", answer, value={"a": 1}).reason.endswith("(in the last of 2 blocks of code)")
    broken = '```json\n{"a": 1}\n```\n```json\n{"a": \n```'
    assert "the last of 2 blocks of code is not JSON" in judge("json", broken, value={"a": 1}).reason


@pytest.mark.parametrize(
    "answer",
    [
        "", "words", "{", "```\n{\n```", "NaN", "[Infinity]", "9" * 5000, "[" * 200 + "]" * 200, "[" * 10**6,
        "```" * 10**5,
    ],
    ids=lambda answer: answer[:9],
)  # fmt: skip
def test_an_answer_that_is_not_json_gives_no_credit(judge, answer):
    assert judge("json", answer, value=1).reason.startswith("expected JSON, got ")
    assert judge("json_schema", answer, schema={}).reason.startswith("expected JSON, got ")


@pytest.mark.parametrize("answer", ["[" * 150 + "]" * 150, '{"a":' * 10**5 + "1" + "}" * 10**5])
@pytest.mark.parametrize(
    ("kind", "params"), [("json", {"value": 1}), ("json_schema", {"schema": {"type": "string"}})]
)
def test_what_is_nested_too_deeply_gives_no_credit_under_not_either(judge, answer, kind, params):
    result = judge(kind, answer, **params, **{"not": True})
    assert result.credit == 0
    assert result.reason.endswith("it is nested too deeply")


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ('{"city": "Rome", "city": "Oslo"}', "city"),
        ('{"a": {"x": 1, "x": 2}}', "x"),
        ('{"a": 1, "a": 1, "b": "at 12:30"}', "a"),
        ('{"a" : 1, "\\u0061":1, "b": "a \\":"}', "a"),
        ('```json\n[{"a": 1,\n"a"\n:2}]\n```', "a"),
        ('{"\u00f6": 1, "o\u0308": 2}', "\u00f6"),
    ],
)
@pytest.mark.parametrize(("kind", "params"), [("json", {"value": {}}), ("json_schema", {"schema": {}})])
def test_an_answer_with_a_key_twice_gives_no_credit_under_not_either(judge, answer, key, kind, params):
    for negated in ({}, {"not": True}):
        result = judge(kind, answer, **params, **negated)
        assert result.credit == 0
        assert result.reason.endswith(f"the key '{key}' occurs twice in one object")


@pytest.mark.parametrize(
    "value", [{"a": ":", '":': "x: y", "b": ['" :', {"a": 1}]}, {"a": {"a": {"a": 1}}}, ["a:", {"a:": 0}]]
)
def test_a_colon_in_a_text_is_no_key(judge, value):
    for spaced in ({}, {"indent": 1}, {"separators": (",", ":")}):
        assert judge("json", json.dumps(value, **spaced), value=value).reason == ""


def test_a_block_within_an_answer_that_is_json_is_not_called_the_one_that_was_read(judge):
    answer = json.dumps({"a": "```\n1\n```\n```\n2\n```"})
    assert "blocks" not in judge("json", answer, value={"a": 1}).reason


@given(values)
def test_every_value_has_all_of_itself(value):
    assert mismatch(value, json.loads(json.dumps(value))) is None


@given(st.dictionaries(texts, values, max_size=3), st.dictionaries(texts, values, max_size=3))
def test_further_keys_do_not_matter(wanted, more):
    assert mismatch(wanted, {**more, **wanted}) is None


@pytest.mark.parametrize(
    ("wanted", "got", "reason"),
    [
        ({"a": 1}, {}, "expected a key 'a'"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "expected 1 at /a/b, got 2"),
        ([1, 2], [1], "expected 2 items, got 1"),
        ([1, 2], [2, 1], "expected 1 at /0, got 2"),
        ([{"a": 1}], [{"a": 1, "b": 2}], None),
        (1, 1.0, None),
        (1, True, "expected 1, got True"),
        (False, 0, "expected False, got 0"),
        (0.3, 0.1 + 0.2, None),
        (0.3, 0.31, "expected 0.3, got 0.31"),
        (0.3, 0.300000002, "expected 0.3, got 0.300000002"),
        (0.3, 0.30000001, "expected 0.3, got 0.30000001"),
        (None, 0, "expected None, got 0"),
        ({}, [], "expected {}, got []"),
        ("a", {"a": 1}, "expected 'a', got {'a': 1}"),
        (["a"], {"a": 1}, "expected ['a'], got {'a': 1}"),
        ("1", 1, "expected '1', got 1"),
        (2**53 + 1, 2**53, f"expected {2**53 + 1}, got {2**53}"),
    ],
)
def test_a_mismatch_is_told_with_its_place(judge, wanted, got, reason):
    assert judge("json", json.dumps(got), value=wanted).reason == (reason or "")


@pytest.mark.parametrize(("levels", "passed"), [(100, True), (101, False)])
def test_json_may_be_nested_100_levels_deep(judge, levels, passed):
    answer = "[" * levels + "7" + "]" * levels
    assert judge("json", answer, value=json.loads(answer)).passed is passed


def test_the_leaves_of_the_expected_value_are_answers(load):
    check = load("json", value={"name": "Ada", "n": [1815, 0.5, True, None], "again": "Ada"})
    assert KINDS["json"].answers(check) == ("Ada", "1815", "1,815", "0.5")


SCHEMA = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer"}, "tree": {"$ref": "#/$defs/tree"}},
    "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"n": 1, "tree": [[], [[]]]}', ""),
        ("{}", "answer: missing key 'n'"),
        ('{"n": "1"}', "/n: '1' is not of type integer"),
        ('{"n": "1", "tree": 2}', "/n: '1' is not of type integer"),
        (
            '```json\n{}\n```\n```json\n{"n": 0.5}\n```',
            "/n: 0.5 is not of type integer (in the last of 2 blocks of code)",
        ),
        ('{"n": 1, "tree": [[], [1]]}', "/tree/1/0: 1 is not of type array"),
    ],
)
def test_an_answer_is_judged_by_a_schema(judge, answer, reason):
    assert judge("json_schema", answer, schema=SCHEMA).reason == reason


def test_a_schema_with_a_catastrophic_pattern_is_stopped(judge, monkeypatch):
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    answer = json.dumps("x" * 100_000)
    result = judge("json_schema", answer, schema={"pattern": "(x+x+)+y"})
    assert result.reason.startswith("a pattern of the schema took too long")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^[0-9]+$", "12", True),
        ("^[0-9]+$", "12\n", False),
        (r"^\d$", "٣", False),
        (r"^\w+$", "é", False),
        ("(?i)^rome$", "ROME", True),
    ],
)
def test_a_pattern_of_a_schema_is_read_as_javascript_where_it_can_be(judge, pattern, text, found):
    for value, schema in (text, {"pattern": pattern}), ({text: 1}, {"patternProperties": {pattern: False}}):
        result = judge("json_schema", json.dumps(value), schema=schema)
        assert result.passed is (found is (value == text))


@pytest.mark.parametrize("schema", [{"pattern": "("}, {"patternProperties": {"[": {}}}])
def test_a_schema_with_an_invalid_pattern_is_an_error_when_loaded(load, schema):
    with pytest.raises(ScenarioError, match="#/checks/0/schema: is not a schema that can be used here"):
        load("json_schema", schema=schema)


def test_a_schema_that_refers_to_itself_for_ever_is_a_broken_check(judge):
    with pytest.raises(CheckError, match="check 'json_schema' raised RecursionError"):
        judge("json_schema", "1", schema={"$ref": "#"})
