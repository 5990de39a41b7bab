"""Schemas: packaged, valid themselves, and violations that a person can act on."""

import re
from importlib.resources import files
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.growth import growth
from support.reached import reached, reaches

from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.schema import compile_foreign, extent, load_schema, pointer, violations
from pytest_tfgrpo.core.wire.schema_accepts import accepts

FOLDER = Path(str(files("pytest_tfgrpo.core") / "schemas"))
NAMES = sorted(
    path.relative_to(FOLDER).as_posix().removesuffix(".schema.json") for path in FOLDER.rglob("*.schema.json")
)
texts = st.text(max_size=6)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-3, 3)
    | st.sampled_from(["", " ", "a", "eval", "x\n"])
)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=6
)


@pytest.mark.parametrize("name", NAMES)
def test_a_packaged_schema_is_a_schema(name):
    Draft202012Validator.check_schema(load_schema(name))


def test_of_alternatives_the_one_that_a_value_names_is_explained():
    kinds = [
        {"properties": {"kind": {"enum": ["a"]}, "y": {"not": {}}}, "required": ["x"]},
        {"properties": {"kind": {"enum": ["b"]}, "x": {"not": {}}}},
    ]
    schema = {"properties": {"kind": {"type": "string"}}, "anyOf": kinds}
    shown = {(v.pointer, v.message) for v in violations(schema, {"kind": "a", "y": 1})}
    assert shown == {("", "missing key 'x'"), ("/y", "is not allowed here")}
    assert [v.pointer for v in violations(schema, {"kind": "b", "x": 1})] == ["/x"]
    assert "not valid under any" in violations(schema, {"kind": "c"})[0].message


@given(st.lists(texts | st.integers(0, 99)))
def test_a_pointer_can_be_read_back(path):
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer(path).split("/")[1:]]
    assert parts == [str(part) for part in path]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, {"": "missing key 'a'"}),
        ({"a": 1, "colour": 2}, {"/colour": "unknown key 'colour'; did you mean 'color'?"}),
        ({"a": "x"}, {"/a": "'x' is not of type integer"}),
        ({"a": 1, "color": True}, {"/color": "True is not of type string; quote it"}),
        ({"a": 1, "color": 1.10}, {"/color": "1.1 is not of type string; quote it"}),
        ({"a": 1, "color": "RED"}, {"/color": "'RED' does not match: lower-case letters"}),
        ({"a": 99}, {"/a": "99 is greater than the maximum of 9"}),
        ({"a": 1, "x/y": {}}, {"/x~1y": "needs exactly one of 'p', 'q'"}),
        ({"a": 1, "x/y": {"p": 1, "q": 1}}, {"/x~1y": "needs exactly one of 'p', 'q'"}),
    ],
)
def test_a_violation_has_a_pointer_and_says_what_to_do(value, expected):
    schema = {
        "type": "object",
        "required": ["a"],
        "additionalProperties": False,
        "properties": {
            "a": {"type": "integer", "maximum": 9},
            "color": {"type": "string", "pattern": "^[a-z]+$", "description": "lower-case letters"},
            "x/y": {"oneOf": [{"required": ["p"]}, {"required": ["q"]}]},
        },
    }
    assert {v.pointer: v.message for v in violations(schema, value)} == expected


def test_violations_are_bounded_in_number_and_length():
    schema = {"items": {"enum": ["a"]}}
    found = violations(schema, ["b" * 10_000] * 1000)
    assert len(found) == 20
    assert all(len(v.message) < 300 for v in found)


@given(values)
def test_a_value_is_shown_shortly_whatever_it_is(value):
    assert len(short(value, 20)) <= 24


def test_a_value_that_python_cannot_show_is_shown_by_type():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert short(deep) == "a list nested too deeply"
    assert short("x" * 10**7, 10) == "'xxxxxxxxx..."
    while deep:
        deep = deep.pop()


