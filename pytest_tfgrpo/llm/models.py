"""Models: open language models by spec, all over one HTTP client."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.llm.batch.batches import Batches
from pytest_tfgrpo.llm.batch.ledger import BatchLedger
from pytest_tfgrpo.llm.batch.routes import BatchRoutes
from pytest_tfgrpo.llm.completer import ChatCompleter
from pytest_tfgrpo.llm.endpoints import (
    BASE_URL,
    BASE_URL_ENV,
    DEFAULT,
    KEY_ENV,
    Endpoint,
    ModelsConfig,
    PoolShare,
)
from pytest_tfgrpo.llm.limits.call_retries import CallRetries
from pytest_tfgrpo.llm.limits.concurrency import AUTO
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.limits.slots import AdaptiveSlots, EndpointSlots, Slots, Standing
from pytest_tfgrpo.llm.pool import PooledCompleter, PoolMember
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Completer, Spending
from pytest_tfgrpo.llm.reply_reader import ReplyReader
from pytest_tfgrpo.llm.request_writer import RequestWriter
from pytest_tfgrpo.llm.senders import BatchSender, HttpSender
from pytest_tfgrpo.llm.server.door import Door
from pytest_tfgrpo.llm.server.keys import Scrubber, Secret
from pytest_tfgrpo.llm.server.transport import Transport, require_client
from pytest_tfgrpo.llm.server.url import Address, parse_address
from pytest_tfgrpo.llm.vendor_prices import price_at

if TYPE_CHECKING:
    from pytest_tfgrpo.llm.batch.batches import Batches
    from pytest_tfgrpo.llm.batch.ledger import BatchLedger

SCHEME = "openai:"
FREE = Price(input=0.0, output=0.0)
AUTHORIZATION = "Authorization"
LEAD = re.compile(r"[\s\"']*(bearer|authorization)(?:[\s:=\"']|$)", re.IGNORECASE)
"""What stands before a key in the header that it is sent in."""
LONGEST = 256
"""Characters of a model's name at most."""


