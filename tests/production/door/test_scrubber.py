"""What comes in loses secrets and names; what joins events stays joinable."""

import json
import math
from dataclasses import replace

import pytest
from support import ROOT

from pytest_tfgrpo.core.events import FEEDBACK, SCHEMAS, TRAJECTORY, RlEvent, check_event, wrap
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.production.door.hidden_users import UserHider
from pytest_tfgrpo.production.door.scrubber import (
    LEAF_BYTES,
    LONGEST_ATTRIBUTE,
    LoopScrubber,
    _finite,
    _shortened,
    cut_texts,
)
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines

RECORDED = ROOT / "tests" / "telemetry" / "traces" / "recorded"
KEY = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
RANDOM = "q8Zt3LpVx7Rk2WmYc9Nd4Hs6"


def test_a_short_key_is_refused():
    with pytest.raises(ValueError, match="it needs 16 or more"):
        LoopScrubber(b"k" * 15)
    assert LoopScrubber(b"k" * 16).user_ref("ann").startswith("u-")


def test_an_identity_is_kept_or_replaced_as_a_whole(scrubber):
    assert scrubber.value("session_id", "chat-17") == "chat-17"
    uuid = "3f2504e0-4f89-41d3-9a0c-0305e82c3303"
    assert scrubber.value("trajectory_id", uuid) == uuid
    for key in ("session_id", "gen_ai.conversation.id", "metadata.sessionId", "task_key", "lessons"):
        hidden = scrubber.value(key, RANDOM)
        assert hidden == scrubber.identity(RANDOM)
        assert hidden.startswith("id-")
        assert len(hidden) == 35
        assert scrubber.value(key, hidden) == hidden
    assert scrubber.identity("mail of ann@example.com") != scrubber.identity("mail of bob@example.com")


@pytest.mark.parametrize(
    "key",
    [
        *(
            "session_id",
            "conversation_id",
            "thread_id",
            "trajectory_id",
            "feedback_id",
            "reward_id",
            "agent_id",
        ),
        *("app.task_id", "agent_key", "policyVersion", "app.lessons"),
    ],
)
def test_what_joins_events_is_one_word_wherever_it_stands(scrubber, key):
    mail = "ann@example.org"
    assert scrubber.value(key, mail) == scrubber.opaque(mail)
    assert scrubber.attribute("metadata", {key: mail}) == {key: scrubber.opaque(mail)}
    raw = f'{{"{key}": "{mail}", "x'.encode()
    assert scrubber.opaque(mail) in scrubber.document(raw)


def test_addresses_are_taken_out_where_that_is_said():
    text = "it came from 203.0.113.77 today"
    assert LoopScrubber(b"k" * 32).text(text) == text
    assert "203.0.113.77" not in LoopScrubber(b"k" * 32, addresses=True).text(text)


def test_an_attribute_that_comes_again_under_another_name_is_judged_by_that(scrubber):
    text = json.dumps(["where is my order 7?", "ann-7"])
    assert scrubber.attribute("Note", text) == scrubber.attribute("note", text)
    users = json.loads(scrubber.attribute("user_ids", text))
    assert users[1] == scrubber.user_ref("ann-7")
    assert json.loads(scrubber.attribute("notes", text))[1] == "ann-7"


def test_a_user_is_one_however_much_space_is_around(scrubber):
    assert scrubber.user_ref(" ann \n") == scrubber.user_ref("ann")
    assert scrubber.value("user_id", " ") == " "
    scrubbed = "[Scrubbed due to 'session']"
    assert scrubber.value("user_id", scrubbed) == scrubbed


def test_an_opaque_id_is_replaced_as_a_whole_and_a_key_or_text_is_not(scrubber):
    call = "call_Ab3dEf6hIj9kLm2nOp5qRs8t"
    assert scrubber.value("tool_call_id", call) == scrubber.value("id", call) == scrubber.identity(call)
    assert scrubber.value("callId", "call-1") == "call-1"
    assert scrubber.value("id", f"the id of {call}").startswith("the id of call_[redacted:")
    assert scrubber.value("api_key", call).startswith("[redacted:")


def test_a_user_becomes_a_pseudonym_be_it_a_number_or_a_name_with_a_space(scrubber):
    ref = scrubber.user_ref("Ann Smith")
    assert ref.startswith("u-")
    assert len(ref) == 34
    assert scrubber.user_ref(ref) == ref
    assert scrubber.attribute("user.id", "Ann Smith") == ref
    assert scrubber.attribute("user.id", 4711) == scrubber.user_ref("4711")
    assert scrubber.attribute("call", {"userId": "4711", "n": 4711}) == {
        "userId": scrubber.user_ref("4711"),
        "n": 4711,
    }
    assert scrubber.value("user", "ann") == scrubber.user_ref("ann")
    assert scrubber.value("user", "where is my order?") == "where is my order?"
    assert LoopScrubber(b"x" * 32).user_ref("Ann Smith") != ref


def test_a_user_is_taken_out_of_texts_too_unless_the_id_is_a_word(scrubber):
    hider = UserHider(scrubber, ["cust-9938", "anna"])
    ref = scrubber.user_ref("cust-9938")
    assert hider.text("cust-9938 and anna, not cust-99381") == f"{ref} and anna, not cust-99381"
    assert (hider.value("role", "anna"), hider.value("owner", "cust-9938")) == ("anna", ref)
    assert hider.value("session_id", "cust-9938/1") == "cust-9938/1"


