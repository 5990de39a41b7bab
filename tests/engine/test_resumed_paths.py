"""Runs that stop at each place of their journal, and are resumed: what is told, counted, and asked again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_rollout
from support.jobs import ScriptedActor, make_job, suite, three_or_not

from pytest_tfgrpo.core.errors import BudgetError, OutageError
from pytest_tfgrpo.core.files import JOURNAL, METRICS, PER_EPOCH
from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Rollout
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.gauge import Gauge, Reading
from pytest_tfgrpo.engine.lifetime import reach_models
from pytest_tfgrpo.engine.lineup import Arm, Lineup
from pytest_tfgrpo.engine.resumption import begin_budget, note_answered
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents, read_log, read_to_resume

SMALL: dict[str, Any] = {"group_size": 2, "epochs": 1, "concurrency": 1, "acceptance": "off"}


def small(work: Path, **changes: Any) -> Job:
    actor = changes.pop("actor", None) or ScriptedActor(three_or_not)
    return make_job(actor, work, scenarios=suite(2, 2), **SMALL | changes)


def name_of(record: object) -> str:
    """Return what a record is of, to count how often each was told."""
    if isinstance(record, Rollout):
        return f"rollout {record.rollout_id}"
    if isinstance(record, Group):
        return f"group {record.group_id}"
    if isinstance(record, PhaseResult):
        return f"phase {record.phase.label}"
    return f"lesson {record.id}" if isinstance(record, Experience) else type(record).__name__


def told_of(job: Job, folder: Path, *, retell: bool = True) -> tuple[Counter[str], Reading]:
    """Run a job to its end; returns how often each record was told, and the last reading of its gauge."""
    seen: list[object] = []
    gauge = Gauge()
    run = asyncio.run(Engine(job, folder=folder, observe=seen.append, gauge=gauge, retell=retell).run())
    assert run.status == "complete"
    return Counter(map(name_of, seen)), gauge.read()


def figures(reading: Reading) -> tuple[object, ...]:
    now = reading.sweep
    mean = now.mean and round(now.mean, 9)
    return (now.planned, now.done, now.failed, now.errors, mean, round(reading.spent_usd, 9))


def files(folder: Path) -> tuple[Any, Any]:
    """Return what readers of the files find, without durations."""
    lines = [json.loads(text) for text in (folder / METRICS).read_text().splitlines()]
    rows = json.loads((folder / PER_EPOCH).read_text())["epochs"]
    for value in (*lines, *rows):
        value.pop("latency_ms")
    for tool in (tool for row in rows for tool in row["tools"]):
        tool.pop("latency_ms")
    return sorted(lines, key=lambda line: json.dumps(line, sort_keys=True)), rows


PLACES = 10
"""Of a journal of a few dozen lines every third or so is a place to stop."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], Counter[str], Reading, Any]:
    folder = tmp_path_factory.mktemp("whole") / "demo" / "runs" / "run1"
    told, reading = told_of(small(folder.parent), folder)
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    return lines, told, reading, files(folder)