class Models:
    """Language models of one run."""

    def __init__(
        self,
        config: ModelsConfig,
        *,
        environ: Mapping[str, str],
        spending: Spending,
        max_tokens: int,
        pace: Pace | None = None,
        standing: Standing = nullcontext,
        adapt: bool = False,
        slots: EndpointSlots | None = None,
    ) -> None:
        """`max_tokens` limits completions where neither request nor endpoint do.

        A call waits for a free slot of its endpoint within what `standing` returns. With `adapt`, endpoints
        that state no number of calls in flight find it out. `slots` are shared with runs beside it.
        """
        self._adapt = adapt
        self._slots = {} if slots is None else slots
        self._standing = standing
        self._config = config
        self._environ = environ
        self._spending = spending
        self._max_tokens = max_tokens
        self._pace = pace or Pace()
        self._transport = Transport()
        self._doors: dict[str, Door] = {}
        self._ledger: BatchLedger | None = None
        self._batches: list[Batches] = []
        self._open: dict[tuple[str, str], ChatCompleter | PooledCompleter] = {}

    def open(self, spec: str) -> Completer:
        """Return the model that ``openai:<model>[@<endpoint>]`` names; equal specs give the same one.

        No call is made. Raises SettingError for a malformed spec, an unknown endpoint, a missing key.
        """
        model, name = self._parse(spec)
        if (model, name) not in self._open:
            require_client()
            own = SCHEME + model + ("" if name == DEFAULT else f"@{name}")
            pool = self._config.pools.get(name)
            alike = name in self._config.alike
            opened = (
                self._chat(model, name, own) if pool is None else self._pool(model, pool, own, alike=alike)
            )
            self._open[model, name] = opened
        return self._open[model, name]

    def _chat(self, model: str, endpoint: str, name: str, *, pooled: bool = False) -> ChatCompleter:
        if endpoint not in self._doors:
            self._doors[endpoint] = self._door(endpoint)
        door = self._doors[endpoint]
        price = self._price(model, door)
        reader = ReplyReader(name, door, price)
        batches = self._batches_of(name, door)
        return ChatCompleter(
            name,
            door,
            price=price,
            spending=self._spending,
            retries=CallRetries(door.endpoint.retries, self._pace, pooled=pooled),
            writer=RequestWriter(name, model, door, price, self._max_tokens),
            sender=HttpSender(door, self._transport, reader, self._pace)
            if batches is None
            else BatchSender(batches, reader),
            reader=reader,
        )

    def _price(self, model: str, door: Door) -> Price | None:
        """Return what the tokens of a model cost at an endpoint; None when that is unknown."""
        endpoint = door.endpoint
        if endpoint.free:
            return FREE
        known = price_at(self._config.prices, model, endpoint.name, door.address.base_url)
        return known if known is None or endpoint.batch is None else known.times(endpoint.batch.price_factor)

    def _batches_of(self, name: str, door: Door) -> Batches | None:
        """Return the batches of a model, which hold no other; None where each call is made by itself."""
        batching = door.endpoint.batch
        if batching is None:
            return None

        self._ledger = self._ledger or BatchLedger()
        timeout_s = door.endpoint.timeout_s
        routes = BatchRoutes(door.address, door.headers, door.scrubber, self._transport, timeout_s)
        batches = Batches(
            name, routes, batching, ledger=self._ledger, standing=self._standing, pace=self._pace
        )
        self._batches.append(batches)
        return batches

    def keep_batches(self, path: Path) -> None:
        """Note batches of the models that are open at `path`, where an interrupted process has noted its own.

        Raises JournalError.
        """
        if self._ledger is not None:
            self._ledger.open(path)

    def _pool(self, model: str, shares: Sequence[PoolShare], name: str, *, alike: bool) -> PooledCompleter:
        members = []
        for share in shares:
            own = share.model or model
            known = f"{SCHEME}{own}@{share.endpoint}"
            completer = self._chat(own, share.endpoint, known, pooled=True)
            endpoint = self._doors[share.endpoint].endpoint
            members.append(
                PoolMember(
                    completer=completer,
                    weight=share.weight,
                    retries=endpoint.retries,
                    timeout_s=endpoint.timeout_s,
                )
            )
        return PooledCompleter(name, model, members, self._pace, alike=alike)

    async def aclose(self) -> None:
        """Close all connections, and wait for no batch."""
        for batches in self._batches:
            await batches.aclose()
        await self._transport.aclose()

    def _parse(self, spec: str) -> tuple[str, str]:
        """Return the model and the endpoint's name."""
        text = spec.removeprefix(SCHEME).strip()
        if not spec.startswith(SCHEME) or not text.isprintable() or len(text) > LONGEST:
            raise SettingError(
                f"{short(spec)} does not name a language model; write {SCHEME}<model>[@<endpoint>]"
            )
        model, at, name = text.rpartition("@")
        known = {DEFAULT, *self._config.endpoints, *self._config.pools}
        if not at or not model or name not in known:
            if at and model and (text, DEFAULT) not in self._open:
                self._require_version(spec, model, name, sorted(known))
            model, name = text, DEFAULT
        if not model or any(c.isspace() for c in model):
            raise SettingError(
                f"{short(spec)} does not name a language model; write {SCHEME}<model>[@<endpoint>]"
            )
        return model, name

    def _require_version(self, spec: str, model: str, name: str, known: list[str]) -> None:
        """Raise SettingError unless ``@<name>`` is no endpoint but a version, which begins with a digit.

        What is meant for one server would otherwise go to another, which may cost money.
        """
        near = difflib.get_close_matches(name, known, 1)
        if near:
            raise SettingError(
                f"{short(spec)} names no known endpoint; did you mean {SCHEME}{model}@{near[0]}? "
                f"There are: {', '.join(known)}"
            )
        if name[:1].isdigit():
            return
        file = (
            f"{self._where()}" if self._config.source else "; set tfgrpo_models to the file that defines it"
        )
        raise SettingError(
            f"{short(spec)} names no known endpoint; there are: {', '.join(known)}{file}. "
            f"If @{name} is part of the model's name, write {SCHEME}{model}@{name}@{DEFAULT}"
        )

    def _door(self, name: str) -> Door:
        endpoint = self._config.endpoints.get(name) or Endpoint(api_key_env=KEY_ENV)
        address = self._address(endpoint)
        wanted = dict(endpoint.headers_env)
        if endpoint.api_key_env is not None:
            wanted[AUTHORIZATION] = endpoint.api_key_env
        found = {header: self._secret(variable, name, address) for header, variable in wanted.items()}
        keys = {header: secret for header, secret in found.items() if secret is not None}
        if keys and not address.private and not endpoint.insecure:
            raise SettingError(
                f"endpoint {name!r} would send a key unencrypted to {address.host!r}; use https, "
                f"or say 'insecure: true' for this endpoint{self._where()}"
            )
        headers = {"Content-Type": "application/json", **endpoint.headers}
        if AUTHORIZATION in keys and endpoint.api_key_env is not None:
            self._require_bare(endpoint.api_key_env, keys[AUTHORIZATION])
        sent = {header: Secret(value) for header, value in headers.items()} | keys
        if endpoint.api_key_env is not None and AUTHORIZATION in keys:
            sent[AUTHORIZATION] = Secret(f"Bearer {keys[AUTHORIZATION].reveal()}")
        return Door(
            endpoint=endpoint,
            address=address,
            headers=sent,
            scrubber=Scrubber(keys.values()),
            slots=self._slots_of(endpoint, name),
        )

    def _require_bare(self, variable: str, key: Secret) -> None:
        """Raise SettingError for a key with the words that are sent before each key."""
        if found := LEAD.match(key.reveal()):
            raise SettingError(
                f"environment variable {variable} must hold the key alone, which is sent as "
                f"'{AUTHORIZATION}: Bearer' and the key; leave out {found[1]!r}{self._where()}"
            )

    def _slots_of(self, endpoint: Endpoint, name: str) -> Slots | AdaptiveSlots | None:
        number = endpoint.concurrency
        if name not in self._slots:
            if number == AUTO or (number is None and self._adapt and endpoint.batch is None):
                self._slots[name] = AdaptiveSlots(name, self._standing)
            elif number is not None:
                self._slots[name] = Slots(number, self._standing)
        return self._slots.get(name)

    def _address(self, endpoint: Endpoint) -> Address:
        base_url, source = endpoint.base_url, f"base_url of endpoint {endpoint.name!r}{self._where()}"
        if base_url is None:
            base_url, source = self._environ.get(BASE_URL_ENV) or BASE_URL, f"environment {BASE_URL_ENV}"
        try:
            return parse_address(base_url)
        except ValueError as error:
            raise SettingError(f"base URL {error} ({source})") from None

    def _secret(self, variable: str, endpoint: str, address: Address) -> Secret | None:
        """Return the value of a variable; a dry run and a server on this machine may do without."""
        value = self._environ.get(variable, "").strip()
        if not value:
            if address.loopback or self._config.dry:
                return None
            default = endpoint == DEFAULT and self._config.endpoints.get(DEFAULT) is None
            other = f"; set {BASE_URL_ENV} to use another server" if default else ""
            raise SettingError(
                f"environment variable {variable} is not set, or empty; it must hold the key of endpoint "
                f"{endpoint!r} at {address.base_url}{self._where()}{other}"
            )
        if not value.isascii() or not value.isprintable():
            raise SettingError(f"environment variable {variable} must hold printable ASCII characters")
        return Secret(value)

    def _where(self) -> str:
        return f" ({self._config.source})" if self._config.source else ""
