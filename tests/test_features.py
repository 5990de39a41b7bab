"""The hooks of the phase loop, with toys in them: a feature is a row, and engine and launch know none."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.api import SMALL, SUITE, Counter
from support.jobs import ScriptedActor, make_job, run_job, three_or_not

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo import features
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.features import RunPlan
from pytest_tfgrpo.runs.job import Job


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what adds a row to a table of features."""

    def add(table: str, row: Callable[..., Any]) -> None:
        monkeypatch.setattr(features, table, (*getattr(features, table), row))

    return add


def test_a_row_adds_to_the_header_of_a_learning_run_or_refuses_it(
    tmp_path: Path, plug: Callable[..., None]
) -> None:
    def count(plan: RunPlan) -> Mapping[str, Json]:
        if plan.task_id == "refused":
            raise SettingError("task_id: no such toy")
        return {"toy": len(plan.scenarios)}

    plug("BEFORE_RUN", count)
    found = tfgrpo.run(tmp_path, SUITE, actor=Counter(), **SMALL).run.preflight
    assert found["toy"] == len(SUITE)
    assert {"contamination", "evaluations"} < found.keys()
    actor = Counter()
    with pytest.raises(SettingError, match="no such toy"):
        tfgrpo.run(tmp_path, SUITE, actor=actor, task_id="refused", **SMALL)
    assert actor.calls == 0
    assert "toy" not in tfgrpo.run(tmp_path, SUITE, actor=actor, learning=False).run.preflight


def test_a_row_says_which_lessons_the_prompts_of_a_phase_may_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def carrying(place: Path, *rows: Callable[..., frozenset[str]]) -> int:
        monkeypatch.setattr(features, "LEAVE_OUT", rows)
        actor = ScriptedActor(three_or_not)
        run_job(make_job(actor, place, epochs=3, acceptance="off", lesson_dropout=0.5), place)
        return sum(str(call.prompt).count("For words in a letter") for call in actor.calls)

    def every(job: Job, phase: Phase, library: Library, results: object) -> frozenset[str]:
        return frozenset(lesson.id for lesson in library.experiences)

    assert carrying(tmp_path / "any", lambda *now: frozenset(), every) < carrying(tmp_path / "none")


def test_a_row_speaks_before_a_phase_is_learned_from_and_may_end_the_run(
    tmp_path: Path, plug: Callable[..., None]
) -> None:
    plug("BEFORE_LEARNING", lambda job, phase, groups, earlier: (f"{len(groups)} groups", ""))
    run, seen = run_job(make_job(ScriptedActor(three_or_not), tmp_path, epochs=2, acceptance="off"), tmp_path)
    assert "4 groups" in [notice.text for notice in seen if isinstance(notice, Notice)]
    assert run.status == "complete"
    plug("BEFORE_LEARNING", lambda job, phase, groups, earlier: ("", "enough is known"))
    other = tmp_path / "other"
    run, _ = run_job(make_job(ScriptedActor(three_or_not), other, epochs=2, acceptance="off"), other)
    assert (run.status, run.reason) == ("incomplete", "enough is known")
    assert run.library.experiences == ()


def test_a_row_watches_the_sweeps_of_a_run(tmp_path: Path, plug: Callable[..., None]) -> None:
    asked = list[str]()

    def watch(job: Job, baseline: object, foreign: bool) -> Any:
        return lambda phase, results, library: asked.append(phase.label)

    plug("WATCH_SWEEP", watch)
    tfgrpo.run(tmp_path, SUITE, actor=Counter(), **SMALL)
    assert asked == ["epoch1", "epoch2", "epoch3-eval"]