def test_the_nearest_word_is_suggested_only_when_it_is_near():
    assert nearest("chekcs", ["checks", "prompt"]) == "; did you mean 'checks'?"
    assert nearest("zzz", ["checks", "prompt"]) == ""


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("mcp-config", ["judge", "tools"], "tools"),
        ("budget", ["budget-s", "budget-usd"], "budget-usd"),
        ("stubs", ["turns", "mocks"], "mocks"),
        ("called", ["allowed", "calls"], "calls"),
        ("side_effect", ["returns", "raises"], "raises"),
    ],
)
def test_a_word_of_another_tool_leads_to_the_word_here(word, known, meant):
    assert nearest(word, known) == f"; did you mean {meant!r}?"


def test_where_no_key_is_known_the_known_ones_are_listed():
    schema = {"additionalProperties": False, "properties": {"returns": {}, "recorded": {}}}
    found = [v.message for v in violations(schema, {"order_id": 7, "error": 1})]
    assert all(text.endswith("; known are returns, recorded") for text in found)
    (nearly,) = violations(schema, {"retruns": 1})
    assert nearly.message.endswith("; did you mean 'returns'?")


def test_a_list_and_an_object_in_the_wrong_place_are_answered_by_what_belongs_there():
    call = {"type": "object", "required": ["name"]}
    schema = {"properties": {"tools": {"type": "array", "$comment": "; write names"}, "call": call}}
    found = {v.pointer: v.message for v in violations(schema, {"tools": {"f": 1}, "call": "refund"})}
    assert found["/tools"] == "{'f': 1} is not of type array; write names"
    assert found["/call"] == "'refund' is not of type object; write {name: 'refund'}"


@pytest.mark.parametrize(
    ("value", "expected"), [(1, (1, 0)), ([], (1, 0)), ([1, [2]], (4, 2)), ({"a": {"b": [1, 2]}}, (5, 3))]
)
def test_extent_counts_values_and_levels(value, expected):
    assert extent(value) == expected


# -- the fast yes


def parts_of(schema):
    """All schemas inside a schema that a value could be checked against."""
    yield schema
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from parts_of(part)
    if isinstance(schema.get("items"), dict):
        yield from parts_of(schema["items"])


PARTS = list(chain.from_iterable(parts_of(load_schema(name)) for name in ("scenario", "pack")))


SMALL = ["a", "eval", "a b", 0, 1, 0.5, True, [], ["a"], {}, {"a": 1}, {"kind": "exact", "value": "3"}]
TAKEN = [(schema, value) for schema in PARTS for value in SMALL if accepts(schema)(value)]


@reaches("accepted", "refused")
@given(st.tuples(st.sampled_from(PARTS), values) | st.sampled_from(TAKEN))
def test_the_fast_path_accepts_a_value_exactly_when_the_schema_does(drawn):
    schema, value = drawn
    accepted = accepts(schema)(value)
    valid = Draft202012Validator(schema).is_valid(value)
    reached("accepted" if accepted else "refused")
    assert accepted <= valid
    if not any(isinstance(v, float) for v in leaves(value)):  # 1.0 is an integer to the schema alone
        assert accepted == valid


def leaves(value):
    if isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    else:
        yield value


KEYS = ["a", "b"]
ALTERNATIVES = [{"required": [key]} for key in KEYS]
numbers = st.integers(-2, 3)
small = st.integers(0, 3)
annotated = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "number", "integer", "array", "object", "null", "boolean"])
        | st.just(["string", "array"]),
        "minLength": small, "maxLength": small, "pattern": st.sampled_from(["^a", "b$", r"\S"]),
        "enum": st.lists(scalars, min_size=1, max_size=3), "const": scalars,
        "minimum": numbers, "maximum": numbers, "exclusiveMinimum": numbers, "exclusiveMaximum": numbers,
        "minItems": small, "maxItems": small, "uniqueItems": st.booleans(),
        "minProperties": small, "maxProperties": small,
        "required": st.lists(st.sampled_from(KEYS), unique=True),
        "description": st.just("x"), "multipleOf": st.just(2), "not": st.just({"type": "null"}),
    },
)  # fmt: skip
schemas = st.recursive(
    annotated | st.booleans(),
    lambda inner: st.builds(
        lambda base, more: {**base, **more} if isinstance(base, dict) else base,
        annotated,
        st.fixed_dictionaries(
            {},
            optional={
                "items": inner, "additionalProperties": inner, "propertyNames": inner,
                "properties": st.dictionaries(st.sampled_from(KEYS), inner),
                "anyOf": st.lists(inner, min_size=1, max_size=2),
                "oneOf": st.lists(inner | st.sampled_from(ALTERNATIVES), min_size=1, max_size=2),
            },
        ),
    ),
    max_leaves=4,
)  # fmt: skip
instances = st.recursive(
    scalars,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "c"]), v, max_size=3),
    max_leaves=5,
)


