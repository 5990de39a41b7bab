"""Which servers of this machine a sandbox may reach on its loopback, and how."""

import socket
from pathlib import Path
from typing import Literal

import pytest

from pytest_tfgrpo.sandbox.programs.relays import MAPPED, _loopback, _pump, _servers

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


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue\n"
ROW = "   0: {}:{} 00000000:0000 {} 00000000:00000000 00:00000000 00000000 0 0 1\n"


@pytest.mark.parametrize("order", ["little", "big"])
def test_the_servers_of_this_machine_are_those_that_listen_on_its_loopback(
    monkeypatch: pytest.MonkeyPatch, order: Literal["little", "big"]
) -> None:
    def shown(address: bytes) -> str:
        words = (address[n : n + 4] for n in range(0, len(address), 4))
        return "".join(f"{int.from_bytes(word, order):08X}" for word in words)

    tables = {
        "/proc/net/tcp": [(OWN, "1F90", "0A"), (OWN, "0050", "01"), (OTHER, "1F91", "0A"),
                          (bytes(4), "0016", "0A")],
        "/proc/net/tcp6": [(bytes(15) + b"\1", "1F92", "0A"), (MAPPED + OWN, "1F93", "0A")],
    }  # fmt: skip
    monkeypatch.setattr("sys.byteorder", order)
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda path: HEAD + "".join(ROW.format(shown(where), *rest) for where, *rest in tables[str(path)]),
    )
    assert _servers() == {("127.0.0.2", 8080), ("127.0.0.1", 22), ("::1", 8082), ("127.0.0.2", 8083)}


def test_what_one_side_sends_reaches_the_other_to_its_end() -> None:
    (client, inner), (outer, server) = socket.socketpair(), socket.socketpair()
    with client, inner, outer, server:
        client.settimeout(5)
        server.settimeout(5)
        client.sendall(b"hello")
        client.shutdown(socket.SHUT_WR)
        _pump(inner, outer)
        assert (server.recv(10), server.recv(10)) == (b"hello", b"")
        server.sendall(b"late")
        server.close()
        _pump(outer, inner)
        assert (client.recv(10), client.recv(10)) == (b"late", b"")


def test_a_side_that_is_gone_ends_the_other() -> None:
    (client, inner), (outer, server) = socket.socketpair(), socket.socketpair()
    with client, inner, outer:
        client.settimeout(5)
        server.close()
        client.sendall(b"hello")
        _pump(inner, outer)
        assert client.recv(10) == b""
