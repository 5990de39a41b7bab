import random
import re
import string
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import growth
from support.reached import reached, reaches

from pytest_tfgrpo.privacy import redact as redaction
from pytest_tfgrpo.privacy import secret_shapes
from pytest_tfgrpo.privacy.redact import Redactor, find_secret, let_pass, redact
from pytest_tfgrpo.privacy.secret_rules import RULES
from pytest_tfgrpo.privacy.unescape import unescaped

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


def pieces(letters: str, *words: str, most: int = 20) -> st.SearchStrategy[str]:
    """Draw texts of letters, and of words that begin a secret, or are one."""
    parts = st.text(st.sampled_from(letters), max_size=8) | st.sampled_from([*words, *SECRETS.values()])
    return st.lists(parts, max_size=most).map("".join)


@reaches("redacted", "left as it is")
@given(pieces("ab1:/@=- _.,'\"\n", "sk-", "password=", "eyJ.", "AKIA"))
def test_what_was_redacted_stays_redacted(text: str) -> None:
    once = redact(text)
    reached("left as it is" if once == text else "redacted")
    assert redact(once) == once


@reaches("redacted", "left as it is")
@given(pieces("ab1:/@=- _.,'\"\\u06&#x;%4n", "sk-", "password", "\\u003d", "&#x3d;", "%3d", "\\n"))
def test_what_was_redacted_in_a_text_with_escapes_stays_redacted(text: str) -> None:
    once = redact(text)
    reached("left as it is" if once == text else "redacted")
    assert redact(once) == once


