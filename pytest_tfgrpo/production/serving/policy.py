"""The deployed version in the process of an agent: the prompt of a session, without a call anywhere."""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.deployment.assignment import SessionVersions
from pytest_tfgrpo.production.serving.follow import ServingFollower, usable
from pytest_tfgrpo.production.serving.served_version import NOTHING, ServedPrompt

_LONGEST_NAME = 256
"""Characters of a session's id; a longer one is remembered by its digest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionPolicy:
    """What a session meets."""

    version: str = ""
    """Its name, such as ``v2``, for the attribute ``tfgrpo.policy_version`` of your spans; empty: unknown."""
    prompt: str = ""
    """Texts of the prompt pack and lessons, for your system message; empty for v1, or where none is known."""
    lessons: tuple[str, ...] = ()
    """Ids of the lessons in it, for the attribute ``tfgrpo.lessons``."""


class VersionChoice:
    """Which version each session meets, and what that adds; threads may share it."""

    def __init__(self, follower: ServingFollower) -> None:
        self._follower = follower
        self._sessions = SessionVersions()

    def choose(self, session: str, task: str, domain: str = "") -> tuple[str, ServedPrompt]:
        """Return the version of a session, empty where none is known, and what it adds for a task."""
        state = self._follower.state
        serving = None if state is None else usable(state)
        if state is None or serving is None:
            return "", NOTHING
        if len(session) > _LONGEST_NAME:
            session = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()
        version = self._sessions.version(serving, session)
        return version, state.versions[version].prompt(task, domain)


class ServedPolicy:
    """Follows the deployments in a thread; open it once per process. Threads and forks may share it."""

    def __init__(self, open_follower: Callable[[], ServingFollower]) -> None:
        self._open_follower = open_follower
        self._follower = open_follower()
        self._choice = VersionChoice(self._follower)
        self._follower.start()
        _open.add(self)

    def _begin_anew(self) -> None:
        """Follow in a forked process too, from what its parent knew."""
        state, self._follower = self._follower.state, self._open_follower()
        self._choice = VersionChoice(self._follower)
        self._follower.go_on(state)

    def for_session(self, session: str, task: str = "", *, domain: str = "") -> SessionPolicy:
        """Return what a session meets; it never raises and never waits.

        `task` is the first message of the user, by which lessons are chosen: keep the answer for the whole
        conversation, or give the same task. `domain` is that of your suite, needed if it has several.
        """
        named, asked, of = ("" if one is None else str(one) for one in (session, task, domain))
        version, prompt = self._choice.choose(named, asked, of)
        return SessionPolicy(version=version, prompt="\n\n".join(prompt.parts), lessons=prompt.lessons)

    def close(self) -> None:
        """Follow no longer; what was served last stays."""
        self._follower.close()
        _open.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_open: weakref.WeakSet[ServedPolicy] = weakref.WeakSet()


def _begin_all() -> None:
    for policy in list(_open):
        policy._begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)
