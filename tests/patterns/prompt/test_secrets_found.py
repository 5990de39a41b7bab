"""Secrets in fixes and prompts: named by place and kind; code that only speaks of secrets is none."""

import pytest

from pytest_tfgrpo.harness.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.patterns.prompt.secrets_found import SecretSearch, secrets_in_text

CLOUD = "AKIA" + "IOSFODNN7QQXMPLW"
GIT = "ghp_" + "a8Gk2LmQ9xZr4TnV7bYc1WdE3fHj5KpS0uRt"


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
