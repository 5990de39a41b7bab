"""A process that decides about the patterns of a repository, one after another, until it is killed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.patterns.shelf.moves import MOVES, ShelfDecision, move
from pytest_tfgrpo.patterns.shelf.shelf import Shelf


def main(root: str, seed: str) -> None:
    """Make every move that there is, at random."""
    shelf, draw = Shelf(Path(root)), random.Random(seed)
    decision = ShelfDecision(by=f"mover-{seed}", reason="at random")
    print("ready", flush=True)
    while True:
        try:
            move(shelf, f"n{draw.randrange(3)}", draw.choice(list(MOVES)), decision)
        except PatternError:  # it lies elsewhere, or the other process has it in its hands
            continue


if __name__ == "__main__":
    main(*sys.argv[1:])
