"""Language models: the only door to one (design 3)."""

from __future__ import annotations

from pytest_tfgrpo.llm.protocol import Completer, Completion, Message, Purse, Request, ToolCall, ToolSpec

__all__ = ["Completer", "Completion", "Message", "Purse", "Request", "ToolCall", "ToolSpec"]
