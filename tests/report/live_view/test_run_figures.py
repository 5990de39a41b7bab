"""The figures of a run, event by event, without a journal."""

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_tfgrpo.report.live_view import run_figures
from pytest_tfgrpo.report.live_view.run_figures import RunFigures
from pytest_tfgrpo.runs.journal.journal import Event

BASELINE = {"epoch": 0, "mode": "baseline", "rollouts": 2, "scenarios": ["a", "b"]}
TRAIN = {"epoch": 1, "mode": "train", "rollouts": 2, "scenarios": ["a", "b", "c"], "dev": ["c"]}
FINAL = {"epoch": 2, "mode": "eval", "rollouts": 2, "scenarios": ["a", "b"]}
DOMAINS = {"a": "text", "b": "dates", "c": "text"}


def figures(*phases: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> RunFigures:
    return RunFigures(
        {
            "run_id": "run1",
            "task_id": "demo",
            "started_at": "2026-01-01T00:00:00Z",
            "settings": {"eval_rollouts": 2, "budget_usd": 3.0, **(settings or {})},
            "scenarios": [{"id": id_, "domain": domain} for id_, domain in DOMAINS.items()],
            "phases": phases or (BASELINE, TRAIN, FINAL),
            "library": {"experiences": [{"id": "old", "summary32": "Count."}]},
            "warnings": ["beware"],
        }
    )


def take(found: RunFigures, name: str, *, at: str = "", **data: Any) -> None:
    found.take(Event(n=1, event=name, data=data, at=at))


def rollout(found: RunFigures, scenario: str = "a", index: int = 0, **changes: Any) -> None:
    known = {"epoch": 0, "mode": "baseline", "status": "ok", "tokens": 5, "cost_usd": 0.5, "checks": []}
    known |= {"scenario_id": scenario, "index": index, "latency_ms": 2000.0, "failure": None}
    take(found, "rollout", **known | changes)


def group(found: RunFigures, scenario: str, *scores: float | None, **changes: Any) -> None:
    known: dict[str, Any] = {"epoch": 0, "mode": "baseline", "scenario_id": scenario, "rollouts": []}
    take(found, "group", **known | {"scores": [{"gt_score": score} for score in scores]} | changes)


def test_the_domains_of_a_sweep_are_told_with_the_control_beside_them() -> None:
    found = figures()
    group(found, "a", 1, 0)
    rollout(found, "a", epoch=2, mode="eval")
    group(found, "a", 1, 1, epoch=2, mode="eval")
    group(found, "b", 0.25, epoch=2, mode="eval")
    state = found.state(0.0)
    assert state["domains"] == [["dates", 1, 1, 0.25, None], ["text", 1, 1, 1.0, 0.5]]
    assert state["lowest"] == [["b", "dates", 0.25]]
    assert state["marks"] == "a2"
    assert found.names() == ["a", "b"]
    assert state["current"] == 3


def test_a_control_is_not_compared_with_itself_and_the_lowest_come_first() -> None:
    found = figures()
    group(found, "a", 0.5)
    group(found, "b", 0.25)
    state = found.state(0.0)
    assert [row[4] for row in state["domains"]] == [None, None]
    assert [row[0] for row in state["lowest"]] == ["b", "a"]


def test_a_domain_has_the_mean_of_its_scenarios_and_nothing_beside_it_without_a_control() -> None:
    found = figures(TRAIN, FINAL)
    group(found, "a", 0.75, epoch=1, mode="train")
    group(found, "c", 0.25, epoch=1, mode="train")
    assert found.state(0.0)["domains"] == [["dates", 1, 0, None, None], ["text", 2, 2, 0.5, None]]
    rollout(found, epoch=2, mode="eval")
    assert [row[4] for row in found.state(0.0)["domains"]] == [None, None]


@pytest.mark.parametrize(("eval_rollouts", "index"), [(2, 3), (3, 5), (None, 1)])
def test_the_dev_split_is_asked_twice_as_often_as_a_sweep(eval_rollouts: int | None, index: int) -> None:
    found = figures(settings={"eval_rollouts": eval_rollouts})
    rollout(found, "c", index, epoch=1, mode="dev")
    assert found.state(0.0)["phases"][2]["done"] == 1
    with pytest.raises(ValueError, match=f"rollout {index + 1} of"):
        rollout(found, "c", index + 1, epoch=1, mode="dev")


def test_a_run_without_phases_has_nothing_to_show() -> None:
    found = figures()
    found.phases, found._current = [], None
    state = found.state(0.0)
    assert (state["marks"], state["lowest"], state["domains"], state["current"]) == ("", [], [], None)
    assert found.names() == []


def test_no_more_rows_than_a_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOWEST", "DOMAINS", "TILES"):
        monkeypatch.setattr(run_figures, name, 1)
    found = figures()
    for id_ in "ab":
        group(found, id_, 0.5)
    state = found.state(0.0)
    assert [len(state[name]) for name in ("lowest", "domains", "marks")] == [1, 1, 1]
    assert len(found.names()) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"checks": [{"kind": "exact", "credit": 1, "reason": ""}]}, None),
        ({"checks": [{"kind": "exact", "credit": 0.9, "reason": "it is 4"}]}, ("wrong", "exact: it is 4")),
        ({"status": "failed", "failure": {"code": "timeout", "message": "5 s"}}, ("failed", "timeout: 5 s")),
        ({"status": "error"}, ("error", "error: ")),
        (
            {"status": "cancelled", "checks": [{"kind": "exact", "credit": 0, "reason": ""}]},
            ("cancelled", "cancelled: "),
        ),
    ],
    ids=["right", "checked", "wrong", "failed", "no-reason", "cancelled"],
)
def test_what_went_wrong_is_told(changes: Any, said: tuple[str, str] | None) -> None:
    found = figures()
    rollout(found, "b", 1, **changes)
    state = found.state(0.0)
    assert state["failed"] == (said is not None)
    assert [(row["kind"], row["text"].strip()) for row in state["failures"]] == (
        [(said[0], said[1].strip())] if said else []
    )
    if said:
        assert [state["failures"][0][name] for name in ("scenario", "phase", "index")] == ["b", "baseline", 1]


