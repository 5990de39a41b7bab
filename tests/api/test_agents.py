"""The argument `actor` of a run: functions, objects, lists and mappings of them."""

import asyncio
import functools
import json
import threading
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from support.api import SMALL, SUITE, Counter, scenario

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.core.errors import ResumeError, ScenarioError, SettingError
from pytest_tfgrpo.core.records import Run


def three(context: tfgrpo.AgentContext) -> str:
    return "3"


async def four(context: tfgrpo.AgentContext) -> str:
    await asyncio.sleep(0)
    return "4"


class Machine:
    """An object that is called like a function, of a class that may have any name of its own."""

    name = "machine"

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def __call__(self, context: tfgrpo.AgentContext) -> dict[str, Any]:
        return {"answer": self.answer}

    async def solve(self, context: tfgrpo.AgentContext) -> str:
        return self.answer


class Wrapped:
    """An actor that passes on what it does not do itself."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
        found: tfgrpo.Trajectory = await self._inner(call)
        return found


class Frame:
    """What data frames have in common."""

    def __iter__(self) -> Any:
        return iter(["id", "prompt"])

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        return []


def swept(root: Path, actor: Any, **settings: Any) -> Any:
    return tfgrpo.run(root, SUITE, actor=actor, learning=False, **settings)


@pytest.mark.parametrize(
    ("actor", "name", "answer"),
    [
        (three, "function:three", "3"),
        (four, "function:four", "4"),
        (lambda context: "5", "function:lambda", "5"),
        (Machine("6"), "function:Machine", "6"),
        (Machine("7").solve, "function:Machine.solve", "7"),
        (functools.partial(lambda tail, context: context.task.id + tail, "!"), "function:lambda", "c!"),
        (Counter(), "counter", None),
        (Wrapped(Counter()), "counter", None),
        (MagicMock(return_value="8", paid=False), "function:MagicMock", "8"),
        ("nothing", "nothing", ""),
    ],
)
def test_anything_that_is_called_with_a_context_is_an_agent(
    actor: Any, name: str, answer: str | None, tmp_path: Path
) -> None:
    result = swept(tmp_path, actor)
    assert isinstance(result, tfgrpo.RunResult)
    assert result.run.identities["actor"]["name"] == name == result.run.settings["actor"]
    assert answer in (None, result.rows()[0]["answer"])


def test_a_function_runs_on_a_thread_of_the_program_too(tmp_path: Path) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(swept(tmp_path, three)))
    thread.start()
    thread.join()
    assert found[0].passed


def test_agents_by_name_run_side_by_side_and_are_compared(tmp_path: Path) -> None:
    seen: list[Any] = []
    results: Any = swept(
        tmp_path,
        {"small": three, "large": four, "same": Counter(), "too": Counter(), "none": "nothing"},
        out="out",
        observe=seen.append,
    )
    assert list(results) == ["small", "large", "same", "too", "none"]
    assert {name: one.run.task_id.rpartition(".")[2] for name, one in results.items()} == {
        name: name for name in results
    }
    assert sum(isinstance(one, tfgrpo.Rollout) for one in seen) == 5 * 2
    assert [row["agent"] for row in results.rows()] == [name for name in results for _ in range(2)]
    assert {row["agent"]: row["answer"] for row in results.rows()}["large"] == "4"
    assert results.page is not None
    assert "small" in results.page.read_text()
    ids = {one.run.run_id.removesuffix(f"-{name}") for name, one in results.items()}
    assert ids == {results.page.stem}
    assert results["small"].rows()[0]["agent"] == "function:small"


def test_a_list_names_agents_as_the_program_does(tmp_path: Path) -> None:
    agents = [three, lambda c: "a", lambda c: "b", Machine("1"), "other = nothing"]
    results: Any = swept(tmp_path, agents)
    assert list(results) == ["three", "lambda-1", "lambda-2", "Machine", "other"]
    answers = {row["agent"]: row["answer"] for row in results.rows()}
    assert (answers["lambda-1"], answers["lambda-2"]) == ("a", "b")
    assert results.page is None
    assert "not sure whether lambda-1 is better or worse than three" in repr(results)


@pytest.mark.parametrize("actor", [[three], {"three": three}, ["nothing"], "three = nothing"])
def test_a_list_of_one_is_a_list(actor: Any, tmp_path: Path) -> None:
    results: Any = swept(tmp_path, actor)
    assert isinstance(results, tfgrpo.RunResults)
    assert len(results) == 1
    assert len(repr(results).splitlines()) == 1
    assert len(results.rows()) == 2


def test_a_coroutine_runs_several_too_and_one_budget_is_for_all(tmp_path: Path) -> None:
    async def cell() -> tfgrpo.RunResults:
        return await tfgrpo.arun(tmp_path, SUITE, actor=[three, four], learning=False, out="out")

    results = asyncio.run(cell())
    assert [one.run.status for one in results.values()] == ["complete"] * 2
    assert results.page is not None


def test_scenarios_and_domains_choose_among_the_agents(tmp_path: Path) -> None:
    suite = [scenario("a", "eval", agents=["small"]), scenario("b", "eval", prompt="Another?", domain="x")]
    results: Any = tfgrpo.run(
        tmp_path,
        suite,
        actor={"small": three, "large": four, "idle": three},
        learning=False,
        domain_agents="x = large",
    )
    assert {(row["agent"], row["scenario"]) for row in results.rows()} == {("small", "a"), ("large", "b")}
    assert list(results) == ["small", "large"]
    for_large: dict[str, Any] = {"actor": {"a": three, "b": three}, "domain_agents": "general = b"}
    assert list(tfgrpo.run(tmp_path, SUITE, learning=False, **for_large)) == ["b"]
    with pytest.raises(ScenarioError, match=r"scenarios\[0\].*#/agents: unknown agent 'small'"):
        tfgrpo.run(tmp_path, suite, actor={"big": three, "large": four}, learning=False)


def test_a_proxy_that_stands_for_nothing_is_named(tmp_path: Path) -> None:
    class Unbound:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("no request")

        def __call__(self, context: tfgrpo.AgentContext) -> str:
            return "3"

    for actor in (Unbound(), {"a": Unbound()}):
        with pytest.raises(
            SettingError, match=r"a 'Unbound' object .* RuntimeError: no request; give a function"
        ):
            tfgrpo.run(tmp_path, SUITE, actor=actor, learning=False)


@pytest.mark.parametrize(
    ("actor", "message"),
    [
        ([], "actor: there is no agent in it"),
        ({}, "actor: there is no agent in it"),
        ([three, None], "actor: an entry of the list is None, not an agent|actor: .* is None, not an agent"),
        ({"a": [three]}, r"actor: a is \[.*, not an agent"),
        ({"a b": three}, "actor: 'a b' cannot be the name of an agent; use up to 40 letters"),
        ({3: three}, "actor: 3 cannot be the name of an agent"),
        ({"a": three, "A": four}, "must name each agent differently"),
        ([three] * 6, "must list at most 5 agents"),
        ([three, "three = nothing"], "must name each agent differently"),
        (["nothing", "nothing"], "must list each agent once"),
        (lambda: "3", "actor: 'lambda' must take one argument, the context, not"),
        ([three, lambda prompt, temperature: ""], "actor: 'lambda' must take one argument"),
        ({"x": Machine}, "actor: 'Machine' is a class; name an instance"),
        (None, "no actor is given; write actor=your_function"),
        (object(), "actor: 'object' is a 'object' object, not a callable"),
    ],
)
def test_what_is_no_agent_is_an_error_before_any_call(tmp_path: Path, actor: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        tfgrpo.run(tmp_path, SUITE, actor=actor, learning=False, out="out")
    assert list(tmp_path.iterdir()) == []


def test_a_function_in_the_place_of_the_folder_is_named() -> None:
    with pytest.raises(SettingError, match=r"root is a function, not a folder; write actor=.*scenarios="):
        tfgrpo.run(three, SUITE)  # type: ignore[call-overload]


def test_a_sandbox_cannot_hold_a_function(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="sandbox=bwrap cannot isolate a function"):
        swept(tmp_path, three, sandbox="bwrap")


@pytest.mark.parametrize(
    ("scenarios", "message"),
    [
        ([], "scenarios: the list is empty"),
        ([SUITE[0], 3], r"scenarios\[1\] is 3; give a file"),
        (Frame(), r"a data frame; give its rows: scenarios\.to_dict\('records'\)"),
        (3, "scenarios must be files, folders, records or mappings, not 3"),
        (
            [{**SUITE[0], "tags": float("nan")}],
            r"scenarios\[0\]: #/tags: JSON cannot hold the value: Out of range",
        ),
        ([SUITE[0], {**SUITE[1], "splitt": "eval"}], r"scenarios\[1\].*splitt"),
        (
            [{"id": "x", "prompt": "p", "checks": [{"kind": "number", "value": "y"}]}],
            r"scenarios\[0\].*value",
        ),
    ],
)
def test_a_wrong_scenario_is_named_by_its_place_and_key(scenarios: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=message):
        tfgrpo.run(tmp_path, scenarios, actor=three)


def cut(root: Path, actor: Any) -> None:
    """Begin a run that ends after its first rollout."""

    def observe(record: object) -> None:
        if isinstance(record, tfgrpo.Rollout):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tfgrpo.run(root, SUITE, actor=actor, observe=observe, task_id="t", **SMALL)


def again(root: Path, actor: Any) -> Any:
    return tfgrpo.run(root, SUITE, actor=actor, resume="latest", task_id="t", **SMALL)


def make(answer: str) -> Any:
    def solve(context: tfgrpo.AgentContext) -> str:
        return answer

    return solve


def test_a_run_goes_on_with_the_same_function_and_with_no_other(tmp_path: Path) -> None:
    cut(tmp_path, make("3"))
    with pytest.raises(ResumeError, match="actor changed since"):
        again(tmp_path, make("4"))
    assert again(tmp_path, make("3")).run.status == "complete"


def test_runs_of_several_agents_go_on_together(tmp_path: Path) -> None:
    cut(tmp_path, {"a": make("3"), "b": make("4")})
    folders = {path.name for path in tmp_path.glob("out/t.*/runs/*")}
    results = again(tmp_path, {"a": make("3"), "b": make("4")})
    assert {one.folder.name for one in results.values()} == folders
    assert [one.run.status for one in results.values()] == ["complete"] * 2


def test_a_run_of_a_list_that_had_ended_is_read_when_the_others_go_on(tmp_path: Path) -> None:
    async def held(context: tfgrpo.AgentContext) -> str:
        if waits:
            await asyncio.Event().wait()
        return "3"

    def observe(record: object) -> None:
        if isinstance(record, Run):
            raise KeyboardInterrupt

    waits: list[int] = [1]
    held.identity = {"version": 1}  # type: ignore[attr-defined]
    agents = {"quick": make("3"), "held": held}
    with pytest.raises(KeyboardInterrupt):
        tfgrpo.run(tmp_path, SUITE, actor=agents, observe=observe, task_id="t", **SMALL)
    reports = {
        path.parts[-4]: json.loads(path.read_text()) for path in tmp_path.glob("out/t.*/runs/*/report.json")
    }
    assert {name: one["status"] for name, one in reports.items()} == {
        "t.quick": "complete",
        "t.held": "cancelled",
    }
    waits.clear()
    results = again(tmp_path, agents)
    assert [one.run.status for one in results.values()] == ["complete"] * 2
    assert results["quick"].run.run_id == reports["t.quick"]["run_id"]


def test_several_agents_spend_one_budget(tmp_path: Path) -> None:
    def costly(context: tfgrpo.AgentContext) -> tfgrpo.Trajectory:
        return tfgrpo.Trajectory(answer="3", frames=(tfgrpo.Frame(kind="model", name="m", tokens=10),))

    suite = [scenario(f"s{n}", "eval") for n in range(20)]
    arguments: Any = {"learning": False, "budget_tokens": 100, "concurrency": 2}
    alone = tfgrpo.run(tmp_path, suite, actor=costly, **arguments).rows()
    both = tfgrpo.run(tmp_path, suite, actor={"a": costly, "b": costly}, **arguments).rows()
    spent = [sum(int(row["tokens"] or 0) for row in rows) for rows in (alone, both)]
    assert 100 <= spent[0] < 130
    assert 100 <= spent[1] < 130


def test_the_answers_of_a_function_are_recorded_and_replayed(tmp_path: Path) -> None:
    first = swept(tmp_path, make("3"), record="rec.json")
    replayed = swept(tmp_path, "replay:rec.json")
    assert [row["answer"] for row in replayed.rows()] == [row["answer"] for row in first.rows()] == ["3", "3"]
    assert json.loads((tmp_path / "rec.json").read_text().splitlines()[0])
