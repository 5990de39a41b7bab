"""The wire: every record goes to JSON and comes back equal; anything else is refused by path."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tfgrpo.core import lessons, records, scenarios
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire

texts = st.text(max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3),
    max_leaves=8,
)


PLAIN = {
    Any: json_values, str: texts, int: st.integers(), float: finite, bool: st.booleans(),
    type(None): st.none(), Path: st.just(Path("a/b")),
}  # fmt: skip


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type hint; JSON values where it says Any."""
    if hint in PLAIN:
        return PLAIN[hint]
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{f.name: field_values(f, hints[f.name]) for f in dataclasses.fields(hint)})
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin is Sequence or (origin is tuple and args[1:] == (...,)):
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    if origin is Mapping:
        return st.dictionaries(texts, values_of(args[1]), max_size=2)
    return st.one_of(*map(values_of, args))


def field_values(field: dataclasses.Field[Any], hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field, those alone that a record may hold."""
    low, high = field.metadata.get("within", (None, None))
    values = values_of(hint)
    if "sparse" in field.metadata and field.default is None:
        values = values.filter(lambda value: value != {})  # which is not written, as None is not
    return values if low is None else values.filter(lambda value: lies_within(value, low, high))


def lies_within(value: Any, low: float, high: float) -> bool:
    """Return whether no number in a value is beyond the limits of its field."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple):
        return all(lies_within(one, low, high) for one in value)
    return not isinstance(value, int | float) or low <= value <= high


RECORDS = [
    r
    for r in (vars(lessons) | vars(scenarios) | vars(records)).values()
    if dataclasses.is_dataclass(r) and r is not records.Run
]


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_record_survives_the_trip_through_json(cls, data):
    record = data.draw(values_of(cls))
    assert from_wire(cls, json.loads(json.dumps(to_wire(record)))) == record
