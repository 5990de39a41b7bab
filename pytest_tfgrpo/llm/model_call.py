"""One call of a model with its attempts: what it carries, and how an attempt fails."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.sampled import Sampled

BUDGET = "budget"
"""Code of a call that the budget ended between two attempts."""
Used = tuple[float | None, int | None]
"""Dollars and tokens that an attempt used; None if unknown."""
NOTHING: Used = (0.0, 0)
UNKNOWN: Used = (None, None)


class AttemptFailed(Exception):
    """One attempt gave no completion."""

    def __init__(
        self,
        error: ModelError,
        used: Used,
        *,
        again: bool = False,
        lasting: bool = False,
        form: bool = False,
        stream: bool = False,
        wait_s: float = 0.0,
    ) -> None:
        """`again`: the same request may succeed; `lasting`: none will; `form`: one without a form may.

        `stream`: one for a stream may. The server asks to wait `wait_s`.
        """
        super().__init__(str(error))
        self.error = error
        self.used = used
        self.again = again
        self.lasting = lasting
        self.form = form
        self.stream = stream
        self.wait_s = wait_s


class BatchFailed(Exception):
    """A batch, or a call in it, gave no reply."""

    def __init__(
        self,
        message: str,
        code: str,
        *,
        sent: bool = False,
        again: bool = False,
        lasting: bool = False,
        wait_s: float = 0.0,
    ) -> None:
        """`code` is that of a ModelError; `sent`: somebody may pay for the call.

        `again`: the same may succeed; `lasting`: no batch will. The server asks to wait `wait_s`.
        """
        super().__init__(message)
        self.code = code
        self.sent = sent
        self.again = again
        self.lasting = lasting
        self.wait_s = wait_s


@dataclass(slots=True)
class ModelAttempts:
    """One call with its retries."""

    body: bytes
    in_words: bytes
    """The same, with the form of the answer only requested; empty when that is all that is done anyway."""
    bound: Mapping[str, float | None]
    prompt_tokens: int
    completion_tokens: int
    limit_s: float
    """Time for all attempts; waiting for money or for a free slot does not count."""
    sampled: Sampled | None
    """What is known of its tokens before they come; None when nothing needs them."""
    max_bytes: int
    """What an answer may have."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that the model may call."""
    streamed: bool = False
    """The reply is requested by stream."""
    seed: int | None = None
    """Of the rollout, also where it is not sent."""
    unanswered: int = 0
    """Batches that ended without an answer to it."""
    attempt: int = 0
    spent_s: float = 0.0
    cost_usd: float | None = 0.0
    """Of all attempts; None when that of one is unknown."""

    @property
    def left_s(self) -> float:
        """Time that is left."""
        return self.limit_s - self.spent_s

    def pay(self, usd: float | None) -> None:
        self.cost_usd = None if usd is None or self.cost_usd is None else self.cost_usd + usd

    def pass_time(self, seconds: float) -> None:
        self.spent_s += seconds


def one_line(text: str, limit: int) -> str:
    """Return `text` as one printable line of at most about `limit` characters."""
    flat = " ".join(text.split())
    fit = "".join(c if c.isprintable() else repr(c)[1:-1] for c in flat[: limit + 1])
    return fit if len(flat) <= limit else fit[:limit].rstrip() + "..."
