"""Packaged JSON Schemas, and violations of a schema as JSON pointer and message.

The only file that imports ``jsonschema``, inside the functions that need it: it costs 80 ms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_tfgrpo.core.texts.named_values import SHOWN, nearest, same_thing, short
from pytest_tfgrpo.core.wire.schema_accepts import accepts

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

    from pytest_tfgrpo.core.wire.wire import Json

DRAFT = "https://json-schema.org/draft/2020-12/schema"
LIMIT = 20
"""Most violations that are collected from one value."""
KEYS_SHOWN = 10
"""Most known keys that a message lists."""

Path = tuple[str | int, ...]


class Violation(NamedTuple):
    """One place where a value breaks a schema."""

    path: Path
    message: str

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer (RFC 6901); empty for the whole value."""
        return pointer(self.path)


def pointer(path: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of `path`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def extent(value: Json) -> tuple[int, int]:
    """Return how many values `value` consists of, and how deeply they are nested; a scalar is (1, 0)."""
    nodes, depth, level = 0, -1, [value]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        level = [
            part
            for item in level
            if isinstance(item, Mapping | list)
            for part in (item.values() if isinstance(item, Mapping) else item)
        ]
    return nodes, depth


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the packaged schema ``core/schemas/<name>.schema.json``; `name` may be ``folder/name``.

    Do not modify it.
    """
    from importlib.resources import files

    text = files("pytest_tfgrpo.core").joinpath("schemas", f"{name}.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _accepts(name: str) -> Callable[[Json], bool]:
    return accepts(load_schema(name))


@cache
def validator(name: str) -> Draft202012Validator:
    """Return a validator of the packaged schema `name`; it never fetches a remote reference."""
    return _validator(load_schema(name))


def violations(schema: str | Mapping[str, Json], value: Json) -> list[Violation]:
    """Return where `value` breaks `schema` (a packaged name or a schema), at most 20, sorted by place."""
    if isinstance(schema, str) and _accepts(schema)(value):
        return []
    checker = validator(schema) if isinstance(schema, str) else _validator(schema)
    return _collect(checker, value)


def check_schema(schema: Mapping[str, Json]) -> None:
    """Raise ValueError unless `schema` is a JSON Schema (draft 2020-12)."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"{pointer(error.absolute_path) or 'schema'}: {error.message[:SHOWN]}") from None


def _validator(schema: Mapping[str, Json]) -> Draft202012Validator:
    from jsonschema import Draft202012Validator
    from referencing.jsonschema import EMPTY_REGISTRY

    return Draft202012Validator(dict(schema), registry=EMPTY_REGISTRY)


def _collect(checker: Validator, value: Json) -> list[Violation]:
    found = (v for error in checker.iter_errors(value) for v in _describe(error))
    return sorted(islice(found, LIMIT), key=lambda v: [str(part) for part in v.path])


def _meant(value: Any, names: Sequence[str], schema: Mapping[str, Any]) -> str:
    """Return what a value of a wrong type was probably meant to be."""
    if value is None:
        return "; it is empty"
    if "string" in names and isinstance(value, int | float):
        return "; quote it"
    if "boolean" in names and isinstance(value, str):
        return "; write true or false"
    if "array" in names and isinstance(value, str):
        return (
            f"; write [{json.dumps(value, ensure_ascii=False)}]"
            if len(value) <= 40 and value.isprintable()
            else "; write a list"
        )
    if "object" in names and isinstance(value, str) and len(schema.get("required", ())) == 1:
        return f"; write {{{schema['required'][0]}: {short(value, 40)}}}"
    return ""


def _unknown(value: Mapping[str, Json], known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each key that is not known with a message; where no key is, it lists those that are."""
    strange = [key for key in value if key not in known]
    listed = 1 < len(strange) == len(value) and 0 < len(known) <= KEYS_SHOWN
    for key in strange:
        list_them = listed and same_thing(key, known) is None
        hint = f"; known are {', '.join(known)}" if list_them else nearest(key, known)
        yield key, f"unknown key {short(key)}{hint}"


def _meant_branch(error: ValidationError) -> list[ValidationError]:
    """Return the errors of the one branch whose ``enum`` the value has; empty where that is not one."""
    branches: dict[Any, list[ValidationError]] = {}
    for part in error.context or ():
        branches.setdefault(part.relative_schema_path[0], []).append(part)
    meant = [parts for parts in branches.values() if not any(part.validator == "enum" for part in parts)]
    return meant[0] if len(meant) == 1 and len(branches) > 1 else []


def _describe(error: ValidationError) -> Iterator[Violation]:
    path: Path = tuple(error.absolute_path)
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    value: Any = error.instance
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    known = schema.get("properties", {})
    if keyword == "additionalProperties" and wanted is False and "patternProperties" not in schema:
        for key, message in _unknown(value, known):
            yield Violation((*path, key), message)
    elif keyword == "required":
        # jsonschema reports each missing key on its own, and names it in the message alone
        missing = next(key for key in wanted if error.message.startswith(repr(key)))
        yield Violation(path, f"missing key {missing!r}")
    elif keyword == "not" and wanted == {}:
        yield Violation(path, "is not allowed here")
    elif keyword == "anyOf" and (meant := _meant_branch(error)):
        for part in meant:
            yield from _describe(part)
    elif keyword == "type":
        names = [wanted] if isinstance(wanted, str) else wanted
        hint = _meant(value, names, schema) or schema.get("$comment", "")
        yield Violation(path, f"{short(value)} is not of type {' or '.join(names)}{hint}")
    elif keyword in ("anyOf", "oneOf") and all("required" in branch for branch in wanted):
        keys = ", ".join(repr(key) for branch in wanted for key in branch["required"])
        yield Violation(path, f"needs {'exactly' if keyword == 'oneOf' else 'at least'} one of {keys}")
    elif keyword == "pattern":
        yield Violation(path, f"{short(value)} does not match: {schema.get('description', wanted)}")
    elif keyword in ("maxLength", "maxItems"):
        yield Violation(path, f"{short(value)} is too long; at most {wanted} are allowed, not {len(value)}")
    else:
        message = error.message
        yield Violation(path, message if len(message) <= 2 * SHOWN else message[: 2 * SHOWN] + "...")


Search = Callable[[str, str], bool]
"""(pattern, text) -> True when the pattern is found; may raise TimeoutError."""


def compile_foreign(schema: Mapping[str, Json], search: Search) -> Callable[[Json], list[Violation]]:
    """Return the violations function of a schema from a scenario file, for values from an agent.

    Patterns go through `search`, so that they can be limited in time, and no keyword takes quadratic time.
    Raises ValueError when the schema is malformed, or refers to anything outside itself.
    """
    from jsonschema.validators import Draft202012Validator, extend
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

    if schema.get("$schema", DRAFT) != DRAFT:
        raise ValueError(f"$schema must be {DRAFT!r}, not {short(schema['$schema'])}")
    check_schema(schema)
    resolver = EMPTY_REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise ValueError(f"reference {reference!r} points to nothing in the schema") from None
    bounded = extend(Draft202012Validator, _bounded_keywords(search))  # type: ignore[no-untyped-call]
    checker = bounded(dict(schema), registry=EMPTY_REGISTRY)
    return lambda value: _collect(checker, value)


def _references(schema: Json, root: bool = True) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$id"), str) and not root:
            raise ValueError("a nested $id is not supported")
        if "unevaluatedProperties" in schema and "patternProperties" in schema:
            raise ValueError("unevaluatedProperties beside patternProperties is not supported")
        for key in ("$ref", "$dynamicRef"):
            reference = schema.get(key)
            if isinstance(reference, str):
                if not reference.startswith("#"):
                    raise ValueError(
                        f"reference {short(reference)} points outside the schema; use '#/$defs/...'"
                    )
                yield reference
    if isinstance(schema, Mapping | list):
        for part in schema.values() if isinstance(schema, Mapping) else schema:
            yield from _references(part, root=False)


def _bounded_keywords(search: Search) -> dict[str, Any]:
    from jsonschema.exceptions import ValidationError

    def pattern(_: Any, wanted: str, value: Json, __: Any) -> Iterator[ValidationError]:
        if isinstance(value, str) and not search(wanted, value):
            yield ValidationError(f"{short(value)} does not match {wanted!r}")

    def pattern_properties(
        checker: Any, patterns: Mapping[str, Json], value: Json, _: Any
    ) -> Iterator[ValidationError]:
        if isinstance(value, dict):
            for wanted, schema in patterns.items():
                for key in value:
                    if search(wanted, key):
                        yield from checker.descend(value[key], schema, path=key, schema_path=wanted)

    def additional_properties(
        checker: Any, wanted: Json, value: Json, schema: Any
    ) -> Iterator[ValidationError]:
        if not isinstance(value, dict):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extra = [key for key in value if key not in known and not any(search(p, key) for p in patterns)]
        if extra and wanted is False:
            yield ValidationError(f"unexpected keys {short(extra)}")
        elif wanted is not False:
            for key in extra:
                yield from checker.descend(value[key], wanted, path=key)

    def unique_items(_: Any, wanted: bool, value: Json, __: Any) -> Iterator[ValidationError]:
        if wanted and isinstance(value, list) and len({_identity(item) for item in value}) < len(value):
            yield ValidationError(f"{short(value)} has non-unique elements")

    return {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "uniqueItems": unique_items,
    }


def _identity(value: Json) -> str:
    """Return a text that is equal for values that are equal to JSON Schema: 1 and 1.0 are, 1 and true not."""

    def plain(part: Json) -> Json:
        if isinstance(part, float) and part.is_integer():
            return int(part)
        if isinstance(part, dict):
            return {key: plain(item) for key, item in part.items()}
        return [plain(item) for item in part] if isinstance(part, list) else part

    return json.dumps(plain(value), sort_keys=True)
