"""Which servers of this machine a sandbox may reach on its loopback."""

import pytest

from pytest_tfgrpo.sandbox.programs.relays import MAPPED, _loopback

OWN, OTHER = bytes((127, 0, 0, 2)), bytes((10, 0, 0, 1))


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        (OWN, ["127.0.0.2"]),
        (MAPPED + OWN, ["127.0.0.2"]),
        (bytes(4), ["127.0.0.1"]),
        (MAPPED + bytes(4), ["127.0.0.1"]),
        (bytes(16), ["127.0.0.1", "::1"]),
        (bytes(15) + b"\1", ["::1"]),
        (OTHER, []),
        (MAPPED + OTHER, []),
        (bytes(15) + b"\2", []),
    ],
    ids=["ipv4", "mapped", "all ipv4", "all mapped", "all", "ipv6", "lan", "lan mapped", "other"],
)
def test_a_server_is_reached_where_it_listens_on_loopback(address: bytes, reached: list[str]) -> None:
    assert _loopback(address) == reached
