"""An arena from its plan to its result: sides on one sweep, and the same result after a kill at any place."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo import cli
from pytest_tfgrpo.arena.arena import NO_PLACEBO, Arena, holding
from pytest_tfgrpo.arena.bugs import OwnBugError
from pytest_tfgrpo.arena.contestants.learned import Learned
from pytest_tfgrpo.arena.dry_run import dry_run
from pytest_tfgrpo.arena.opening import begun_arena, open_contestants, open_plan
from pytest_tfgrpo.arena.plan import ArenaPlan, fitted
from pytest_tfgrpo.arena.protocol import Ring, RolloutsSpent, Trained
from pytest_tfgrpo.arena.result import ArenaResult, read_result, require_no_bug, write_result
from pytest_tfgrpo.core.errors import BudgetError, JournalError, ResumeError, SettingError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.settings import from_arguments
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.optimizer import heuristic
from pytest_tfgrpo.learning.placebo import PLACEBO
from pytest_tfgrpo.protocols import LearningContext, Proposal
from pytest_tfgrpo.runs.earlier_runs import earlier_evaluations, looks_on_disk
from pytest_tfgrpo.runs.journal.journal_contents import read_log
from pytest_tfgrpo.suite.packs import pack_for, rewritten

SETTINGS: dict[str, Any] = {
    "actor": "offline",
    "group_size": 2,
    "acceptance": "off",
    "eval_rollouts": 2,
}


class Asker:
    """Asks twice and learns nothing."""

    name = "asker"
    identity: Mapping[str, Json] = {}
    needs_teacher = False

    async def train(self, ring: Ring) -> Trained:
        first, *others = ring.train
        made = await ring.ask([first, others[0], first])
        assert [one.rollout.scenario_id for one in made] == [first.id, others[0].id, first.id]
        assert len({one.rollout.rollout_id for one in made}) == 3
        await ring.ask(others[:3])
        with pytest.raises(RolloutsSpent, match="120 rollouts were requested, and 18 are left"):
            await ring.ask([*ring.train] * 10)
        return Trained(note=f"{ring.left} left")


class Other(Asker):
    """Asks with other words."""

    async def train(self, ring: Ring) -> Trained:
        pack = pack_for(ring.packs, ring.train[0].domain)
        await ring.ask(ring.train[:1] * 2, packs={pack.domain: rewritten(pack, "Answer well.")})
        return Trained()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as ``tfgrpo init`` writes it."""
    folder = tmp_path_factory.mktemp("project")
    assert cli.main(["init", str(folder)]) == 0
    return folder


def planned(project: Path, names: str = "none,heuristic", budget: int = 24, **changes: Any) -> ArenaPlan:
    calls = changes.pop("budget_teacher_calls", None)
    given = {"optimizers": names, "budget_rollouts": budget, "budget_teacher_calls": calls, "suite": "."}
    settings = from_arguments(SETTINGS | changes, learning=False)
    folder = project / "out" / "task" / "arenas" / "one"
    return open_plan(project, settings, "task", folder, given, os.environ, lambda _: {})


def with_asker(project: Path, folder: Path, asker: Asker | None = None) -> ArenaPlan:
    plan = planned(project, "none,heuristic,placebo")
    known = {**plan.contestants, "asker": asker or Asker()}
    return replace(plan, contestants=known, folder=folder / "one")


def carried_out(plan: ArenaPlan) -> ArenaResult:
    with holding(plan.folder), asyncio.Runner() as runner:
        arena = Arena(plan)
        arena.begin()
        for name in arena.order:
            runner.run(arena.train(name))
        return runner.run(arena.finish())


def timeless(result: ArenaResult) -> ArenaResult:
    sides = tuple(replace(side, wall_s=0.0) for side in result.sides)
    return replace(result, sides=sides, started_at="")


