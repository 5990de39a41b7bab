"""Sessions and users are found in stored data however deep they stand in JSON."""

import json

import pytest

from pytest_tfgrpo.production.door import named_in
from pytest_tfgrpo.production.door.named_in import NamedIn
from pytest_tfgrpo.production.door.scrubber import LoopScrubber


@pytest.mark.parametrize("session", ["s1", 'a"b', "a\\b", "zoë/1", "x\ny", " padded ", "x" * 300, "-"])
@pytest.mark.parametrize(
    "key", ["session_id", "session.id", "langfuse.session.id", "sessionId", "gen_ai.conversation.id"]
)
def test_a_session_is_found_in_json_within_json(scrubber: LoopScrubber, session: str, key: str):
    names = NamedIn(scrubber)
    for ascii_only in (True, False):
        data = json.dumps({key: session, "text": "other"}, ensure_ascii=ascii_only)
        for _ in range(4):
            assert names.sessions(data.encode()) == {scrubber.session_ref(session)}
            assert names.sessions((data[:-1] + ", cut").encode()) == {scrubber.session_ref(session)}
            data = json.dumps({"data": data}, ensure_ascii=ascii_only)


def test_a_session_may_be_a_number_and_what_is_none_is_not_found(scrubber: LoopScrubber):
    names = NamedIn(scrubber)
    assert names.sessions(b'{"session.id":4711}') == {scrubber.session_ref("4711")}
    for data in (
        b'{"session_id":null}',
        b'{"session_id":""}',
        b'{"text":"session_id is s1"}',
        b'{"obsession":"s1"}',
    ):
        assert names.sessions(data) == set()


def test_sessions_that_are_no_longer_remembered_are_found_too(scrubber: LoopScrubber, monkeypatch):
    monkeypatch.setattr(named_in, "_REMEMBERED", 2)
    names = NamedIn(scrubber)
    for n in range(7):
        assert names.sessions(b'{"session_id":"s%d"}' % n) == {scrubber.session_ref(f"s{n}")}
    assert len(names._refs) <= 2
    odd = json.dumps({"session_id": "a"}).replace("a", "\\q").encode()  # no escape of JSON
    assert names.sessions(odd) == {scrubber.session_ref("\\q")}


def test_users_are_pseudonyms_that_are_no_part_of_a_longer_word(scrubber: LoopScrubber):
    ref = scrubber.user_ref("ann-7")
    assert NamedIn(scrubber).users(f'{{"a":"{ref}","b":"x{ref}","c":"{ref}f"}}'.encode()) == {ref}
