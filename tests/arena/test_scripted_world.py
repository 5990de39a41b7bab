"""The whole command in a scripted world: planted optimizers, a teacher, a budget in money that ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.arena.scripted_agent import CLAUSE
from support.arena.scripted_world import PLACES, Planted, claims, means, run_arena, table_of, write_world
from support.fake_model import Body, Serve
from support.teachers import asked, operation, says

from pytest_tfgrpo.arena.protocol import Ring, Trained
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.runs.journal.journal_contents import read_log

PLANTED = {
    "some": Planted("some", 0.25, by_text=True),
    "twin": Planted("twin", 0.5, by_text=True),
    "much": Planted("much", 0.5),
}


def test_planted_optimizers_are_ordered_and_equal_ones_are_not_called_different(tmp_path: Path) -> None:
    folder = write_world(tmp_path / "world", 0, scenarios=30, eval_rollouts=4)
    names = "none,placebo,some,much,twin"
    told = run_arena(folder, PLANTED, "--optimizers", names, "--budget-rollouts", "12")
    table = table_of(folder)
    score, claim = means(table), claims(table)
    assert max(score["none"], score["placebo"]) < score["some"] < min(score["twin"], score["much"])
    assert {other: claim["none", other] for other in names.split(",")[1:]} == {
        "placebo": None,
        "some": "better",
        "much": "better",
        "twin": "better",
    }
    assert claim["much", "twin"] is None
    assert [side["rollouts"] for side in table["sides"]] == [0, 0, 6, 6, 6]
    assert table["sides"][1]["note"] == "placebo of much", "some learned no lessons"
    assert "much: 6 rollouts, 2 lessons" in told


def test_lessons_of_a_teacher_compete(tmp_path: Path, serve: Serve) -> None:
    def teach(request: Body, attempt: int) -> str:
        text = asked(request)
        (place,) = [place for place in PLACES if f"the {place} depot" in text]
        lesson = CLAUSE.format(place=place, percent=60, maker="teacher")
        several = {"sources": ["P1", "P2"]} if "Several tasks of one domain" in text else {}
        return says(operation(lesson=lesson, **several))

    model = serve(teach)
    folder = write_world(
        tmp_path / "world", 1, train=12, scenarios=12, eval_rollouts=2, teacher="openai:toy", acceptance="off"
    )
    run_arena(folder, {}, "--optimizers", "none,llm", "--budget-rollouts", "48")
    none, llm = table_of(folder)["sides"]
    assert llm["gain"]["difference"] > 0.2
    assert (none["teacher_calls"], none["rollouts"], llm["rollouts"]) == (0, 0, 48)
    assert 2 <= llm["teacher_calls"] <= len(model.requests)
    assert llm["tokens_added"] > 10


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_limit_of_teacher_calls_is_kept_and_said(tmp_path: Path, serve: Serve, limit: int) -> None:
    def teach(request: Body, attempt: int) -> str:
        text = asked(request)
        (place,) = [place for place in PLACES if f"the {place} depot" in text]
        several = {"sources": ["P1", "P2"]} if "Several tasks of one domain" in text else {}
        return says(operation(lesson=CLAUSE.format(place=place, percent=60, maker="teacher"), **several))

    model = serve(teach)
    folder = write_world(
        tmp_path / "world", 1, train=12, scenarios=12, eval_rollouts=1, teacher="openai:toy", acceptance="off"
    )
    words = ("--optimizers", "none,llm", "--budget-rollouts", "48", "--budget-teacher-calls", str(limit))
    told = run_arena(folder, {}, *words)
    table = table_of(folder)
    llm = table["sides"][1]
    assert (llm["rollouts"], llm["teacher_limited"]) == (48, True)
    assert max(0, limit - 1) <= llm["teacher_calls"] <= limit == table["budget_teacher_calls"]
    assert len(model.requests) == llm["teacher_calls"]
    assert f"the limit of {limit} teacher call" in told
    page = next(folder.glob("out/*/arenas/*/arena.html")).read_text()
    assert f"48 rollouts and {limit} teacher call" in page


def test_a_budget_in_money_ends_an_arena_which_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    def world(name: str) -> Path:
        agent = "support.arena.scripted_agent:paid"
        return write_world(tmp_path / name, 2, scenarios=12, eval_rollouts=1, agent=agent, concurrency=1)

    def paid_for() -> int:
        """Return the rollouts on file, of which each costs a cent."""
        journals = poor.glob(f"out/*/arenas/*/sides/*/runs/*/{JOURNAL}")
        return sum(len(read_log(path.parent).rollouts) for path in journals)

    words = ("--optimizers", "none,some,much", "--budget-rollouts", "12")
    whole, poor = world("whole"), world("poor")
    run_arena(whole, PLANTED, *words)
    told = run_arena(poor, PLANTED, *words, "--budget-usd", "0.085", code=1)
    assert "some: 6 rollouts, 1 changed prompt pack" in told
    assert paid_for() == 9
    assert "budget_usd of 0.085 is used up (0.09 spent); go on with: tfgrpo arena --resume 2" in told
    told = run_arena(poor, PLANTED, "--resume", "--budget-usd", "0.2", code=1)
    assert "some: 6 rollouts, 1 changed prompt pack (on file)" in told
    assert "much: 6 rollouts, 2 lessons" in told
    assert "budget_usd of 0.2 is used up (0.2 spent); go on with:" in told
    assert paid_for() == 20, "what is on file counts"
    run_arena(poor, PLANTED, "--resume", "--budget-usd", "5")
    found, wanted = table_of(poor), table_of(whole)
    again = found.pop("usd") - wanted.pop("usd")
    assert again == pytest.approx(0.02), "of one eval scenario only two of three sides had answered"
    assert found == wanted


class Eager(Planted):
    """Asks the teacher three times, whatever is left."""

    async def train(self, ring: Ring) -> Trained:
        for left in (2, 1, 0):
            assert ring.teacher_calls_left == left
            await ring.teach("Answer.", f"{left} are left")
        return Trained()


def test_a_contestant_has_no_more_teacher_calls_than_its_share(tmp_path: Path, serve: Serve) -> None:
    model, eager = serve(lambda request, attempt: "ok"), Eager("eager", 0.5)
    eager.needs_teacher = True
    folder = write_world(tmp_path / "world", 1, scenarios=3, eval_rollouts=1, teacher="openai:toy")
    words = ("--optimizers", "none,eager", "--budget-rollouts", "12", "--budget-teacher-calls", "2")
    run_arena(folder, {"eager": eager}, *words)
    assert len(model.requests) == 2
    assert table_of(folder)["sides"][1]["note"] == "the 2 teacher calls are made"


class Late(Planted):
    """Breaks by a bug of ours until it is mended."""

    broken = True

    async def train(self, ring: Ring) -> Trained:
        trained = await super().train(ring)
        if self.broken:
            await ring.ask(list("x"))  # type: ignore[arg-type]  # our code breaks on it
        return trained


def test_a_side_that_is_mended_is_swept_beside_all_others_and_all_sweeps_are_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def world(name: str) -> Path:
        agent = "support.arena.scripted_agent:paid"
        return write_world(tmp_path / name, 2, scenarios=6, eval_rollouts=1, agent=agent, task_id="task")

    folder, again = world("world"), world("again")
    planted = {"some": PLANTED["some"], "late": Late("late", 0.5)}
    words = ("--optimizers", "none,some,late", "--budget-rollouts", "12")
    run_arena(folder, planted, *words, "--record", "all.jsonl", code=3)
    (folder / "all.jsonl").unlink()
    monkeypatch.setattr(Late, "broken", False)
    told = run_arena(folder, planted, "--resume")
    assert "some: 6 rollouts, 1 changed prompt pack (on file)" in told
    assert "late: 6 rollouts, 2 lessons\n" in told
    journals = folder.glob(f"out/*/arenas/*/sides/*/runs/*/{JOURNAL}")
    paid = sum(len(read_log(path.parent).rollouts) for path in journals)
    assert paid == 6 + 6 + 2 * 6 + 3 * 6
    table = table_of(folder)
    assert table["usd"] == pytest.approx(0.01 * paid)
    assert table["sweep_rollouts"] == 3 * 6
    (recorded,) = folder.glob("all.jsonl")
    assert f"recorded {3 * 6} rollouts" in told
    run_arena(again, planted, *words, "--replay", str(recorded))
    replayed = table_of(again)
    assert replayed["sides"] == table["sides"]


def test_the_files_are_as_their_schemas_say(tmp_path: Path) -> None:
    folder = write_world(tmp_path / "world", 3, scenarios=12, eval_rollouts=1)
    run_arena(folder, PLANTED, "--optimizers", "none,placebo,much", "--budget-rollouts", "12")
    for name, schema in (("arena.json", "arena"), ("comparison.json", "arena-comparison")):
        (path,) = folder.glob(f"out/*/arenas/*/{name}")
        assert violations(schema, json.loads(path.read_text())) == []
