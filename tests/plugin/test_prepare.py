"""What an invocation of pytest starts its runs with."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.estimate import forecast, plan_text
from pytest_tfgrpo.launch.agents import Agent
from pytest_tfgrpo.plugin import prepare, session
from pytest_tfgrpo.plugin.distributed import RUN_ID
from pytest_tfgrpo.plugin.files import ScenarioFile
from pytest_tfgrpo.plugin.prepare import TRACING, dry_run, open_agents, open_tracing, shared_budget


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


def asked_of(
    monkeypatch: pytest.MonkeyPatch, agent: Agent, *scenarios: Any, hooks: Any = (), **options: Any
) -> Any:
    """Return the request that a launch is opened with."""
    supplied = {"actor": None, "optimizer": None, "rewarders": [], "gate_rules": []} | dict(hooks)
    config: Any = SimpleNamespace(
        rootpath=Path("/suite"),
        getoption=lambda name, default: options.get(name, default),
        stash={TRACING: {"python:m:a": "spans", None: "others"}},
        hook=SimpleNamespace(
            **{f"pytest_tfgrpo_{name}": lambda value=value, **_: value for name, value in supplied.items()}
        ),
    )
    pick: Any = SimpleNamespace(
        agent=agent, scenarios=scenarios, phases=("before", "after"), partial="-k words"
    )
    given: Any = {"kinds": {"mine": 1}, "gates": iter(["one", "two"]), "elsewhere": str}
    monkeypatch.setattr(prepare, "open_launch", lambda request: request)
    return prepare.prepare(config, pick, **given, budget="budget", slots="slots")  # type: ignore[arg-type]


def test_all_that_pytest_selected_and_plugins_supply_reaches_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(name="a", settings=resolve({"actor": "python:m:a"}, {}, {}), resume="run1", run_id="run2")
    scenario = SimpleNamespace(id="s", checker="t.py::t", fixtures=())
    actor = SimpleNamespace(name="a", identity={}, paid=False)
    hooks = {"actor": actor, "rewarders": [["style"], ["wit"]], "gate_rules": [["p95"], ["p99"]]}
    found = asked_of(monkeypatch, agent, scenario, hooks=hooks, tfgrpo_dry_run=True)
    assert (found.root, found.settings, found.scenarios) == (Path("/suite"), agent.settings, (scenario,))
    assert (found.phases, found.partial, found.gates) == (("before", "after"), "-k words", ("one", "two"))
    assert (found.resume, found.run_id, found.again, found.dry) == ("run1", "run2", True, True)
    assert (found.shared.budget, found.shared.slots, found.elsewhere) == ("budget", "slots", str)
    own = found.supplied
    assert (own.actor, own.rewarders, own.rules) == (actor, ("style", "wit"), ("p95", "p99"))
    assert (own.kinds, own.tracing) == ({"mine": 1}, "spans")
    alone = asked_of(monkeypatch, Agent(settings=agent.settings))
    assert (alone.again, alone.dry, alone.supplied.actor) == (False, False, None)
    unpaid = SimpleNamespace(name="a", identity={})
    with pytest.raises(pytest.UsageError, match="has no attribute 'paid'"):
        asked_of(monkeypatch, agent, hooks={"actor": unpaid})


def test_the_second_test_with_an_agent_of_its_own_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = SimpleNamespace(id="s", checker="t.py::plain", fixtures=())
    acting = SimpleNamespace(id="x", checker="t.py::acting", fixtures=("mine",))
    listed = Agent(name="a", settings=resolve({"actor": "python:m:a"}, {}, {}))
    with pytest.raises(
        pytest.UsageError, match=r"^t\.py::acting has an agent of its own, the fixture 'mine'"
    ):
        asked_of(monkeypatch, listed, plain, acting)
    replayed = Agent(settings=resolve({"actor": "replay:r.jsonl"}, {}, {}))
    with pytest.raises(
        pytest.UsageError, match=r"^replay:r\.jsonl has the answer to x, but not the side effec"
    ):
        asked_of(monkeypatch, replayed, plain, acting)
    assert asked_of(monkeypatch, Agent(settings=listed.settings), plain, acting).scenarios == (plain, acting)


def test_agents_of_fixtures_stand_in_for_an_actor_where_every_test_has_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name)
    config: Any = SimpleNamespace(rootpath=tmp_path)
    tests: Any = [
        SimpleNamespace(id=name, checker=f"{name}.py::test", fixtures=("mine",)) for name in ("b", "a")
    ]
    found: Any = prepare._own_agents(config, tests)
    (tmp_path / "b.py").write_text("changed")
    changed: Any = prepare._own_agents(config, tests)
    assert found.identity != changed.identity
    plain: Any = SimpleNamespace(id="p", checker="a.py::plain", fixtures=())
    assert prepare._own_agents(config, [*tests, plain]) is None
    assert prepare._own_agents(config, []) is None


def test_spans_of_each_agent_of_a_list_go_where_its_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_tfgrpo.telemetry.sinks import otel

    monkeypatch.setattr(otel, "open_telemetry", lambda settings, environ: f"of {settings.values['actor']}")
    for actor, opened in (
        ("python:m:a,python:m:b", {"python:m:a": "of python:m:a", "python:m:b": "of python:m:b"}),
        ("python:m:a", {"python:m:a": "of python:m:a"}),
    ):
        config: Any = SimpleNamespace(stash={})
        open_tracing(config, resolve({"actor": actor}, {}, {}))
        assert config.stash[TRACING] == opened


def test_several_runs_share_a_budget_and_a_single_one_has_its_own() -> None:
    settings = resolve({"budget_usd": 1.0}, {}, {})
    assert shared_budget(settings, 1) is None
    assert shared_budget(settings, 2) is not None


def test_an_unknown_variable_is_refused_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFGRPO_ACTR", "x")
    agent = Agent(settings=resolve({"actor": "python:m:a"}, {}, {}))
    with pytest.raises(pytest.UsageError, match="unknown environment variable TFGRPO_ACTR='x'; did you mean"):
        asked_of(monkeypatch, agent)