def test_the_latest_failure_comes_first_and_the_oldest_are_only_counted() -> None:
    found = figures()
    for n in range(25):
        rollout(found, status="error", failure={"code": f"e{n}", "message": ""})
    state = found.state(0.0)
    assert state["failed"] == 25
    assert [row["text"] for row in state["failures"]] == [f"e{n}:" for n in range(24, 4, -1)]


def test_costs_and_tokens_are_those_of_rollouts_calls_and_abandoned_attempts() -> None:
    found = figures()
    rollout(found)
    take(found, "call", epoch=1, usage={"prompt": 3, "completion": 4}, cost_usd=None)
    take(found, "call", epoch=1, usage=None, cost_usd=0.25)
    gone = {"epoch": 0, "mode": "baseline", "scenario_id": "a", "tokens": 2, "cost_usd": 0.25}
    take(found, "abandoned", index=1, **gone)
    take(found, "abandoned", index=0, **gone)
    state = found.state(0.0)
    assert (state["tokens"], state["usd"], state["unknown"]) == (5 + 7 + 2, 1.0, 1)
    assert [row["calls"] for row in state["phases"]] == [0, 2, 0, 0]


def test_what_was_interrupted_goes_on_and_what_was_complete_stays_so() -> None:
    found = figures()
    for n in range(2):
        rollout(found, index=n, at=f"2026-01-01T00:00:0{n}Z")
    take(found, "phase", phase={"epoch": 0}, status="complete", reason="all")
    take(found, "phase", phase={"epoch": 1}, status="incomplete", reason="budget")
    take(found, "finish", status="incomplete", reason="budget", warnings=["late"])
    ended = found.state(0.0)
    assert (ended["finish"], ended["warnings"]) == ("incomplete budget", ["late"])
    assert [(row["status"], row["reason"]) for row in ended["phases"]] == [
        ("complete", "all"),
        ("incomplete", "budget"),
        ("incomplete", "budget"),
        ("", ""),
    ]
    take(found, "resume")
    state = found.state(1767225602.0)
    assert state["finish"] == ""
    assert [(row["status"], row["reason"]) for row in state["phases"]][:2] == [("complete", "all"), ("", "")]
    assert state["left_s"] is None


def test_the_pace_is_that_of_the_latest_rollouts() -> None:
    start = 1767225600.0
    found = figures(BASELINE, FINAL)
    assert found.pace(start) == (None, None)
    rollout(found, at="2026-01-01T00:00:00Z")
    assert found.pace(start) == (None, None)
    rollout(found, index=1, at="2026-01-01T00:00:00Z")
    assert found.pace(start) == (None, None)
    rollout(found, "b", at="2026-01-01T00:00:04Z")
    assert found.pace(start) == (5 / 0.5, 1.0)
    assert found.pace(start + 8) == (5 / 0.25, 1.0)
    crowded = figures(BASELINE, FINAL, settings={"concurrency": 3})
    for n in range(2):
        rollout(crowded, index=n, at=f"2026-01-01T00:00:0{n}Z", latency_ms=9000.0)
    assert crowded.pace(start) == (6.0, 3)
    alone = figures(BASELINE)
    for n in range(2):
        rollout(alone, index=n, at=f"2026-01-01T00:00:0{n}Z", latency_ms=9000.0)
    assert alone.pace(start) == (2.0, 2)
    assert alone.state(start)["left_s"] == 2.0
    for n in range(2):
        rollout(alone, "b", index=n)
    assert alone.pace(start) == (None, None)
    uneven = figures(BASELINE, FINAL)
    for n, latency in enumerate((1000.0, 3000.0)):
        rollout(uneven, index=n, at=f"2026-01-01T00:00:0{n}Z", latency_ms=latency)
    assert uneven.pace(start) == (6.0, 2.0)


