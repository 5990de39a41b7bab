"""URLs of chat-completions servers, and whether a key may be sent there."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.privacy.redact import find_secret

CALL = "/chat/completions"
SECRET = re.compile(r"key|token|secret|signature|passw|auth", re.IGNORECASE)
"""Names of parameters that hold a key."""


class Address(NamedTuple):
    """A base URL, taken apart."""

    base_url: str
    """Without a slash at its end."""
    url: str
    """Where calls go."""
    host: str
    loopback: bool
    """The server is on this machine."""
    private: bool
    """Nobody on the way can read what is sent: https, or loopback."""

    def route(self, path: str, query: Mapping[str, str]) -> str:
        """Return the URL of another path of the server, such as ``/batches``."""
        root, _, own = self.base_url.partition("?")
        asked = "&".join(filter(None, [own, urlencode(query)]))
        return root + path + (f"?{asked}" if asked else "")


def parse_address(base_url: str) -> Address:
    """Return the address of `base_url`; raises ValueError, whose text never shows a password."""
    text = base_url.strip()
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("must be a URL of printable ASCII characters")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password; name a variable with the key in api_key_env")
    if find_secret(text) is not None or any(SECRET.search(name) for name, _ in parse_qsl(parts.query)):
        raise ValueError("must not hold a key; name a variable with it in api_key_env or headers_env")
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ValueError(f"must be http://host/... or https://host/..., not {short(base_url)}")
    if parts.fragment:
        raise ValueError(f"must not have a fragment, as {short(base_url)} has")
    path = parts.path.rstrip("/")
    if path.endswith(CALL):
        raise ValueError(f"must end before {CALL}, which is added: {short(base_url)}")
    loopback = _is_loopback(host)
    query = f"?{parts.query}" if parts.query else ""
    root = f"{parts.scheme}://{parts.netloc}{path}"
    return Address(root + query, root + CALL + query, host, loopback, loopback or parts.scheme == "https")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
