"""What the arguments of `run` amount to before anything runs: the job, its scenarios, and what shows it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.api import SUITE, Counter, scenario

from pytest_tfgrpo.api import hooked, runs
from pytest_tfgrpo.api.agents import open_agent, read_agents
from pytest_tfgrpo.api.progress import Lines, TerminalPlace
from pytest_tfgrpo.api.runs import Runs, open_runs
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.settings import from_arguments
from pytest_tfgrpo.plugin.progress.live_line import Moment, Part


def three(context: Any) -> str:
    return "3"


def opened(
    root: Path, scenarios: Any = SUITE, *, given: Any = ((), None, ()), learning: bool = True, **more: Any
) -> Runs:
    return open_runs(root, scenarios, given, learning, None, {"actor": three, "progress": False, **more})


def scenarios_of(found: Runs, name: str = "") -> list[str]:
    return [one.id for one in found.launches[name].prepared.job.scenarios]


def test_a_run_has_the_task_of_its_settings_else_that_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "my suite"
    folder.mkdir()
    assert opened(folder, task_id="mine").task == "mine"
    alone = opened(folder)
    assert alone.task == "my-suite"
    assert (alone.listed, list(alone.launches)) == (False, [""])
    assert scenarios_of(alone) == ["a", "b", "c", "d"]
    several = opened(folder, actor={"x": three, "y": three})
    assert (several.listed, list(several.launches)) == (True, ["x", "y"])


def test_what_is_not_run_without_learning_is_counted(tmp_path: Path) -> None:
    unsplit = [{key: value for key, value in scenario(f"u{n}").items() if key != "split"} for n in range(9)]
    found = opened(tmp_path, [*SUITE, *unsplit], learning=False)
    taken = scenarios_of(found)
    assert taken[:2] == ["c", "d"]
    assert found.unrun == 9 - (len(taken) - 2) > 0
    assert opened(tmp_path, [*SUITE, *unsplit]).unrun == 0
    assert opened(tmp_path, SUITE, learning=False).unrun == 0


def test_a_run_is_shown_where_that_was_not_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "follow", lambda: "a follower")
    assert opened(tmp_path, progress=True).follow == "a follower"  # type: ignore[comparison-overlap]
    assert opened(tmp_path).follow is None
    for wrong in (None, 1, "no"):
        with pytest.raises(SettingError, match=f"^progress must be True or False, not {wrong!r}$"):
            opened(tmp_path, progress=wrong)


def test_scenario_files_below_the_folder_are_all_taken_where_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for folder, name in ((tmp_path, "one"), (tmp_path / "deep", "two")):
        (folder / f"{name}.scenario.yaml").write_text(
            f"id: {name}\nsplit: train\nprompt: How many has {name}?\nchecks: [{{kind: exact, value: '3'}}]\n"
        )
    assert sorted(scenarios_of(opened(tmp_path, None))) == ["one", "two"]
    assert scenarios_of(opened(tmp_path, "deep")) == ["two"]


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        (((Counter(),), None, ()), {}, "rewarders: .* has no attribute 'weight'; add it"),
        (((Counter,), None, ()), {}, "rewarders: 'Counter' is a class; give an instance"),
        (((), {"exact": None}, ()), {}, "checks: the check kind 'exact' is built in; use another name"),
        (((), None, (SimpleNamespace(name="x"),)), {}, "gate_rules: .* has no attribute 'judge'; add it"),
        (
            ((), None, ()),
            {"optimizer": SimpleNamespace(name="x", propose=0)},
            "optimizer: .* no attribute 'identity'",
        ),
    ],
)
def test_objects_that_lack_something_are_named(given: Any, more: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=f"^{said}"):
        opened(tmp_path, given=given, **more)


def test_all_objects_that_are_given_are_added_to_those_built_in(tmp_path: Path) -> None:
    def one(name: str, **more: Any) -> Any:
        return SimpleNamespace(name=name, **more)

    rules = [one("r1", judge=three), one("r2", judge=three)]
    kind: Any = SimpleNamespace()
    found = runs._supplied(((), {"own": kind}, rules), None)
    assert found.rules == tuple(rules)
    assert found.kinds == {**runs.KINDS, "own": kind}
    with pytest.raises(SettingError, match=r"^gate_rules: .* has no attribute 'judge'; add it$"):
        runs._supplied(((), None, [rules[0], one("r3")]), None)


def test_an_optimizer_that_is_given_is_named_in_the_settings(tmp_path: Path) -> None:
    own = SimpleNamespace(name="mine", identity={}, propose=lambda context: None)
    found = opened(tmp_path, optimizer=own).launches[""]
    assert found.settings.values["optimizer"] == "mine"
    assert found.supplied.optimizer is own  # type: ignore[comparison-overlap]


def test_telemetry_is_opened_where_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_tfgrpo.telemetry.sinks import otel

    asked: list[Any] = []
    monkeypatch.setattr(otel, "open_telemetry", lambda settings, environ: asked.append(settings) or "tracing")
    assert runs._tracing(from_arguments({}, learning=True)) is None
    assert asked == []
    assert runs._tracing(from_arguments({"otel": True}, learning=True)) == "tracing"  # type: ignore[comparison-overlap]


def test_agents_of_a_list_share_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    real = runs.open_launch
    monkeypatch.setattr(runs, "open_launch", lambda request: given.append(request) or real(request))
    opened(tmp_path, actor={"x": three, "y": three}, budget_tokens=100)
    opened(tmp_path, budget_tokens=100)
    first, second, alone = given
    assert first.shared.budget is not None
    assert second.shared.budget is not None
    assert alone.shared.budget is None
    assert first.shared.slots is second.shared.slots
    assert (first.partial, alone.elsewhere is None) == ("", False)
    opened(tmp_path, limit=1)
    assert given[-1].partial != ""
    (tmp_path / "a.scenario.yaml").write_text("id: a\nprompt: p\nchecks: [{kind: exact, value: '3'}]\n")
    opened(tmp_path, None)
    assert given[-1].elsewhere is None


def test_names_of_functions_are_cut_and_numbered_where_they_are_the_same() -> None:
    def long(context: Any) -> str:
        return ""

    long.__qualname__ = "n" * 50
    long.__name__ = "n" * 50
    upper, lower = (lambda context: "" for _ in range(2))
    upper.__qualname__ = upper.__name__ = "Solve"
    lower.__qualname__ = lower.__name__ = "solve"
    found = read_agents([long, long, upper, lower]).setting
    assert found is not None
    names = [line.partition(" = ")[0] for line in found.splitlines()]
    assert names == [f"{'n' * 36}-1", f"{'n' * 36}-2", "Solve-1", "solve-2"]
    assert read_agents((three, "offline")).setting is not None
    for wrong in ((three, (three,)), [three, {}], [[]]):
        with pytest.raises(SettingError, match=r"^actor: .* is .*, not an agent$"):
            read_agents(wrong)


def test_an_actor_that_is_half_one_says_what_it_lacks(tmp_path: Path) -> None:
    class Half(Counter):
        paid = property()  # type: ignore[assignment]

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    half = Half()
    settings = from_arguments({}, learning=True)
    agents = read_agents(half)
    with pytest.raises(SettingError, match=r"^actor: .* has no attribute 'paid'; add it$"):
        open_agent(agents, settings, agents.setting)
    assert open_agent(agents, settings, "offline") is None


def test_a_hook_that_breaks_is_named_and_none_is_looked_for_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def main(arguments: list[str], plugins: list[Any]) -> None:
        asked.append(arguments)
        supply = lambda *, config, spec: f"made {spec}" if spec != "none" else None  # noqa: E731
        config: Any = SimpleNamespace(hook=SimpleNamespace(pytest_tfgrpo_optimizer=supply))
        assert plugins[0].pytest_cmdline_main(config) == 0

    monkeypatch.setattr(hooked.pytest, "main", main)
    assert hooked.hooked_optimizers(tmp_path, []) == {}
    assert asked == []
    assert hooked.hooked_optimizers(tmp_path, ["a", "none", "b"]) == {"a": "made a", "b": "made b"}
    assert asked == [[f"--rootdir={tmp_path}", str(tmp_path)]]

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no network")

    monkeypatch.setattr(hooked.pytest, "main", broken)
    with pytest.raises(
        SettingError, match=r"^the hook pytest_tfgrpo_optimizer broke: RuntimeError: no network$"
    ):
        hooked.hooked_optimizers(tmp_path, ["a"])
    without: Any = SimpleNamespace(hook=SimpleNamespace())
    assert hooked._Asking(["a"]).pytest_cmdline_main(without) == 0


def test_a_line_fits_its_terminal_beside_those_of_others_and_a_broken_place_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Place:
        width = 20
        shown: list[str] = []  # noqa: RUF012 - of one test
        broken = False

        def show(self, text: str) -> None:
            if self.broken:
                raise RuntimeError("the kernel has gone")
            self.shown.append(text)

        keep = show

    monkeypatch.setenv("COLUMNS", "33")
    assert TerminalPlace(None).width == 32  # type: ignore[arg-type]
    place = Place()
    lines = Lines(place, 2)
    moment = Moment(1.0, 0.5, [Part("123456789", "12345678", "1")])
    lines.set("a", moment)
    lines.set("b", moment)
    assert place.shown == ["12345678", "12345678 | 12345678"]
    assert max(map(len, place.shown)) < place.width
    lines.set("b", moment)
    assert len(place.shown) == 2, "the same line is not written again"
    place.broken = True
    lines.keep("x")
    place.broken = False
    lines.set("a", moment)
    lines.close()
    assert len(place.shown) == 2
