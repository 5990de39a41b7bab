"""Keys never appear: not in errors, answers, representations or logs, however a server spells them."""

import base64
import json
import logging
import pickle
import traceback
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fake_model
from support.fake_model import Body, FakeModel, Reply
from support.model_clients import KEY, Client, connected, request

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.server import keys
from pytest_tfgrpo.llm.server.keys import Scrubber, Secret

STRANGE = "key with/odd+characters&=%"
SPELLINGS = (
    KEY,
    f"Bearer {KEY}",
    f'{{"Authorization": "Bearer {KEY}"}}',
    quote(KEY),
    KEY.encode().hex(),
    base64.b64encode(KEY.encode()).decode(),
    base64.b64encode(f"user:{KEY}:x".encode()).decode(),
    base64.urlsafe_b64encode(f"ab{KEY}".encode()).decode(),
    "x" * 280 + KEY,
    " " * 9990 + KEY,
    "<p>" * 650 + KEY,
    "".join(f"\\u{ord(c):04x}" for c in KEY),
    "".join(f"&#{ord(c)};" for c in KEY),
    f"<p>{KEY[:3]}&#{ord(KEY[3])};{KEY[4:]}</p>",
)


def leaks(text: str) -> list[str]:
    """Return the pieces of the key that `text` shows in some spelling."""
    parts = [KEY, KEY[:12], KEY[-12:], KEY.encode().hex(), base64.b64encode(KEY.encode()).decode()[:-4]]
    return [part for part in parts if part in text]


@pytest.mark.asyncio
@pytest.mark.parametrize("said", SPELLINGS)
@pytest.mark.parametrize("status", [200, 307, 401, 500])
async def test_a_server_that_tells_the_key_is_not_believed(
    said: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bodies: tuple[Body | bytes, ...] = (
        {"error": {"message": said, "code": said, "type": said}},
        {"error": said},
        {"choices": [{"message": {"content": None, "tool_calls": [{"function": said}]}}]},
        {"choices": said},
        {said: said},
        said.encode(),
        json.dumps(said)[:-2].encode(),
    )
    for body in bodies:
        reply = Reply(
            status=status, body=body, headers={"Location": said.strip(), "Retry-After": said.strip()}
        )
        async with connected(lambda *_, reply=reply: reply, retries=1) as client:
            with pytest.raises(ModelError) as caught:
                await client.complete(request())
            model = client.models.open("openai:priced@fake")
            shown = [repr(model), repr(model.identity), repr(client.models), repr(vars(model)), model.name]
        error = "".join(traceback.format_exception(caught.value))
        assert leaks(f"{error} {caught.value!r} {shown} {caplog.text}") == []


@pytest.mark.asyncio
async def test_a_traceback_with_the_values_of_variables_shows_no_key() -> None:
    with FakeModel() as server:
        pass
    async with Client(server, retries=0) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(request())
    told: BaseException | None = caught.value
    while told is not None:
        told, shown = told.__context__, traceback.TracebackException.from_exception(told, capture_locals=True)
        assert leaks("".join(shown.format(chain=False))) == []


@pytest.mark.asyncio
async def test_an_answer_that_tells_the_key_is_told_without_it() -> None:
    call = {"id": KEY, "type": "function", "function": {"name": KEY, "arguments": json.dumps({"a": KEY})}}
    reply = fake_model.text(f"the key is {KEY}!", tool_calls=[call])
    assert isinstance(reply.body, dict)
    reply.body["model"] = KEY
    async with connected(lambda *_: reply) as client:
        answer = await client.complete(request())
    assert leaks(repr(answer)) == []
    assert answer.text == "the key is [redacted:key]!"
    assert json.loads(answer.tool_calls[0].arguments) == {"a": "[redacted:key]"}


@pytest.mark.asyncio
async def test_the_key_is_sent_all_the_same() -> None:
    async with connected(keys=[KEY]) as client:
        await client.complete(request())
    assert client.server.headers[0]["authorization"] == f"Bearer {KEY}"


@given(
    key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60),
    around=st.binary(max_size=9),
)
def test_a_key_is_found_within_any_base64(key: str, around: bytes) -> None:
    scrubbed = Scrubber([Secret(key)]).scrub(base64.b64encode(around + key.encode() + around).decode())
    assert "[redacted:key]" in scrubbed


@pytest.mark.parametrize("placeholder", ["none", "EMPTY", "x"])
def test_a_placeholder_is_no_secret(placeholder: str) -> None:
    assert Scrubber([Secret(placeholder)]).scrub("none, EMPTY, x") == "none, EMPTY, x"


def test_a_key_of_odd_characters_is_found_in_a_url() -> None:
    scrubber = Scrubber([Secret(STRANGE)])
    assert (
        scrubber.scrub(f"/?k={quote(STRANGE)}&j={quote(STRANGE, safe='')}")
        == "/?k=[redacted:key]&j=[redacted:key]"
    )


ESCAPED = (
    r"key\u0020with\/odd+characters&=%",
    "key with&#47;odd+characters&amp;=%",
    "key&#x20;with&sol;odd+characters&=%",
    r"key with\\/odd+characters&=%",
    "&#107;ey with/odd&plus;characters&=%25",
)


@pytest.mark.parametrize("spelled", ESCAPED)
def test_a_key_with_escapes_is_taken_out_and_what_stands_around_it_stays(spelled: str) -> None:
    shown = Scrubber([Secret(STRANGE)]).scrub(rf"a\/b &amp; {spelled} c%20d")
    assert shown == r"a\/b &amp; [redacted:key] c%20d"


@pytest.mark.parametrize("escapes", [1, 2, 3])
def test_escapes_within_escapes_are_undone(escapes: int) -> None:
    spelled = STRANGE
    for _ in range(escapes):
        spelled = spelled.replace("&", "&amp;")
    assert Scrubber([Secret(STRANGE)]).scrub(spelled) == "[redacted:key]"


def test_every_key_is_taken_out_of_bytes_and_of_what_is_shown_before_it_is_cut() -> None:
    one, two = "first-key-0123", "second-key-4567"
    scrubber = Scrubber([Secret(one), Secret(two)])
    assert scrubber.scrub_bytes(f"{two} {one} {two}".encode()) == b" ".join([b"[redacted:key]"] * 3)
    assert scrubber.redact(f"see {one}, then", 19) == "see [redacted:key],"


def test_a_secret_shows_nothing_and_cannot_be_stored() -> None:
    secret = Secret(KEY)
    assert leaks(f"{secret} {secret!r} {[secret]}") == []
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_other_secrets_in_errors_are_redacted_too() -> None:
    assert "hunter2hunter2" not in Scrubber([]).redact("password=hunter2hunter2", 100)


LONG = "abcdefghijklmnopqrstuvwxyz"
HALF = LONG[:13]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ""),
        (LONG[:12], LONG[:12]),
        (HALF, "#"),
        (LONG, "#"),
        (f"{HALF}zzz", "#zzz"),
        (f"{LONG[:20]}?", "#?"),
        (f"x{HALF} {LONG}y", "x# #y"),
        (f"{HALF}{HALF}", "##"),
    ],
)
def test_a_key_that_is_cut_is_taken_out_from_its_half_on(text: str, left: str) -> None:
    assert keys._without_half(text, LONG, "#") == left


def test_a_short_key_is_taken_out_only_as_a_whole() -> None:
    short = LONG[: keys.SHORTEST]
    assert keys._without_half(f"{short[:-1]} {short}", short, "#") == f"{short[:-1]} #"
