"""What the terminal shows of an arena while it runs, and the line of each side."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.arena.scripted_world import Planted, run_arena, write_world
from support.builders import make_experience, make_pack

from pytest_tfgrpo.arena.progress import live_line, trained_line, watch
from pytest_tfgrpo.arena.protocol import Trained
from pytest_tfgrpo.arena.trained_side import SideCost, TrainedSide
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.gauge import Gauge, Reading
from pytest_tfgrpo.learning.library.library import of

ERASED = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def reading(**changes: Any) -> Reading:
    known = Gauge().read()
    phase = Phase(epoch=1, mode="train", temperature=0.7, rollouts=4, scenarios=("a",))
    sweep = replace(known.sweep, planned=60, done=24)
    return replace(known, stage="sweep", phase=phase, sweep=sweep, **changes)


def test_a_line_says_how_far_a_part_is() -> None:
    assert live_line("much", Gauge().read()) == "much"
    attempts = replace(Gauge().read().attempts, ages_s=(1.0, 2.0))
    found = live_line("mu\x1b[2Jch", reading(attempts=attempts, asked={"learn": 1}, spent_usd=0.02))
    assert "\x1b" not in found
    assert live_line("much", reading()) == "much  epoch1  24/60 rollouts"
    assert found.endswith("  epoch1  24/60 rollouts  3 in flight  $0.02")
    assert live_line("much", replace(reading(), stage="learning", groups=1)) == "much  learns from 1 group"


def test_the_line_is_as_wide_as_the_terminal_and_goes_when_the_part_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    arena: Any = SimpleNamespace(gauge=SimpleNamespace(read=reading))

    async def work(failure: Exception | None) -> str:
        await asyncio.sleep(0)
        if failure is not None:
            raise failure
        return "done"

    stream = io.StringIO()
    assert asyncio.run(watch(stream, arena, "much", work(None))) == "done"
    assert stream.getvalue() == f"\rmuch  epoch1  24/60\x1b[K{ERASED}"
    with pytest.raises(ValueError, match="no"):
        asyncio.run(watch(stream, arena, "much", work(ValueError("no"))))
    assert stream.getvalue().endswith(f"24/60\x1b[K{ERASED}")
    assert asyncio.run(watch(None, arena, "much", work(None))) == "done"


@pytest.mark.parametrize(("term", "live"), [("xterm", True), ("dumb", False)])
def test_the_command_shows_it_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str, live: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    folder = write_world(tmp_path / "world", 0, scenarios=3, eval_rollouts=1)
    screen = Terminal()
    planted = {"some": Planted("some", 0.25)}
    told = run_arena(folder, planted, "--optimizers", "none,some", "--budget-rollouts", "12", screen=screen)
    assert "some: 6 rollouts" in told
    assert "\r" not in told
    shown = screen.getvalue()
    assert all((f"\r{part}" in shown) is live for part in ("some", "final sweep"))
    assert shown.endswith(ERASED) is live


def test_a_side_is_a_line_of_what_it_came_to() -> None:
    library = of([make_experience()])
    trained = Trained(library=library, packs={"text": make_pack()})
    side = TrainedSide(trained=trained, spent=SideCost(rollouts=60, teacher_calls=1), wall_s=1.0)
    said = "llm: 60 rollouts, 1 teacher call, 1 lesson, 1 changed prompt pack"
    assert trained_line("llm", side, on_file=False) == said
    assert trained_line("llm", side, on_file=True) == f"{said} (on file)"
    assert trained_line("llm", replace(side, failed="no luck"), on_file=True) == "llm: no luck"


def test_what_an_optimizer_says_as_it_fails_cannot_move_the_cursor() -> None:
    failed = "ValueError: \x1b[2J\nno" + " luck" * 1000
    side = TrainedSide(trained=Trained(), spent=SideCost(), wall_s=0.0, failed=failed)
    said = trained_line("mine", side, on_file=False)
    assert said.startswith("mine: ValueError: ")
    assert not {"\x1b", "\n"} & set(said)
    assert len(said) < 320
