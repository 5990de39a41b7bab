"""Prices: what the tokens of a language model cost; a model without a price costs an unknown sum, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Protocol

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import PriceUse, Usage

MILLION = 1_000_000


class PricedModel(Protocol):
    """A model that may be called."""

    @property
    def name(self) -> str:
        """What it is called by."""

    @property
    def paid(self) -> bool:
        """Whether its calls cost something."""

    @property
    def price(self) -> Price | None:
        """None where it is unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What a model's tokens cost, in US dollars per million."""

    input: float
    output: float
    """Of completion tokens, hidden reasoning included."""
    cached_input: float | None = None
    """Of prompt tokens that the server had in its cache; None: as `input`."""
    as_of: str = ""
    """Date of the price, for a reader."""
    source: str = ""
    """Where it was read, for a reader."""
    above: LongPrompt | None = None
    """What calls with long prompts cost instead."""
    table: str = field(default="", compare=False)
    """What it is from and how old that is, for a reader."""

    def times(self, factor: float) -> Price:
        """Return the price of tokens that cost `factor` times as much."""
        above = self.above
        return replace(
            self,
            input=factor * self.input,
            output=factor * self.output,
            cached_input=None if self.cached_input is None else factor * self.cached_input,
            above=None if above is None else LongPrompt(prompt=above.prompt, price=above.price.times(factor)),
        )

    def cost(self, usage: Usage) -> float:
        """Return the cost of `usage`, that of one call, in US dollars."""
        if self.above is not None and usage.prompt > self.above.prompt:
            return self.above.price.cost(usage)
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.prompt - usage.cached
        return (fresh * self.input + usage.cached * cached + usage.completion * self.output) / MILLION

    def most(self, prompt: int, completion: int) -> float:
        """Return the most that so many tokens of one call can cost, in US dollars."""
        if self.above is not None and prompt > self.above.prompt:
            return max(self.above.price.most(prompt, completion), self._most(prompt, completion))
        return self._most(prompt, completion)

    def _most(self, prompt: int, completion: int) -> float:
        dearest = max(self.input, self.cached_input or 0.0)
        return (prompt * dearest + completion * self.output) / MILLION


@dataclass(frozen=True, kw_only=True, slots=True)
class LongPrompt:
    """The price of calls whose prompt is longer than `prompt` tokens; it holds for all of their tokens."""

    prompt: int
    price: Price


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceTable:
    """Prices by model; a name ``<model>@<endpoint>`` is for that endpoint alone and goes first."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    packaged: Mapping[str, Price] = field(default_factory=dict)
    """What holds where neither these nor those of the extra `prices` have a model."""

    def own(self, model: str, endpoint: str) -> Price | None:
        """Return the price that the user set for `model` at `endpoint`, or None."""
        return self.prices.get(f"{model}@{endpoint}") or self.prices.get(model)


def price_uses(models: Iterable[PricedModel]) -> tuple[PriceUse, ...]:
    """Return which table the price of each model that costs something is from."""
    found = {m.name: m.price.table for m in models if m.paid and m.price is not None and m.price.table}
    return tuple(PriceUse(model=name, table=table) for name, table in sorted(found.items()))