LETTERS = "abcdefghijklmnopqrstuvwxyz" * 3
CAPITALS = LETTERS.upper()
HEX = "0123456789abcdef" * 4
EXAMPLES = {
    "private key": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    "password in a URL": "https://me:open-sesame@host",
    "Bearer": "Bearer abcdefghijkl",
    "Basic": "Basic abcdefghijkl",
    "signature in a URL": f"?sv=1&sig={LETTERS[:40]}%3D",
    "Slack webhook": f"hooks.slack.com/services/T{CAPITALS[:8]}/B{CAPITALS[:8]}/{LETTERS[:24]}",
    "Discord webhook": f"discord.com/api/webhooks/{HEX[:10] * 2}/{LETTERS[:60]}".replace("abc", "a-c"),
    "Telegram": f"123456789:AA{LETTERS[:10]}_{LETTERS[:22]}",
    "key-": f"key-{HEX[:32]}",
    "password in a sentence": "password is hunter2",
    "password in quotes": 'password is "open sesame"',
    "password of a word": "my password is swordfish,",
    "password before its name": "hunter2 is my password",
    "PIN": "my PIN is 4821",
    "sk-": "sk-abcd-efgh-ijkl-mnop",
    "sk_live": "rk_live_abcdefghij",
    "whsec_": f"whsec_{LETTERS[:24]}",
    "AIza": "AIza" + "ab-_" * 8,
    "hf_": "hf_abcdefghijklmnopqrst",
    "gsk_": "gsk_abcdefghijklmnopqrst",
    "xai-": f"pplx-{LETTERS[:24]}",
    "r8_": f"r8_{LETTERS[:37]}",
    "pcsk_": f"pcsk_{LETTERS[:6]}_{LETTERS[:40]}",
    "lsv2_": f"lsv2_pt_{HEX[:32]}_{HEX[:10]}",
    "lin_api_": f"lin_api_{LETTERS[:40]}",
    "secret_": f"secret_{LETTERS[:43]}",
    "npm_": "npm_" + "abcde" * 6,
    "pypi-": "pypi-" + "ab-_c" * 6,
    "rubygems_": f"rubygems_{HEX[:48]}",
    "SG.": "SG.abcdefghijklmnop.abcdefghijklmnop",
    "SK": f"SK{HEX[:32]}",
    "shpat_": f"shpat_{HEX[:32]}",
    "sq0": f"sq0atp-{LETTERS[:22]}",
    "rzp_": f"rzp_live_{LETTERS[:14]}",
    "dp.": f"dp.pt.{LETTERS[:43]}",
    "hvs.": f"hvs.{LETTERS[:24]}",
    "glsa_": f"glsa_{LETTERS[:32]}_{HEX[:8]}",
    "NRAK-": f"NRAK-{CAPITALS[:27]}",
    "sntrys_": f"sntrys_{LETTERS[:40]}",
    "sbp_": f"sbp_{HEX[:40]}",
    "pscale_": f"pscale_tkn_{LETTERS[:43]}",
    "HRKU-": f"HRKU-{LETTERS[:8]}-{LETTERS[:25]}",
    "dckr_": f"dckr_pat_{LETTERS[:27]}",
    "dapi": f"dapi{HEX[:32]}",
    "figd_": f"figd_{LETTERS[:40]}",
    "PMAK-": f"PMAK-{HEX[:24]}-{HEX[:34]}",
    "pul-": f"pul-{HEX[:40]}",
    "ATATT3": f"ATATT3{LETTERS[:60]}",
    "CFPAT-": f"CFPAT-{LETTERS[:43]}",
    "dt0c01.": f"dt0c01.{CAPITALS[:24]}.{CAPITALS[:64]}",
    "tskey-": f"tskey-auth-{LETTERS[:12]}-{LETTERS[:20]}",
    "AGE-": f"AGE-SECRET-KEY-1{CAPITALS[:58]}",
    "dop_v1_": f"dop_v1_{HEX[:64]}",
    "AKIA": "ASIAABCDEFGHIJKLMNOP",
    "LTAI": f"LTAI{LETTERS[:20]}",
    "GOCSPX-": f"GOCSPX-{LETTERS[:28]}",
    "ya29.": f"ya29.{LETTERS[:50]}",
    "gh_": "gho_abcdefghijklmnopqrst",
    "github_pat": "github_pat_abcdefghijklmnopqrst",
    "glpat": "glpat-abcdefghijklmnop",
    "xox": "xoxp-abcdefghij",
    "xapp": f"xapp-1-{CAPITALS[:10]}-{LETTERS[:20]}",
    "Discord": f"M{LETTERS[:23]}.{LETTERS[:6]}.{LETTERS[:27]}",
    "JWT": "eyJhbGciOiJ.eyJzdWIiOiIx.c2lnbmF0",
    "name of a secret": "api_key=hello",
    "option": "--api-key hello",
    "name of what may be one": "authorization: abc123",
    "entropy": "wJalrXUtnFEMIK7MDENGbPxRfiCY",
}


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("my password is ", "hunter2", ""),
        ("My password is: ", "hunter2", ""),
        ("the password is ", "Tr0ub4dor&3.", ""),
        ("Our wifi password's ", "sommer2024!", ""),
        ("password for the vpn is ", "x7-Kq9", ""),
        ("I changed my password to ", "Blue42sky", " yesterday"),
        ('reset the password to "', "open sesame", '"'),
        ("the password is '", "correct horse battery", "'"),
        ("my password is ", "swordfish", ", thanks"),
        ("my new bank password is ", "swordfish", " and it fails"),
        ("", "hunter2", " is my password"),
        ("mein Passwort ist ", "geheim12", ""),
        ("mi contraseña es ", "gato123", ""),
        ("mon mot de passe est ", "chat123", ""),
        ("my PIN is ", "4821", ""),
        ("passcode was ", "998877", ""),
        ("my password is now ", "p@ssword", ""),
        ("password for printer-on-the-third-floor-of-our-office is ", "hunter2", ""),
    ],
)
def test_a_password_in_a_sentence_is_taken_out_and_the_sentence_stays(before, secret, after) -> None:
    shown = f"{before}[redacted:named]{after}"
    assert redact(before + secret + after) == shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "password is correct",
        "The password is required.",
        "the password is stored hashed",
        "my password is not working",
        "My password is wrong",
        "my password is outdated, what now?",
        "my password is expired.",
        "Your password is too short",
        "password is at least 8 characters",
        "The password is 12-characters long",
        "password is 1024 bits",
        "The password is SHA-256 hashed",
        "the password is base64-encoded",
        "password is utf-8",
        "password is *required*",
        'the password is "required"',
        "If the password is None: return",
        "password to 192.168.0.1 is needed",
        "the password for user42 is wrong",
        "password is ${DB_PASSWORD}",
        "he forgot his password and is locked out of 3 accounts",
        "my password manager is Bitwarden",
        "a password reset was sent to 3 people",
        "password was changed on 2024-01-01",
        "What is my password?",
        "my password is the same as before",
        "set the password to a strong value",
        "set password to expire in 30 days",
        "change password to something else",
        "PIN is missing",
        "the pin is 1234 mm",
        "pin 13 is GPIO4",
        "Is 2024 the year? 2024 is the password reset year",
        "my password is weak and old",
        "my password is invalid",
        "my password is in the vault",
        "the password is case-sensitive",
        "the password is user-provided",
        "Passwords are hashed with argon2",
        "password is hashed with pbkdf2",
        "cache-monkey is here",
        "the key-value store has 32 keys",
        "My password is unknown to me.",
        "my password is blank",
        "turn the key-ring 32 times",
        "the token is refreshed every 3600 seconds",
        "my password is fine",
        "my password is there.",
        "her password is lost",
        "my password was leaked in 2019",
    ],
)
def test_what_a_sentence_says_of_passwords_stays(text: str) -> None:
    assert Redactor(addresses=False).text(text) == text


