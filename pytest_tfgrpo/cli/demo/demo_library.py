"""What the application of a demonstration chooses among: no library, a learned one, a misleading one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.api import run
from pytest_tfgrpo.cli.demo.demo_service import fixtures
from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.stamp import identify, seed_of
from pytest_tfgrpo.learning.library.library import empty, of, save_library
from pytest_tfgrpo.learning.optimizer.wording import parse, phrase

CONFIG = """[settings]
enabled = true
inference = "outcome_v1"
namespace = "demo-{seed}"

[points.config]
default = "bare"

[points.config.arms.bare]
prompt_pack = "{packs}"

[points.config.arms.learned]
prompt_pack = "{packs}"
library = "learned.json"

[points.config.arms.misled]
prompt_pack = "{packs}"
library = "misled.json"
"""


def prepare(folder: Path, seed: int) -> int:
    """Learn a library by a run, mislead a copy of it, write ``live.toml``; return how many lessons it has."""
    found = run(
        fixtures(),
        ["fixtures"],
        actor="offline",
        group_size=5,
        epochs=2,
        eval_rollouts=1,
        baseline_sweep="off",
        acceptance="off",
        seed=seed,
        out=str(folder / "out"),
    )
    save_library(folder / "learned.json", found.run.library)
    save_library(folder / "misled.json", misled(found.run))
    packs = (fixtures() / "prompt-packs").as_posix()
    (folder / "live.toml").write_text(CONFIG.format(seed=seed, packs=packs), encoding="utf-8")
    return len(found.run.library.experiences)


def misled(learned: Run) -> Library:
    """Return the library of a run with another tool of the domain in the place of each true one."""
    tools: dict[str, set[str]] = {}
    for group in (group for phase in learned.phases for group in phase.groups):
        names = {frame.name for r in group.rollouts for frame in r.frames if frame.kind == "tool"}
        tools.setdefault(group.domain, set()).update(names)
    found = (_wrong(lesson, sorted(tools[lesson.domain])) for lesson in learned.library.experiences)
    return of(lesson for lesson in found if lesson is not None) if tools else empty()


def _wrong(lesson: Experience, tools: Sequence[str]) -> Experience | None:
    """Return the lesson with advice to use another tool; None without one."""
    said = parse(lesson.summary32)
    others = [tool for tool in tools if tool not in lesson.summary32]
    if said is None or not others:
        return None
    tool = others[seed_of("misled", lesson.summary32) % len(others)]
    text = phrase(said.terms, f"use {tool}")
    return replace(lesson, id=identify("misled", lesson.id), summary32=text, polarity="do")
