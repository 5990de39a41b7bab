"""Optimizers by name: the table and the one factory over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.learning.optimizer.heuristic import HeuristicOptimizer
from pytest_tfgrpo.learning.optimizer.none import NoOptimizer
from pytest_tfgrpo.llm.protocol import Completer
from pytest_tfgrpo.protocols import LearningContext, Optimizer

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.optimizer.heuristic_lessons import HeuristicLessons

OpenTeacher: TypeAlias = Callable[[], Completer]
"""Opens the language model that an optimizer calls."""


def _heuristic(_teacher: OpenTeacher, _packs: Path | None) -> Optimizer:
    return HeuristicOptimizer(_lessons)


def _lessons(context: LearningContext, groups: Iterable[Group]) -> HeuristicLessons:
    from pytest_tfgrpo.learning.optimizer.heuristic_lessons import HeuristicLessons

    return HeuristicLessons(context, groups)


def _llm(teacher: OpenTeacher, packs: Path | None) -> Optimizer:
    from pytest_tfgrpo.learning.optimizer.llm.optimizer import open_llm

    return open_llm(teacher(), packs)


OPTIMIZERS: Mapping[str, Callable[[OpenTeacher, Path | None], Optimizer]] = {
    "heuristic": _heuristic,
    "llm": _llm,
    "none": lambda _teacher, _packs: NoOptimizer(),
}


def _no_teacher() -> Completer:
    raise SettingError("optimizer llm needs a language model; set tfgrpo_teacher, for example openai:<model>")


def open_optimizer(spec: str, *, teacher: OpenTeacher = _no_teacher, packs: Path | None = None) -> Optimizer:
    """Return the optimizer called `spec`; raises SettingError.

    `packs` is the folder of prompt packs, where one called ``optimizer`` replaces the prompts of `llm`.
    """
    if spec not in OPTIMIZERS:
        hint = nearest(spec, OPTIMIZERS)
        raise SettingError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, not {spec!r}{hint}")
    return OPTIMIZERS[spec](teacher, packs)
