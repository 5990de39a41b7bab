"""The file of the setting ``models``: endpoints and prices of language models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.schema import Path, pointer, violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.endpoints import DEFAULT, KEY_ENV, OURS, Batching, Endpoint, ModelsConfig, PoolShare
from pytest_tfgrpo.llm.limits.concurrency import AUTO
from pytest_tfgrpo.llm.prices import LongPrompt, Price, PriceTable
from pytest_tfgrpo.llm.server.url import parse_address
from pytest_tfgrpo.privacy.redact import find_secret, redact
from pytest_tfgrpo.suite.documents.document import Problem, Refused, read_text
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

MAX_BYTES = 1_000_000
SCHEMA = "models"
PACKAGED = "prices.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
AUTHENTICATION = re.compile(r"auth|cookie|api-?key|token|secret|password", re.IGNORECASE)
SERVER = ("base_url", "api_key_env", "headers_env")
"""Fields that make two endpoints the same server and account."""
TAKEN = frozenset(
    {"content-type", "content-length", "transfer-encoding", "host", "connection", "accept-encoding"}
)


def load_models(path: FilePath | None) -> ModelsConfig:
    """Return the endpoints and prices of the file `path`, on top of the packaged prices.

    Raises SettingError, whose lines name file, line and JSON pointer.
    """
    packaged = files("pytest_tfgrpo.llm").joinpath(PACKAGED)
    listed = json.loads(packaged.read_text("utf-8"))
    table = _prices(listed, f"the packaged table of {listed['as_of']}")
    if path is None:
        return ModelsConfig(prices=PriceTable(packaged=table))
    value = _read(path)
    return ModelsConfig(
        endpoints={name: _endpoint(name, fields) for name, fields in (value.get("endpoints") or {}).items()},
        pools={
            name: tuple(PoolShare(**share) for share in _members(pool))
            for name, pool in (value.get("pools") or {}).items()
        },
        alike=frozenset(
            name
            for name, pool in (value.get("pools") or {}).items()
            if isinstance(pool, dict) and pool.get("alike")
        ),
        prices=PriceTable(prices=_prices(value, path.name), packaged=table),
        source=str(path),
    )


def _read(path: FilePath) -> Mapping[str, Json]:
    try:
        document = parse_yaml(read_text(path, MAX_BYTES))
    except Refused as error:
        raise _error(path, [error.problem]) from None
    value = {} if document.value is None else document.value
    found: list[Problem] = [
        Problem(document.line(v.path), v.path, v.message + _meant_price(value, v.path))
        for v in violations(SCHEMA, value)
    ]
    if not found:
        found = [Problem(document.line(place), place, message) for place, message in _faults(value)]
    if found:
        raise _error(path, found)
    return value


def _meant_price(value: Json, place: Path) -> str:
    """Return how a price is written, where an unknown key seems to be one of another tool's table."""
    end = place[-1] if place else None
    row = value.get(end) if len(place) == 1 and isinstance(value, Mapping) and isinstance(end, str) else None
    if not (
        (isinstance(row, Mapping) and any("input" in key for key in row)) or str(end).endswith("_per_token")
    ):
        return ""
    model = end if row else "MODEL"
    return f"; write prices: {{{model}: {{input: 0.5, output: 2}}}}, in US dollars per million tokens"


def _error(path: FilePath, problems: list[Problem]) -> SettingError:
    lines = [f"models: {path}:{p.line}: #{pointer(p.path)}: {redact(p.message)}" for p in problems]
    return SettingError("\n".join(lines))


def _endpoint(name: str, fields: Mapping[str, Json]) -> Endpoint:
    """Return an endpoint; the default one has the usual key unless it has an address of its own."""
    if name == DEFAULT and "base_url" not in fields:
        fields = {"api_key_env": KEY_ENV, **fields}
    batch = fields.get("batch")
    batching = Batching(**batch) if isinstance(batch, Mapping) else Batching() if batch else None
    tags = fields.get("thoughts", True)
    thoughts = tags if isinstance(tags, bool) else tuple((begin, end) for begin, end in tags)
    return Endpoint(**{**fields, "name": name, "batch": batching, "thoughts": thoughts})


def _is_batched(fields: Mapping[str, Json]) -> bool:
    """Return whether the calls of an endpoint go in batches; an empty mapping has the default values."""
    return fields.get("batch") not in (None, False)


def _prices(value: Mapping[str, Json], table: str) -> dict[str, Price]:
    return {model: _price(row, table) for model, row in (value.get("prices") or {}).items()}


def _price(row: Mapping[str, Json], table: str) -> Price:
    above = row.get("above")
    if above is None:
        return Price(**row, table=table)
    longer = {name: value for name, value in above.items() if name != "prompt"}
    return Price(
        **{**row, "above": LongPrompt(prompt=above["prompt"], price=Price(**longer)), "table": table}
    )