@reaches("accepted", "refused")
@given(schemas, instances)
def test_the_fast_path_accepts_nothing_that_any_schema_refuses(schema, value):
    if not accepts(schema)(value):
        reached("refused")
    else:
        reached("accepted", isinstance(schema, dict) and schema.keys() - {"description"})
        assert Draft202012Validator(schema).is_valid(value)


# -- schemas from scenario files


def foreign(schema, search=lambda pattern, text: re.search(pattern, text) is not None):
    return compile_foreign(schema, search)


FOREIGN = [
    {"properties": {"a": {"type": "string", "pattern": "^a"}}, "additionalProperties": False},
    {"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": {"type": "string"}},
    {"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False},
    {"$ref": "#/$defs/node", "$defs": {"node": {"items": {"$ref": "#/$defs/node"}, "type": "array"}}},
]
alike = st.sampled_from([1, 1.0, True, 0, False, {"a": 1}, {"a": 1.0}, {"a": True}, [1], [1.0], [True]])
named = st.dictionaries(st.sampled_from(["a", "ab", "b"]), st.sampled_from([None, "a", "b", 1]), max_size=3)


@pytest.mark.parametrize("schema", FOREIGN)
@given(value=instances | named)
def test_a_foreign_schema_judges_as_jsonschema_does(schema, value):
    assert (not foreign(schema)(value)) == Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strnig"}, "'strnig' is not valid under any of the given schemas"),
        ({"$ref": "https://example.com/x"}, "points outside the schema"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "points outside the schema"),
        ({"$ref": "file:///etc/passwd"}, "points outside the schema"),
        ({"$ref": "#/$defs/a"}, "reference '#/$defs/a' points to nothing"),
        ({"$ref": "#anchor"}, "reference '#anchor' points to nothing"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "$schema must be"),
        ({"items": {"$id": "urn:x"}}, "a nested $id is not supported"),
        ({"unevaluatedProperties": False, "patternProperties": {}}, "is not supported"),
    ],
)
def test_a_foreign_schema_that_cannot_be_used_is_refused(schema, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        foreign(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "x"},
        {"patternProperties": {"x": {"not": {}}}},
        {"patternProperties": {"x": True}, "additionalProperties": False},
        {"propertyNames": {"pattern": "x"}},
    ],
)
def test_every_pattern_of_a_foreign_schema_goes_through_the_search_given(schema):
    def too_slow(_pattern, _text):
        raise TimeoutError

    value = {"key": 1} if "pattern" not in schema else "text"
    with pytest.raises(TimeoutError):
        foreign(schema, too_slow)(value)


@given(instances | alike, instances | alike)
def test_two_items_are_unique_when_jsonschema_says_so(one, other):
    schema, value = {"uniqueItems": True}, [one, other]
    assert (not foreign(schema)(value)) == Draft202012Validator(schema).is_valid(value)


def test_items_are_unique_wherever_they_stand():
    assert foreign({"uniqueItems": True})([[True], [1], [True]])
    assert not foreign({"uniqueItems": True})([[True], [1], [False], [0], True, 1, False, 0])


def test_the_time_for_unique_items_grows_with_their_number():
    value = [{"n": n} for n in range(16_000)]
    unique = foreign({"uniqueItems": True})
    assert unique(value) == []
    assert growth(lambda n: unique(value[:n]), 1_000) < 64
    assert "non-unique" in foreign({"uniqueItems": True})([*value, {"n": 7.0}])[0].message
