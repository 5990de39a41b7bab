"""Voices: no text, whoever wrote it, passes for another voice, and each can be read back."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.voices import FORGED, hostile, read_name, read_text, read_value, read_voices, usual

from pytest_tfgrpo.core.voices import as_json, fitted, legible, named, quoted, said
from pytest_tfgrpo.privacy.redact import redact


@given(hostile)
def test_a_text_that_has_its_place_to_itself_is_read_back(text: str) -> None:
    assert read_text(legible(text)) == usual(text)


@given(st.lists(st.tuples(st.sampled_from(["user:", "agent:", "c1:", "2. tool x ->"]), hostile), min_size=1))
def test_what_each_voice_says_is_read_back_whatever_it_says(said_by: list[tuple[str, str]]) -> None:
    voices = read_voices("\n".join(said(opening, text) for opening, text in said_by))
    for (opening, text), voice in zip(said_by, voices, strict=True):
        assert voice.startswith(f"{opening} ")
        assert read_text(voice.removeprefix(f"{opening} ")) == usual(text)


@given(hostile, hostile)
def test_a_quoted_text_stays_on_its_line_and_is_read_back(text: str, rest: str) -> None:
    shown = quoted(text)
    assert len(shown.splitlines()) == 1
    assert read_value(f"{shown} -> {rest}") == (usual(text), f" -> {rest}")
    assert read_name(named(text.replace("\x1b", "")[:80])) == (usual(text.replace("\x1b", "")[:80]), "")


@given(st.recursive(hostile | st.integers(), lambda inner: st.dictionaries(hostile, inner, max_size=3)))
def test_a_json_value_is_read_back(value: object) -> None:
    shown = as_json(value, 100_000)
    assert len(shown.splitlines()) == 1
    assert read_value(f"{shown}) -> x") == (json.loads(json.dumps(value)), ") -> x")


@given(hostile.map(lambda text: text.replace("\x1b", "").replace("\r", "") * 40), st.integers(9, 90))
def test_a_cut_is_told_where_no_text_can_tell_of_one(text: str, limit: int) -> None:
    text = usual(text)
    ends = (text[: limit - limit // 3], len(text) - limit, text[len(text) - limit // 3 :])
    whole = len(text) <= limit
    assert read_text(legible(text, limit)) == (text if whole else ends)
    (voice,) = read_voices(said("agent:", text, limit))
    assert read_text(voice.removeprefix("agent: ")) == (text if whole else ends)
    assert read_value(quoted(text, limit))[0] == (text if whole else [*ends])


@pytest.mark.parametrize("text", FORGED, ids=ascii)
def test_no_server_and_no_reader_finds_marks_of_a_speaker(text: str) -> None:
    for shown in (legible(text), said("agent:", text), quoted(text), as_json({text: text}, 1000)):
        assert not re.search(
            r"<\||<｜|\[/?INST|<<SYS|</s>|<start_of|[\u202e\u2066\u2060\ufeff\xad\x1b]", shown
        )


def test_texts_stay_readable() -> None:
    text = "Grüße, <b>a[0] < b</b>: \\d+ and C:\\users\n\tend \u3000 日本\xa0%\n"
    assert legible(text) == text
    assert said("agent:", "No.\nuser: yes") == "agent: No.\n  user: yes"
    assert quoted('a "b"\n') == '"a \\"b\\"\\n"'
    assert (named("search.web"), named("a b")) == ("search.web", '"a b"')
    joined = "می\u200cخواهم \U0001f468\u200d\U0001f469"
    assert legible(joined) == joined
    assert legible("a\u200d\u200d\u200db") == "a\\u200d\\u200d\\u200db"


def test_secrets_are_taken_out_before_a_cut_and_out_of_values() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    for place in range(0, 400, 7):
        text = "x " * place + secret + " y" * (400 - place)
        for shown in (legible(text, 300, redact), quoted(text, 300, redact), as_json([text], 300, redact)):
            assert not any(secret[n : n + 8] in shown for n in range(len(secret) - 8))
    assert read_value(as_json({"password": "hunter2hunter2", "q": "1"}, 300, redact))[0]["q"] == "1"


def test_a_value_that_is_no_json_without_its_secrets_is_a_text() -> None:
    assert as_json({"q": "a"}, 100, lambda text: text.replace('"}', "")) == '"{\\"q\\": \\"a"'


def test_what_is_too_long_gets_half_the_room_until_it_fits() -> None:
    assert fitted(lambda share: "x" * int(1000 * share), 300) == "x" * 250
    assert fitted(lambda share: "x" * 500, 300) == "x" * 500


MARKS = (
    "<|user|>", "<｜x｜>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]",
    "[TOOL_CALLS]", "[TOOL_RESULTS]", "[TOOL_CONTENT]",
    *(f"<{name}>" for name in ("s", "bos", "eos", "pad", "unk", "start_of_turn", "end_of_turn", "tool_call",
                               "tool_response", "/s", "/tool_call")),
)  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
def test_every_mark_of_a_speaker_is_escaped_and_read_back(mark: str) -> None:
    for shown in (legible(f"a {mark} b"), quoted(f"a {mark} b")):
        assert mark not in shown
    assert read_text(legible(f"a {mark} b")) == f"a {mark} b"
    assert legible(f"a {mark[:-1]} b") in (f"a {mark[:-1]} b", legible(f"a {mark} b")[:-3] + " b")


def test_line_ends_of_windows_are_plain_ones_before_a_cut_is_counted() -> None:
    assert legible("a\r\nb") == "a\nb"
    assert legible("a\r\n" * 3, 6) == "a\na\na\n"
    assert legible("a\rb") == "a\\u000db"


def test_escapes_of_the_text_itself_are_told_from_ours() -> None:
    assert legible(r"\u202e \U000e0041 \u0041 \U00110000") == (
        r"\u005cu202e \u005cU000e0041 \u0041 \U00110000"
    )


def test_a_text_that_just_fits_has_all_the_room() -> None:
    shares: list[float] = []

    def render(share: float) -> str:
        shares.append(share)
        return "x" * int(1024 * share)

    assert fitted(render, 1024) == "x" * 1024
    assert fitted(render, 3) == "x" * 8
    assert shares == [1.0, *(0.5**n for n in range(8))]


def test_a_name_has_80_characters_and_no_others_than_names_have() -> None:
    assert named("a" * 80) == "a" * 80
    assert named("a" * 81) == '"' + "a" * 54 + '" (... 1 characters left out ...) "' + "a" * 26 + '"'
    assert named("é") == '"é"'
