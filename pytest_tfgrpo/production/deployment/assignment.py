"""Which version a session meets: by its id, and always the same one while that is served."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from pytest_tfgrpo.production.deployment.serving import Serving

MOST_SESSIONS = 100_000
"""Sessions that are remembered, the newest."""


def bucket(deployment: str, session: str) -> float:
    """Return a number in [0, 1) that follows from both, and is even over sessions."""
    named = f"{deployment}\0{session}".encode(errors="surrogatepass")  # JSON may hold half a character
    digest = hashlib.sha256(named).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def assigned(serving: Serving, session: str, before: str = "") -> str:
    """Return the version of a session; `before` is the one that it met last, if it did.

    A growing share only adds sessions; one that met a version keeps it while that is served.
    """
    if before in serving.versions:
        return before
    ramp = serving.ramp
    if ramp is not None and bucket(ramp.deployment, session) < ramp.share:
        return ramp.version
    return serving.live


class SessionVersions:
    """The versions that sessions met in this process; threads may share it."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._met: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def version(self, serving: Serving, session: str) -> str:
        """Return the version of a session, and remember it."""
        with self._lock:
            found = assigned(serving, session, self._met.pop(session, ""))
            self._met[session] = found
            if len(self._met) > self._most:
                self._met.popitem(last=False)
            return found