@pytest.mark.parametrize("around", ["{}", "mailgun{}", "api:{}@", "X-{}.", '{{"a":"{}"}}', "see {}, ok"])
@pytest.mark.parametrize("key", [f"key-{HEX[:32]}", f"KEY-{HEX[:32].upper()}", f"pubkey-{HEX[:32]}"])
def test_a_key_of_mailgun_is_found_wherever_it_stands(around: str, key: str) -> None:
    assert HEX[:32].lower() not in redact(around.format(key)).lower()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("phone", "+49 30 901820"),
        ("phone", "+14155552671"),
        ("card", "4111 1111 1111 1111"),
        ("email", "ann@example.org"),
        ("named", "token=abc123"),
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "see {}, ok", '{{"d":"{}"}}', "data:text/plain;base64,{}", "a/b/{}"]
)
def test_base64_hides_nothing_also_where_it_looks_like_no_secret(kind: str, value: str, around: str) -> None:
    for padding in ("=", ""):
        run = b64encode(value.encode()).decode()
        run = run if padding else run.rstrip("=")
        redactor = Redactor(b"key")
        assert run[:-3] not in redactor.text(around.format(run))
        assert redactor.counts.keys() <= {kind, "entropy"}
    assert Redactor(b"key").text(b64encode(b"+14155552671").decode()) == Redactor(b"key").text("+14155552671")


@pytest.mark.parametrize(
    "text",
    [
        "internationalisation",
        "counterrevolutionaries",
        "SGVsbG8gd29ybGQh",
        "AbstractFactoryBean",
        "AAAAAAAAAAAA",
    ],
)
def test_base64_of_a_harmless_text_and_long_words_stay(text: str) -> None:
    assert Redactor().text(f"it is {text}, I think") == f"it is {text}, I think"


def test_every_rule_has_an_example() -> None:
    assert list(EXAMPLES) == list(RULES)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES.items(), ids=EXAMPLES)
