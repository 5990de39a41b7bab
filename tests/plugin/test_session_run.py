"""What items show of a run, and how a run is concluded."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_scenario

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.plugin import hook_calls, session_run
from pytest_tfgrpo.plugin.items import gates
from pytest_tfgrpo.plugin.items.failures import ItemFailed, ItemNotRun
from pytest_tfgrpo.plugin.progress import github
from pytest_tfgrpo.plugin.session_run import SessionRun
from pytest_tfgrpo.report import terminal

A, B = make_scenario("a"), make_scenario("b")
FULL, HALF = make_group([1.0, 1.0]), make_group([0.5, 0.5])


class Live(SimpleNamespace):
    """A run as far as items look at it."""

    def __init__(self, groups: Any = (), dev: Any = (), settled: Any = (), error: object = None) -> None:
        self.log: list[str] = []
        records = SimpleNamespace(
            drawn=lambda epoch, scenarios: scenarios,
            is_settled=lambda epoch, id_: id_ in settled,
            decides=lambda epoch, id_: id_ in dict(dev),
        )
        super().__init__(
            records=records,
            why="no key",
            error=error,
            enter=lambda epoch: self.log.append(f"enter {epoch}"),
            group=lambda epoch, id_: dict(groups).get(id_),
            dev_group=lambda epoch, id_: dict(dev)[id_],
            stop_when_broken=lambda session: self.log.append(f"stop {session}"),
            finish=lambda: self.log.append("finish"),
        )


class Judged:
    """Stands for what judges groups; groups of other scenarios than `fine` fail."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, fine: Sequence[str] = (), *, unrun: bool = False
    ) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.told: list[tuple[object, ...]] = []
        self._fine, self._kind = fine, ItemNotRun if unrun else ItemFailed
        monkeypatch.setattr(session_run, "judge_group", self.judge)
        monkeypatch.setattr(session_run, "note_group", lambda item, group: self.told.append(("note", group)))
        monkeypatch.setattr(session_run, "report_low", lambda *given: self.told.append(("low", *given)))
        monkeypatch.setattr(session_run, "end_unrun", lambda item, why: self.told.append(("unrun", str(why))))

    def judge(self, config: object, scenario: Any, group: object, nodeid: str, **more: object) -> None:
        self.asked.append((config, scenario.id, group, nodeid, more))
        if scenario.id not in self._fine:
            raise self._kind(f"{scenario.id} fails")


def run_of(live: Any, *, learning: bool = False, excused: Sequence[str] = (), **flags: Any) -> Any:
    run: Any = SessionRun.__new__(SessionRun)
    run.live, run._config, run.agent = live, "config", ""
    run._settings = resolve(flags, {}, {}, learning_flag=learning)
    run._excused, run._crashes = frozenset(excused), {}
    run._conclusion, run._telling = None, False
    run.lines, run.notes, run.unsound, run.failed = [], [], "", False
    return run


def item_of(*scenarios: Any) -> Any:
    return SimpleNamespace(
        scenarios=scenarios, phase=SimpleNamespace(epoch=3), nodeid="a.yaml::a", session="session", named=None
    )


