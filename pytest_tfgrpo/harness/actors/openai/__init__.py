"""The actor ``openai:<model>``: a language model with the scenario's tools, in a bounded loop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.harness.actors.openai.agent import OpenAIActor
from pytest_tfgrpo.harness.actors.openai.toolbox import open_toolbox
from pytest_tfgrpo.llm.protocol import Completer

__all__ = ["OpenAIActor", "open_openai"]


def open_openai(completer: Completer, root: Path, settings: Mapping[str, Any]) -> OpenAIActor:
    """Return the actor that asks `completer`, as `tools` and `max_steps` are set; raises ActorError."""
    return OpenAIActor(completer, open_toolbox(settings["tools"], root), settings["max_steps"])