def test_no_rule_can_be_left_out(rule: str, example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_secret(example) == RULES[rule].kind
    assert redact(f"first {example} last") != f"first {example} last"
    others = {name: other for name, other in RULES.items() if name != rule}
    monkeypatch.setattr(secret_shapes, "RULES", others)
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


ESCAPED = ["&#45;", "&#x2d;", "&amp;", "\\u002d", "\\n", "\\/", "%2d", "%2", "&#", "\\"]


@reaches("unescaped", "nothing to unescape")
@given(st.lists(st.sampled_from([*ESCAPED, *"ab&#45;x2d\\u00/%'\"n "]), max_size=30).map("".join))
def test_each_character_of_an_unescaped_text_has_its_place(text: str) -> None:
    inner = unescaped(text)
    if inner is None:
        reached("nothing to unescape")
        return
    reached("unescaped")
    spans = [inner.span(n, n + 1) for n in range(len(inner.text))]
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    assert all(text[start:end] == inner.text[n] or end - start > 1 for n, (start, end) in enumerate(spans))


def test_a_random_run_of_20_characters_is_a_secret_with_its_padding() -> None:
    run = "wJ4lrX7tnF9MIk3MDENG"
    assert len(run) == 20
    assert redact(run) == "[redacted:entropy]"
    assert redact(run[:19]) == run[:19]
    assert redact(f"{run}==, and") == "[redacted:entropy], and"


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
    "+1 ", "1-", "0 1", "+1(2)", "1 / ", "(1)", "phone 1", "4 4 ", "4111-", "DE89 ", "DE89370", "1.2.", "::1",
    "a@", "@a.a", "@a-", "sk-a", "glpat-", "pwd=secret=", "--pwd ", 'password="a\\', "M-", "key=key",
    "api_key='", "-----BEGIN PRIVATE KEY----- a", "iVBORw0KGgo\n", "data:;base64,", "?sig=a", "AA:AA", "=>",
    "T/B/a", "é", "漢+1",
    "my password is ", "set password to ", "my a password ", "a1 is my password ", "PIN is 1",
    "password's now : ", "QUFB", "QUFBQUFBQUFB/", "QUFBQUFBQUFB ",
    "a-", "A1", "password:    ", "-----BEGIN PRIVATE KEY-----", "://a:", "secret_", "eyJa.", "eyJa-", "sk-",
    "/a", "/.7tnOtBqK2Q/lowest/bin/pyth3", " /.", "token: a ", "SG.a-", "\\", "&#", "%2", "\\u0041", "&amp;",
    "Bearer ", "xox",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_for_a_hostile_text_grows_with_its_length(piece: str) -> None:
    everything = Redactor(b"key", addresses=True)
    assert growth(lambda n: everything.redacted(piece * n), 100_000 // 16 // len(piece)) < 64


def test_quadratic_time_would_show() -> None:
    unbounded = re.compile(r"eyJ[A-Za-z0-9_-]{8,}+\.")
    assert growth(lambda n: unbounded.search("eyJa-" * n), 400) > 64


# -- personal data, and placeholders with a key

PRIVATE = {
    "email": [
        "Ada.Lovelace+x@mail.example.co.uk",
        "zoë@exämple.de",
        "o'brien@example.org",
        "bob%40example.org",
    ],
    "phone": [
        "+14155552671",
        "+49 (0) 30 901820",
        "(415) 555-2671",
        "020 7946 0958",
        "06 12 34 56 78",
        "030/9018203",
        "0049 30 901820",
    ],
    "card": [
        *("4111 1111 1111 1111", "378282246310005", "5555-5555-5555-4444", "6011000990139424"),
        *("3530111333300000", "30569309025904", "2223003122003222", "6250941006528599"),
    ],
    "iban": ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "NO93 8601 1117 947"],
}


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, row in PRIVATE.items() for value in row])
def test_personal_data_is_taken_out_where_it_is_asked_for_and_left_else(kind: str, value: str) -> None:
    text = f"it is {value}, I think"
    redactor = Redactor()
    assert redactor.text(text) == f"it is [redacted:{kind}], I think"
    assert redactor.counts == {kind: 1}
    assert redact(text) == text
    assert find_secret(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",
        "1234567812345670",
        "DE89 3704 0044 0532 0130 01",
        "XX89 3704 0044 0532 0130 00",
        "logo@2x.png",
        "git@github.com:owner/name",
        "@pytest.mark.parametrize",
        "pkg@1.2.3",
        "2025-12-08T12:00:00.123456Z",
        "0.0123456789",
        "1.234.567,89",
        "[100, 200, 3000, 40000]",
        "3f2504e0-4f89-4141-9a0c-030582330155",
        "std::chrono::abs",
        "call(12345678)",
        "order 4155552671",
        "+49 (0) 30 901",
        "ann.@example.org",
        "10:20:30",
    ],
)
def test_what_only_looks_like_personal_data_stays(text: str) -> None:
    assert Redactor(addresses=True).text(text) == text


@pytest.mark.parametrize(
    ("number", "taken"),
    [("123456", False), ("1234567", True), ("+1 2345 6789 0123 45", True), ("+1 2345 6789 0123 456", False)],
)
def test_a_telephone_number_by_its_name_has_7_to_15_digits(number: str, taken: bool) -> None:
    assert (Redactor().value("home_phone", number) == "[redacted:phone]") is taken


@pytest.mark.parametrize(
    "name",
    [
        *("phone", "mobile", "mobil", "telefon", "telefono", "teléfono", "fax", "whatsapp", "msisdn"),
        *("tel", "cell", "handy", "sms", "call", "ring", "dial", "call me at", "reach me on", "phone number"),
    ],
)
def test_a_telephone_number_without_separators_is_known_by_the_words_before_it(name: str) -> None:
    assert Redactor().text(f"{name}: 5550143") == f"{name}: [redacted:phone]"
    assert Redactor().text(f"un{name}ed 5550143") == f"un{name}ed 5550143"


@pytest.mark.parametrize("address", ["224.0.0.1", "0.0.0.0", "127.0.0.1", "::1", "ff02::1", "::"])
def test_an_address_that_is_nobodys_stays(address: str) -> None:
    assert Redactor(addresses=True).text(f"from {address} on") == f"from {address} on"


def test_of_a_mail_address_64_characters_before_the_at_are_taken_out() -> None:
    assert Redactor().text("a" * 64 + "@example.org") == "[redacted:email]"
    assert Redactor().text("a" * 65 + "@example.org") == "a[redacted:email]"


