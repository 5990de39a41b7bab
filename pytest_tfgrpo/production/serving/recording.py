"""A chat completion while it passes, and what is kept of it where the proxy collects."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.serving.chat_body import ChatBody
from pytest_tfgrpo.production.serving.chat_spans import LARGEST_ANSWER, ChatExchange, unpacked
from pytest_tfgrpo.production.serving.run_traces import RunTraces
from pytest_tfgrpo.production.serving.served_version import ServedPrompt

SESSION_HEADER, DOMAIN_HEADER = "x-session-id", "x-tfgrpo-domain"
LEFT = "the client left before the answer"
_NOT_ASKED = frozenset({401, 403, 404})
"""Statuses of a request that reached no model."""


AddExchange: TypeAlias = Callable[[ChatExchange], None]


class PassingChat:
    """Whose chat passes, and in which session."""

    def __init__(self, chat: ChatBody, headers: Mapping[str, str]) -> None:
        """`headers` are by lower-case name."""
        self.chat = chat
        self.named = headers.get(SESSION_HEADER, "") or chat.session
        """The session as the client names it; empty where it does not."""
        self.domain = headers.get(DOMAIN_HEADER, "")

    @property
    def session(self) -> str:
        """What decides on the version: a conversation without a name keeps one too."""
        return self.named or hashlib.sha256(self.chat.head.encode()).hexdigest()


class ChatRecord:
    """What is kept of a chat that passes."""

    def __init__(
        self, passing: PassingChat, version: str, prompt: ServedPrompt, runs: RunTraces, add: AddExchange
    ) -> None:
        self._passing, self._version, self._prompt = passing, version, prompt
        self._runs, self._add = runs, add
        self._run = runs.begin(passing.named, passing.chat.messages)
        self._start_ns = time.time_ns()
        self._chunks: list[bytes] = []
        self._left = LARGEST_ANSWER
        self._ended = False

    @property
    def trajectory(self) -> str:
        """Id of the trajectory that it will be a part of, for feedback."""
        return trajectory_id(self._run.trace, self._run.agent)

    def keep(self, chunk: bytes) -> None:
        """Keep what came of the answer."""
        if self._left > 0:
            self._chunks.append(chunk)
            self._left -= len(chunk)

    def end(self, status: int, encoding: str, error: str = "") -> None:
        """Hand over what passed, once, before the client sends more; `error` is why it is not whole."""
        if status in _NOT_ASKED or self._ended:
            return
        self._ended = True
        if error == LEFT and self._chunks:
            error = ""  # a user who stops an answer has one
        answer = unpacked(b"".join(self._chunks), encoding)
        passing = self._passing
        whole = status == 200 and not error
        if not whole:
            self._runs.failed(passing.named, self._run, passing.chat.messages)
        self._add(
            ChatExchange(
                chat=passing.chat,
                session=passing.named,
                version=self._version,
                lessons=self._prompt.lessons,
                domain=passing.domain,
                run=self._run,
                span=secrets.token_hex(8),
                ends_run=whole and self._runs.answered(passing.named, self._run, answer),
                start_ns=self._start_ns,
                end_ns=time.time_ns(),
                status=status,
                answer=answer,
                error=error,
            )
        )
