"""The optimizer `llm`: learning by a language model, the published method in prompts of our own.

Group by group, a teacher compares the better with the worse attempts and proposes changes to the lessons;
then, domain by domain, it makes one list of changes out of the proposals.
"""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.harness.optimizer.llm.optimizer import ModelOptimizer
from pytest_tfgrpo.harness.optimizer.llm.pack import load_prompts
from pytest_tfgrpo.harness.optimizer.protocol import Optimizer
from pytest_tfgrpo.llm.protocol import Completer

__all__ = ["open_llm"]


def open_llm(teacher: Completer, packs: Path | None) -> Optimizer:
    """Return the optimizer that asks `teacher`, with the prompts in `packs` where there are any.

    Raises PackError.
    """
    return ModelOptimizer(teacher, load_prompts(packs))
