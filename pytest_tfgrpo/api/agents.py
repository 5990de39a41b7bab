"""The argument `actor` of a run: one agent, or several by name; specs, functions and actor objects."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_tfgrpo.actors.functions import KIND, LAMBDA, function_name, open_function
from pytest_tfgrpo.core.errors import ActorError, SettingError, describe
from pytest_tfgrpo.core.keys.agent_list import is_agent_name, listed_agent
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.permissions import SANDBOX
from pytest_tfgrpo.core.texts.named_values import short

if TYPE_CHECKING:
    from pytest_tfgrpo.protocols import Actor

PROTOCOL = ("name", "identity", "paid", "bound", "aclose")
MARKS = ("bound", "aclose")
"""Where an object has one of these, an actor is meant, and not just something that can be called."""


class GivenAgents(NamedTuple):
    """What `actor` says: the setting, and the agents that are no spec, by their spec."""

    setting: str | None
    objects: Mapping[str, Any]


def read_agents(value: Any) -> GivenAgents:
    """Return what the argument `actor` says; raises SettingError."""
    if value is None:
        return GivenAgents(None, {})
    if isinstance(value, str):
        return GivenAgents(value, {})
    if isinstance(value, Mapping):
        return _several([(_named(name), agent) for name, agent in value.items()])
    if isinstance(value, list | tuple):
        return _several(list(zip(_names(value), value, strict=True)))
    spec = _spec(value, "")
    return GivenAgents(spec, {spec: value})


def open_agent(agents: GivenAgents, settings: Settings, spec: str | None) -> Actor | None:
    """Return the actor of an agent that is no spec, else None; raises SettingError where it cannot be one."""
    if spec is None or spec not in agents.objects:
        return None
    value = agents.objects[spec]
    if _is_actor(value):
        require_attributes("actor", value, PROTOCOL)
        actor: Actor = value
        return actor
    if SANDBOX.of(settings) != "none":
        raise SettingError(
            f"sandbox={SANDBOX.of(settings)} cannot isolate a function, which runs inside this process; "
            "use a command actor, or sandbox=none"
        )
    try:
        return open_function(value, spec.partition(":")[2])
    except ActorError as error:
        raise SettingError(f"actor: {error}") from error


def require_attributes(name: str, value: Any, wanted: Sequence[str]) -> None:
    """Raise SettingError where an object that an argument gives lacks an attribute."""
    if isinstance(value, type):
        raise SettingError(f"{name}: {value.__name__!r} is a class; give an instance")
    missing = [attribute for attribute in wanted if not hasattr(value, attribute)]
    if missing:
        raise SettingError(f"{name}: {value!r} has no attribute {missing[0]!r}; add it")


def _is_actor(value: object) -> bool:
    """Return whether an object is meant as an actor; a mock, which has every attribute, is a function."""
    try:
        if isinstance(value, type) or not any(hasattr(value, mark) for mark in MARKS):
            return False
    except Exception as error:  # a proxy may raise anything where it stands for nothing
        raise SettingError(
            f"actor: a {type(value).__name__!r} object cannot be looked at: {describe(error)}; give a "
            "function that calls it"
        ) from error
    own = any(inspect.getattr_static(value, mark, None) is not None for mark in MARKS)
    return own or isinstance(getattr(value, "name", None), str)


def _spec(value: Any, name: str) -> str:
    """Return the spec of an agent that is no text: an actor alone has its own name."""
    if not name and _is_actor(value) and isinstance(getattr(value, "name", None), str):
        return str(value.name)
    return f"{KIND}:{name or function_name(value)}"


def _several(pairs: Sequence[tuple[str, Any]]) -> GivenAgents:
    """Return agents by name; a text without one takes its name from its spec, as in a list under pytest."""
    lines, objects = [], dict[str, Any]()
    for name, agent in pairs:
        if agent is None or isinstance(agent, list | tuple | Mapping):
            raise SettingError(f"actor: {name or 'an entry of the list'} is {short(agent)}, not an agent")
        if isinstance(agent, str):
            one = listed_agent(agent)
            lines.append(f"{name or one.name} = {agent if name else one.spec}")
        else:
            objects[_spec(agent, name)] = agent
            lines.append(f"{name} = {_spec(agent, name)}")
    if not lines:
        raise SettingError("actor: there is no agent in it; give one or more")
    return GivenAgents("\n".join(lines), objects)


def _named(name: object) -> str:
    if not isinstance(name, str) or not is_agent_name(name):
        raise SettingError(
            f"actor: {short(name)} cannot be the name of an agent; use up to 40 letters, digits, '.', '_' "
            "and '-', the first a letter or digit"
        )
    return name


def _names(agents: Iterable[Any]) -> list[str]:
    """Return the names of the agents of a list: those of functions, numbered where several have the same."""
    found = ["" if isinstance(agent, str) else function_name(agent) for agent in agents]
    total, seen, names = Counter(name.casefold() for name in found), Counter[str](), []
    for name in found:
        key = name.casefold()
        seen[key] += 1
        names.append(f"{name[:36]}-{seen[key]}" if name and (total[key] > 1 or name == LAMBDA) else name)
    return names