@pytest.mark.parametrize("retell", [True, False])
@pytest.mark.parametrize("place", range(PLACES + 1))
def test_a_run_resumed_anywhere_tells_counts_and_writes_what_the_whole_run_did(
    tmp_path: Path, whole: Any, place: int, retell: bool
) -> None:
    lines, told, reading, written = whole
    keep = max(1, len(lines) * place // PLACES)
    folder = tmp_path / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    (folder / JOURNAL).write_bytes(b"".join(lines[:keep]))
    log = read_log(folder)
    on_file = {f"group {id_}" for id_ in log.groups} | {f"rollout {id_}" for id_ in log.rollouts}
    again, found = told_of(small(tmp_path, job_resumed=read_to_resume(folder)), folder, retell=retell)
    assert set(again.values()) == {1}, "nothing is told twice"
    missing = set(told) - set(again)
    assert again.keys() <= told.keys()
    assert missing <= (set() if retell else on_file)
    assert not any(name.startswith(("phase", "lesson", "Run")) for name in missing)
    if keep == len(lines):
        assert not (folder / METRICS).exists(), "a run that had ended writes nothing"
    else:
        assert files(folder) == written
        assert figures(found) == figures(reading) if retell else figures(found)[:2] == figures(reading)[:2]


def group(id_: str, credit: float | None) -> Group:
    return make_group([credit], scenario_id=id_, epoch=2, mode="eval", group_id=f"run1.e2.{id_}")


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize(
    ("scored", "known"), [((None, 1.0, 0.0), ["b"]), ((1.0, None), ["a"]), ((None, None), []), ((), [])]
)
def test_the_first_group_on_file_that_was_answered_says_that_the_provider_was_there(
    scored: tuple[float | None, ...], known: list[str], asks: bool
) -> None:
    told: list[tuple[Any, bool]] = []
    phase = SimpleNamespace(asks=asks)
    breaker = SimpleNamespace(know=lambda slot, answered: told.append((slot, answered)))
    context: Any = SimpleNamespace(breaker=breaker)
    lineup: Any = SimpleNamespace(slot=lambda id_: SimpleNamespace(id=id_, phase=phase))
    note_answered([group(id_, credit) for id_, credit in zip("abc", scored, strict=False)], context, lineup)
    assert [(slot.id, answered) for slot, answered in told] == [(id_, True) for id_ in known if asks]


def test_a_resumed_budget_has_paid_for_all_that_is_on_file(tmp_path: Path) -> None:
    """Rollouts, attempts without a result, groups that are settled, and calls of models."""
    resumed: Any = JournalContents()
    resumed.rollouts.update(a=make_rollout(0, cost_usd=0.25, tokens=10))
    resumed.abandoned.append(make_rollout(1, cost_usd=0.5, tokens=20))
    resumed.settled_cost = type(resumed.settled_cost)(usd=1.0, tokens=40, unknown=2)
    resumed.calls["c"] = SimpleNamespace(cost_usd=2.0, tokens=80)
    job = small(tmp_path, job_resumed=resumed, budget_usd=100.0, budget_tokens=1000)
    begin_budget(job, lambda _: None)
    assert job.budget.limits == {"usd": (3.75, 100.0), "tokens": (150.0, 1000.0)}


@pytest.mark.parametrize(
    ("answers", "end"),
    [
        ({}, COMPLETE),
        ({"judge": None, "user": None}, COMPLETE),
        ({"judge": OutageError("judge is away"), "user": None}, RunEnd("incomplete", "judge is away")),
        ({"judge": None, "user": BudgetError("used up")}, RunEnd("incomplete", "used up")),
        ({"judge": None, "user": ValueError("a bug")}, ValueError),
    ],
)
def test_each_model_is_reached_once_before_the_first_phase(answers: dict[str, Any], end: Any) -> None:
    asked: list[tuple[str, str, int]] = []

    async def reach(model: Any, *, role: str, epoch: int) -> None:
        asked.append((model.name, role, epoch))
        if isinstance(answers[role], BaseException):
            raise answers[role]

    models = {role: SimpleNamespace(name=f"openai:{role}") for role in answers}
    job: Any = SimpleNamespace(reach={**models, **{f"{role}2": model for role, model in models.items()}})
    answers |= {f"{role}2": answer for role, answer in answers.items()}
    phase: Any = SimpleNamespace(epoch=3)
    calls: Any = SimpleNamespace(reach=reach)
    if end is ValueError:
        with pytest.raises(ValueError, match="a bug"):
            asyncio.run(reach_models(job, phase, calls))
    else:
        assert asyncio.run(reach_models(job, phase, calls)) == end
    assert asked == [(model.name, f"{role}2", 3) for role, model in models.items()]


@pytest.mark.parametrize(
    ("settled", "begun", "asked"),
    [
        (set(), {"run1.e2.eval-0"}, ["eval-0", "eval-1", "eval-2"]),
        ({2}, set(), []),
        ({2}, {"run1.e2.eval-1"}, ["eval-1"]),
        ({2}, {"run1.e0.eval-1", "run1.e2.eval-2"}, ["eval-2"]),
        ({1}, {"run1.e2.eval-1"}, ["eval-0", "eval-1", "eval-2"]),
    ],
)
def test_a_sweep_whose_gate_was_decided_finishes_what_it_had_begun(
    tmp_path: Path, settled: set[int], begun: set[str], asked: list[str]
) -> None:
    known = suite(0, 3)
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=known, group_size=1)
    resumed = SimpleNamespace(settled=settled, begun=begun, rollouts={}, checker_results={})
    workspaces = SimpleNamespace(new=lambda *_: None)
    context: Any = SimpleNamespace(
        job=SimpleNamespace(
            run_id="run1", settings=job.settings, resumed=resumed, made_of=lambda _: (), user=None
        ),
        scenarios={s.id: s for s in known},
        workspaces=workspaces,
        span_counts=None,
    )
    phase = Phase(epoch=2, mode="eval", temperature=0.3, rollouts=1, scenarios=tuple(s.id for s in known))
    by_id = {s.id: s for s in known}

    def ask(id_: str, _index: int) -> Any:
        return SimpleNamespace(scenario=by_id[id_], task=None, prompt=None)

    lineup = Lineup(context, [Arm(phase=phase, ask=ask)], None, {})
    assert [slot.question.scenario.id for slot in lineup] == asked
    assert lineup.settled == [s.id for s in known if s.id not in asked]
