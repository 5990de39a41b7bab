import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import growth

from pytest_tfgrpo.core import redact as redaction
from pytest_tfgrpo.core.redact import RULES, find_secret, redact, unescaped

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


@given(st.text(st.sampled_from("ab1:/@=- _.,'\"sk-password eyJ.AKIA\\u06&#x;%4n"), max_size=200))
def test_what_was_redacted_in_a_text_with_escapes_stays_redacted(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


EXAMPLES = {
    "private key": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    "password in a URL": "https://me:open-sesame@host",
    "sk-": "sk-abcd-efgh-ijkl-mnop",
    "sk_live": "rk_live_abcdefghij",
    "AIza": "AIza" + "ab-_" * 8,
    "hf_": "hf_abcdefghijklmnopqrst",
    "gsk_": "gsk_abcdefghijklmnopqrst",
    "npm_": "npm_" + "abcde" * 6,
    "pypi-": "pypi-" + "ab-_c" * 6,
    "SG.": "SG.abcdefghijklmnop.abcdefghijklmnop",
    "gh_": "gho_abcdefghijklmnopqrst",
    "github_pat": "github_pat_abcdefghijklmnopqrst",
    "glpat": "glpat-abcdefghijklmnop",
    "xox": "xoxp-abcdefghij",
    "AKIA": "ASIAABCDEFGHIJKLMNOP",
    "JWT": "eyJhbGciOiJ.eyJzdWIiOiIx.c2lnbmF0",
    "name of a secret": "api_key=hello",
    "name of what may be one": "authorization: abc123",
    "Bearer": "Bearer abcdefghijkl",
    "Basic": "Basic abcdefghijkl",
    "entropy": "wJalrXUtnFEMIK7MDENGbPxRfiCY",
}


def test_every_rule_has_an_example() -> None:
    assert list(EXAMPLES) == list(RULES)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES.items(), ids=EXAMPLES)
def test_no_rule_can_be_left_out(rule: str, example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_secret(example) == RULES[rule].kind
    assert redact(f"first {example} last") != f"first {example} last"
    others = {name: other for name, other in RULES.items() if name != rule}
    monkeypatch.setattr(redaction, "RULES", others)
    assert find_secret(example) is None


NAMES = """password PASSWD passphrase pwd secret Secret-Key secret_access_key apikey api-key access_key
private-key clientsecret auth_token accesstoken refresh-token bearertoken"""


@pytest.mark.parametrize("name", NAMES.split())
def test_every_name_of_a_secret_counts_also_with_a_plain_word(name: str) -> None:
    assert redact(f"MY_{name} = hello") == f"MY_{name} = [redacted:named]"


@pytest.mark.parametrize("name", ["token", "Authorization", "credential", "credentials"])
def test_a_name_that_may_be_of_a_secret_counts_with_more_than_a_word(name: str) -> None:
    assert redact(f"{name}: ab12") == f"{name}: [redacted:named]"
    assert redact(f"{name}: hello there") == f"{name}: hello there"


@pytest.mark.parametrize(
    "start", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "xoxa-", "xoxb-", "xoxe-", "xoxp-"]
)
@pytest.mark.parametrize("rest", ["abcdefghijklmnopqrst"])
def test_every_kind_of_a_token_counts(start: str, rest: str) -> None:
    assert redact(start + rest) == f"[redacted:{'git' if start[0] == 'g' else 'chat'}_token]"


KEY = "sk-live/Zq8vWn3xKd7LpR2m"
ESCAPED = {
    "slash": KEY.replace("/", r"\/"),
    "unicode": KEY.replace("-", r"\u002d"),
    "every character": "".join(rf"\u{ord(c):04x}" for c in KEY),
    "twice": KEY.replace("-", r"\\u002D"),
    "hex": KEY.replace("-", r"\x2d"),
    "entity": KEY.replace("-", "&#45;"),
    "entity in hex": KEY.replace("-", "&#x2D;"),
    "entity with zeros": KEY.replace("k", "&#0107;"),
    "entity without an end": KEY.replace("-", "&#45"),
    "named entity": KEY.replace("-", "&hyphen;"),
    "entity of an entity": KEY.replace("-", "&amp;#45;"),
    "percent": KEY.replace("-", "%2D"),
    "percent and entity": KEY.replace("-", "%2d").replace("k", "&#107;"),
}


@pytest.mark.parametrize("spelled", ESCAPED.values(), ids=ESCAPED)
def test_no_escape_hides_a_secret_and_what_stands_around_it_stays(spelled: str) -> None:
    said = rf'{{"a\/b": "50 %", "said": "{spelled}"}} &amp; more'
    assert find_secret(spelled) in ("api_key", "entropy")
    shown = redact(said)
    assert "Zq8vWn3xKd7LpR2m" not in shown
    assert shown.startswith(r'{"a\/b": "50 %", "said": "')
    assert shown.endswith('"} &amp; more')


def test_a_name_and_its_secret_are_found_in_json_within_json() -> None:
    assert redact(r"{\"password\": \"hunter2\"}") == r"{\"password\": \"[redacted:named]\"}"
    key = r'"-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END PRIVATE KEY-----\n"'
    assert redact(key) == r'"[redacted:private_key]\n"'


@given(st.text(st.sampled_from("ab&#45;x2d\\u00/%'\"n "), max_size=60))
def test_each_character_of_an_unescaped_text_has_its_place(text: str) -> None:
    inner = unescaped(text)
    if inner is None:
        return
    spans = [inner.span(n, n + 1) for n in range(len(inner.text))]
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    assert all(text[start:end] == inner.text[n] or end - start > 1 for n, (start, end) in enumerate(spans))


def test_digests_and_paths_with_random_names_are_no_secrets() -> None:
    for text in (
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "/tmp/tmpxk3L2j9s/Out7/run1/a2",
        "command:/tmp/tmp.7tnOtBqK2Q/lowest/bin/python3",
        "python=~/src/tmp.d-7tnOtBqK2Q/lowest/bin/python3",
    ):
        assert redact(text) == text
    assert redact("not-a/path.7tnOtBqK2Q/lowest/bin/python3") != "not-a/path.7tnOtBqK2Q/lowest/bin/python3"


HOSTILE = (
    "a-", "A1", "password:    ", "-----BEGIN PRIVATE KEY-----", "://a:", "secret_", "eyJa.", "eyJa-", "sk-",
    "/a", "/.7tnOtBqK2Q/lowest/bin/pyth3", " /.", "token: a ", "SG.a-", "\\", "&#", "%2", "\\u0041", "&amp;",
    "Bearer ", "xox",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_for_a_hostile_text_grows_with_its_length(piece: str) -> None:
    assert growth(lambda n: redact(piece * n), 250_000 // 16 // len(piece)) < 64


def test_quadratic_time_would_show() -> None:
    unbounded = re.compile(r"eyJ[A-Za-z0-9_-]{8,}+\.")
    assert growth(lambda n: unbounded.search("eyJa-" * n), 400) > 64
