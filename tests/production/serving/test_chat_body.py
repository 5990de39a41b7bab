"""Bodies of chat completions: only the message changes that texts are added to, to the byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.production.serving.chat_body import ChatBody, last_user, read_chat

USER = {"role": "user", "content": "Where is my parcel?"}


def read(text: str) -> ChatBody:
    found = read_chat(text.encode())
    assert found is not None
    return found


def test_all_but_the_system_message_stays_to_the_byte() -> None:
    text = (
        '{ "n" : 1.10, "messages":\t[ {"role":"user","content":"h\\u00e9"} ] ,"x": [1e400, "\\ud83d", NaN]}\n'
    )
    added = '{"role": "system", "content": "A\\n\\nB"},'
    assert read(text).with_texts(["A", "B"], "system").decode() == text.replace("[ {", "[ " + added + "{", 1)


def test_a_system_message_keeps_what_it_has_in_its_own_form() -> None:
    for role in ("system", "developer"):
        for content, expected in (
            ("Be brief.", "Be brief.\n\nA"),
            (" ", "A"),
            (None, "A"),
            ([{"type": "text", "text": "B"}], [{"type": "text", "text": "B"}, {"type": "text", "text": "A"}]),
        ):
            first = {"role": role, "content": content, "name": "x"}
            sent = json.loads(read(json.dumps({"messages": [first, USER]})).with_texts(["A"], "system"))
            assert sent == {"messages": [{**first, "content": expected}, USER]}


def test_a_text_that_the_system_message_has_is_not_added_again() -> None:
    text = json.dumps({"messages": [{"role": "system", "content": "Solve it.\n\nMore."}, USER]})
    assert read(text).with_texts(["Solve it."], "system") == text.encode()
    assert json.loads(read(text).with_texts(["Solve it.", "A"], "system"))["messages"][0]["content"].endswith(
        "More.\n\nA"
    )


def test_a_pack_may_have_its_texts_in_front_of_the_first_message_of_the_user() -> None:
    head = '{"messages": [ {"role":"system","content":"S [1, {]"} ,\n'
    tail = ' , {"role": "user", "content": "More"}], "n": 1.10}'
    for content, expected in (
        ("Hello", "A\n\nB\n\nHello"),
        (" ", "A\n\nB"),
        ([{"type": "text", "text": "C"}], [{"type": "text", "text": text} for text in "ABC"]),
    ):
        user = {"role": "user", "content": content, "name": "x"}
        sent = read(head + json.dumps(user) + tail).with_texts(["A", "B"], "user").decode()
        assert sent == head + json.dumps({**user, "content": expected}) + tail
        assert read(sent).with_texts(["A", "B"], "user").decode() == sent, "they are there"
    no_user = json.dumps({"messages": [{"role": "assistant", "content": "I"}]})
    assert read(no_user).with_texts(["A"], "user") == read(no_user).with_texts(["A"], "system")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"messages": []}',
        b'{"messages": ["a"]}',
        b'{"messages": {"role": "user"}}',
        b'{"model": "m"}',
        b"\xff\xfe",
        b'{"messages": [{}]} more',
        b'{"messages" [{}]}',
        b'["messages": [{}]}',
        b'{"messages": [{}]]',
        b'{"messages": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_chat_completion_is_not_read(body: bytes) -> None:
    assert read_chat(body) is None


def test_the_session_is_that_of_the_metadata_or_else_the_user() -> None:
    assert read(json.dumps({"messages": [USER], "user": "u"})).session == "u"
    both = {"messages": [USER], "user": "u", "metadata": {"session_id": "s"}}
    assert (read(json.dumps(both)).session, read(json.dumps(both)).user) == ("s", "u")
    for odd in ({"user": 7}, {"metadata": "s"}, {"metadata": {"session_id": {}}}):
        assert read(json.dumps({"messages": [USER], **odd})).session == ""


def test_the_task_is_the_text_of_the_first_message_of_the_user() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "What is it?"}]
    messages = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": parts},
        {"role": "assistant"},
        USER,
    ]
    assert read(json.dumps({"messages": messages})).task == "What is it?"
    assert read(json.dumps({"messages": [{"role": "assistant", "content": 7}]})).task == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.lists(JSON, max_size=2), st.text(), st.booleans())
def test_any_body_with_messages_is_read_as_json_reads_it(
    fields: dict[str, object], rest: list[object], text: str, compact: bool
) -> None:
    fields.pop("messages", None)
    first = {"role": "user", "content": text}
    value = {**fields, "messages": [first, *rest], "tools": []}
    body = json.dumps(value, separators=(",", ":") if compact else None, ensure_ascii=compact)
    try:
        encoded = body.encode()
    except UnicodeEncodeError:
        return
    found = read_chat(encoded)
    assert found is not None
    system = {"role": "system", "content": "A"}
    assert json.loads(found.with_texts(["A"], "system")) == {**value, "messages": [system, first, *rest]}


def test_the_last_message_of_the_user_is_found_from_behind() -> None:
    other = {"role": "assistant"}
    some: list[list[dict[str, str]]] = [[], [other, other], [USER, other], [other, USER, USER, other]]
    assert [last_user(found) for found in some] == [0, 0, 0, 2]