def test_lessons_are_told_latest_first_by_what_became_of_them() -> None:
    found = figures()
    new = {"id": "new", "summary32": "Check.", "polarity": "do", "domain": "text"}
    applied = [
        {"kind": "add", "experience": new, "targets": []},
        {"kind": "remove", "experience": None, "targets": ["old"]},
        {"kind": "remove", "experience": None, "targets": ["unknown"]},
    ]
    take(found, "candidate", applied=applied)
    assert found.state(0.0)["candidate"] == 3
    take(found, "revision", epoch=1, applied=applied, library={"experiences": [new]})
    state = found.state(0.0)
    assert (state["learned"], state["candidate"], state["phases"][1]["lessons"]) == (3, None, 1)
    assert [(row["kind"], row["text"]) for row in state["lessons"]] == [
        ("remove", "unknown"),
        ("remove", "Count."),
        ("add", "Check."),
    ]
    assert state["lessons"][2] | {"text": ""} == {
        "epoch": 1,
        "kind": "add",
        "polarity": "do",
        "domain": "text",
        "text": "",
    }


def test_a_group_that_the_control_shares_counts_there_too() -> None:
    found = figures({**BASELINE, "concurrent": True}, TRAIN, FINAL)
    scores = [{"gt_score": 1.0}, {"gt_score": None}]
    ids = [["run1.e2.a.r0", "ok"], ["run1.e2.a.r1", "error"]]
    rollout(found, "a", 1, epoch=2, mode="eval")
    final = {"epoch": 2, "mode": "eval", "scenario_id": "a", "rollouts": ids, "scores": scores}
    take(found, "group", **final, shared=True)
    rows = found.state(0.0)["phases"]
    assert (rows[0]["mean"], rows[0]["planned"], rows[0]["done"]) == (1.0, 2, 0)
    assert (rows[3]["mean"], rows[3]["done"], rows[3]["errors"]) == (1.0, 2, 1)
    rollout(found, "b")
    assert found.state(0.0)["current"] == 3
    take(found, "group", **final | {"scenario_id": "b", "rollouts": []})
    assert found.state(0.0)["phases"][0]["scored"] == 1


def test_a_phase_that_the_gate_settled_has_nothing_left() -> None:
    found = figures(BASELINE, FINAL)
    for n in range(2):
        rollout(found, index=n, at=f"2026-01-01T00:00:0{n}Z")
    take(found, "settled", epoch=2)
    assert found.pace(0.0)[0] == 2.0


def test_time_stops_at_the_end_of_the_run() -> None:
    found = figures()
    started = 1767225600.0
    assert found.state(started + 7)["elapsed_s"] == 7.0
    assert found.state(started - 7)["elapsed_s"] == 0.0
    for n in range(2):
        rollout(found, index=n, at=f"2026-01-01T00:00:0{n}Z")
    assert found.state(started + 7)["left_s"] is not None
    take(found, "finish", at="2026-01-01T00:00:05Z", status="complete", reason="", warnings=[])
    assert found.state(started + 7)["left_s"] is None
    assert found.state(started + 7)["finish"] == "complete"
    assert found.state(started + 9)["elapsed_s"] == 5.0


@pytest.mark.parametrize(
    ("optimizer", "told"),
    [("llm", "the teacher writes lessons"), ("heuristic", "its attempts become lessons")],
)
def test_an_epoch_whose_rollouts_are_made_says_what_is_done_with_them(optimizer: str, told: str) -> None:
    found = figures(settings={"optimizer": optimizer})

    def doing() -> list[str]:
        return [row["doing"] for row in found.state(0.0)["phases"]]  # type: ignore[union-attr, call-overload, index]

    for scenario, index in [(s, i) for s in "abc" for i in (0, 1)]:
        assert doing() == [""] * 4
        rollout(found, scenario, index, epoch=1, mode="train")
    assert doing() == ["", told, "", ""]
    take(found, "candidate", applied=[{}, {}, {}])
    assert doing() == ["", "the dev split tries 3 changes", "", ""]
    library = {"experiences": []}
    take(found, "revision", epoch=1, applied=[], library=library)
    assert doing() == [""] * 4


def test_the_dev_split_has_the_most_rollouts_that_it_may_make() -> None:
    rows: Any = figures().state(0.0)["phases"]
    assert [(row["planned"], row["most"]) for row in rows] == [(4, 4), (6, 6), (None, 4), (4, 4)]
