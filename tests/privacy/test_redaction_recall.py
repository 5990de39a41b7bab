"""How much of what is private is taken out, and how little else: values drawn anew, with a printed seed."""

import os
import random
from collections import Counter
from urllib.parse import unquote

import pytest
from support import ROOT
from support.private_values import PERSONAL, credentials, harmless, places, tokens

from pytest_tfgrpo.core.wire.fitting import fit
from pytest_tfgrpo.privacy.redact import Redactor


@pytest.fixture(scope="module")
def chance() -> random.Random:
    seed = int(os.environ.get("REDACTION_SEED", random.SystemRandom().randrange(10**9)))
    print(f"seed {seed}; repeat it with REDACTION_SEED={seed}")
    return random.Random(seed)


def leaks(value: str, text: str) -> bool:
    """Return whether half of a value is still in a text, as it stands or unescaped."""
    half = max(4, len(value) // 2)
    plain = unquote(text).replace("\\n", "\n")
    return any(part in where for part in (value[:half], value[-half:]) for where in (text, plain))


def secret_of(kind: str, value: str) -> str:
    if kind == "url":
        return value.partition("app:")[2].partition("@")[0]
    if kind == "phone":
        return value[next(n for n, c in enumerate(value) if c in "+(" or c.isdigit()) :]
    return value.split(" ")[-1] if kind in NAMED else value


NAMED = {*credentials(), "aws secret"}


def missed(draws: dict, count: int, chance: random.Random, redactor: Redactor) -> tuple[int, Counter]:
    found: Counter = Counter()
    for _ in range(count):
        for kind, draw in draws.items():
            value = draw(chance)
            secret = secret_of(kind, value)
            if kind == "assigned":
                secret = value.partition("=")[2]
            text = places(value, chance)
            if leaks(secret, redactor.text(text)):
                print("missed", kind, text, redactor.text(text))
                found[kind] += 1
    return count * len(draws), found


def test_nearly_every_key_and_credential_is_found(chance: random.Random) -> None:
    total, found = missed({**tokens(), **credentials()}, 12, chance, Redactor(b"key"))
    assert total >= 500
    assert found.total() <= 0.01 * total, found


def test_nearly_all_personal_data_is_found(chance: random.Random) -> None:
    total, found = missed(dict(PERSONAL), 150, chance, Redactor(b"key"))
    assert total >= 500
    assert found.total() <= 0.03 * total, found


def test_hardly_anything_else_is_taken_out(chance: random.Random) -> None:
    redactor = Redactor(b"key")
    groups = harmless(chance, ROOT)
    wrong = {name: [text for text in texts if redactor.text(text) != text] for name, texts in groups.items()}
    print({name: [redactor.text(text) for text in texts] for name, texts in wrong.items()})
    total = sum(map(len, groups.values()))
    assert total > 1500
    assert sum(map(len, wrong.values())) <= 0.01 * total
    assert wrong["UUIDs"] == wrong["pictures"] == []


def test_the_arguments_of_a_tool_are_searched_with_their_names(chance: random.Random) -> None:
    redactor = Redactor(b"key")
    value = {"password": "open sesame", "phone": "4155552671", "n": 4111111111111111, "token": "the"}
    shown = fit({"args": [value], "login": {"userPassword": "hunter2", "keywords": "hunter2"}}, redactor)
    first = shown["args"][0]
    assert [first[key][:15] for key in ("password", "phone", "n")] == [
        "[redacted:named",
        "[redacted:phone",
        "[redacted:card:",
    ]
    assert first["token"] == "the"
    assert shown["login"]["keywords"] == "hunter2"
    assert redactor.counts == {"named": 2, "phone": 1, "card": 1}
