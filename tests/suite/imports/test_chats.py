"""What the user of a chat says, and chats of which no conversation can be made."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.suite.imports.chats import said

SYSTEM = "system messages (they belong into a prompt pack)"
ASSISTANT = "messages of the assistant in a chat: the agent writes its own"


def one(role: Any, content: Any = "x", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


@pytest.mark.parametrize(
    ("messages", "fields", "left_out"),
    [
        ([one("user", "a")], {"prompt": "a"}, {}),
        ([one("user", "a"), one("user", "b")], {"prompt": "a\n\nb"}, {}),
        ([one("user", "a"), one("assistant"), one("user", "b")], {"turns": ["a", "b"]}, {ASSISTANT: 1}),
        ([one("system"), one("developer"), one("user", "a")], {"prompt": "a"}, {SYSTEM: 2}),
        ([one("user", "a"), one("system"), one("user", "b")], {"prompt": "a\n\nb"}, {SYSTEM: 1}),
        ([one("assistant"), one("user", "a"), one("assistant")], {"prompt": "a"}, {ASSISTANT: 2}),
        ([one("user", [{"type": "text", "text": "a"}, "b"])], {"prompt": "a\nb"}, {}),
        ([one("user", "a", tool_calls=[])], {"prompt": "a"}, {}),
    ],
)
def test_what_the_user_says_is_kept(messages: Any, fields: Any, left_out: Any) -> None:
    told: Counter[str] = Counter()

    def leave_out(what: str, where: str) -> None:
        assert where == "a.json:3"
        told[what] += 1

    found: Any = SimpleNamespace(leave_out=leave_out)
    assert said(found, messages, "a.json:3") == fields
    assert told == left_out


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "chats without a message of the user"),
        ([one("system")], "chats without a message of the user"),
        ([one("assistant")], "chats without a message of the user"),
        (["x"], "messages without a known role"),
        ([None], "messages without a known role"),
        ([{}], "messages without a known role"),
        ([one("user"), one("critic")], "messages without a known role"),
        ([one("user"), one("tool")], "chats with a tool's message"),
        ([one("user"), one("assistant", tool_calls=[{}])], "chats in which the assistant called tools"),
        ([one("user", "")], "messages that are no text"),
        ([one("user", " ")], "messages that are no text"),
        ([one("user", None)], "messages that are no text"),
        ([one("user", [])], "messages that are no text"),
        ([one("user", ["a", {"type": "image"}])], "messages that are no text"),
    ],
)
def test_a_chat_of_which_no_conversation_can_be_made_says_why(messages: Any, why: str) -> None:
    found: Any = SimpleNamespace(leave_out=lambda what, where: None)
    with pytest.raises(ValueError, match=why):
        said(found, messages, "a.json:3")