def _faults(value: Mapping[str, Json]) -> Iterator[tuple[Path, str]]:
    """Yield what a schema cannot say."""
    for name, fields in value.get("endpoints", {}).items():
        place: Path = ("endpoints", name)
        if not NAME.fullmatch(name):
            yield place, f"{short(name)} must be letters, digits, '.', '_' and '-', as it follows an '@'"
        if "base_url" not in fields and name != DEFAULT:
            yield place, "missing key 'base_url'"
        yield from (((*place, *at), message) for at, message in _endpoint_faults(fields))
    yield from _pool_faults(value)


def _members(pool: Any) -> list[dict[str, Any]]:
    """Return the members of a pool, which is their list or has it under a key."""
    found: list[dict[str, Any]] = pool["members"] if isinstance(pool, dict) else pool
    return found


def _pool_faults(value: Mapping[str, Json]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with pools: names, unknown endpoints, and servers that are listed twice."""
    endpoints = value.get("endpoints", {})
    for name, pool in value.get("pools", {}).items():
        place: Path = ("pools", name)
        if not NAME.fullmatch(name):
            yield place, f"{short(name)} must be letters, digits, '.', '_' and '-', as it follows an '@'"
        if name == DEFAULT or name in endpoints:
            yield place, f"{name!r} is the name of an endpoint already"
        seen: dict[str, str] = {}
        for number, share in enumerate(_members(pool)):
            own = share["endpoint"]
            at: Path = (*place, *(("members",) if isinstance(pool, dict) else ()), number, "endpoint")
            if own != DEFAULT and own not in endpoints:
                near = nearest(own, [DEFAULT, *endpoints])
                yield at, f"there is no endpoint {short(own)}{near}"
                continue
            fields = endpoints.get(own, {})
            if _is_batched(fields):
                yield at, f"endpoint {own!r} makes its calls in batches, which no pool shares out"
            server = str([fields.get(key) for key in SERVER]) if "base_url" in fields else own
            if server in seen:
                same = "" if seen[server] == own else f", the server of {own!r},"
                yield at, f"endpoint {seen[server]!r}{same} is listed twice; raise its weight instead"
            seen[server] = own


def _endpoint_faults(fields: Mapping[str, Json]) -> Iterator[tuple[Path, str]]:
    if "base_url" in fields:
        try:
            parse_address(fields["base_url"])
        except ValueError as error:
            yield ("base_url",), str(error)
    if "api_key_env" in fields:
        yield from _variable(("api_key_env",), fields["api_key_env"])
    for name, variable in fields.get("headers_env", {}).items():
        yield from _header(("headers_env", name), name)
        yield from _variable(("headers_env", name), variable)
    for name, text in fields.get("headers", {}).items():
        yield from _header(("headers", name), name)
        if AUTHENTICATION.search(name) or find_secret(text) is not None:
            yield ("headers", name), "looks like a key; name a variable that holds it, under headers_env"
        elif not text.isascii() or not text.isprintable():
            yield ("headers", name), f"{short(text)} must be printable ASCII characters"
    names = [*fields.get("headers", {}), *fields.get("headers_env", {})]
    names += ["Authorization"] if "api_key_env" in fields else []
    if len({name.lower() for name in names}) < len(names):
        yield (), "sets a header twice (api_key_env sets Authorization)"
    if _is_batched(fields):
        if fields.get("concurrency") == AUTO:
            yield (
                ("concurrency",),
                "auto is not for batches, which wait for hours; leave it out, or set a number",
            )
        if "hedge_after_s" in fields:
            yield ("hedge_after_s",), "is not for batches, which wait for hours; leave it out"
    extra = fields.get("extra_body", {})
    for name in sorted(OURS & extra.keys()):
        yield ("extra_body", name), f"{name!r} is not for extra_body: it is set for each call"
    if find_secret(str(extra)) is not None:
        yield ("extra_body",), "holds a key; keys are sent as headers, see headers_env"


def _variable(place: Path, name: str) -> Iterator[tuple[Path, str]]:
    if not VARIABLE.fullmatch(name) or find_secret(name) is not None:
        yield (
            place,
            (
                "must be the name of an environment variable that holds the key, such as OPENAI_API_KEY, "
                "not the key itself: everybody with the repository can read this file"
            ),
        )


def _header(place: Path, name: str) -> Iterator[tuple[Path, str]]:
    if not HEADER.fullmatch(name):
        yield place, f"{short(name)} is not the name of a header"
    elif name.lower() in TAKEN:
        yield place, f"{name!r} is set by the client"
