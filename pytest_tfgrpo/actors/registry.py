"""Actors by name: the table of spec strings and the one factory over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.actors.modules import meant
from pytest_tfgrpo.actors.reference import NothingActor, ReferenceActor
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings.permissions import SANDBOX
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.llm.protocol import Completer
from pytest_tfgrpo.protocols import Actor


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What an actor is opened with."""

    root: Path
    """The root folder of the project."""
    settings: Mapping[str, object]
    """Settings by name."""
    model: Callable[[str], Completer]
    """Opens the language model that a spec ``openai:<model>`` names."""
    environ: Mapping[str, str]
    """The environment, of which servers of tools get what they are named with."""


Opener: TypeAlias = Callable[[str, Surroundings], Actor]
"""Takes what follows the name in the spec."""


def _offline(argument: str, _: Surroundings) -> Actor:
    _require_no("offline", argument)
    from pytest_tfgrpo.actors.offline.agent import open_offline

    return open_offline()


def _reference(argument: str, _: Surroundings) -> Actor:
    _require_no("reference", argument)

    return ReferenceActor()


def _nothing(argument: str, _: Surroundings) -> Actor:
    _require_no("nothing", argument)

    return NothingActor()


def _require_no(name: str, argument: str) -> None:
    if argument:
        raise ActorError(f"the {name} actor takes no argument, not {argument!r}; set actor to {name!r}")


def _command(argument: str, around: Surroundings) -> Actor:
    from pytest_tfgrpo.actors.command.command import open_command

    return open_command(argument, around.root, around.settings)


def _openai(argument: str, around: Surroundings) -> Actor:
    from pytest_tfgrpo.actors.openai.agent import open_openai

    return open_openai(around.model(f"openai:{argument}"), around.root, around.settings, around.environ)


def _python(argument: str, around: Surroundings) -> Actor:
    from pytest_tfgrpo.actors.python import open_python

    settings = around.settings
    if SANDBOX.of(settings) != "none":
        raise ActorError(
            f"sandbox={SANDBOX.of(settings)} cannot isolate a python actor, which runs inside pytest; "
            "use a command actor, or sandbox=none"
        )
    return open_python(argument, around.root)


ACTORS: Mapping[str, Opener] = {
    "offline": _offline,
    "openai": _openai,
    "command": _command,
    "python": _python,
    "reference": _reference,
    "nothing": _nothing,
}
"""``replay:<file>`` is not here: it replaces the actor and all models (see recording/)."""


NOTHING: Mapping[str, str] = {}


def _no_model(spec: str) -> Completer:
    raise ActorError(f"language models such as {spec!r} are not available here")


def open_actor(
    spec: str,
    *,
    root: Path,
    settings: Mapping[str, object],
    model: Callable[[str], Completer] = _no_model,
    environ: Mapping[str, str] = NOTHING,
) -> Actor:
    """Return the actor that `spec` names, ``<name>`` or ``<name>:<argument>``; raises ActorError."""
    name, _, argument = spec.partition(":")
    if name not in ACTORS:
        known = ", ".join([*sorted(ACTORS), "replay"])  # which stands for all of them, and is opened before
        where = f" in {spec!r}" if spec != name else ""
        hint = nearest(name, (*ACTORS, "replay")) or meant(name, argument, root)
        raise ActorError(f"unknown actor {name!r}{where}; known: {known}{hint}")
    around = Surroundings(root=root, settings=settings, model=model, environ=environ)
    return ACTORS[name](argument.strip(), around)
