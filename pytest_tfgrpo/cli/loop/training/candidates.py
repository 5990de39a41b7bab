"""The commands ``tfgrpo loop candidates ...``: right answers of production, for a person to accept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus, operator_name
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.texts.text import line, table
from pytest_tfgrpo.production.training.candidates.candidates import candidates_of, find_candidate
from pytest_tfgrpo.production.training.candidates.right_answers import right_answers
from pytest_tfgrpo.production.training.candidates.scenario_text import (
    candidate_text,
    prompt_at,
    write_candidates,
)
from pytest_tfgrpo.production.trust.audit_records import PersonAction, note

if TYPE_CHECKING:
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.training.candidates.candidates import ScenarioCandidate


def list_(arguments: Arguments) -> Iterator[str]:
    """List tasks of which production knows a right answer, the worst first."""
    with _candidates(arguments, "read") as (bus, found):
        shown = found[: arguments.most]
        rows = [_row(one, prompt_at(bus, one)[0]) for one in shown]
    if not rows:
        yield "no candidates: no feedback of type label or correction says what is right"
        return
    yield from table(["id", "users", "reward", "check", "domain", "task"], rows, left=1)
    if len(found) > len(shown):
        yield f"{len(found) - len(shown):,} more; list them with --most {len(found)}"
    yield f"next: tfgrpo loop candidates show {shown[0].id}"


def show(arguments: Arguments) -> Iterator[str]:
    """Print a candidate as the scenario file that it would be."""
    with _candidates(arguments, "read") as (bus, found):
        text = candidate_text(bus, find_candidate(found, arguments.id))
    yield from text.splitlines()


def accept(arguments: Arguments) -> Iterator[str]:
    """Write candidates into your suite, one file each."""
    with _candidates(arguments, "export") as (bus, found):
        chosen = [find_candidate(found, id_) for id_ in dict.fromkeys(arguments.ids)]
        written = write_candidates(bus, chosen, arguments.to)
    for path in written:
        yield f"wrote  {path}"


@contextmanager
def _candidates(arguments: Arguments, action: PersonAction) -> Iterator[tuple[Bus, list[ScenarioCandidate]]]:
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        note(bus, action, "candidates", actor=operator_name())
        yield bus, candidates_of(right_answers(bus, view), config.settings.training.domains)


def _row(one: ScenarioCandidate, prompt: str) -> list[str]:
    known = "check" if one.expected else "rubric"
    reward = "-" if one.reward is None else f"{one.reward:.2f}"
    return [one.id, str(one.owners), reward, known, line(one.domain, 12), line(prompt, 18)]
