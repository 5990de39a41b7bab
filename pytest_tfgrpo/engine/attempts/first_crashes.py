"""First crashes: ends a run whose first rollouts all fail in one way, as its agent is set up wrongly.

Rollouts that crash so are held back until another one ends differently. Then they are results like any other;
else they are none, and a resumed run makes them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.texts.text import line

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.attempts.attempt import AttemptResult

ALIKE = 8
"""So many first rollouts that fail in one way, and nothing else, end a run."""
SEVERAL = 3
"""Scenarios that they must be of at least: one or two tasks may be what an agent cannot do."""
WRONG = frozenset({"crash", "garbage"})
"""Reason codes of failures that a wrong agent or configuration has at every task."""
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![^\W_])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{6,}(?![^\W_])|[0-9]+")
"""Addresses, hexadecimal ids and other numbers, by which messages of one kind may differ."""


class FirstCrashes:
    """Counts how the first rollouts of a run fail, until one does not fail so."""

    def __init__(self, stop: Callable[[str], None], *, watching: bool) -> None:
        """`stop` ends the run for a reason; nothing is counted unless `watching`, as in a replay."""
        self._stop = stop
        self._over = not watching
        self._said = ""
        self._count = 0
        self._scenarios: set[str] = set()
        self.stopped = False
        """True once the run ends for this."""

    def end(self) -> None:
        """Take note that something else than this failure is known."""
        self._over = self._over or not self.stopped

    def holds(self, outcome: AttemptResult, scenario_id: str) -> bool:
        """Count an attempt at a scenario; return whether its result waits, as it failed like all before."""
        if self._over or outcome.status == "error":  # that is the provider's, and says nothing of the agent
            return False
        failure = outcome.failure
        said = "" if failure is None else _NUMBER.sub("0", f"{failure.code}: {failure.message}")
        if failure is None or failure.code not in WRONG or said != (self._said or said):
            self.end()
            return False
        self._said = said
        self._count += 1
        self._scenarios.add(scenario_id)
        if self._count >= ALIKE and len(self._scenarios) >= SEVERAL and not self.stopped:
            self.stopped = True
            self._stop(
                f"the first {self._count} rollouts all failed with one message: "
                f"{_shown(failure.code, failure.message)}; correct the agent or what it needs"
            )
        return True


def _shown(code: str, message: str) -> str:
    """Return a message in one line; of a traceback its end, which names the exception."""
    lines = message.strip().splitlines() or [""]
    return f"{code}: {line(lines[-1] if lines[0].startswith('Traceback') else message, 300)}"
