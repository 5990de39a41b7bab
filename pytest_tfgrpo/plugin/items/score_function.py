"""``tfgrpo.score``: partial credit, and named scores beside it, from inside a marked test function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from pytest_tfgrpo.core.named_figures import NAME, as_figure, as_scale
from pytest_tfgrpo.core.named_scores import NamedScore
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import cut

if TYPE_CHECKING:
    from pytest_tfgrpo.core.named_scores import Better, NamedScore

MOST_NAMES = 50
"""Names that one rollout may have scores of."""
MAX_WHY = 500
"""Characters kept of why a named score is what it is."""


@dataclass(slots=True)
class Declared:
    """The scores that the running test function has set, if any."""

    score: float | None = None
    reason: str = ""
    named: dict[str, NamedScore] = field(default_factory=dict)


# pytest runs one test at a time in a process, but a test may call `score` from a thread or from an event loop
# that was started before the test: a context variable would not reach there.
_running: list[Declared] = []


@overload
def score(value: float, reason: str = "") -> None: ...
@overload
def score(
    name: str,
    value: float,
    why: str = "",
    /,
    *,
    unit: str = "",
    better: Better = "higher",
    most: float = 1.0,
) -> None: ...
def score(
    value: Any, reason: Any = "", why: str = "", *, unit: str = "", better: Any = "higher", most: float = 1.0
) -> None:
    """Set the score of the current rollout, in [0, 1]; or, with a name before it, one of its metrics.

    ``score(0.5, "half of the items")`` decides the rollout; the last call counts, pass or fail.
    ``score("tone", 0.7, "a bit curt")`` makes the metric ``test.tone`` and decides nothing; the last call for
    a name counts. A figure that is no share says what it is: ``score("length", 240, unit="words", most=500,
    better="lower")``.

    Raises ValueError for a value outside [0, 1], or [0, `most`], and for an unfit name, unit or direction;
    RuntimeError outside a test marked with ``tfgrpo``.
    """
    if not _running:
        raise RuntimeError("score() was called outside a test function marked with `tfgrpo`")
    if isinstance(value, str):
        _note(value, reason, str(why), (unit, better, most))
        return
    if why or (unit, better, most) != ("", "higher", 1.0):
        raise ValueError(f"only a named score has a scale: score('name', {value!r}, ...)")
    if not (isinstance(value, int | float) and 0 <= value <= 1):
        raise ValueError(f"a score must be a number between 0 and 1, not {value!r}")
    _running[-1].score = float(value)
    _running[-1].reason = str(reason)


def _note(name: str, value: object, why: str, scale: tuple[str, object, object]) -> None:
    """Keep a named score of the running test function; raises ValueError."""
    known = _running[-1].named
    if not NAME.fullmatch(name):
        raise ValueError(
            f"the name of a score must be 1 to 64 letters, digits, '_' and '-', not {short(name)}"
        )
    if name not in known and len(known) >= MOST_NAMES:
        raise ValueError(f"a rollout has at most {MOST_NAMES} named scores; {short(name)} is one too many")
    try:
        on = as_scale(*scale)
        figure = as_figure(value, on)
    except ValueError as error:
        raise ValueError(f"score {name!r}: {error}") from None
    known[name] = NamedScore(name=name, value=figure, why=cut(why, MAX_WHY), scale=on)


def begin() -> Declared:
    """Start listening for a score."""
    declared = Declared()
    _running.append(declared)
    return declared


def end() -> None:
    """Stop listening."""
    _running.pop()