@pytest.mark.parametrize("address", ["93.184.216.34", "2001:db8::8a2e:370:7334", "fe80::1ff:fe23:4567:890a"])
def test_an_ip_address_is_taken_out_where_it_is_asked_for(address: str) -> None:
    text = f"from {address} to 127.0.0.1 and ::1, version 1.2.3.4.5"
    assert Redactor(addresses=True).text(text) == text.replace(address, "[redacted:ip]")
    assert Redactor().text(text) == text


def test_with_a_key_equal_values_have_equal_placeholders_however_they_are_written() -> None:
    redactor, other = Redactor(b"one"), Redactor(b"two")
    shown = redactor.text("Bob@Example.org")
    assert re.fullmatch(r"\[redacted:email:[0-9a-f]{6}\]", shown)
    assert shown == redactor.text("bob@example.org") == redactor.text("bob%40example.org")
    assert shown not in (redactor.text("eve@example.org"), other.text("bob@example.org"))
    assert redactor.text("4111 1111 1111 1111") == redactor.text("4111111111111111")
    assert redactor.text("DE89 3704 0044 0532 0130 00") == redactor.text("DE89370400440532013000")
    assert redactor.text("token=abc123") != redactor.text("token=abc124")


def test_a_value_is_judged_with_its_key() -> None:
    redactor = Redactor(b"k")
    for key in ("password", "db_password", "userPassword", "x-api-key", "clientSecret", "accessToken"):
        assert redactor.value(key, "hunter two").startswith("[redacted:named:")
    for key, text in (
        ("token", "the"),
        ("tokens", "hunter22"),
        ("password", ""),
        ("passwords_seen", "hunter2"),
    ):
        assert redactor.value(key, text) == text
    assert redactor.value("token", "abc-1234").startswith("[redacted:named:")
    assert redactor.value("token", "abc-123") == "abc-123"
    assert redactor.value("token", "abcdefgh") == "abcdefgh"
    assert redactor.value("home_phone", "5550143").startswith("[redacted:phone:")
    assert redactor.value("", "me@example.org").startswith("[redacted:email:")
    phone, named = (redactor.value(key, "5550143") for key in ("home_phone", "password"))
    assert phone[-7:] != named[-7:], "nobody sees that two kinds have one value"
    shown = redactor.value("password", "hunter2")
    assert redactor.value("password", shown) == shown


def test_a_telephone_number_stays_where_only_secrets_are_taken_out() -> None:
    redactor = Redactor(personal=False)
    assert redactor.value("home_phone", "5550143") == "5550143"
    assert not redactor.names("home_phone")
    assert Redactor().names("home_phone")
    assert not Redactor().names("count")


PERSONAL = [
    "me@example.org",
    "4111 1111 1111 1111",
    "+49 30 901820",
    "DE89 3704 0044 0532 0130 00",
    "phone: ",
]


@reaches("redacted", "left as it is")
@given(pieces("ab1:/@=- _.,'\"+()89\\n%40", "sk-", "password", "AKIA", "DE89", "phone: ", *PERSONAL, most=4))
def test_what_was_redacted_with_a_key_stays_redacted(text: str) -> None:
    redactor = Redactor(b"key", addresses=True)
    once = redactor.text(text)
    reached("left as it is" if once == text else "redacted")
    assert redactor.text(once) == once


def test_a_repeated_text_is_searched_once_and_counted_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(b"key")
    first = redactor.text("mail me@example.org")
    monkeypatch.setattr(Redactor, "redacted", None)
    assert redactor.text("mail me@example.org") == first
    assert redactor.counts == {"email": 2}


def test_each_value_of_a_text_counts() -> None:
    redactor = Redactor()
    redactor.text("from me@example.org to you@example.org, +14155552671")
    assert redactor.counts == {"email": 2, "phone": 1}


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_REMEMBERED", 1000)
    redactor = Redactor(b"key")
    for n in range(200):
        redactor.text(f"{n} me@example.org")
    assert len(redactor._known) < 60


@pytest.mark.parametrize("kind", ["api_key", "token", "password", "email", "named"])
@pytest.mark.parametrize("around", ["{}", "My key is {}.", "api_key={}", '{{"password": "{}"}}', "a {} b {}"])
def test_placeholders_stay_as_they_are(kind: str, around: str) -> None:
    text = around.format(*[f"[redacted:{kind}:576e3b]"] * around.count("{}"))
    assert Redactor(b"k" * 32).text(text) == text


