import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.redact import find_secret, redact

SECRETS = {
    "api_key": "sk-proj-" + "a1B2c3D4" * 4,
    "git_token": "ghp_" + "a1B2c3D4" * 5,
    "chat_token": "xoxb-123456789012-abcdefghij",
    "cloud_key": "AKIAABCDEFGHIJKLMNOP",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "private_key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
    "entropy": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items(), ids=SECRETS)
def test_a_well_known_token_is_found_by_its_shape_and_removed(kind: str, secret: str) -> None:
    text = f"first {secret} last"
    assert find_secret(text) == kind
    assert redact(text) == f"first [redacted:{kind}] last"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password: hunter2", "hunter2"),
        ("OPENAI_API_KEY=abcd1234", "abcd1234"),
        ('{"client_secret": "correct horse"}', "correct"),
        ("Authorization: Bearer abc.def.ghijklmnop", "abc.def.ghijklmnop"),
        ("token=abc123", "abc123"),
        ("db at postgres://me:open-sesame@host/db", "open-sesame"),
    ],
)
def test_a_value_with_the_name_of_a_secret_is_removed_and_the_name_stays(text: str, hidden: str) -> None:
    assert find_secret(text)
    assert hidden not in redact(text)
    assert redact(text)[:5] == text[:5]


@pytest.mark.parametrize(
    "text",
    [
        "For tasks about distinct words: use split_words, then unique_items, then count_items.",
        "split on the token: whitespace",
        "library " + "0123456789abcdef" * 4,
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "/home/User/Project42/src/Main/Another3/Deep",
        "countDistinctWordsInNote2AndMore",
        "2026/01/02/03/04/05/06/07",
        "12345678901234567890123",
    ],
)
def test_names_paths_digests_and_numbers_are_no_secrets(text: str) -> None:
    assert find_secret(text) is None
    assert redact(text) == text


def test_nearly_every_random_token_of_24_characters_is_found() -> None:
    chance = random.Random(7)
    tokens = ["".join(chance.choices(string.ascii_letters + string.digits, k=24)) for _ in range(500)]
    assert sum(find_secret(token) == "entropy" for token in tokens) > 475


@given(st.text(st.sampled_from("ab1:/@=- _.,'\"sk-password eyJ.AKIA\n"), max_size=200))
def test_what_was_redacted_stays_redacted(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "piece", ["a-", "A1", "password:    ", "-----BEGIN PRIVATE KEY-----", "://a:", "secret_", "eyJa.", "sk-"]
)
def test_a_hostile_text_of_a_quarter_megabyte_is_done_at_once(piece: str) -> None:
    redact(piece * (250_000 // len(piece)))
