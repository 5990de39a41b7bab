"""A fast check: compile the plain part of JSON Schema to closures that accept only what the schema accepts.

The packaged schema stays the truth. What is not accepted here goes through ``jsonschema``, which decides and
has the message; that keeps 10,000 valid scenarios at microseconds each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tfgrpo.core.wire.wire import Json


Accepts = Callable[[Any], bool]

NOTES = frozenset({"$schema", "$id", "$defs", "$comment", "title", "description", "default", "examples"})
"""Keywords that never refuse a value."""

TYPES: Mapping[str, frozenset[type]] = {
    "null": frozenset({type(None)}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "string": frozenset({str}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}


def accepts(schema: Json) -> Accepts:
    """Return a predicate over JSON values that is true only of values that are valid under `schema`.

    It is false of every value where the schema uses a keyword that is not compiled here.
    """
    if schema is True:
        return _anything
    if not isinstance(schema, Mapping):
        return _nothing
    keywords = schema.keys() - NOTES - {"type"} - OBJECT
    if keywords - KEYWORDS.keys():
        return _nothing
    tests = [KEYWORDS[key](schema[key]) for key in sorted(keywords)]
    if schema.keys() & OBJECT:
        tests.append(_object(schema))
    if "type" not in schema:
        return _all(tests)
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    types = frozenset[type]().union(*(TYPES[name] for name in names))
    accept = _all(tests)
    return lambda value: value.__class__ in types and accept(value)


def _anything(_value: Any) -> bool:
    return True


def _nothing(_value: Any) -> bool:
    return False


def _all(tests: list[Accepts]) -> Accepts:
    if len(tests) < 2:
        return tests[0] if tests else _anything

    def test(value: Any) -> bool:
        for accept in tests:  # noqa: SIM110 - all() with a generator takes twice as long
            if not accept(value):
                return False
        return True

    return test


def _of(name: str, test: Accepts) -> Accepts:
    """Return `test` for values of the type `name`, which is all that its keyword speaks of."""
    types = TYPES[name]
    return lambda value: value.__class__ not in types or test(value)


def _pattern(pattern: str) -> Accepts:
    search = re.compile(pattern).search
    return _of("string", lambda value: search(value) is not None)


def _enum(values: list[Json]) -> Accepts:
    words = frozenset(value for value in values if value is None or isinstance(value, str))
    return lambda value: (value is None or value.__class__ is str) and value in words


def _unique_items(wanted: bool) -> Accepts:
    def test(value: list[Any]) -> bool:
        return all(item.__class__ is str for item in value) and len(set(value)) == len(value)

    return _of("array", test) if wanted else _anything


def _items(schema: Json) -> Accepts:
    accept = accepts(schema)
    return _of("array", lambda value: all(map(accept, value)))


def _property_names(schema: Json) -> Accepts:
    accept = accepts(schema)
    return _of("object", lambda value: all(map(accept, value)))


def _any_of(branches: list[Json]) -> Accepts:
    tests = [accepts(branch) for branch in branches]
    return lambda value: any(accept(value) for accept in tests)


def _one_of(branches: list[Json]) -> Accepts:
    """Compile exact alternatives alone: a false no in one branch would be a false yes of the whole."""
    if not all(isinstance(branch, Mapping) and branch.keys() == {"required"} for branch in branches):
        return _nothing
    return lambda value: (
        value.__class__ is dict and sum(value.keys() >= set(branch["required"]) for branch in branches) == 1
    )


def _object(schema: Mapping[str, Json]) -> Accepts:
    required = frozenset(schema.get("required", ()))
    tests = {key: accepts(part) for key, part in schema.get("properties", {}).items()}
    other = accepts(schema.get("additionalProperties", True))

    def test(value: dict[Any, Any]) -> bool:
        if not required <= value.keys():
            return False
        for key, item in value.items():  # noqa: SIM110
            if not tests.get(key, other)(item):
                return False
        return True

    return _of("object", test)


OBJECT = frozenset({"properties", "required", "additionalProperties"})

KEYWORDS: Mapping[str, Callable[[Any], Accepts]] = {
    "minLength": lambda low: _of("string", lambda value: len(value) >= low),
    "maxLength": lambda high: _of("string", lambda value: len(value) <= high),
    "pattern": _pattern,
    "enum": _enum,
    "minimum": lambda low: _of("number", lambda value: value >= low),
    "maximum": lambda high: _of("number", lambda value: value <= high),
    "exclusiveMinimum": lambda low: _of("number", lambda value: value > low),
    "exclusiveMaximum": lambda high: _of("number", lambda value: value < high),
    "minItems": lambda low: _of("array", lambda value: len(value) >= low),
    "maxItems": lambda high: _of("array", lambda value: len(value) <= high),
    "uniqueItems": _unique_items,
    "minProperties": lambda low: _of("object", lambda value: len(value) >= low),
    "maxProperties": lambda high: _of("object", lambda value: len(value) <= high),
    "propertyNames": _property_names,
    "items": _items,
    "anyOf": _any_of,
    "oneOf": _one_of,
}