def test_a_secret_right_behind_a_placeholder_is_found() -> None:
    text = Redactor(b"k" * 32).text("api_key=[redacted:api_key:576e3b]Xk29fjQp3vLz81mN")
    assert "Xk29fjQp3vLz81mN" not in text
    assert text.startswith("api_key=[redacted:api_key:576e3b]")


def test_of_values_that_touch_none_stays_however_many_there_are() -> None:
    assert "901820" not in Redactor().text("+49 30 901820" * 12)


@pytest.fixture
def own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_own", {})


FOLDER = "/build/3f786850e387550fdab836ed7e6dc881de23001b/mK3xV9qLw2Zr8Tn5"


@pytest.mark.usefixtures("own_names")
def test_names_of_the_run_itself_pass_where_they_stand_whole() -> None:
    texts = [f"wrote {FOLDER}/out/demo/report.html", f"token: {FOLDER}", "task token: limits-v2, run"]
    assert all("[redacted:" in redact(text) for text in texts)
    let_pass(FOLDER, "limits-v2", "")
    assert [redact(text) for text in texts] == texts


@pytest.mark.usefixtures("own_names")
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"password: {FOLDER}xyz9", "password: [redacted:named]"),
        (f"cd {FOLDER} && API_KEY=abcd1234efgh", f"cd {FOLDER} && API_KEY=[redacted:named]"),
        (f"{FOLDER}/A8f3KmQ29xLz0PqRtYwE77x", f"{FOLDER}[redacted:entropy]"),
        (f"token={FOLDER}/A8f3KmQ29xLz0P", "token=[redacted:named]"),
    ],
)
def test_what_stands_beside_such_a_name_is_taken_out(text: str, kept: str) -> None:
    let_pass(FOLDER)
    assert redact(text) == kept


@pytest.mark.usefixtures("own_names")
def test_a_name_that_is_short_or_a_token_does_not_pass_and_old_ones_go() -> None:
    token = "sk-proj-abcdefghijklmnop1234"
    let_pass(token, "a1b2c3")
    assert redact(token) == "[redacted:api_key]"
    assert redact("token: a1b2c3") == "token: [redacted:named]"
    let_pass("run-2026-first")
    assert redact("token: run-2026-first") == "token: run-2026-first"
    let_pass(*(f"run-2026-{n}" for n in range(16)))
    assert redact("token: run-2026-first") == "token: [redacted:named]"


@pytest.mark.usefixtures("own_names")
def test_16_names_pass_at_a_time() -> None:
    names = [f"run-2026-{n}" for n in range(16)]
    let_pass(*names)
    assert [redact(f"token: {name}") for name in names] == [f"token: {name}" for name in names]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a@b.io", "[redacted:email]"),
        (b64encode(b"a@bcd.io").decode(), "[redacted:email]"),
        ("+290 12 345", "[redacted:phone]"),
    ],
)
def test_the_shortest_secrets_are_taken_out(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


@pytest.mark.parametrize(
    ("key", "text", "taken"),
    [
        ("password", "ab1z", "named"),
        ("password", "ab1", None),
        ("phone", "5 - 5 - 5 - 0 - 1 - 4 - 3", "phone"),
    ],
)
def test_of_values_with_a_telling_key_length_decides(key: str, text: str, taken: str | None) -> None:
    assert Redactor().value(key, text) == (text if taken is None else f"[redacted:{taken}]")


def test_base64_within_base64_hides_nothing() -> None:
    text = "me@ex.io"
    for _ in range(2):
        text = b64encode(text.encode()).decode()
    assert Redactor().text(text) == "[redacted:email]"


@pytest.mark.parametrize("key", ["Phone", "homePhone", "PHONE_NUMBER", "faxNo"])
def test_a_key_names_a_telephone_number_in_any_case(key: str) -> None:
    assert Redactor().value(key, "5550143") == "[redacted:phone]"


@pytest.mark.parametrize(
    ("value", "may_be"),
    [
        ("hunter22", True),
        ("hunter2", False),
        ("password", False),
        ("hunter 22", False),
        ("hunter22\n", False),
    ],
)
def test_a_value_that_may_be_a_secret_is_no_word_and_no_sentence(value: str, may_be: bool) -> None:
    assert redaction._may_be_secret(value) is may_be


def test_what_is_remembered_starts_again_where_it_grows_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_REMEMBERED", 10)
    redactor = Redactor(personal=False)
    for text in ("a" * 8, "b" * 8, "c" * 8):
        redactor._remember(text, (text, ()))
    assert redactor._known == {"c" * 8: ("c" * 8, ())}