def test_a_session_and_its_identity_have_one_pseudonym(scrubber):
    assert scrubber.session_ref(RANDOM) == scrubber.session_ref(scrubber.identity(RANDOM))
    assert scrubber.session_ref("chat-17") == scrubber.session_ref(scrubber.opaque("chat-17"))
    assert scrubber.session_ref("chat-17") != scrubber.user_ref("chat-17")


@pytest.mark.parametrize("subject", [TRAJECTORY, FEEDBACK])
def test_a_payload_keeps_its_ids_and_times(scrubber, subject):
    data = load_schema(SCHEMAS[subject])["examples"][0]
    found = check_event(wrap(subject, data), scrubber)
    assert isinstance(found, RlEvent)
    if subject == TRAJECTORY:
        data = {**data, "metadata": {**data["metadata"], "user_ref": scrubber.user_ref("u-5d41")}}
    assert found.data == data


def test_texts_within_json_are_redacted_one_by_one_and_it_stays_json(scrubber):
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": f'the key is "{KEY}"'}]},
        {"role": "tool", "parts": [{"response": {"password": "hunter22", "user_id": 17}}]},
    ]
    text = scrubber.attribute("gen_ai.input.messages", json.dumps(messages))
    assert KEY not in text
    assert "hunter22" not in text
    found = json.loads(text)
    assert found[0]["parts"][0]["content"].startswith('the key is "[redacted:')
    assert found[1]["parts"][0]["response"]["user_id"] == scrubber.user_ref("17")


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, '{"a": NaN, "b": 1e999}', '{"a": ' + "9" * 5000 + "}", '["\\ud800\\u0000"]', "[\x00\ud800"],
)
def test_hostile_json_in_an_attribute_becomes_a_text_fit_to_keep(scrubber, text):
    found = scrubber.attribute("input.value", text)
    json.dumps(found, allow_nan=False).encode("ascii")
    assert "\x00" not in found
    found.encode()


def test_numbers_that_json_lacks_become_texts(scrubber):
    found = scrubber.attribute("score", [1.5, math.nan, {"a": -math.inf}])
    assert found == [1.5, "NaN", {"a": "-Infinity"}]


def test_what_is_no_payload_is_kept_without_users_and_secrets(scrubber):
    raw = f'{{"metadata": {{"user_ref": "Ann Smith", "user_id": 48213377}}, "text": "{KEY}"'.encode()
    found = scrubber.document(raw)
    for plain in ("Ann Smith", "48213377", KEY):
        assert plain not in found


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_what_is_read_from_spans_of_real_instrumentations_is_the_same_but_for_the_user(scrubber, path):
    with path.open("rb") as file:
        spans = list(read_otlp_lines(file, path.name))
    assert spans
    for one in spans:
        scrubbed = replace(one, attributes=scrubber.attributes(one.attributes))
        plain, read = read_span(one), read_span(scrubbed)
        assert read == replace(plain, user=plain.user and scrubber.user_ref(plain.user))


@pytest.mark.parametrize("key", ["user", "user_id", "userId"])
def test_a_user_is_found_in_what_is_not_quite_json(scrubber, key):
    sessions, users = scrubber.named(f'{{"{key}": "ann", "session_id": "s1", "other": "x"'.encode())
    assert (sessions, users) == (["s1"], ["ann"])
    more = f'{{"{key}": 4711, "Conversation.Id": 17, "{key}": "bob", "sessionId": "s2"'.encode()
    assert scrubber.named(more) == (["17", "s2"], ["4711", "bob"])


def test_what_is_no_payload_is_cut_to_so_many_bytes(scrubber):
    for given in (
        b"no json " * 1000,
        json.dumps({"text": "some words " * 1000}).encode(),
        {"text": "w " * 9000},
    ):
        assert 500 < len(scrubber.document(given, 1000).encode()) <= 1000


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (2**1023 - 1, 2**1023 - 1),
        (2**1023, "Infinity"),
        (-(2**1023), "-Infinity"),
        ([1.5, {"a": math.nan}], [1.5, {"a": "NaN"}]),
        ("NaN", "NaN"),
        (None, None),
    ],
)
def test_a_number_that_no_reader_takes_is_a_text_wherever_it_stands(value, kept):
    assert _finite(value) == kept


def test_json_that_is_too_long_loses_the_middle_of_its_texts_then_of_its_list():
    assert _shortened({"a": "short"}) == '{"a":"short"}'
    texts = json.loads(_shortened({"a": ["x" * 200_000, "y" * 200_000, 5], "b": "z"}))
    assert (texts["a"][2], texts["b"]) == (5, "z")
    assert max(map(len, texts["a"][:2])) <= LEAF_BYTES[0]
    rows = json.loads(_shortened([{"n": n, "text": "x" * 100} for n in range(6_000)]))
    numbers = [row["n"] for row in rows]
    assert numbers[0] == 0
    assert numbers[-1] == 5_999
    assert numbers == sorted(numbers)
    assert 1_000 < len(numbers) < 3_100
    whole = _shortened({str(n): "x" * 100 for n in range(6_000)})
    assert len(whole.encode()) <= LONGEST_ATTRIBUTE
    assert cut_texts({"a": ["x" * 300], "b": 5}, 256)["b"] == 5
    assert len(cut_texts({"a": ["x" * 300]}, 256)["a"][0].encode()) <= 256
