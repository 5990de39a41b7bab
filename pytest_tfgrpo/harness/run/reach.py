"""Reach: whether an actor could read the answers, which lie in scenario files and in the journal."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.wire import Json

ENCLOSED = ("offline", "openai:", "nothing", "reference")
"""Starts of the names of actors that read nothing but what they are given, or give the answers on purpose."""


def why_in_reach(identities: Mapping[str, Json]) -> str:
    """Return why an actor could read the answers, by the identities of a run; empty where it could not."""
    actor = identities.get("actor") or {}
    name, identity = str(actor.get("name", "")), actor.get("identity") or {}
    if not name or name.startswith(ENCLOSED):
        return ""
    if not name.startswith("command:"):
        return "it runs inside pytest"
    return "" if identity.get("sandbox") == "bwrap" else "it runs without a sandbox"
