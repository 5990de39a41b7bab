"""The contestants that the arena knows by name; optimizers by hook compete under their own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pytest_tfgrpo.arena.contestants.few_shot import FewShot
from pytest_tfgrpo.arena.contestants.gepa import Gepa
from pytest_tfgrpo.arena.contestants.learned import Learned, Untrained
from pytest_tfgrpo.arena.protocol import Contestant

CONTESTANTS: Mapping[str, Callable[[], Contestant]] = {
    "none": Untrained,
    "heuristic": partial(Learned, "heuristic"),
    "llm": partial(Learned, "llm", needs_teacher=True),
    "gepa": Gepa,
    "few-shot": FewShot,
}
