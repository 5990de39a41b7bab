"""Chats of other tools as what their user says: the agent gives the answers itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.imports.imported import Imported

INSTRUCTIONS = ("system", "developer")


def said(found: Imported, messages: Sequence[Json], where: str) -> dict[str, Json]:
    """Return the user's messages of a chat as `prompt`, or as `turns` where the assistant answers between.

    Notes what others say in it. Raises ValueError where no faithful conversation can be made of it.
    """
    turns: list[list[str]] = []
    before = ""
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(message, Mapping) or role not in ("user", "assistant", *INSTRUCTIONS):
            raise ValueError(
                "chats with a tool's message" if role == "tool" else "messages without a known role"
            )
        if message.get("tool_calls"):
            raise ValueError("chats in which the assistant called tools")
        if role in INSTRUCTIONS:
            found.leave_out("system messages (they belong into a prompt pack)", where)
            continue
        if role == "user" and before == "user":
            turns[-1].append(_text(message.get("content")))
        elif role == "user":
            turns.append([_text(message.get("content"))])
        else:
            found.leave_out("messages of the assistant in a chat: the agent writes its own", where)
        before = role
    if not turns:
        raise ValueError("chats without a message of the user")
    texts = ["\n\n".join(parts) for parts in turns]
    return {"prompt": texts[0]} if len(texts) == 1 else {"turns": texts}


def _text(content: Json) -> str:
    """Return the text of a message, which may come in parts; raises ValueError."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    if not all(isinstance(text, str) for text in texts) or not (whole := "\n".join(map(str, texts))).strip():
        raise ValueError("messages that are no text")
    return whole
