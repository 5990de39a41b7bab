"""``tfgrpo patterns promote``, ``reject``, ``deprecate``, ``restore`` and ``comment``."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.patterns.open_shelf import open_shelf, review_of
from pytest_tfgrpo.patterns.shelf import moves
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision, ShelfMove
from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus
from pytest_tfgrpo.patterns.shelf.promotion import decide as decided


def promote(arguments: Arguments) -> Iterator[str]:
    """Give a candidate to agents; it says all that keeps it from that."""
    return _decide(arguments, "promoted")


def reject(arguments: Arguments) -> Iterator[str]:
    """Put a candidate away that no agent shall read."""
    return _decide(arguments, "rejected")


def deprecate(arguments: Arguments) -> Iterator[str]:
    """Take a pattern from agents that is obsolete or harmful."""
    return _decide(arguments, "deprecated")


def restore(arguments: Arguments) -> Iterator[str]:
    """Give a deprecated pattern back to agents, as promote does."""
    return _decide(arguments, "restored")


def _decide(arguments: Arguments, event: ShelfMove) -> Iterator[str]:
    shelf = open_shelf(arguments)
    review = review_of(arguments, shelf, shelf.pattern(arguments.name))
    decision = ShelfDecision(by=arguments.by, reason=arguments.reason)
    pattern = decided(shelf, arguments.name, event, decision, review)
    path = shelf.place(pattern.status, pattern.name).relative_to(shelf.root)
    yield f"{pattern.name} is {event}: {path}; commit it with {shelf.log.path.relative_to(shelf.root)}"
    if pattern.status is PatternStatus.ACTIVE:
        for other in shelf.patterns(PatternStatus.ACTIVE):
            if other.id in pattern.parents:
                yield f"it says much the same as {other.name}: deprecate that one if this takes its place"
    yield "'tfgrpo patterns sync' brings the skill files of agents up to date"


def comment(arguments: Arguments) -> Iterator[str]:
    """Say something about a pattern, as a person or an agent, for who decides."""
    shelf = open_shelf(arguments)
    moves.comment(shelf, arguments.name, ShelfDecision(by=arguments.by, reason=arguments.text))
    yield f"noted; 'tfgrpo patterns show {arguments.name}' has it"
