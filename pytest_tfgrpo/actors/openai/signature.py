"""Signatures of tools: from Python's annotations to the JSON Schema of a tool's arguments."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pytest_tfgrpo.actors.openai.context import ToolContext
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json

SCALARS: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
SUPPORTED = "str, int, float, bool, None, list, dict, Optional, Literal and Annotated with a description"


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """What a tool takes."""

    parameters: Mapping[str, Json]
    """JSON Schema of its arguments, an object."""
    takes_context: bool
    """True when its first parameter is a ToolContext."""
    whole: frozenset[str]
    """Parameters that are integers: JSON Schema lets 3.0 pass for one."""


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a tool; raises ValueError where an annotation is missing or unsupported."""
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
    except Exception as error:  # annotations are code, and may fail in any way
        raise ValueError(f"its signature cannot be read: {type(error).__name__}: {error}") from error
    takes_context = bool(parameters) and hints.get(parameters[0].name) is ToolContext
    properties: dict[str, Json] = {}
    required: list[str] = []
    for parameter in parameters[takes_context:]:
        properties[parameter.name] = _property(parameter, hints)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return Signature(
        parameters={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        takes_context=takes_context,
        whole=frozenset(name for name, schema in properties.items() if schema.get("type") == "integer"),
    )


def _property(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> dict[str, Json]:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise ValueError(f"parameter {str(parameter)!r} cannot be passed by name")
    if parameter.name not in hints:
        raise ValueError(f"parameter {parameter.name!r} has no annotation; use {SUPPORTED}")
    try:
        schema = _schema(hints[parameter.name])
    except ValueError as error:
        raise ValueError(f"parameter {parameter.name!r}: {error}") from None
    if type(parameter.default) in (str, int, float, bool):
        schema["default"] = parameter.default
    return schema


def _schema(hint: Any) -> dict[str, Json]:
    if hint in SCALARS:
        return {"type": SCALARS[hint]}
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        notes = [note for note in args[1:] if isinstance(note, str)]
        return _schema(args[0]) | ({"description": notes[0]} if notes else {})
    if origin is Literal:
        return _literal(args)
    if origin is Union or origin is types.UnionType:
        return _union([_schema(branch) for branch in args])
    if origin is list:
        return {"type": "array"} | ({"items": _schema(args[0])} if args else {})
    if origin is dict and (not args or args[0] is str):
        return {"type": "object"} | ({"additionalProperties": _schema(args[1])} if args else {})
    if hint is ToolContext:
        raise ValueError("only the first parameter can be a ToolContext")
    raise ValueError(f"the annotation {hint!r} is not supported; use {SUPPORTED}")


def _literal(values: tuple[Any, ...]) -> dict[str, Json]:
    kinds = {type(value) for value in values}
    if not kinds <= SCALARS.keys():
        raise ValueError(f"a Literal of {values!r} is not supported; use strings, numbers and booleans")
    schema: dict[str, Json] = {"enum": list(values)}
    return {"type": SCALARS[kinds.pop()]} | schema if len(kinds) == 1 else schema


def _union(branches: list[dict[str, Json]]) -> dict[str, Json]:
    if all(branch.keys() == {"type"} for branch in branches):
        return {"type": [branch["type"] for branch in branches]}
    return {"anyOf": branches}
