"""Agents that a program gives as they are: a function, a method, or an object that is called like one."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.actors.agent_signature import why_no_agent
from pytest_tfgrpo.actors.function_identity import fingerprint
from pytest_tfgrpo.actors.python import PythonActor
from pytest_tfgrpo.core.errors import ActorError, describe
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.stamp import canonical
from pytest_tfgrpo.core.wire.wire import Json

KIND = "function"
LAMBDA = "lambda"
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


def function_name(value: object) -> str:
    """Return what an agent is called: ``solve``, ``Agent.solve``, ``Agent``; of a lambda ``lambda``."""
    while isinstance(value, functools.partial):
        value = value.func
    found = getattr(value, "__qualname__", None) or type(value).__qualname__
    name = str(found).rpartition("<locals>.")[2].replace("<lambda>", LAMBDA)
    return _UNFIT.sub("-", name).strip("-._")[:40] or KIND


def open_function(value: Any, name: str) -> PythonActor:
    """Return the actor that calls `value`, known as ``function:name``; raises ActorError where none can.

    Its attribute `identity`, a mapping, stands for what its code says of it; `paid` is as for any function.
    """
    called = function_name(value)
    if why := why_no_agent(value, called, f"actor={called.lower()}"):
        raise ActorError(why)
    spec = f"{KIND}:{name}"
    return PythonActor(spec, value, {"spec": spec, **_identity(value)})


def _identity(value: object) -> dict[str, Json]:
    try:
        declared = getattr(value, "identity", None)
    except Exception as error:  # a property may raise anything
        raise ActorError(f"its attribute identity cannot be read: {describe(error)}") from error
    if (
        declared is None or inspect.getattr_static(value, "identity", None) is None
    ):  # not of a mock, which has all
        try:
            return {"sha256": fingerprint(value)}
        except RecursionError:
            raise ActorError(
                "what it holds is nested too deeply to tell it from others; give it an attribute identity, "
                "for example {'version': 1}"
            ) from None
    try:
        if not isinstance(declared, Mapping):
            raise TypeError("it is no mapping")
        canonical(dict(declared))
    except (TypeError, ValueError) as error:
        raise ActorError(
            f"its attribute identity must be a mapping that JSON can hold, for example {{'version': 1}}, not "
            f"{short(declared)}: {error}"
        ) from None
    return {"identity": dict(declared)}
