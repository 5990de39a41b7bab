"""Secrets in fixes and prompts: named by place and kind; code that only speaks of secrets is none."""

import pytest

from pytest_tfgrpo.harvest.prompt import secrets_found
from pytest_tfgrpo.harvest.prompt.secrets_found import SecretSearch, secrets_in_text
from pytest_tfgrpo.sandbox.archives import ArchiveEntry

CLOUD = "AKIA" + "IOSFODNN7QQXMPLW"
GIT = "ghp_" + "a8Gk2LmQ9xZr4TnV7bYc1WdE3fHj5KpS0uRt"
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiIsImlhdCI6MTd9.k3VQ9xZr7TnLb2Wd"


def tree(**files: str) -> dict[str, ArchiveEntry]:
    return {name: ArchiveEntry(name=name, data=text.encode()) for name, text in files.items()}


def added(after: str, before: str | None = None) -> tuple[str, ...]:
    return SecretSearch().added(tree() if before is None else tree(a=before), tree(a=after))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"KEY = '{CLOUD}'", "cloud_key"),
        (f"token = '{GIT}'", "git_token"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n", "private_key"),
        ('password = "vR7$kQ2!mZ9pLx4T"'.replace("$", "w"), "named"),
        (f"curl -b {JWT} localhost", "jwt"),
        (f"Authorization: Bearer {JWT}", "named"),
        (f"curl -b {JWT[:61]} localhost", "jwt"),
        ("KEY = '-----BEGIN RSA PRIVATE KEY-----\\nMIIxxxxxxxxAKCAQEA'", "private_key"),
        ("url = 'postgres://admin:vR7kQ2mZvR7k@db.internal/x'", "url_password"),
        ("url = 'postgres://admin:vrkq2mz9vrkq@db.internal/x'", "url_password"),
        (f"session = '{JWT[:-16]}'", "jwt"),
        ("url = 'postgres://admin:vR7kQ2mZ9pLx4T@db.internal/x'", "url_password"),
    ],
)
def test_a_secret_is_named_by_place_and_kind_alone(text: str, kind: str) -> None:
    (found,) = added(f"import os\n\n{text}\n")
    assert found == f"a:3: {kind}"


@pytest.mark.parametrize(
    "line",
    [
        "password = request.form.get('password')",
        "def login(user, password: str, token=None): ...",
        "assert login('ada', password='correct horse battery staple')",
        "client = Client(api_key='test-key-0123456789abcdef')",
        "url = 'http://user:password@localhost:8080/'",
        "url = 'http://user:pass@example.com/'",
        "digest = 'sha256-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'",
        "data = 'SGVsbG8sIHdvcmxkISBUaGlzIGlzIGEgbG9uZyB0ZXh0Lg=='",
        "token = tokens.next_token(self.position)",
        "SECRET_KEY = os.environ['SECRET_KEY']",
        "secret_key = '${SECRET_KEY_FROM_VAULT_42}'",
        "KEY = '" + CLOUD[:10] + "EXAMPLE" + CLOUD[17:] + "'",
        f"token = '{GIT[:10]}xxxxxxxxx{GIT[19:]}'",
        f"curl -b {JWT[:60]} localhost",
        "password = " + "vR7kQ2mZ9pLx4TwB" * 4,
        "url = 'postgres://admin:vR7kQ2mZvR7@db.internal/x'",
        "url = 'postgres://admin:vR7kQ2mvR7kQ@db.internal/x'",
        "assert token(3) == key('x'), 'q8vT3kZ1mW9xR5nL2cJ7hB4dF6gS0pYa'",
        "password = vR7kQ2mZ9pLx4T or 'vB8nQ3mZ9pLx4T'",
        "password = 'vvvvvvvv7777Q'",
        "password = 'vrkqwmzhplxgtu'",
        "password = 'vR7kQ2mZ9pL'",
    ],
)
def test_code_that_speaks_of_secrets_is_none(line: str) -> None:
    assert added(line + "\n") == ()


def test_only_lines_that_the_fix_adds_count() -> None:
    assert added(f"x = 1\nKEY = '{CLOUD}'\n", before=f"KEY = '{CLOUD}'\n") == ()
    assert added(f"KEY = '{CLOUD}'\nB = '{GIT}'\n", before=f"KEY = '{CLOUD}'\n") == ("a:2: git_token",)


def test_odd_names_and_binary_files_do_no_harm() -> None:
    entries = {"a\nb": ArchiveEntry(name="a\nb", data=CLOUD.encode())}
    assert SecretSearch().added({}, entries) == ("a\\nb:1: cloud_key",)
    assert added("\0" * 10 + CLOUD) == ()
    assert SecretSearch().added({}, {"l": ArchiveEntry(name="l", link=CLOUD)}) == ()


def test_a_prompt_names_its_line() -> None:
    assert secrets_in_text(f"See\nthe key {GIT}\n") == ("line 2: git_token",)
    assert secrets_in_text("The password of the user is not checked.") == ()


def test_of_many_secrets_in_a_file_or_text_the_first_twenty_are_named() -> None:
    text = f"KEY = '{CLOUD}'\n" * 21
    assert added(text) == tuple(f"a:{n}: cloud_key" for n in range(1, 21))
    assert secrets_in_text(text) == tuple(f"line {n}: cloud_key" for n in range(1, 21))


def test_two_secrets_of_a_line_are_named_once() -> None:
    assert secrets_in_text(f"{CLOUD} {GIT}\n{GIT}") == ("line 1: cloud_key", "line 2: git_token")


def test_a_file_is_searched_up_to_its_limit_and_a_line_up_to_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"KEY = '{CLOUD}'\nKEY = '{CLOUD}'\n"
    monkeypatch.setattr(secrets_found, "FILE_MAX", len(text) // 2)
    assert added(text) == ("a:1: cloud_key",)
    monkeypatch.setattr(secrets_found, "LINE_MAX", len(CLOUD))
    assert added(text) == ()


def test_a_file_that_the_fix_leaves_as_it_is_has_no_new_secret() -> None:
    assert added(f"KEY = '{CLOUD}'\n", before=f"KEY = '{CLOUD}'\n") == ()


def test_a_key_in_a_file_with_other_bytes_is_found() -> None:
    assert added("\0" + "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n") == ("a:1: private_key",)


def test_files_are_named_in_order() -> None:
    files = tree(b=CLOUD, a=CLOUD)
    assert SecretSearch().added({}, files) == ("a:1: cloud_key", "b:1: cloud_key")
