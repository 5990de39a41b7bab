"""JSON is read strictly: what it cannot say is refused wherever it comes from."""

import json

import pytest

from pytest_tfgrpo.core.wire.strict import finite, load_json, unique


@pytest.mark.parametrize("text", ["[NaN]", "[-Infinity]", "[1e999]", '{"a": {"b": -1e999}}'])
def test_a_number_that_json_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid JSON number"):
        json.loads(text, parse_float=finite, parse_constant=finite)


def test_other_numbers_stay_as_they_are() -> None:
    assert json.loads("[1, 1.5, -2e3]", parse_float=finite, parse_constant=finite) == [1, 1.5, -2000.0]


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '[{"b": {"c": 1, "d": 2, "c": 3}}]'])
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a key occurs twice in one object"):
        json.loads(text, object_pairs_hook=unique)
    assert json.loads('{"a": {"b": 1}, "b": 1}', object_pairs_hook=unique) == {"a": {"b": 1}, "b": 1}


@pytest.mark.parametrize("text", ["[" * 100_000, b'{"a":' * 100_000, "{", b"\xff\xfe{", "1" * 5_000])
def test_json_of_others_is_at_worst_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_json(text)


def test_json_of_others_is_what_it_says() -> None:
    assert load_json(b'{"a": [1, NaN]}', parse_constant=str) == {"a": [1, "NaN"]}
