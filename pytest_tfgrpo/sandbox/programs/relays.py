"""Relays: connect a sandbox, whose network is empty, with servers on this machine's loopback.

Loaded by ``supervisor.py``, which is a script of its own, where a program needs it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from os import _exit
from pathlib import Path
from typing import Any, NoReturn

OWNER_OF_NAMESPACE = 0xB701
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
LISTENING = "0A"
MAPPED = bytes(10) + b"\xff\xff"
"""How an IPv6 address begins that stands for an IPv4 address."""


def open_relays(child: int) -> None:
    """Listen in the network of a process for each server that listens here now; raises OSError."""
    for listener, address in _listeners(child, sorted(_servers())):
        _in_thread(_relay, listener, address)


def _servers() -> set[tuple[str, int]]:
    """Return the addresses of loopback on which TCP servers of this machine listen now."""
    found: set[tuple[str, int]] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:]:
            (where, port), state = row.split()[1].split(":"), row.split()[3]
            if state == LISTENING:
                words = [
                    int(where[n : n + 8], 16).to_bytes(4, sys.byteorder) for n in range(0, len(where), 8)
                ]
                found |= {(name, int(port, 16)) for name in _loopback(b"".join(words))}
    return found


def _loopback(address: bytes) -> list[str]:
    """Return through which addresses of loopback a server at `address` is reached."""
    if len(address) == 16 and address.startswith(MAPPED):
        address = address[-4:]
    if not any(address):
        return ["127.0.0.1"] if len(address) == 4 else ["127.0.0.1", "::1"]
    if len(address) == 4:
        return [socket.inet_ntoa(address)] if address[0] == 127 else []
    return ["::1"] if address == bytes(15) + b"\1" else []


def _listeners(child: int, servers: list[tuple[str, int]]) -> list[tuple[socket.socket, tuple[str, int]]]:
    """Return sockets that listen at these addresses in the network of a process; raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    helper = os.fork()  # the network can be entered by a process only as a whole
    if not helper:
        _open_inside(child, servers, theirs)
    theirs.close()
    found = []
    with ours:
        while (message := socket.recv_fds(ours, 2, 1))[1]:
            os.set_inheritable(message[1][0], False)
            number = int.from_bytes(message[0], "little")
            found.append((socket.socket(fileno=message[1][0]), servers[number]))
    if os.waitpid(helper, 0)[1]:
        raise OSError(errno.EPERM, "the network of the sandbox cannot be entered")
    return found


def _open_inside(child: int, servers: list[tuple[str, int]], ours: socket.socket) -> NoReturn:
    try:
        _enter_network(child)
        for number, (address, port) in enumerate(servers):
            with _socket_for(address) as listener:
                try:
                    listener.bind((address, port))
                    listener.listen(128)
                except OSError:  # the sandbox has no such address
                    continue
                socket.send_fds(ours, [number.to_bytes(2, "little")], [listener.fileno()])
        _exit(0)
    finally:
        _exit(1)


def _enter_network(child: int) -> None:
    """Enter the network of a process, with the rights of the user namespace that owns it."""
    network = os.open(f"/proc/{child}/ns/net", os.O_RDONLY)
    owner = fcntl.ioctl(network, OWNER_OF_NAMESPACE)
    setns = ctypes.CDLL(None, use_errno=True).setns
    if setns(owner, NEW_USER) or setns(network, NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


def _socket_for(address: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _relay(listener: socket.socket, address: tuple[str, int]) -> None:
    """Connect what connects to `listener` with `address` of this machine."""
    while True:
        try:
            inner, _ = listener.accept()
        except OSError:
            time.sleep(0.005)  # no descriptor is free
        else:
            _in_thread(_connect, inner, address)


def _connect(inner: socket.socket, address: tuple[str, int]) -> None:
    with inner, _socket_for(address[0]) as outer:
        try:
            outer.connect(address)
        except OSError:
            return
        back = _in_thread(_pump, outer, inner)
        _pump(inner, outer)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def _in_thread(function: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread
