"""A scripted world for the whole command ``tfgrpo arena``: optimizers whose lessons name their gains."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from pytest_tfgrpo import cli
from pytest_tfgrpo.arena import opening
from pytest_tfgrpo.arena.contestants.learned import Learned
from pytest_tfgrpo.arena.contestants.registry import CONTESTANTS
from pytest_tfgrpo.arena.protocol import Ring, Trained
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.suite.packs import pack_for, rewritten
from support.arena.known_effects import GAINS, judged
from support.arena.scripted_agent import CLAUSE, RIGHT
from support.builders import make_experience

PLACES = ("north", "south")
FAMILY = 3
"""Scenarios of a family."""
TASK = """\
id: parcel-{n}
domain: {place}
split: {split}
family: {split}-{family}
prompt: What about parcel {n} of family {family} in the {place} depot of world {world}?
checks:
  - kind: exact
    value: {right}
"""


class Planted(Learned):
    """Asks each train task once, and comes to a gain that is known, by lessons or by system texts."""

    def __init__(self, name: str, gain: float, *, by_text: bool = False) -> None:
        super().__init__(name)
        self._percent, self._by_text = round(100 * gain), by_text

    async def train(self, ring: Ring) -> Trained:
        await ring.ask(ring.train[: ring.left])
        clauses = {
            place: CLAUSE.format(place=place, percent=self._percent, maker=self.name) for place in PLACES
        }
        if self._by_text:
            pack = pack_for(ring.packs, PLACES[0])
            text = "\n".join((pack.system, *clauses.values()))
            return Trained(packs={pack.domain: rewritten(pack, text)})
        lessons = [
            make_experience(
                n,
                domain=place,
                summary32=text,
                stamp_signature=pack_for(ring.packs, place).stamp,
                prompt_pack_id=pack_for(ring.packs, place).id,
            )
            for n, (place, text) in enumerate(clauses.items())
        ]
        return Trained(library=of(lessons, ring.library.lineage))


def write_world(
    folder: Path,
    world: int,
    *,
    train: int = 6,
    dev: int = 0,
    scenarios: int = 60,
    agent: str = "support.arena.scripted_agent:solve",
    **settings: Any,
) -> Path:
    """Write the project of a world with so many train, dev and eval scenarios, and return its folder."""
    (folder / "tasks").mkdir(parents=True)
    splits = ["train"] * train + ["dev"] * dev + ["eval"] * scenarios
    for n, split in enumerate(splits):
        family = n // FAMILY
        place = PLACES[family % len(PLACES)]
        text = TASK.format(n=n, split=split, family=family, place=place, world=world, right=RIGHT)
        (folder / "tasks" / f"{n}.scenario.yaml").write_text(text)
    known = {"actor": f"python:{agent}", "seed": world, "eval_rollouts": 5, **settings}
    lines = "".join(f"tfgrpo_{name} = {value}\n" for name, value in known.items())
    (folder / "pytest.ini").write_text(f"[pytest]\n{lines}")
    return folder


def run_arena(
    folder: Path,
    planted: Mapping[str, Planted],
    *words: str,
    code: int = 0,
    screen: io.StringIO | None = None,
) -> str:
    """Run ``tfgrpo arena`` in this process, the planted optimizers among those it knows; return its words.

    What it writes to stderr goes to `screen`, if there is one.
    """
    known: dict[str, Any] = dict(CONTESTANTS)
    known |= {name: lambda one=one: one for name, one in planted.items()}
    told = io.StringIO()
    with (
        patch.object(opening, "CONTESTANTS", known),
        patch.dict(os.environ),
        chdir(folder),
        redirect_stdout(told),
        redirect_stderr(screen or told),
    ):
        assert cli.main(["arena", *words]) == code, told.getvalue()
    return told.getvalue()


def table_of(folder: Path, arena: str = "*") -> dict[str, Any]:
    """Return ``comparison.json`` of the only arena in a folder, or that of an id, without ids and times."""
    (path,) = folder.glob(f"out/*/arenas/{arena}/comparison.json")
    value: dict[str, Any] = json.loads(path.read_text())
    for key in ("arena_id", "started_at", "task_id"):
        del value[key]
    for side in value["sides"]:
        del side["wall_s"]
    return value


def means(table: Mapping[str, Any]) -> dict[str, float]:
    """Return the score of each side."""
    return {side["name"]: side["mean"] for side in table["sides"]}


def claims(table: Mapping[str, Any]) -> dict[tuple[str, str], str | None]:
    """Return what is claimed of each pair, by (before, after)."""
    return {(pair["before"], pair["after"]): pair["claim"] for pair in table["pairs"]}


def whole_outcomes(seed: int, scenarios: int = 60, rollouts: int = 5) -> Counter[str]:
    """Return what a whole arena of the optimizers of `GAINS` said, as `outcomes` does of a comparison.

    `twin` gains by system texts what `good` gains by lessons; the placebo is a real one, of `weak`.
    """
    planted = {
        name: Planted(name, gain, by_text=name == "twin")
        for name, gain in GAINS.items()
        if name not in ("none", "placebo")
    }
    with TemporaryDirectory() as home:
        folder = write_world(Path(home) / "world", seed, scenarios=scenarios, eval_rollouts=rollouts)
        run_arena(folder, planted, "--optimizers", ",".join(GAINS), "--budget-rollouts", "12")
        return judged(table_of(folder))
