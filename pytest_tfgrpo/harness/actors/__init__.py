"""Actors by name: the table of spec strings and the one factory over it (design 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.schema import nearest
from pytest_tfgrpo.harness.actors.protocol import Actor

Opener: TypeAlias = Callable[[str, Path, Mapping[str, Any]], Actor]
"""Takes what follows the name in the spec, the root folder and the settings by name."""


def _offline(argument: str, root: Path, settings: Mapping[str, Any]) -> Actor:  # noqa: ARG001 - an Opener
    if argument:
        raise ActorError(f"the offline actor takes no argument, not {argument!r}; set actor to 'offline'")
    from pytest_tfgrpo.harness.actors.offline import open_offline

    return open_offline()


def _command(argument: str, root: Path, settings: Mapping[str, Any]) -> Actor:
    from pytest_tfgrpo.harness.actors.command import open_command

    return open_command(argument, root, sandbox=settings.get("sandbox", "none"))


def _python(argument: str, root: Path, settings: Mapping[str, Any]) -> Actor:
    from pytest_tfgrpo.harness.actors.python import open_python

    if settings.get("sandbox", "none") != "none":
        raise ActorError(
            f"sandbox={settings['sandbox']} cannot hold a python actor, which runs inside pytest; "
            "use a command actor, or sandbox=none"
        )
    return open_python(argument, root)


ACTORS: Mapping[str, Opener] = {"offline": _offline, "command": _command, "python": _python}


def open_actor(spec: str, *, root: Path, settings: Mapping[str, Any]) -> Actor:
    """Return the actor that `spec` names, ``<name>`` or ``<name>:<argument>``; raises ActorError."""
    name, _, argument = spec.partition(":")
    if name not in ACTORS:
        known = ", ".join(sorted(ACTORS))
        where = f" in {spec!r}" if spec != name else ""
        raise ActorError(f"unknown actor {name!r}{where}; known: {known}{nearest(name, ACTORS)}")
    return ACTORS[name](argument.strip(), root, settings)
