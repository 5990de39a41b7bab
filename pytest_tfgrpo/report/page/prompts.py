"""The prompts of a run, rendered again from its packs, lessons and scenarios, and checked by their stamps."""

from __future__ import annotations

from typing import NamedTuple

from pytest_tfgrpo.core.records import Group, Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.report.acceptance import lessons_of
from pytest_tfgrpo.suite.packs import pack_for
from pytest_tfgrpo.suite.prompt import merge_experiences, prompt_again


class Asked(NamedTuple):
    """The prompt of the rollouts of one group."""

    system: tuple[str, ...]
    """The text of the pack, then the block of lessons line by line: groups share most of these."""
    user: str


class AskedPrompts:
    """Renders the prompts of one run."""

    def __init__(self, run: Run) -> None:
        self._packs = {pack.domain: pack for pack in run.packs}
        old = run.reference.packs if run.reference is not None else run.packs
        self._of_control = {pack.domain: pack for pack in old}
        self._lessons = {lesson.id: lesson for lesson in lessons_of(run)} if run.packs else {}

    def of(self, group: Group, scenario: Scenario) -> Asked | None:
        """Return the prompt of a group; None if the rendered prompt differs from the one that was sent.

        Of a dev group, whose rollouts carry different lessons, that of its first rollout.
        """
        first = next((rollout for rollout in group.rollouts if rollout.prompt_stamp), None)
        if first is None or not self._packs:
            return None
        packs = self._of_control if group.mode in ("early", "baseline") else self._packs
        prompt = prompt_again(packs, self._lessons, scenario, first)
        if prompt is None:
            return None
        if not prompt.system:
            return Asked((), prompt.user)
        text = merge_experiences(pack_for(packs, scenario.domain), ())
        block = prompt.system.removeprefix(text)
        lines = block.removeprefix("\n").split("\n") if block else []
        return Asked((text, *lines) if text else tuple(lines), prompt.user)
