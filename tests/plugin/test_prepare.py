"""What an invocation of pytest starts its runs with."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.estimate import forecast, plan_text
from pytest_tfgrpo.plugin import session
from pytest_tfgrpo.plugin.distributed import RUN_ID
from pytest_tfgrpo.plugin.files import ScenarioFile
from pytest_tfgrpo.plugin.prepare import dry_run, open_agents


@pytest.mark.parametrize(("worker", "run_id"), [({"workerinput": {RUN_ID: "run1"}}, "run1"), ({}, None)])
def test_workers_share_the_run_of_their_controller(
    worker: dict[str, Any], run_id: str | None, tmp_path: Path
) -> None:
    config: Any = SimpleNamespace(rootpath=tmp_path, getoption=lambda *_: None, **worker)
    settings = resolve({"actor": "python:m:a"}, {}, {})
    assert [agent.run_id for agent in open_agents(config, settings)] == [run_id]


@pytest.mark.parametrize(
    ("folder", "record", "runs", "known"),
    [
        (None, "", None, None),
        (None, "model.jsonl", None, Path("/suite/model.jsonl")),
        (Path("/out/demo/run1"), "", Path("/out/demo"), None),
        (Path("/out/demo/run1"), "/kept/model.jsonl", Path("/out/demo"), Path("/kept/model.jsonl")),
    ],
)
@pytest.mark.parametrize(
    ("agents", "lines"),
    [
        ([], []),
        ([""], ["plan of  by forecast 1"]),
        (["a"], ["", "agent  a", "plan of a by forecast 1"]),
        (
            ["a", "b"],
            [
                *("", "agent  a", "plan of a by forecast 1"),
                *("", "agent  b", "plan of b by forecast 2"),
                *("", "together: a by forecast 1", "together: b by forecast 2"),
            ],
        ),
    ],
)
def test_a_dry_run_shows_each_agents_plan_and_what_several_use_together(
    agents: list[str],
    lines: list[str],
    folder: Path | None,
    record: str,
    runs: Path | None,
    known: Path | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[object, ...]] = []

    def foresee(*given: object) -> str:
        asked.append(given)
        return f"forecast {len(asked)}"

    monkeypatch.setattr(forecast, "forecast", foresee)
    monkeypatch.setattr(plan_text, "plan_text", lambda job, found: [f"plan of {job} by {found}"])
    monkeypatch.setattr(
        plan_text, "together", lambda parts: [f"together: {job} by {found}" for _, job, found in parts]
    )
    settings = resolve({"record": record} if record else {}, {}, {})
    launches: Any = [
        (
            agent,
            SimpleNamespace(
                prepared=SimpleNamespace(job=agent, folder=folder),
                settings=settings,
                root=Path("/suite"),
                looks=3,
            ),
        )
        for agent in agents
    ]
    assert dry_run(launches) == lines
    assert asked == [(agent, runs, known, 3) for agent in agents]


@pytest.mark.parametrize(
    ("scenarios", "elsewhere", "message"),
    [
        (None, "", ""),
        (None, "in another run", ""),
        (["a", "b"], "in another run", ""),
        (
            ["a", "b"],
            "",
            "no eval scenario was collected to compare with the 2 of the baseline 'main'; bring them back, "
            "or set tfgrpo_baseline = none",
        ),
    ],
)
def test_a_gate_misses_the_eval_scenarios_of_its_baseline_unless_they_run_elsewhere(
    scenarios: list[str] | None, elsewhere: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = None if scenarios is None else SimpleNamespace(scenarios=dict.fromkeys(scenarios))
    asked: list[object] = []
    monkeypatch.setattr(session, "stored_baseline", lambda settings, root: found)
    settings = resolve({"baseline": "main"}, {}, {})

    def where(ids: object) -> str:
        asked.append(ids)
        return elsewhere

    assert session._missing_eval(settings, Path("/suite"), where) == message
    assert asked == ([] if scenarios is None else [scenarios])


@pytest.mark.parametrize(("partial", "gates"), [("", ["gate"]), ("-k words", [])])
def test_a_part_of_the_suite_without_eval_scenarios_has_no_gate_that_fails(
    partial: str, gates: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = resolve({"baseline": "main"}, {}, {})
    monkeypatch.setattr(session, "_missing_eval", lambda settings, root, elsewhere: "missing")
    monkeypatch.setattr(session, "make_gates", lambda home, owner, named, agent: ["gate"])
    monkeypatch.setattr(session.RunFile, "of", lambda session: None)
    own: Any = object.__new__(session.TfgrpoSession)
    own.config = SimpleNamespace(getoption=lambda name, default: default, rootpath=Path("/suite"))
    own.settings, own._partial, own._unrun = settings, partial, ""
    own._agents, own._catalog = [SimpleNamespace(settings=settings, name="")], SimpleNamespace(scenarios={})
    assert own._without_eval(None) == gates
    assert own._unrun == ("missing" if gates else "")


def test_a_scenario_file_is_refused_by_its_problems_alone() -> None:
    with pytest.raises(ScenarioError) as refusal:
        raise ScenarioError("a.scenario.yaml:3: no prompt")
    file: Any = object.__new__(ScenarioFile)
    assert ScenarioFile.repr_failure(file, refusal) == "a.scenario.yaml:3: no prompt"
