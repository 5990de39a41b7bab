"""Retries of a model's calls: when another attempt may help, and when no call can."""

from __future__ import annotations

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.model_call import AttemptFailed, ModelAttempts


class CallRetries:
    """What the calls of one model have found out about its server."""

    def __init__(self, retries: int, pace: Pace, *, pooled: bool) -> None:
        """Make at most `retries` of a call.

        One that is `pooled` makes none, and never gives its server up: its pool does both.
        """
        self._retries = 0 if pooled else retries
        self._pace = pace
        self._pooled = pooled
        self.answered = False
        self.broken: ModelError | None = None
        """Why no call can succeed."""

    def require_hope(self, call: ModelAttempts) -> None:
        """Raise ModelError when no call can succeed."""
        if self.broken is not None:
            raise ModelError(str(self.broken), self.broken.code, cost_usd=call.cost_usd)

    async def wait(self, call: ModelAttempts, failed: AttemptFailed) -> None:
        """Wait until it is time for another attempt; raises ModelError when there is none."""
        if failed.lasting:
            self._give_up(failed.error)
        wait_s = failed.wait_s + self._pace.backoff_s(call.attempt)
        if failed.again and call.attempt < self._retries and wait_s < call.left_s:
            started = self._pace.clock()
            await self._pace.sleep(wait_s)
            call.pass_time(self._pace.clock() - started)
            call.attempt += 1
            return
        text = str(failed.error)
        if call.attempt:
            text += f" ({call.attempt + 1} attempts)"
        if failed.wait_s > 0 and failed.wait_s >= call.left_s:
            text += f"; the server asks to wait {failed.wait_s:g} s, but {call.left_s:.3g} s are left"
        error = ModelError(text, failed.error.code, cost_usd=call.cost_usd)
        if error.code == "connection":  # nobody is there: further calls need not find out each for itself
            self._give_up(error)
        raise error

    def _give_up(self, error: ModelError) -> None:
        if not self.answered and not self._pooled:
            self.broken = error