@pytest.fixture(scope="module")
def whole(project: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ArenaResult]:
    """The folder of an arena of four sides, and its result."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, carried_out(with_asker(project, folder))


def test_sides_spend_their_budget_and_are_asked_on_one_sweep(
    whole: tuple[Path, ArenaResult], tmp_path: Path
) -> None:
    folder, result = whole
    spent = {side.name: side.rollouts for side in result.sides}
    assert spent == {"none": 0, "heuristic": 24, "placebo": 0, "asker": 6}
    means = {
        side.name: sum(score or 0.0 for scores in side.scores.values() for score in scores) / 20
        for side in result.sides
    }
    assert means["heuristic"] > means["none"] == means["asker"]
    assert {side.name: side.same_as for side in result.sides if side.same_as} == {"asker": "none"}
    assert result.side("placebo").note == "placebo of heuristic"
    files = {side.name: side.files for side in result.sides if side.files}
    assert files == {"heuristic": ("sides/heuristic/library.json",)}, "a placebo has no library to keep"
    assert result.side("asker").note == "18 left"
    assert result.side("none").tokens_added == 0.0
    assert 20 < (result.side("heuristic").tokens_added or 0) < 60
    log = read_log(folder / "one" / "sides" / "final" / "runs" / "one-final")
    assert len(log.rollouts) == result.sweep_rollouts
    distinct = Counter(
        len({rollout.epoch for rollout in log.rollouts.values() if rollout.scenario_id == id_})
        for id_ in result.families
    )
    assert max(distinct) == 3, "equal prompts run once"
    assert set(result.side("none").scores) == set(result.families)
    assert read_result(write_result(tmp_path, result)) == result


@pytest.mark.parametrize(
    ("side", "run", "lines"),
    [
        ("heuristic", "one-heuristic-1", 9),
        ("asker", "one-asker-questions", 3),
        ("asker", "one-asker-questions", 7),
        ("final", "one-final", 14),
    ],
)
def test_a_killed_arena_goes_on_to_the_same_result(
    project: Path, whole: tuple[Path, ArenaResult], tmp_path: Path, side: str, run: str, lines: int
) -> None:
    before, result = whole
    folder = tmp_path / "one"
    shutil.copytree(before / "one", folder)
    order = ["none", "heuristic", "asker", "placebo", "final"]
    for later in order[order.index(side) :]:
        (folder / "sides" / later / "trained.json").unlink(missing_ok=True)
        if later != side:
            shutil.rmtree(folder / "sides" / later, ignore_errors=True)
    journal = folder / "sides" / side / "runs" / run / JOURNAL
    kept = journal.read_bytes().splitlines(keepends=True)
    assert len(kept) > lines
    journal.write_bytes(b"".join(kept[:lines]) + kept[lines][:20])
    assert timeless(carried_out(with_asker(project, tmp_path))) == timeless(result)


def test_a_contestant_that_asks_something_else_after_a_kill_is_refused(
    project: Path, whole: tuple[Path, ArenaResult], tmp_path: Path
) -> None:
    before, _ = whole
    shutil.copytree(before / "one", tmp_path / "one")
    (tmp_path / "one" / "sides" / "asker" / "trained.json").unlink()
    arena = Arena(with_asker(project, tmp_path, Other()))
    arena.begin()
    with pytest.raises(JournalError, match="question 1 of one-asker-questions is another one than on file"):
        asyncio.run(arena.train("asker"))


def test_an_arena_goes_on_only_as_it_began_and_alone(project: Path, tmp_path: Path) -> None:
    plan = replace(planned(project), folder=tmp_path / "one")
    with holding(plan.folder):
        with pytest.raises(ResumeError, match="another process is running it"), holding(plan.folder):
            pass
        Arena(plan).begin()
    with pytest.raises(ResumeError, match="cannot be resumed: budget_rollouts changed since"):
        Arena(replace(plan, budget_rollouts=30)).begin()
    other = planned(project, seed=1)
    with pytest.raises(ResumeError, match="settings changed since"):
        Arena(replace(other, folder=plan.folder)).begin()


class Broken(Asker):
    async def train(self, ring: Ring) -> Trained:
        raise ZeroDivisionError("no luck")


class Poor(Asker):
    async def train(self, ring: Ring) -> Trained:
        raise BudgetError("no money is left")


def test_an_optimizer_that_breaks_does_not_compete_and_a_spent_budget_ends_all(
    project: Path, tmp_path: Path
) -> None:
    plan = replace(planned(project, "none,few-shot"), folder=tmp_path / "one")
    known: dict[str, Any] = {"none": plan.contestants["none"], "asker": Broken(), PLACEBO: None}
    result = carried_out(replace(plan, contestants=known))
    assert result.side("asker").note == "ZeroDivisionError: no luck"
    assert result.side("asker").scores == result.side(PLACEBO).scores == {}
    assert result.side(PLACEBO).note == NO_PLACEBO
    poor = replace(plan, contestants={**known, "asker": Poor()}, folder=tmp_path / "two")
    with pytest.raises(BudgetError, match="no money is left"):
        carried_out(poor)


def test_a_learning_run_is_as_large_as_the_rollouts_allow(project: Path) -> None:
    plan = planned(project, budget=100, group_size=3)
    sizes = {}
    for left in (23, 24, 36, 50, 100, 1000):
        found = fitted(plan, left)
        sizes[left] = found and (found["epochs"], found["group_size"])
    assert sizes == {23: None, 24: (1, 2), 36: (1, 3), 50: (1, 4), 100: (2, 4), 1000: (27, 3)}


def test_the_dev_split_of_a_small_learning_run_gets_what_is_left_up_to_the_setting(project: Path) -> None:
    plan = planned(project, acceptance_rollouts=4, group_size=3)
    rest = {left: found["acceptance_rollouts"] for left in (24, 26, 35) if (found := fitted(plan, left))}
    assert rest == {24: 1, 26: 2, 35: 4}


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("none,llmm", "unknown optimizer 'llmm'; did you mean 'llm'?"),
        ("none,", "unknown optimizer ''; there are none, heuristic, "),
    ],
)
def test_an_unknown_optimizer_is_refused(project: Path, names: str, told: str) -> None:
    with pytest.raises(SettingError, match=re.escape(told)):
        planned(project, names)


def test_a_dry_run_says_rollouts_and_cost_and_writes_nothing(project: Path, tmp_path: Path) -> None:
    plan = replace(planned(project, "none,heuristic,few-shot", budget=30), folder=tmp_path / "one")
    lines = list(dry_run(plan))
    rows = {words[0]: words[-3:] for row in lines if (words := row.split())}
    assert rows["heuristic"] == ["24", "0", "$0.00"]
    assert rows["few-shot"] == ["30", "0", "$0.00"]
    assert rows["final"] == ["60", "0", "$0.00"]
    assert rows["total"] == ["114", "0", "$0.00"]
    assert not plan.folder.exists()


@pytest.mark.parametrize(
    ("limit", "llm", "gepa", "cost"),
    [(None, 48, 12, "$0."), (7, 7, 7, "$0."), (0, 0, 0, "$0.00")],
)
def test_a_dry_run_counts_teacher_calls(
    project: Path, limit: int | None, llm: int, gepa: int, cost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gepa")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    plan = planned(
        project, "none,llm,gepa", budget=48, teacher="openai:gpt-4o-mini", budget_teacher_calls=limit
    )
    lines = list(dry_run(plan))
    rows = {words[0]: words[-2:] for row in lines if (words := row.split())}
    assert int(rows["llm"][0]) <= llm
    assert rows["gepa"][0] == str(gepa)
    assert rows["gepa"][1].startswith(cost)
    assert rows["total"][0] == str(int(rows["llm"][0]) + gepa)
    assert any("after each minibatch of up to 3 rollouts" in text for text in lines) == (limit is None)


def test_without_teacher_calls_the_cost_of_a_dry_run_needs_no_price_of_the_teacher(project: Path) -> None:
    plan = replace(
        planned(project, "none,llm", budget=48, teacher="openai:toy", budget_teacher_calls=0), dry=True
    )
    rows = {words[0]: words[-2:] for row in dry_run(plan) if (words := row.split())}
    assert rows["llm"] == rows["total"] == ["0", "$0.00"]


@pytest.mark.parametrize(
    ("changes", "few_shot", "llm"),
    [
        ({"teacher": "openai:toy"}, "$0.00", "unknown"),
        ({"teacher": "openai:gpt-4o-mini", "actor": "command:cat"}, "unknown", "unknown"),
        ({"actor": "openai:gpt-4o-mini"}, "$0.", "$0."),
    ],
)
def test_a_dry_run_says_which_cost_is_unknown(
    project: Path, changes: dict[str, Any], few_shot: str, llm: str
) -> None:
    plan = replace(planned(project, "none,llm,few-shot", budget=48, **changes), dry=True)
    plan = replace(plan, scenarios=tuple(replace(s, tools=()) for s in plan.scenarios))
    rows = {words[0]: words[-1] for row in dry_run(plan) if (words := row.split())}
    assert rows["few-shot"].startswith(few_shot)
    assert rows["llm"].startswith(llm)
    assert (rows["total"] == "unknown") == ("unknown" in (rows["few-shot"], rows["llm"]))


class OwnBug(Asker):
    async def train(self, ring: Ring) -> Trained:
        await ring.ask(list("x"))  # type: ignore[arg-type]  # our code breaks on it
        return Trained()


def test_an_error_of_our_own_is_kept_as_a_bug_and_not_that_of_an_optimizer(
    project: Path, tmp_path: Path
) -> None:
    plan = replace(planned(project, "none,few-shot"), folder=tmp_path / "one")
    known: dict[str, Any] = {**plan.contestants, "own": OwnBug(), "foreign": Broken()}
    result = carried_out(replace(plan, contestants=known))
    assert result.side("own").note.startswith("a bug in pytest-tfgrpo, please report it: AttributeError: ")
    assert "ring.py" in result.side("own").bug
    assert result.side("foreign").bug == result.side("few-shot").bug == ""
    with pytest.raises(OwnBugError, match="own failed\nTraceback"):
        require_no_bug(result)


class Mended(Asker):
    """Asks, and breaks until it is mended."""

    broken = True

    async def train(self, ring: Ring) -> Trained:
        await ring.ask(ring.train[:3])
        if Mended.broken:
            await ring.ask(list("x"))  # type: ignore[arg-type]  # our code breaks on it
        await ring.ask(ring.train[:5])
        return Trained()


def test_what_failed_is_tried_again_from_what_is_on_file_and_asked_beside_all_others(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(planned(project, "none,few-shot"), folder=tmp_path / "arenas" / "one")
    known: dict[str, Any] = {"none": plan.contestants["none"], PLACEBO: None}
    known |= {"heuristic": Learned("heuristic"), "mended": Mended()}
    plan = replace(plan, contestants=known)
    proposal = heuristic.Proposal
    monkeypatch.setattr(heuristic, "Proposal", None)
    monkeypatch.setattr(Mended, "broken", True)
    failed = carried_out(plan)
    assert [bool(side.bug) for side in failed.sides] == [False, False, True, True]
    assert failed.side(PLACEBO).note == NO_PLACEBO
    write_result(plan.folder, failed)
    given = {"budget_usd": 2.0}
    assert begun_arena(tmp_path / "arenas", "latest", given)[0] == plan.folder, "one with a bug is open"
    made = {path: path.stat().st_size for path in plan.folder.glob("sides/*/runs/*/journal.jsonl")}
    assert carried_out(plan).side("mended").bug, "it fails again, and nothing runs again"
    lines = [path.read_bytes()[size:] for path, size in made.items()]
    assert not any(b'"event":"rollout"' in more for more in lines)

    monkeypatch.setattr(heuristic, "Proposal", proposal)
    monkeypatch.setattr(Mended, "broken", False)
    mended = carried_out(plan)
    assert {side.name: side.rollouts for side in mended.sides} == {
        "none": 0,
        PLACEBO: 0,
        "heuristic": 24,
        "mended": 8,
    }
    assert not any(side.bug for side in mended.sides)
    assert mended.side(PLACEBO).note == "placebo of heuristic"
    assert set(mended.side("heuristic").scores) == set(mended.families)
    runs = {path.name for path in (plan.folder / "sides" / "final" / "runs").iterdir()}
    assert runs == {"one-final-1", "one-final"}
    whole = carried_out(replace(plan, folder=tmp_path / "others" / "two"))
    assert timeless(mended) == timeless(whole)
    write_result(plan.folder, mended)
    with pytest.raises(ResumeError, match="no interrupted arena"):
        begun_arena(tmp_path / "arenas", "latest", given)


class Spoiled:
    """An optimizer by hook that breaks."""

    name = "spoiled"
    identity: Mapping[str, Json] = {}

    async def propose(self, context: LearningContext) -> Proposal:
        return Proposal(operations=tuple(context.no_such_thing))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["heuristic", "spoiled"])
def test_an_optimizer_that_breaks_in_a_learning_run_is_a_bug_where_it_is_ours(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(heuristic, "Proposal", None)
    plan = replace(planned(project), folder=tmp_path / "one", optimizers={"spoiled": Spoiled()})
    known: dict[str, Any] = {"none": plan.contestants["none"], name: Learned(name)}
    result = carried_out(replace(plan, contestants=known))
    assert f"optimizer '{name}' failed in epoch 1: " in result.side(name).note
    assert bool(result.side(name).bug) == (name == "heuristic")


def test_runs_and_arenas_that_swept_the_same_eval_split_are_counted(project: Path, tmp_path: Path) -> None:
    task = tmp_path / "task"

    def arena(name: str, **changes: Any) -> ArenaResult:
        settings = planned(project, "none,heuristic", **changes)
        return carried_out(replace(settings, arena_id=name, folder=task / "arenas" / name))

    first = arena("2026a")
    assert first.earlier == 0
    write_result(task / "arenas" / "2026a", first)
    none, heuristic = (first.side(name).variant for name in ("none", "heuristic"))
    assert none != heuristic
    home = task / "arenas" / "2026a" / "sides" / "heuristic" / "runs" / "2026a-heuristic-1"
    assert looks_on_disk(tmp_path, "task") == {first.suite_hash: tuple(sorted((none, heuristic)))}
    found = earlier_evaluations(tmp_path, "task", "2026b", first.suite_hash)
    assert (found["earlier"], found["runs"]) == (1, ["2026a"]), "a plain run counts it"
    assert found["variants"] == sorted((none, heuristic))
    assert earlier_evaluations(tmp_path, "task", "2026", first.suite_hash)["earlier"] == 0, "it came later"
    swept = {"variant": none, "epochs": [{"mode": "eval", "rollouts": 20}]}
    for name in ("2026b", "2026d"):
        shutil.copytree(home, task / "runs" / name)
        (task / "runs" / name / "per-epoch.json").write_text(json.dumps(swept))
    assert arena("2026c").earlier == 2, "an arena counts plain runs and arenas before it"
    plan = task / "arenas" / "2026a" / "plan.json"
    begun = json.loads(plan.read_text())
    plan.write_text(json.dumps({**begun, "arguments": {**begun["arguments"], "replay": "all.jsonl"}}))
    assert looks_on_disk(tmp_path, "task") == {first.suite_hash: (none,)}, "a replay is none"
    (task / "arenas" / "2026a" / "arena.json").write_text("{")
    assert earlier_evaluations(tmp_path, "task", "2026c", first.suite_hash)["runs"] == ["2026b"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("final", "'final' is the folder of the final sweep"),
        ("Final", "'Final' is the folder of the final sweep"),
        ("..", "'..' cannot name a folder; use at most 40 letters"),
        ("a/b", "'a/b' cannot name a folder"),
        ("long" * 80, "cannot name a folder"),
    ],
)
def test_an_optimizer_by_hook_has_a_folder_of_its_own(name: str, told: str) -> None:
    with pytest.raises(SettingError, match=re.escape(told)) as refused:
        open_contestants(["none", name], {name: Spoiled()})
    assert len(str(refused.value)) < 300
    with pytest.raises(SettingError, match="names 'mine' twice"):
        open_contestants(["none", "mine", "Mine"], {"mine": Spoiled(), "Mine": Spoiled()})
