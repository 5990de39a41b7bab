"""The settings of the bus: where it is, and what is handed on to the client of NATS."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tfgrpo.production.bus.settings import parse_bus, parse_options


@pytest.mark.parametrize("url", ["embedded:bus.db", "embedded:a:b", "nats:nats://me:secret@host:4222"])
def test_a_bus_is_a_kind_and_a_place(url: str) -> None:
    assert parse_bus(url) == url


@pytest.mark.parametrize("url", ["embedded", "embedded:", "nats:", "redis:x", ":x", "x"])
def test_what_is_no_bus_says_what_is(url: str) -> None:
    with pytest.raises(ValueError, match="must be embedded:<path> or nats:<url>"):
        parse_bus(url)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ("{}", {}),
        ({"user": "me", "port": 1, "wait": 0.5, "tls": True}, None),
        ('{"user": "me", "port": 1}', {"user": "me", "port": 1}),
    ],
)
def test_options_are_a_table_or_the_text_of_an_object(given: Any, found: Any) -> None:
    assert parse_options(given) == (given if found is None else found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("user", "must be a JSON object"),
        ("[" * 9000, "must be a JSON object"),
        ("[1]", "must be names with texts, numbers or truth values"),
        (["user"], "must be names with texts, numbers or truth values"),
        ({"user": "me", "servers": ["a"]}, "must be names with texts, numbers or truth values"),
        ({"servers": None, "user": "me"}, "must be names with texts, numbers or truth values"),
    ],
)
def test_what_is_no_option_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_options(given)
