"""Who may reach the service."""

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.service.limits import check_reach


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1", "[::1]"])
def test_this_machine_needs_no_token(host: str) -> None:
    check_reach(host, "")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.1.2.3", "loop.example", "127.0.0.1.evil.example"])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(SettingError, match="has no token; set one, or listen on 127"):
        check_reach(host, "")
    check_reach(host, "x" * 16)


@pytest.mark.parametrize(
    "token", ["short", "x" * 15, "sixteen letters ", "fünfzehnzeichen-", "line\nfeed-and-more"]
)
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(SettingError, match="16 or more letters"):
        check_reach("127.0.0.1", token)
