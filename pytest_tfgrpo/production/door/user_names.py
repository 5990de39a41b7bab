"""Under which names users stand: in attributes, in metadata and in JSON within these.

A name is an attribute's, or the path to a value in JSON, its parts joined by dots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.dialects import USER_KEYS, is_scrubbed

UserKind = Literal["", "perhaps user", "user"]
"""Whether a user stands under a name; perhaps: under ``user`` may also stand what one wrote."""

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[- ]")
_LONGEST_NAME = 100
_LONGEST_USER = 256
_USERS = re.compile(
    r"(?:.*_)?(?:end_?)?(?:user|usr)_?(?:(?:profile|info|data|context|details)_)?(?:ids?|ref|name|hash|full_name|uuid|uid|guid|login|handle|identifier"
    r"|e?_?mail(?:_address)?|external_id|pseudo_id|principal(?:_name)?)"
    r"|(?:.*_)?safety_identifier|(?:.*_)?enduser"
    r"|(?:.*_)?(?:llm|litellm|openai|langfuse|gen_ai|gen_ai_request|metadata)_user"
)
_PERHAPS = frozenset({"user", "enduser", "end_user", "usr", "current_user", "app_user", "auth_user"})
_OBJECTS = _PERHAPS | {"metadata"}
"""Names of objects in which a name such as ``id`` or ``user`` says more than by itself."""
_TECHNICAL = frozenset(
    {"container", "db", "host", "k8s", "messaging", "net", "network", "os", "process", "server", "ssh", "url"}
)
"""First parts of names under which the users of machines and databases stand."""
_ROLES = frozenset({"ai", "assistant", "developer", "human", "model", "system", "tool", "user"})
_NOBODY = frozenset({"anonymous", "n/a", "nil", "none", "null", "undefined", "unknown"})
_HOLDERS = frozenset(
    {
        *("association_properties", "attributes", "baggage", "config", "context", "end_user", "enduser"),
        *("extra", "extra_body", "invocation_parameters", "litellm_params", "meta", "metadata"),
        *("model_parameters", "optional_params", "parameters", "params", "properties", "request_data"),
        *("request_parameters", "session", "tags", "user", "usr", "url_full", "url_query", "http_url"),
        *("http_target",),
    }
)
"""Last parts of the names of what says whom a span is about; all else is content."""
_CONTENT = frozenset(
    {
        *("args", "arguments", "choices", "completion", "content", "documents", "input", "inputs", "kwargs"),
        *("message", "messages", "output", "outputs", "parts", "prompt", "prompts", "response", "result"),
        *("text", "tool_calls", "tools"),
    }
)
_OF_TOOLS = ("tool", "function")
_DEEPEST = 6
_LARGEST_HOLDER = 100_000
_IN_JSON = re.compile(r"(?:user|usr|safety[_-]?identifier)[\w-]{0,40}(?:\\*[\"']|[=:])", re.IGNORECASE)
_PAIR = re.compile(
    r"(?<![\w.-])(?P<name>[A-Za-z][\w.-]{0,60})[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<user>[^\s\"',;&{}()\[\]]{1,256})"
)


class UserNames:
    """The names that are known, and those that somebody adds."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        """`more` are names of attributes, or the ends of names from a dot on."""
        self._more = tuple(_plain(name) for name in more)
        self._dotted = any("." in name for name in self._more)

    def kind(self, name: str) -> UserKind:
        """Return whether a user stands under a name."""
        return "user" if self._more and self._is_more(name) else user_kind(name)

    def _is_more(self, name: str) -> bool:
        plain = _plain(name)
        return any(plain == one or plain.endswith(f".{one}") for one in self._more)

    def rank(self, name: str) -> int:
        """Return how sure the user under a name is the one whom a span is about, from 1; 0: none is."""
        return 1 if self._more and self._is_more(name) else _rank(name)

    def named(self, tables: Iterable[Mapping[str, Json]]) -> list[str]:
        """Return the users whom attributes name, the surest first."""
        ranks: dict[str, int] = {}
        for table in tables:
            for name, value in table.items():
                for user, rank in self._in(name, value):
                    ranks[user] = min(rank, ranks.get(user, rank))
        return sorted(ranks, key=lambda user: ranks[user])

    def _in(self, name: str, value: Json) -> Iterator[tuple[str, int]]:
        rank = self.rank(name)
        if rank:
            for one in value if value.__class__ is list else (value,):
                if user := _user(one, self.kind(name)):
                    yield user, rank
        if value.__class__ is dict:
            if _holds(name):
                yield from self._within(name, value, _DEEPEST)
        elif value.__class__ is str and _holds(name) and len(value) <= _LARGEST_HOLDER:
            try:
                found = json.loads(value)
            except (ValueError, RecursionError):
                found = value
            for one in found if found.__class__ is list else (found,):
                if one.__class__ is dict:
                    yield from self._within(name, one, _DEEPEST)
                elif one.__class__ is str:
                    yield from ((match["user"], self.rank(match["name"])) for match in self.pairs(one))

    def pairs(self, text: str) -> Iterator[re.Match[str]]:
        """Yield where a text that is not quite JSON names users: ``user_id=7``, ``{'user_id': '7'}``."""
        match = _PAIR.search(text)
        while match is not None:
            names = self.kind(match["name"]) == "user" and _user(match["user"], "user")
            if names:
                yield match
            match = _PAIR.search(text, match.end() if names else match.end("name"))

    def without_pairs(self, name: str, text: str, ref: Callable[[str], str]) -> str:
        """Return a text that stands under `name`, and is not quite JSON, with `ref` of the users it names."""
        if not _holds(name) or not self.may_be_in(text):
            return text
        pieces, done = [], 0
        for match in self.pairs(text):
            pieces += [text[done : match.start("user")], ref(match["user"])]
            done = match.end("user")
        return "".join([*pieces, text[done:]])

    def _within(self, name: str, value: Json, left: int) -> Iterator[tuple[str, int]]:
        for key, one in value.items():
            path = f"{name}.{key}"
            if one.__class__ is dict:
                if left and str(key).lower() not in _CONTENT:
                    yield from self._within(path, one, left - 1)
            elif str(key).lower() not in _CONTENT:
                yield from self._in(path, one)

    def may_be_in(self, text: str) -> bool:
        """Return whether a text of JSON may name a user."""
        return _IN_JSON.search(text) is not None or any(name in text.lower() for name in self._more)

    def by_path(self, name: str, value: Json, left: int = 64) -> Iterator[tuple[dict[str, Json], str, str]]:
        """Yield object, key and user of those whom only the path to them names: ``{"user": {"id": 7}}``.

        `value` stands under `name`.
        """
        if value.__class__ is list:
            for one in value:
                if left and one.__class__ in (dict, list):
                    yield from self.by_path(name, one, left - 1)
        elif value.__class__ is dict:
            joins = self._dotted or _is_user_object(name)
            for key, one in value.items():
                path = f"{name}.{key}" if name else str(key)
                if one.__class__ in (dict, list):
                    if left:
                        yield from self.by_path(path, one, left - 1)
                elif joins and self.kind(path) == "user" != self.kind(str(key)) and _user(one, "user"):
                    yield value, key, str(one)


def _plain(name: str) -> str:
    return _WORDS.sub("_", name[-_LONGEST_NAME:]).lower()


@lru_cache(maxsize=4096)
def user_kind(name: str) -> UserKind:
    """Return whether a user stands under a name that everybody knows."""
    plain = _plain(name)
    if _USERS.fullmatch(plain.replace(".", "_")):
        return "user"
    last = plain.rpartition(".")[2]
    perhaps = last in _PERHAPS or last.endswith("_end_user")
    return "perhaps user" if perhaps and not _is_technical(plain) else ""


@lru_cache(maxsize=4096)
def _rank(name: str) -> int:
    if name in USER_KEYS:
        return 2
    kind, plain = user_kind(name), _plain(name)
    if not kind or _is_technical(plain):
        return 0
    whole = plain.replace(".", "_")
    if re.search(r"end_?user(?:_?id)?\Z", whole):
        return 3
    if "api_key" in whole:  # of whoever pays, where the two differ
        return 6
    return 4 if re.search(r"(?:user|usr)(?:_?(?:ids?|ref))?\Z", whole) else 5


@lru_cache(maxsize=4096)
def _holds(name: str) -> bool:
    parts = _plain(name).split(".")
    return (parts[-1] in _HOLDERS or "_".join(parts[-2:]) in _HOLDERS) and not any(
        part in _OF_TOOLS for part in parts
    )


@lru_cache(maxsize=4096)
def _is_user_object(name: str) -> bool:
    return not _OBJECTS.isdisjoint(_plain(name).split(".")[-2:])


def _is_technical(plain: str) -> bool:
    return "." in plain and plain.partition(".")[0] in _TECHNICAL


def may_name(text: str) -> bool:
    """Return whether a text can be a user or an id: under ``user`` may stand what a user wrote."""
    return 0 < len(text) <= _LONGEST_USER and not any(map(str.isspace, text.strip()))


def names_user(text: str, kind: UserKind) -> bool:
    """Return whether a text under a name of that kind is a user: no role, and nothing that one wrote."""
    return kind == "user" or (kind == "perhaps user" and may_name(text) and text.lower() not in _ROLES)


def _user(value: Json, kind: UserKind) -> str:
    """Return the user that a value is, a text or a whole number; empty for all else."""
    if value.__class__ is int:
        return str(value)
    if not isinstance(value, str):
        return ""
    user = value.strip()
    known = user and user.lower() not in _NOBODY and not is_scrubbed(user)
    return user if known and names_user(user, kind) else ""
