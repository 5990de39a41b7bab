"""Where secrets stand: what names tell, how far a sentence reaches, and runs that are none."""

import pytest

from pytest_tfgrpo.privacy.redact import find_secret, redact, secret_spans
from pytest_tfgrpo.privacy.secret_shapes import telling
from pytest_tfgrpo.privacy.unescape import unescaped

RUN = "wJ4lrX7tnF9MIk3MDENGbPxRfi7C"


@pytest.mark.parametrize("start", ["api", "access", "private", "account", "signing", "encryption"])
@pytest.mark.parametrize("sign", ["_", "-", ""])
def test_a_key_counts_by_what_stands_before_it(start: str, sign: str) -> None:
    assert redact(f"{start}{sign}key = hello") == f"{start}{sign}key = [redacted:named]"
    assert redact(f"my{sign or 'x'}other{sign}key = hello") == f"my{sign or 'x'}other{sign}key = hello"


def test_a_name_counts_within_one_in_camel_case_and_not_amid_a_word() -> None:
    assert redact("dbPassword = hello") == "dbPassword = [redacted:named]"
    assert redact("userApiKey: hello") == "userApiKey: [redacted:named]"
    assert redact("DBpassword = hello") == "DBpassword = hello"
    assert redact("nopassword = hello") == "nopassword = hello"


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("password", "certain"),
        ("dbPassword", "certain"),
        ("my-api-key", "certain"),
        ("authToken", "certain"),
        ("x" * 60 + "_password", "certain"),
        ("token", "likely"),
        ("credentials", "likely"),
        ("apitoken", ""),
        ("passwordless", ""),
        ("count", ""),
    ],
)
def test_what_a_key_tells_of_its_value(key: str, told: str) -> None:
    assert telling(key) == told


WORDS = ("password", "passwort", "passcode", "passphrase", "pwd", "Kennwort", "contraseña", "senha")


@pytest.mark.parametrize("word", [*WORDS, "mot de passe", "PIN"])
def test_every_word_for_a_password_counts_far_from_the_start_of_a_text(word: str) -> None:
    secret = "4821" if word == "PIN" else "hunter22"
    text = f"{'words of a letter. ' * 40}My {word} is {secret}"
    assert redact(text).endswith(f"My {word} is [redacted:named]")


def test_a_sentence_reaches_before_and_behind_its_word() -> None:
    whose = "my " + "x" * 38 + " " + "y" * 38
    assert redact(f"{whose} password is swordfish.") == f"{whose} password is [redacted:named]."
    owner = " ".join(letter * 39 for letter in "abcd")
    assert redact(f"the password for {owner} is hunter22").endswith("is [redacted:named]")
    long = "h4" * 60
    assert redact(f"the password for {owner} is {long}").endswith("is [redacted:named]")


def test_a_secret_between_two_words_for_it_has_one_place() -> None:
    text = "The password is hunter22. The password is other42x."
    assert [text[start:end] for start, end, _ in secret_spans(text)] == ["hunter22.", "other42x."]


@pytest.mark.parametrize("digest", ["sha256-", "sha384-", "sha512-", "SHA256:"])
def test_a_digest_is_no_secret(digest: str) -> None:
    assert find_secret(f"{digest}{RUN}") is None
    assert find_secret(f"{digest[:-1]}_{RUN}") == "entropy"


STARTS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "Qk0", "PHN2Zy", "PD94bWwg", "JVBERi0", "AAAAIGZ0eX")


@pytest.mark.parametrize("start", STARTS)
def test_a_picture_in_base64_is_no_secret_over_several_lines_too(start: str) -> None:
    picture = (start + RUN * 3)[:60]
    assert find_secret(f"see {picture}") is None
    assert find_secret(f"see {picture[:59]}") == "entropy"
    assert find_secret(f"{picture}\n{RUN}\r\n  {RUN}") is None
    assert find_secret(f"{picture}\\n{RUN}") is None
    assert find_secret(f"{picture}{' ' * 12}{RUN}") is None
    assert find_secret(f"{picture}{' ' * 13}{RUN}") == "entropy"
    assert find_secret(f"{picture}\n-{RUN}") == "entropy"


def test_a_url_of_data_shows_what_base64_is() -> None:
    assert find_secret(f"data:image/x;base64,{RUN}") is None
    assert find_secret(f"other:image/x;base64,{RUN}") == "entropy"


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        ("a1b2a1b2a1b2a1b2a1b2", None),  # random in its parts, but of four characters
        ("ab12cd34ef56gh78ij90", "entropy"),
        ("CountTheDistinctWordsOfNote22", None),  # words
        ("0123456789abcdefABCDEF01", None),  # hexadecimal
        ("/aB3/xY9/kL7/qW2/eR5/tZ8", None),  # a path
        ("x/aB3/xY9/kL7/qW2/eR5/tZ8", "entropy"),
    ],
)
def test_which_runs_are_random(run: str, kind: str | None) -> None:
    assert find_secret(run) == kind


ENTITIES = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "sol": "/", "plus": "+", "equals": "=",
    "colon": ":", "lowbar": "_", "period": ".", "hyphen": "-", "dash": "-", "commat": "@",
}  # fmt: skip


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        *((f"&{name};", sign) for name, sign in ENTITIES.items()),
        *((rf"\{letter}", " ") for letter in "nrt"),
        *((rf"\u00{n}0", chr(16 * n)) for n in range(2, 8)),
        *((rf"\x{n}1", chr(16 * n + 1)) for n in range(2, 8)),
        *((f"%{n}F", chr(16 * n + 15)) for n in range(2, 8)),
        (r"\/", "/"),
        (r"\\\"", '"'),
        ("&#64;", "@"),
        ("&#064", "@"),
        ("&#x40;", "@"),
        ("&#X0040", "@"),
        (r"\u0080", None),
        (r"\u0019", None),
        ("%19", None),
        ("%80", None),
        ("&nbsp;", None),
        ("&#9;", None),
        ("plain", None),
    ],
)
def test_every_escape_of_a_printable_sign_is_undone(written: str, plain: str | None) -> None:
    inner = unescaped(f"y{written}z")
    if plain is None:
        assert inner is None
        return
    assert inner is not None
    assert inner.text == f"y{plain}z"
    assert [inner.span(n, n + 1) for n in (0, 1, 2)] == [
        (0, 1),
        (1, 1 + len(written)),
        (1 + len(written), 2 + len(written)),
    ]
