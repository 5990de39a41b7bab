"""Reach: whether an actor could read the answers, which lie in scenario files and in the journal."""

from __future__ import annotations

from pytest_tfgrpo.core.records import RunHeader
from pytest_tfgrpo.core.settings.runs import EXECUTOR

ENCLOSED = ("offline", "openai:", "nothing", "reference")
"""Starts of the names of actors that read nothing but what they are given, or give the answers on purpose."""
FIXTURES = "fixtures"
"""Name of the actor where fixtures make the agents, which run inside pytest with every executor."""
UNCONFINED = "it runs without a sandbox"
ELSEWHERE = {
    "process": "it runs in a worker process, which reads what pytest can",
    "ray": "it runs on a node, to which the scenario files travel",
}
"""Why a Python agent could, by the name of the executor that calls it."""


def why_in_reach(run: RunHeader) -> str:
    """Return why the actor of a run could read the answers; empty where it could not."""
    actor = run.identities.get("actor") or {}
    name, identity = str(actor.get("name", "")), actor.get("identity") or {}
    if not name or name.startswith(ENCLOSED):
        return ""
    if name.startswith("command:"):
        return "" if identity.get("sandbox") == "bwrap" else UNCONFINED
    executor = "local" if name == FIXTURES else EXECUTOR.of(run.settings).partition(":")[0]
    return ELSEWHERE.get(executor, "it runs inside pytest")
