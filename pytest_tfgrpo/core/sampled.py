"""Log-probabilities of the tokens that a model sampled, as its server sent them; null where it did not."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Literal, TypeAlias, cast, get_args

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json

LogProbKind: TypeAlias = Literal["raw", "processed", "unknown"]
"""``raw``: of the model's own distribution; ``processed``: after temperature and truncation, as sampled."""

MISSING = "missing_logprobs"
MALFORMED = "malformed"
NOT_FINITE = "not_finite"
PLACEHOLDER = "placeholder"
POSITIVE = "positive"
SHORT = "short"
LONG = "long"
TOKEN_IDS = "token_ids"
REDACTED = "redacted"
RAW = "raw_at_temperature"
UNKNOWN = "unknown_at_temperature"
GREEDY = "greedy"

ROUNDING = 1e-3
"""A log-probability so far above 0 is 0, rounded by the server's arithmetic."""
LEAST = -9999.0
"""OpenAI and vLLM send this for a value that they do not have, llama.cpp the least 32-bit number."""
MOST = 1e6
"""No server has a higher temperature."""
_NUMBERS = frozenset({int, float})
_INTEGERS = frozenset({int})
_CODE = re.compile(r"[a-z_]{1,40}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """The tokens of one model call, in the order in which they were sampled."""

    kind: LogProbKind
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms, at most 0, one per token; None: there are none, or none to rely on."""
    token_ids: tuple[int, ...] | None = None
    """As many as `logprobs`; None where the server sent none."""
    temperature: float | None = None
    """As it was requested; None when the server's own applied."""
    reason: str = ""
    """Why `logprobs` is None, as a code; else empty."""

    def without_tokens(self) -> Sampled:
        """Return the same without its lists, which say what was redacted."""
        return Sampled(kind=self.kind, temperature=self.temperature, reason=REDACTED)


def checked(
    kind: LogProbKind, temperature: float | None, logprobs: Json, token_ids: Json, count: int | None
) -> Sampled:
    """Return the tokens of a call; lists that cannot be relied on become None, with the reason.

    `count` is how many tokens were sampled; None: unknown.
    """
    values, ids = _listed(logprobs), _listed(token_ids)
    reason = _fault(values, count)
    if not reason and ids is not None and not _are_ids(ids, len(values or ())):
        reason = TOKEN_IDS
    if reason or values is None:
        return Sampled(kind=kind, temperature=temperature, reason=reason)
    if max(values, default=0.0) > 0 or set(map(type, values)) != {float}:
        values = [min(float(value), 0.0) for value in values]
    return Sampled(
        kind=kind,
        temperature=temperature,
        logprobs=tuple(values),
        token_ids=None if ids is None else tuple(ids),
    )


def _listed(values: Json) -> Json:
    """Return a list with plain numbers where it held numbers of other types, as numpy's are."""
    if not isinstance(values, list | tuple) or set(map(type, values)) <= _NUMBERS:
        return values
    return [_plain(value) for value in values]


def _plain(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _fault(values: Json, count: int | None) -> str:
    """Return why log-probabilities cannot be relied on; empty if they can."""
    if values is None:
        return MISSING
    if not isinstance(values, list | tuple):
        return MALFORMED
    if not values and count is None:
        return MISSING
    if not (kinds := set(map(type, values))) <= _NUMBERS:
        # null stands for what JSON cannot hold
        return NOT_FINITE if kinds <= _NUMBERS | {type(None)} else MALFORMED
    try:
        if not all(map(math.isfinite, values)):
            return NOT_FINITE
    except OverflowError:
        return NOT_FINITE
    if min(values, default=0.0) <= LEAST:
        return PLACEHOLDER
    if max(values, default=0.0) > ROUNDING:
        return POSITIVE
    if count is not None and len(values) != count:
        return SHORT if len(values) < count else LONG
    return ""


def _are_ids(ids: Json, count: int) -> bool:
    return (
        isinstance(ids, list | tuple)
        and len(ids) == count
        and set(map(type, ids)) <= _INTEGERS
        and min(ids, default=0) >= 0
    )


def reported(value: object, count: int | None = None) -> Sampled:
    """Return what an agent reported of the tokens of a model call: a Sampled, or a mapping with its fields.

    `count` is how many tokens it says the model sampled; None: it does not say.
    """
    if isinstance(value, Sampled):
        value = {name: getattr(value, name) for name in Sampled.__slots__}
    if not isinstance(value, Mapping):
        return Sampled(kind="unknown", reason=MALFORMED)
    said = value.get("kind")
    is_known = isinstance(said, str) and said in get_args(LogProbKind)
    kind: LogProbKind = cast("LogProbKind", said) if is_known else "unknown"
    temperature = temperature_of(value.get("temperature"))
    logprobs, reason = value.get("logprobs"), value.get("reason")
    if logprobs is None and isinstance(reason, str) and _CODE.fullmatch(reason):
        return Sampled(kind=kind, temperature=temperature, reason=reason)
    return checked(kind, temperature, logprobs, value.get("token_ids"), count)


def is_plain(value: object) -> bool:
    """Return whether a value is a Sampled of plain types, whatever its numbers are."""
    if not isinstance(value, Sampled):
        return False
    words: tuple[Json, ...] = (value.kind, value.reason)
    lists: tuple[Json, ...] = (value.logprobs, value.token_ids)
    return (
        all(type(word) is str for word in words)
        and type(value.temperature) in _NUMBERS | {type(None)}
        and all(
            numbers is None or (type(numbers) is tuple and set(map(type, numbers)) <= _NUMBERS)
            for numbers in lists
        )
    )


def temperature_of(value: object) -> float | None:
    """Return a temperature as a number; None when it is none."""
    found = _plain(value)
    return float(found) if type(found) in _NUMBERS and 0 <= found <= MOST else None


def why_no_ratio(sampled: Sampled | None) -> str:
    """Return why `sampled` cannot serve as old log-probabilities of a policy ratio; empty if it can.

    The ratio needs the probability with which a token was drawn. A raw value is that at temperature 1 alone,
    and the value of the chosen token cannot be rescaled, as that takes the values of all tokens.
    At temperature 0 nothing was drawn.
    """
    if sampled is None:
        return MISSING
    if sampled.logprobs is None:
        return sampled.reason or MISSING
    if sampled.temperature == 0:
        return GREEDY
    if sampled.kind == "processed" or sampled.temperature == 1:
        return ""
    return RAW if sampled.kind == "raw" else UNKNOWN
