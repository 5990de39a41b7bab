"""How many clients the proxy takes at a time."""

import resource

import pytest

from pytest_tfgrpo.production.serving.run_proxy import connections_within
from pytest_tfgrpo.production.serving.settings import ProxySettings, parse_upstream

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "found"),
    [
        (1024, 4096, 2100, 1000),
        (1024, 1100, 1100, 500),
        (1024, INFINITE, 2100, 1000),
        (5000, 9000, 5000, 1000),
        (INFINITE, INFINITE, INFINITE, 1000),
        (64, 64, 64, 1),
    ],
)
def test_clients_fit_the_open_files_whose_limit_is_raised_for_them(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int, found: int
) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.append(new))
    assert connections_within(1000) == found
    assert limits[-1] == (raised, hard)


def test_a_limit_that_cannot_be_raised_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, new: tuple[int, int]) -> None:
        raise ValueError(f"not {new}")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert connections_within(1000) == 100


@pytest.mark.parametrize(
    ("upstream", "host", "port", "url"),
    [
        ("http://m/v1", "127.0.0.1", 4319, "http://127.0.0.1:4319/v1"),
        ("http://m/v1", "::1", 80, "http://[::1]:80/v1"),
        ("http://m/v1", "127.0.0.1", 0, ""),
        ("", "127.0.0.1", 4319, ""),
    ],
)
def test_clients_are_given_an_address_where_there_is_a_proxy_at_a_known_port(
    upstream: str, host: str, port: int, url: str
) -> None:
    assert ProxySettings(upstream=upstream, host=host, port=port, collect=False).url == url


def test_the_upstream_is_a_base_url_or_none() -> None:
    assert (parse_upstream(""), parse_upstream("https://m.example/v1/")) == ("", "https://m.example/v1")
    for odd in ("m.example/v1", "ftp://m/v1", "http://", "http://u@m/v1", "http://m/v1?a=b", "http://m/v1#a"):
        with pytest.raises(ValueError, match="must be the base URL of a model server"):
            parse_upstream(odd)
