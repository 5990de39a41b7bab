"""What the components of a run share, and what is said of those that do not fit its scenarios."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience, make_scenario
from support.jobs import ScriptedActor

from pytest_tfgrpo.core.errors import ActorError, SettingError
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Criterion, SimulatedUser
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.engine.preparation import prepare
from pytest_tfgrpo.engine.preparation.components import Components, _Shared, _unread, reached_first
from pytest_tfgrpo.engine.preparation.prepare import (
    _advice,
    _lacks,
    _require_conversational,
    _require_free,
    _require_judge,
    _require_mocks,
)
from pytest_tfgrpo.learning.library.library import of


def test_the_models_of_a_run_keep_their_batches_where_the_run_says(tmp_path: Path) -> None:
    request: Any = SimpleNamespace(root=tmp_path, settings=resolve({}, {}, {}), environ={})
    shared = _Shared(request, spending=None)  # type: ignore[arg-type]
    shared.keep_batches(tmp_path)  # without a model there is none
    kept: list[Path] = []
    models: Any = SimpleNamespace(keep_batches=kept.append)
    shared._models = models
    shared.keep_batches(tmp_path / "batches.jsonl")
    assert kept == [tmp_path / "batches.jsonl"]


def test_an_ini_file_that_a_pytest_ini_hides_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntfgrpo_actor = 'offline'\n")
    assert _unread(tmp_path) == ""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert "; pyproject.toml sets it, but pytest reads pytest.ini alone" in _unread(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    assert _unread(tmp_path) == ""
    (tmp_path / "tox.ini").write_text("[pytest]\ntfgrpo_actor = offline\n")
    assert "; tox.ini sets it, but pytest reads pytest.ini alone" in _unread(tmp_path)


def people(**changes: Any) -> Any:
    actor = SimpleNamespace(name="python:m:a")
    optimizer = SimpleNamespace(name="heuristic", identity={})
    fields = {"replay": None, "actor": actor, "judge": None, "user": None, "optimizer": optimizer}
    return SimpleNamespace(**fields | changes)


TURNS = make_scenario("talk", turns=("And now?",))
ALONE = make_scenario("alone")
OWN_AGENT: Any = make_scenario("own", turns=("And now?",), fixtures=("agent",))


@pytest.mark.parametrize(
    ("scenarios", "refused"),
    [
        ([], ""),
        ([ALONE], ""),
        ([ALONE, TURNS], r"'python:m:a' answers one question, and scenario 'talk' \(.*\) is a conversation"),
        ([OWN_AGENT], ""),
        ([replace(OWN_AGENT, fixtures=("",))], "scenario 'own'"),
        ([replace(OWN_AGENT, fixtures=())], "scenario 'own'"),
    ],
)
def test_a_conversation_needs_an_actor_that_holds_one_or_an_agent_of_its_own(
    scenarios: list[Any], refused: str
) -> None:
    _require_conversational(people(replay=object()), scenarios)
    if refused:
        with pytest.raises(SettingError, match=refused):
            _require_conversational(people(), scenarios)
    else:
        _require_conversational(people(), scenarios)


@pytest.mark.parametrize(
    ("scenario", "judge", "spec", "refused"),
    [
        (ALONE, None, None, ""),
        (make_scenario("j", truth="judge"), object(), None, ""),
        (
            make_scenario("j", truth="judge"),
            None,
            None,
            "needs a judge, but none is configured; set tfgrpo_judge",
        ),
        (make_scenario("j", truth="judge"), None, "openai:m", "needs a judge, and 'openai:m' costs money"),
    ],
)
def test_a_scenario_that_the_judge_scores_needs_one(
    scenario: Any, judge: Any, spec: str | None, refused: str
) -> None:
    if refused:
        with pytest.raises(SettingError, match=refused):
            _require_judge(people(judge=judge), [ALONE, scenario], spec)
    else:
        _require_judge(people(judge=judge), [ALONE, scenario], spec)


def phase(mode: Any) -> Phase:
    return Phase(epoch=1, mode=mode, temperature=0.5, rollouts=1, scenarios=("a",))


@pytest.mark.parametrize(
    ("modes", "learning", "actors", "warned"),
    [
        (["baseline", "train", "eval"], True, ["python:m:a"], []),
        (["eval"], True, [], ["no train scenario is selected: nothing can be learned"]),
        (["eval"], False, [], []),
        (["train"], True, [], ["no eval scenario is selected: the run cannot show whether learning helped"]),
        (
            ["eval"], False, ["z", "python:m:a", "b", "z"],
            ["the library contains lessons learned with another actor: b, z"],
        ),
    ],
)  # fmt: skip
def test_what_a_run_lacks_is_warned_of(
    modes: list[str], learning: bool, actors: list[str], warned: list[str]
) -> None:
    request: Any = SimpleNamespace(
        phases=[phase(mode) for mode in modes], settings=SimpleNamespace(learning=learning)
    )
    library = of(make_experience(n, actor=name) for n, name in enumerate(actors))
    assert _lacks(request, library, people().actor) == warned


@pytest.mark.parametrize(
    ("scenarios", "flags", "who", "warned"),
    [
        ([ALONE], {}, {}, []),
        ([ALONE], {"teacher": "openai:t"}, {}, []),
        (
            *([ALONE], {"judge": "openai:j"}, {"judge": object()}),
            ["the judge is not used: no scenario has a rubric"],
        ),
        ([ALONE], {}, {"judge": object()}, ["the judge is not used: no scenario has a rubric"]),
        ([ALONE], {}, {"user": object()}, ["the model that plays users is not used: no scenario has a user"]),
        (
            [replace(TURNS, user="A buyer."), replace(TURNS, id="b", user="A seller.")], {}, {},
            ["2 users of scenarios say their turns as written; set tfgrpo_user to a model"],
        ),
        ([replace(TURNS, user="A buyer.")], {}, {"replay": object()}, []),
        ([replace(TURNS, user="A buyer.")], {}, {"user": object()}, []),
    ],
)  # fmt: skip
def test_a_component_that_nothing_uses_is_warned_of(
    scenarios: list[Any], flags: dict[str, str], who: dict[str, Any], warned: list[str]
) -> None:
    settings = resolve({"actor": "python:m:a"} | flags, {}, {}, learning_flag=False)
    request: Any = SimpleNamespace(scenarios=scenarios, settings=settings, phases=[phase("eval")])
    assert list(_advice(request, people(**who))) == warned


def test_a_teacher_that_the_optimizer_does_not_ask_is_warned_of() -> None:
    settings = resolve({"actor": "python:m:a", "teacher": "openai:t"}, {}, {}, learning_flag=True)
    request: Any = SimpleNamespace(scenarios=[ALONE], settings=settings, phases=[phase("eval")])
    (said,) = _advice(request, people())
    assert said == "the optimizer heuristic does not use the teacher; set tfgrpo_optimizer = llm"
    asks = SimpleNamespace(name="llm", identity={"model": "t"})
    assert list(_advice(request, people(optimizer=asks))) == []


@pytest.mark.parametrize(
    ("paid", "usd", "budget", "refused"),
    [
        (True, None, 0.0, True),
        (True, 0.5, 0.0, True),
        (True, 0.0, 0.0, False),
        (False, None, 0.0, False),
        (True, None, 0.01, False),
        (True, None, None, False),
    ],
)
def test_a_budget_of_nothing_refuses_an_actor_that_costs_money_before_it_is_called(
    paid: bool, usd: float | None, budget: float | None, refused: bool
) -> None:
    actor: Any = SimpleNamespace(name="agent", paid=paid, bound=lambda _: {"usd": usd})
    if refused:
        with pytest.raises(SettingError, match=r"budget_usd is 0, but actor 'agent' costs money; raise it"):
            _require_free(actor, {"budget_usd": budget})
    else:
        _require_free(actor, {"budget_usd": budget})


def role(name: str, **identity: Any) -> Any:
    return SimpleNamespace(name=name, identity=identity)


def components(**changes: Any) -> Components:
    fields: dict[str, Any] = {
        "actor": role("python:m:a", tools="t"),
        "optimizer": role("own", model="openai:teacher"),
        "judge": None,
        "budget": None,
        "closing": (),
        "models": {name: name.upper() for name in ("openai:teacher", "openai:judge", "openai:user")},
        "keep_batches": None,
    }
    return Components(**fields | changes)


JUDGE, USER = role("votes", model="openai:judge"), role("openai:user", model="openai:user")


def test_the_identities_of_a_run_are_those_of_who_takes_part_by_role() -> None:
    two = components().identities
    assert two == {
        "actor": {"name": "python:m:a", "identity": {"tools": "t"}},
        "optimizer": {"name": "own", "identity": {"model": "openai:teacher"}},
    }
    assert components(judge=JUDGE, user=USER).identities == two | {
        "judge": {"name": "votes", "identity": {"model": "openai:judge"}},
        "user": {"name": "openai:user", "identity": {"model": "openai:user"}},
    }


RUBRIC = make_scenario("r", rubric=(Criterion(text="kind"),))
PLAYED = make_scenario("p", user=SimulatedUser(goal="a table"))


@pytest.mark.parametrize(
    ("changes", "scenarios", "modes", "done", "roles"),
    [
        ({}, [RUBRIC, PLAYED], ["train", "eval"], (), "teacher"),
        ({}, [RUBRIC, PLAYED], ["eval"], (), ""),
        ({"judge": JUDGE, "user": USER}, [ALONE], ["train"], (), "teacher"),
        ({"judge": JUDGE, "user": USER}, [ALONE, RUBRIC, PLAYED], ["train"], (), "judge teacher user"),
        ({"judge": JUDGE, "user": USER}, [ALONE, RUBRIC, PLAYED], ["eval"], (), "judge user"),
        ({"judge": JUDGE, "user": USER}, [RUBRIC, PLAYED], ["train"], (1,), ""),
        ({"judge": role("own", model="openai:other")}, [RUBRIC], ["eval"], (), ""),
        ({"optimizer": role("none")}, [ALONE], ["train"], (), ""),
    ],
)
def test_only_models_that_will_be_asked_must_answer_first(
    changes: Any, scenarios: Any, modes: list[str], done: Any, roles: str
) -> None:
    people_, phases = components(**changes), [phase(mode) for mode in modes]
    found = reached_first(people_, scenarios, phases, done)
    assert " ".join(sorted(found)) == roles
    assert all(str(model) == f"OPENAI:{name.upper()}" for name, model in found.items())
    known: Any = SimpleNamespace(knows=lambda model, text: model == "OPENAI:USER")
    replayed = reached_first(components(**changes, replay=known), scenarios, phases, done)
    assert [*replayed] == [name for name in found if name == "user"]


class Mocker(ScriptedActor):
    """Has a tool called `find`, and no other."""

    def require_mocks(self, task: Any, mocks: Any) -> None:
        if any(mock.tool != "find" for mock in mocks):
            raise ActorError("there is no such tool")


def test_a_scenario_mocks_only_tools_that_its_actor_has_and_calls_by_itself() -> None:
    def mocked(tool: str, **changes: Any) -> Any:
        return make_scenario("m", mocks=(SimpleNamespace(tool=tool),), source="a.yaml:1", **changes)

    actor = Mocker(lambda _: "3")
    _require_mocks(actor, [ALONE, mocked("find")])
    _require_mocks(ScriptedActor(lambda _: "3"), [ALONE])
    with pytest.raises(SettingError, match=r"^actor: scenario 'm' \(a\.yaml:1\): there is no such tool$"):
        _require_mocks(actor, [ALONE, mocked("find"), mocked("buy")])
    with pytest.raises(
        SettingError, match=r"'scripted' calls its own tools, and scenario 'm' \(a\.yaml:1\) mocks"
    ):
        _require_mocks(ScriptedActor(lambda _: "3"), [mocked("find")])


def test_runs_that_one_may_go_on_with_come_the_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "list_runs", lambda out, task: [out / task / n for n in ("r1", "r2", "r3")])

    def names(**request: Any) -> list[str]:
        known = {"out": tmp_path, "task_id": "t", "resume": None, "run_id": None} | request
        return [path.name for path in prepare._begun(SimpleNamespace(**known))]  # type: ignore[arg-type]

    assert names(resume="latest") == ["r3", "r2", "r1"]
    assert (names(resume="r2"), names(run_id="r1"), names()) == (["r2"], ["r1"], [])
    assert names(resume="r1", run_id="r3") == ["r3", "r1"]
    assert names(resume="latest", out=None) == []


@pytest.mark.parametrize(
    ("changes", "differ"),
    [
        ({"split": "eval"}, {"scenarios", "eval"}),
        ({"stamp": "1" * 64}, {"scenarios"}),
        ({"judge": JUDGE}, {"models"}),
        ({"user": USER}, {"models"}),
        ({"reference": SimpleNamespace(stamp="r")}, {"reference"}),
    ],
)
def test_runs_that_differ_in_what_shapes_answers_have_other_stamps(
    changes: dict[str, Any], differ: set[str]
) -> None:
    def stamps(optimizer: Any, **given: Any) -> dict[str, str]:
        scenario = make_scenario(**{key: given[key] for key in ("split", "stamp") if key in given})
        settings = resolve({"actor": "python:m:a"}, {}, {})
        request: Any = SimpleNamespace(scenarios=[scenario], settings=settings)
        who = components(
            optimizer=optimizer, **{key: given[key] for key in ("judge", "user") if key in given}
        )
        opened: Any = SimpleNamespace(packs={}, library=of([]), reference=given.get("reference"))
        return prepare._stamps(request, who, opened)

    for optimizer in (role("heuristic"), role("own", model="openai:teacher")):
        before, after = stamps(optimizer), stamps(optimizer, **changes)
        assert {key for key in before | after if before.get(key) != after.get(key)} == differ


def test_versions_of_a_run_are_those_of_what_computes_and_a_resumed_one_keeps_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [*prepare._versions(None)] == ["python", "pytest-tfgrpo", "pytest", "numpy"]
    assert prepare._versions("abc")["commit"] == "abc"
    monkeypatch.setattr(prepare, "commit_of", lambda root, environ: "now")
    log: Any = SimpleNamespace(header={"versions": {"commit": "then"}})
    assert prepare._commit(tmp_path, tmp_path, log, {}) == "then"
    assert prepare._commit(tmp_path, tmp_path, None, {}) == "now"
    assert prepare._commit(tmp_path, None, None, {}) is None