@pytest.mark.parametrize(
    ("learning", "excused", "group", "least", "why"),
    [
        (False, (), FULL, 1.0, ""),
        (False, (), None, 1.0, "no key"),
        (False, ("a",), FULL, None, ""),
        (False, ("b",), FULL, 1.0, ""),
        (True, (), FULL, None, ""),
    ],
)
def test_an_item_judges_the_group_of_its_scenario(
    learning: bool, excused: Sequence[str], group: Group | None, least: float | None, why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    judged, live = Judged(monkeypatch, ["a"]), Live({"a": group})
    run_of(live, learning=learning, excused=excused).show(item_of(A))
    assert judged.asked == [("config", "a", group, "a.yaml::a", {"least": least, "why": why})]
    assert judged.told == ([] if group is None else [("note", group)])
    assert live.log == ["enter 3", "stop session"]


@pytest.mark.parametrize(
    ("scenarios", "fine", "unrun", "error", "failure", "told"),
    [
        ([A, B], ["a", "b"], False, None, None, []),
        ([A, B], ["a"], False, None, "b fails", []),
        ([A, B], [], False, None, "a fails\n\nb fails", []),
        ([A, B], ["a"], True, None, None, [("unrun", "b fails")]),
        ([A, B], [], True, None, None, [("unrun", "a fails")]),
        ([A, B], ["a"], True, "broken", "b fails", []),
    ],
)
def test_an_item_fails_with_all_that_is_wrong_with_its_scenarios(
    scenarios: list[Any], fine: list[str], unrun: bool, error: object, failure: str | None, told: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    judged = Judged(monkeypatch, fine, unrun=unrun)
    run = run_of(Live({"a": FULL, "b": FULL}, error=error))
    with pytest.raises(ItemFailed) if failure else nullcontext() as found:
        run.show(item_of(*scenarios))
    assert found is None or str(found.value) == failure
    assert judged.told == told


def test_an_item_fails_where_the_function_of_its_agent_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def agent() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as crash:
        agent()
    Judged(monkeypatch)
    run = run_of(Live({"a": FULL}))
    run._crashes[FULL.rollouts[1].scenario_id, FULL.rollouts[1].seed] = crash.tb
    with pytest.raises(ItemFailed) as found:
        run.show(item_of(A))
    assert found.traceback[-1].name == "agent"


@pytest.mark.parametrize(
    ("scenarios", "groups", "skipped", "judged_ids"),
    [
        ([A], {}, True, []),
        ([A], {"a": FULL}, False, ["a"]),
        ([A, B], {"b": FULL}, False, ["b"]),
        ([A, B], {}, False, []),
    ],
)
def test_a_scenario_that_the_gate_no_longer_needed_is_skipped(
    scenarios: list[Any], groups: Any, skipped: bool, judged_ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Judged(monkeypatch, ["a", "b"])
    run = run_of(Live(groups, settled=["a", "b"]))
    with pytest.raises(pytest.skip.Exception, match="gate already decided") if skipped else nullcontext():
        run.show(item_of(*scenarios))
    assert [asked[1] for asked in judged.asked] == judged_ids


@pytest.mark.parametrize(
    ("scenarios", "dev", "skip", "judged_ids", "failure"),
    [
        ([A], {"a": (None, "its prompt did not change")}, "its prompt did not change", [], None),
        ([A, B], {"a": (None, "unchanged"), "b": (FULL, "")}, None, ["b"], None),
        ([A, B], {"b": (None, "")}, None, ["b"], None),
        ([A, B], {"a": (FULL, ""), "b": (FULL, "")}, None, ["a", "b"], "b fails"),
        ([A], {"a": (FULL, "")}, None, ["a"], None),
    ],
)
def test_an_item_judges_the_dev_scenarios_that_decide(
    scenarios: list[Any], dev: Any, skip: str | None, judged_ids: list[str], failure: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    judged = Judged(monkeypatch, ["a"] if failure else ["a", "b"])
    live = Live(dev=dev)
    live.records.drawn = lambda epoch, known: ()
    ends = pytest.raises(pytest.skip.Exception, match=skip) if skip else nullcontext()
    with pytest.raises(ItemFailed, match=failure) if failure else ends:
        run_of(live).show(item_of(*scenarios))
    assert [asked[1] for asked in judged.asked] == judged_ids
    assert [asked[4] for asked in judged.asked] == [{"why": "no key"}] * len(judged_ids)
    assert judged.told == ([("note", FULL)] if len(scenarios) == 1 and not skip else [])


@pytest.mark.parametrize(
    ("excused", "group", "least", "low"),
    [
        (["a"], HALF, 1.0, True),
        (["a"], HALF, 0.5, False),
        (["a"], FULL, 1.0, False),
        (["a"], make_group([None]), 1.0, False),
        (["a"], make_group([0.0]), 0.5, True),
        ([], HALF, 0.2, False),
    ],
)
def test_a_scenario_below_its_minimum_is_marked_where_the_gate_decides(
    excused: list[str], group: Group, least: float, low: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Judged(monkeypatch, ["a"])
    run_of(Live({"a": group}), excused=excused, min_score=least).show(item_of(A))
    assert judged.told == [("note", group)] + ([("low", group.gt_mean, least)] if low else [])


@pytest.mark.parametrize(
    ("conclusion", "unsound", "named", "shown"),
    [
        ("found", "", None, "shown found"),
        (None, "", None, "fallen the run did not end: no key | no key"),
        ("found", "full", None, "full"),
        ("found", "full", "fast", "shown found"),
    ],
)
@pytest.mark.parametrize(("style", "telling"), [("auto", True), ("no", False), ("line", False)])
def test_the_item_of_a_gate_waits_for_the_end_and_shows_what_was_found(
    conclusion: Any, unsound: str, named: Any, shown: str, style: str, telling: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    live, told = Live(), []
    run = run_of(live)
    run._config = SimpleNamespace(getoption={"tbstyle": style}.get)
    run.unsound = unsound
    run.conclude = lambda: told.append((live.log[-1], run._telling)) or conclusion
    monkeypatch.setattr(gates, "show", lambda item, found: told.append(f"shown {found}"))
    monkeypatch.setattr(gates, "fall", lambda item, *why: told.append(f"fallen {' | '.join(why)}"))
    item = item_of()
    item.named = named
    fails = unsound and named is None
    with pytest.raises(ItemFailed, match=unsound) if fails else nullcontext():
        run.show_gate(item)
    assert told == [("finish", telling), "shown found" if fails else shown]


class Ended:
    """A launch whose run has ended, with what concludes it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, failed: Sequence[bool] | None = None) -> None:
        self.log: list[Any] = []
        self.missed: list[str] = []
        self.broken = ""
        self.prepared = SimpleNamespace(folder=None)
        verdict = None
        if failed is not None:
            verdict = SimpleNamespace(
                failed=failed[0], gates=[SimpleNamespace(failed=one) for one in failed[1:]]
            )
        self.conclusion = SimpleNamespace(report="report", verdict=verdict, run="whole run")
        monkeypatch.setattr(hook_calls, "report_sections", lambda config, run: (["section"], ["broke"]))
        monkeypatch.setattr(terminal, "terminal", self.show)
        monkeypatch.setattr(terminal, "warnings_of", lambda report, every: [f"{report} {every}"])
        monkeypatch.setattr(github, "notes", lambda report, environ: ["note"])
        monkeypatch.setattr(github, "summarise", lambda report, environ: ["summary"])

    def show(self, report: object, **more: object) -> list[str]:
        self.log.append(("show", report, more))
        return ["score"]

    def conclude(self, run: object, **more: object) -> Any:
        self.log.append(("conclude", run, more))
        return self.conclusion

    def write(self, conclusion: object) -> None:
        self.log.append(("write", conclusion is self.conclusion))
        if self.broken == "write":
            raise StoreError("/out is full")

    def record(self, run: object, rollouts: object) -> list[str]:
        self.log.append(("record", run, rollouts))
        if self.broken == "record":
            raise StoreError("/rec is full")
        return ["recorded"]

    def run(self, **flags: Any) -> Any:
        live: Any = Live()
        live.run, live.launch, live.warnings = "run", self, ["warned"]
        live.records.rollouts = {"r1": "rollout"}
        run = run_of(live, **flags)
        run._config = SimpleNamespace(get_verbosity=lambda: 0, invocation_params=SimpleNamespace(dir="/here"))
        return run


def test_a_run_is_concluded_once_with_all_that_was_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Ended(monkeypatch)
    run = ended.run()
    assert run.ended is None
    assert run.conclude() is run.conclude() is ended.conclusion
    assert run.ended == "whole run"
    assert ended.log == [
        ("conclude", "run", {"warnings": ("warned", "broke"), "sections": ["section"], "files": ""}),
        ("show", "report", {"verbosity": 0, "told_above": False, "warned": True}),
        ("write", True),
        ("record", "run", ("rollout",)),
    ]
    assert (run.lines, run.notes, run.failed, run.unsound) == (["score", "recorded"], [], False, "")
    assert run.warnings == ["report False"]


@pytest.mark.parametrize(
    ("agent", "verbosity", "shown"),
    [("", 0, 0), ("", 2, 2), ("a", 0, -1), ("a", -1, -1), ("a", 1, 1), ("a", 2, 2)],
)
def test_one_of_several_agents_is_brief_as_a_comparison_follows(
    agent: str, verbosity: int, shown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Ended(monkeypatch)
    run = ended.run()
    run.agent, run._telling = agent, True
    run._config.get_verbosity = lambda: verbosity
    ended.prepared.folder = Path("/here/out/run 1")
    run.conclude()
    assert run.lines == ["score", "file:///here/out/run%201/report.html", "recorded"]
    assert ended.log[0][2]["files"] == "out/run 1"
    assert ended.log[1][2] == {"verbosity": shown, "told_above": True, "warned": True}


@pytest.mark.parametrize(
    ("failed", "fails"),
    [
        (None, False),
        ([False], False),
        ([True], True),
        ([False, False], False),
        ([False, False, True], True),
    ],
)
def test_a_gate_that_failed_fails_whatever_became_of_its_item(
    failed: Sequence[bool] | None, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Ended(monkeypatch, failed=failed).run(gate_min_mean=0.5)
    run.conclude()
    assert run.failed is fails
    assert (run.lines, run.notes) == (["score", "recorded"], ["note"])
    assert run.warnings == ["report False", "summary"]


@pytest.mark.parametrize(
    ("broken", "missed", "unsound", "lines"),
    [
        (
            "",
            ["no answer for a", "no answer for b"],
            "no answer for a\nno answer for b",
            ["score", "recorded"],
        ),
        ("write", [], "/out is full", ["score", "tfgrpo: /out is full", "recorded"]),
        ("record", [], "/rec is full", ["score", "tfgrpo: /rec is full"]),
    ],
)
def test_what_is_not_written_is_said_and_the_rest_is_written(
    broken: str, missed: list[str], unsound: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Ended(monkeypatch)
    ended.broken, ended.missed = broken, missed
    run = ended.run()
    run.conclude()
    assert (run.unsound, run.lines) == (unsound, lines)


@pytest.mark.parametrize(("error", "lines"), [(None, []), ("x", ["tfgrpo: the run failed: no key"])])
def test_a_run_without_an_end_has_nothing_to_report(error: object, lines: list[str]) -> None:
    live = Live(error=error)
    live.run = None
    run = run_of(live)
    assert run.conclude() is None
    assert (run.lines, run.ended) == (lines, None)
