"""Runs, libraries and agents as you name them: what is found, and what is said where it is not one."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience, make_rollout, make_scenario
from support.journals import group_events, make_training_group, write_run
from support.report.families import report_of
from support.sweeps import make_run

from pytest_tfgrpo.cli import lookup
from pytest_tfgrpo.cli.lookup import (
    FoundRollout,
    committed_file,
    find_agents,
    find_library,
    find_rollout,
    find_run,
    find_scenario,
    other_tasks,
    read_report,
    require_promotable,
    run_before,
)
from pytest_tfgrpo.cli.project import Project
from pytest_tfgrpo.core.errors import JournalError, SettingError, StoreError
from pytest_tfgrpo.core.lessons import Library, Operation
from pytest_tfgrpo.core.records import Phase, PhaseResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.learning.library.library import carry_out, empty, of, save_library
from pytest_tfgrpo.runs.journal.journal_contents import load_run

AGENTS = "a = python:m:a, b = python:m:b, long.a = python:m:c"


def project_of(root: Path, runs: Mapping[str, Sequence[str]] | None = None, **settings: Any) -> Project:
    """Return a project with begun runs, by task."""
    for task, names in (runs or {}).items():
        for name in names:
            folder = root / "out" / task / "runs" / name
            folder.mkdir(parents=True)
            (folder / "journal.jsonl").write_text("{}\n")
    return Project(root=root, settings=resolve({"task_id": "demo"} | settings, {}, {}))


RUNS = {"demo": ["0101-aa", "0102-ab", "0103-b"]}


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("latest", "0103-b"),
        ("previous", "0102-ab"),
        ("0101-aa", "0101-aa"),
        ("0102", "0102-ab"),
        ("ab", "0102-ab"),
    ],
)
def test_a_run_is_found_by_its_id_a_part_of_it_or_its_age(wanted: str, name: str, tmp_path: Path) -> None:
    assert find_run(project_of(tmp_path, RUNS), wanted).name == name


def test_a_whole_id_names_its_run_though_others_begin_so(tmp_path: Path) -> None:
    assert find_run(project_of(tmp_path, {"demo": ["aa", "aab"]}), "aa").name == "aa"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("01", r"'01' matches several runs: 0101-aa, 0102-ab, 0103-b"),
        ("zz", r"no run 'zz' of task 'demo' under .* \(latest: 0101-aa, 0102-ab, 0103-b\)"),
        ("", r"no run ''"),
        ("101", r"no run '101'"),
    ],
)
def test_a_run_that_is_not_there_or_not_one_is_an_error(wanted: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=said):
        find_run(project_of(tmp_path, RUNS), wanted)


@pytest.mark.parametrize(
    ("runs", "wanted", "said"),
    [
        ({"demo": ["one"]}, "previous", r"\(latest: one\)"),
        ({}, "latest", r"there are none yet; run pytest --tfgrpo"),
        ({"demo.a": ["one"], "demo.b": ["one"]}, "latest", r"add --task-id demo.a or demo.b\)"),
    ],
    ids=["one-run", "none", "of-agents"],
)
def test_the_error_says_which_runs_there_are(runs: Any, wanted: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=said):
        find_run(project_of(tmp_path, runs, actor=AGENTS), wanted)


def test_of_many_runs_the_latest_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "SHOWN", 2)
    with pytest.raises(JournalError, match=r"several runs: 0102-ab, 0103-b$"):
        find_run(project_of(tmp_path, RUNS), "01")


SHARED = {
    "demo.a": ["01-a", "02-a", "03-a", "04-a"],
    "demo.b": ["01-b", "02-b", "03-b"],
    "demo.long.a": ["02-long.a"],
}


def test_the_agents_of_a_list_are_found_by_the_run_that_they_share(tmp_path: Path) -> None:
    project = project_of(tmp_path, SHARED, actor=AGENTS)
    assert {n: p.name for n, p in find_agents(project, "latest").items()} == {"a": "03-a", "b": "03-b"}
    assert {n: p.name for n, p in find_agents(project, "02").items()} == {
        "a": "02-a",
        "b": "02-b",
        "long.a": "02-long.a",
    }


@pytest.mark.parametrize(
    ("runs", "wanted", "said"),
    [
        (SHARED, "0", r"'0' matches 3 runs that .* a, b, long.a share .* \(latest: 02, 03\)"),
        (SHARED, "04", r"'04' is no run that several .* \(latest: 02, 03\)"),
        ({}, "latest", r"'latest' is no run that several .* \(latest: none\)"),
    ],
    ids=["several", "of-one-agent", "none"],
)
def test_agents_without_the_one_run_that_is_wanted_are_an_error(
    runs: Any, wanted: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "SHOWN", 2)
    with pytest.raises(JournalError, match=said):
        find_agents(project_of(tmp_path, runs, actor=AGENTS), wanted)


def test_one_agent_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="compares the agents of a list"):
        find_agents(project_of(tmp_path, RUNS), "latest")


def test_a_run_is_compared_with_the_one_before_it_a_named_one_or_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_of(tmp_path, RUNS)
    runs = tmp_path / "out" / "demo" / "runs"
    assert run_before(project, runs / "0103-b", "previous").name == "0102-ab"
    assert run_before(project, runs / "0103-b", "aa").name == "0101-aa"
    monkeypatch.chdir(runs)
    assert run_before(project, runs / "0103-b", "0101-aa") == runs / "0101-aa"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("previous", "there is no run before 0101-aa to compare it with"),
        ("nowhere/0101-aa", "'nowhere/0101-aa' is not the folder of a run: it has no journal.jsonl"),
        ("nowhere", "no run 'nowhere'"),
    ],
)
def test_a_run_to_compare_with_that_is_not_there_is_an_error(wanted: str, said: str, tmp_path: Path) -> None:
    project = project_of(tmp_path, RUNS)
    with pytest.raises(JournalError, match=said):
        run_before(project, tmp_path / "out" / "demo" / "runs" / "0101-aa", wanted)


@pytest.mark.parametrize(
    ("library", "task", "file"),
    [
        ("none", "demo", None),
        ("lib.json", "demo", "lib.json"),
        ("lib-{agent}.json", "demo.b", "lib-b.json"),
        ("lib-{agent}.json", "demo.long.a", "lib-long.a.json"),
    ],
)
def test_the_committed_library_is_that_of_the_task(
    library: str, task: str, file: str | None, tmp_path: Path
) -> None:
    project = project_of(tmp_path, actor=AGENTS, library=library, task_id=task)
    assert committed_file(project) == (None if file is None else tmp_path / file)


@pytest.mark.parametrize(
    ("actor", "task", "said"),
    [
        (AGENTS, "demo", "--task-id demo.a$"),
        (AGENTS, "demo-b", "--task-id demo-b.a$"),
        ("python:m:a", "demo", "NAME$"),
    ],
)
def test_a_library_of_each_agent_needs_the_task_of_one(
    actor: str, task: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match=said):
        committed_file(project_of(tmp_path, actor=actor, library="lib-{agent}.json", task_id=task))


def test_the_runs_of_agents_are_named_where_there_are_any(tmp_path: Path) -> None:
    assert other_tasks(project_of(tmp_path, {"demo.b": ["one"]}, actor=AGENTS)).endswith("--task-id demo.b")
    assert other_tasks(project_of(tmp_path, actor=AGENTS, task_id="other")) == ""


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": "tfgrpo.report/0"}'], ids=["torn", "list", "other-schema"]
)
def test_a_report_that_is_none_is_an_error_and_a_missing_one_is_not(text: str, tmp_path: Path) -> None:
    assert read_report(tmp_path) is None
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(JournalError, match=r"report\.json"):
        read_report(tmp_path)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"gate": {"outcome": "perhaps"}}, "/gate"),
        ({"warnings": 3}, "/warnings"),
        ({"scenarios": [{"id": 7}]}, "/scenarios/0"),
    ],
)
def test_a_report_with_a_value_of_another_kind_is_refused_with_its_place(
    change: Mapping[str, Any], place: str, tmp_path: Path
) -> None:
    report = json.loads(json.dumps(report_of(make_run({"a": [0.5]}, {"a": [1.0]}, {"t": [1.0]}))))
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    assert read_report(tmp_path) is not None
    path.write_text(json.dumps(report | change))
    with pytest.raises(JournalError, match=rf"report\.json is no report: {place}"):
        read_report(tmp_path)
    path.write_text("[" * 100_000)
    with pytest.raises(JournalError, match=r"cannot read .*report\.json: it is nested too deeply"):
        read_report(tmp_path)


def test_a_rollout_of_a_scenario_that_the_run_does_not_have_is_an_error_of_the_file(tmp_path: Path) -> None:
    known, other = make_scenario("known"), make_scenario("other")
    folder = tmp_path / "out" / "demo" / "runs" / "run1"
    write_run(folder, group_events(make_training_group([1, 0], other)), [known])
    with pytest.raises(JournalError, match=r"journal\.jsonl:2: .* the run has no scenario 'other'"):
        find_rollout(project_of(tmp_path), "e1.other.r0")


def test_a_check_with_a_value_of_another_kind_is_an_error_of_the_file(tmp_path: Path) -> None:
    wrong = Check(kind="number", params={"value": "four"})
    scenario = make_scenario(checks=(wrong,))
    write_run(tmp_path, group_events(make_training_group([1, 0], scenario)), [scenario])
    with pytest.raises(JournalError, match=r"a check of kind 'number': /value: 'four' is not of type number"):
        load_run(tmp_path)


def learned(root: Path, epochs: int = 2) -> Project:
    """Return a project with one run that adds a lesson in each epoch."""
    library = empty()
    events: list[tuple[str, Any]] = []
    for epoch in range(1, epochs + 1):
        lesson = Operation(kind="add", experience=make_experience(epoch, epoch=epoch))
        made = carry_out(library, [lesson], cap=50, epoch=epoch)
        library = made.library
        phase = Phase(epoch=epoch, mode="train", temperature=0.7, rollouts=2, scenarios=("count-words",))
        ended = PhaseResult(phase=phase, groups=(), status="complete", library_hash=library.hash)
        events += [("revision", to_wire(made)), ("phase", to_wire(ended))]
    write_run(root / "out" / "demo" / "runs" / "run1", events, epochs=epochs, library=empty())
    return project_of(root, library="lib.json")


def ids(library: Library) -> list[str]:
    return sorted(e.id for e in library.experiences)


def test_a_committed_library_that_is_not_there_is_empty(tmp_path: Path) -> None:
    project = project_of(tmp_path, library="lib.json")
    assert find_library(project, "committed") == (empty(), ())
    save_library(tmp_path / "lib.json", of([make_experience(1)]))
    assert ids(find_library(project, "committed")[0]) == ids(of([make_experience(1)]))
    assert find_library(project, "lib.json")[0] == find_library(project, "committed")[0]
    assert find_library(project_of(tmp_path), "committed") == (empty(), ())


@pytest.mark.parametrize(
    ("wanted", "lessons"),
    [("latest", 2), ("run1", 2), ("run1@2", 2), ("run1@1", 1), ("@1", 1), ("@0", 0)],
)
def test_a_library_is_that_of_a_run_or_of_one_of_its_epochs(
    wanted: str, lessons: int, tmp_path: Path
) -> None:
    library, history = find_library(learned(tmp_path), wanted)
    assert len(library.experiences) == lessons
    assert [e.epoch for e in history] == [1, 2]


@pytest.mark.parametrize("epoch", ["3", "x", "-1"])
def test_an_epoch_that_a_run_has_not_is_an_error(epoch: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"there is no epoch '{epoch}' in run run1"):
        find_library(learned(tmp_path), f"run1@{epoch}")


def sought(root: Path) -> Project:
    """Return a project with two runs: ``run1`` of groups, one rollout loose, and a later one, killed."""
    runs = root / "out" / "demo" / "runs"
    scenarios = [make_scenario("words"), make_scenario("more.words"), make_scenario("killed")]
    groups = [make_training_group([1, 0], scenario) for scenario in scenarios]
    events = [event for group in groups[:2] for event in group_events(group)]
    write_run(runs / "run1", [*events, group_events(groups[2])[0]], scenarios, status=None)
    last = [
        ("rollout", {**event[1], "rollout_id": f"run2.e1.words.r{n}"}) for n, event in enumerate(events[:2])
    ]
    write_run(runs / "run2", last[:1], scenarios, status=None)
    return project_of(root)


@pytest.mark.parametrize(
    ("wanted", "found", "reward"),
    [
        ("run1.e1.words.r0", "run1.e1.words.r0", 1.0),
        ("e1.words.r1", "run1.e1.words.r1", 0.0),
        ("words.r0", "run2.e1.words.r0", None),
        ("more.words.r1", "run1.e1.more.words.r1", 0.0),
        ("killed.r0", "run1.e1.killed.r0", None),
    ],
)
def test_a_rollout_is_found_by_the_end_of_its_id_in_the_latest_run_that_has_it(
    wanted: str, found: str, reward: float | None, tmp_path: Path
) -> None:
    one = find_rollout(sought(tmp_path), wanted)
    assert one.rollout.rollout_id == found
    assert one.scenario.id == one.rollout.scenario_id
    assert (None if one.score is None else one.score.reward) == reward


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("words.r0", ""),
        ("e2.words.r0", ""),
        ("e0.words.r0", "run1.e0.words.r0"),
        ("e0.more.r0", "run1.e0.more.r0"),
    ],
)
def test_an_answer_that_serves_the_control_too_is_found_by_both_ids_and_shown_as_asked(
    wanted: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts = [
        lookup.FoundRollout(make_rollout(epoch=2, scenario_id=name), None, make_scenario(name), alias)
        for name in ("words", "more")
        for alias in ("", f"run1.e0.{name}.r0")
    ]
    monkeypatch.setattr(lookup, "list_runs", lambda out, task: [tmp_path])
    monkeypatch.setattr(lookup, "_rollouts", lambda folder: rollouts)
    one = find_rollout(project_of(tmp_path), wanted)
    assert one.shared == found
    assert one.rollout.scenario_id == wanted.split(".")[-2]


def test_an_id_that_fits_several_rollouts_of_a_run_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        JournalError, match=r"'words.r1' matches 2 rollouts; .*\n  .*words\.r1\n  .*words\.r1$"
    ):
        find_rollout(sought(tmp_path), "words.r1")
    monkeypatch.setattr(lookup, "SHOWN", 1)
    with pytest.raises(JournalError, match=r"id:\n  run1\.e1\.[a-z.]*words\.r1\n  \.\.\. 1 more$"):
        find_rollout(sought(tmp_path), "words.r1")


def test_without_a_run_a_rollout_cannot_be_found_and_the_way_to_one_is_named(tmp_path: Path) -> None:
    project = sought(tmp_path)
    shutil.rmtree(project.out)
    with pytest.raises(JournalError, match="plain pytest keeps none; run pytest --tfgrpo, or"):
        find_rollout(project, "six-seven")


@pytest.mark.parametrize("wanted", ["ords.r0", "run1.e1", "killed.r1"])
def test_a_rollout_that_is_not_there_is_an_error_that_names_runs_not_read(
    wanted: str, tmp_path: Path
) -> None:
    project = sought(tmp_path)
    with pytest.raises(
        JournalError, match=rf"no rollout or scenario '{wanted}' .*ids look like e1.count-words.r0"
    ):
        find_rollout(project, wanted)
    for name in ("run0", "run3", "run4"):
        (tmp_path / "out" / "demo" / "runs" / name).mkdir()
        (tmp_path / "out" / "demo" / "runs" / name / "journal.jsonl").write_text("[]\n")
    with pytest.raises(JournalError, match=r"not searched: [^\n]*run4[^\n]*$"):
        find_rollout(project, wanted)


@pytest.mark.parametrize(
    ("library", "status", "error", "said"),
    [
        ("none", "complete", SettingError, "no file to promote to"),
        ("lib.json", "incomplete", StoreError, "run run1 is incomplete.*finish it with pytest --tfgrpo"),
    ],
)
def test_a_library_is_promoted_of_a_complete_run_to_a_file(
    library: str, status: str, error: Any, said: str, tmp_path: Path
) -> None:
    run: Any = SimpleNamespace(run_id="run1", status="complete")
    assert require_promotable(project_of(tmp_path, library="lib.json"), run) == tmp_path / "lib.json"
    run.status = status
    with pytest.raises(error, match=said):
        require_promotable(project_of(tmp_path, library=library), run)


def test_the_longest_name_of_an_agent_at_the_end_of_a_task_is_meant(tmp_path: Path) -> None:
    agents = "b = python:m:b, a.b = python:m:c"
    project = project_of(tmp_path, actor=agents, library="lib-{agent}.json", task_id="demo.a.b")
    assert committed_file(project) == tmp_path / "lib-a.b.json"


def test_a_report_of_another_schema_says_which_is_wanted(tmp_path: Path) -> None:
    report = json.loads(json.dumps(report_of(make_run({"a": [0.5]}, {"a": [1.0]}, {"t": [1.0]}))))
    (tmp_path / "report.json").write_text(json.dumps(report | {"schema": "tfgrpo.report/0"}))
    with pytest.raises(
        JournalError, match=r"report\.json is not a report of schema 'tfgrpo\.report/\d+'; resume"
    ):
        read_report(tmp_path)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[FoundRollout]]:
    """Return what runs hold, by their folder; one that is not there cannot be read."""
    found: dict[str, list[FoundRollout]] = {}

    def rollouts(folder: Path) -> list[FoundRollout]:
        if folder.name not in found:
            raise JournalError(f"{folder.name} is damaged")
        return found[folder.name]

    monkeypatch.setattr(lookup, "_rollouts", rollouts)
    return found


def one(id_: str, scenario: str, shared: str = "") -> FoundRollout:
    rollout = make_rollout(0, 1.0, rollout_id=id_, scenario_id=scenario)
    return FoundRollout(rollout, None, make_scenario(scenario), shared)


def test_the_rollouts_of_a_scenario_are_those_of_the_latest_run_that_has_it(
    runs: dict[str, list[FoundRollout]], tmp_path: Path
) -> None:
    project = project_of(tmp_path, {"demo": ["01", "02", "03", "04"]})
    runs |= {
        "01": [one("01.e0.a.r0", "a"), one("01.e0.b.r0", "b")],
        "02": [one("02.e0.a.r0", "a"), one("02.e1.a.r0", "a", "02.e0.a.r0"), one("02.e0.aa.r0", "aa")],
        "04": [one("04.e0.c.r0", "c")],
    }
    assert [f.rollout.rollout_id for f in find_scenario(project, "a")] == ["02.e0.a.r0"]
    assert [f.rollout.rollout_id for f in find_scenario(project, "b")] == ["01.e0.b.r0"]
    assert find_scenario(project, "d") == []


def test_a_whole_id_is_meant_before_those_that_end_so_and_an_answer_before_its_alias(
    runs: dict[str, list[FoundRollout]], tmp_path: Path
) -> None:
    project = project_of(tmp_path, {"demo": ["01"]})
    runs["01"] = [
        one("e0.a.r0", "a"),
        one("x.e0.a.r0", "a"),
        one("e0.b.r0", "b"),
        one("e1.b.r0", "b", "q.e0.b.r0"),
    ]
    assert find_rollout(project, "e0.a.r0").rollout.rollout_id == "e0.a.r0"
    with pytest.raises(
        JournalError, match=r"^'a.r0' matches 2 rollouts; give more of the id:\n  e0.a.r0\n  x.e0"
    ):
        find_rollout(project, "a.r0")
    assert find_rollout(project, "e0.b.r0").shared == ""
    assert find_rollout(project, "q.e0.b.r0").shared == "q.e0.b.r0"
    runs["01"] = [one(f"{n}.a.r0", "a") for n in range(12)]
    with pytest.raises(JournalError, match=r"^'a.r0' matches 12 rollouts(.*\n){10}  9.a.r0\n  ... 2 more$"):
        find_rollout(project, "a.r0")
    runs["01"] = runs["01"][:10]
    with pytest.raises(JournalError, match=r"^'a.r0' matches 10 rollouts(.*\n){10}  9.a.r0$"):
        find_rollout(project, "a.r0")


def test_dev_rollouts_are_found_too_and_those_of_no_group_have_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = make_scenario("a")
    groups = [make_training_group([1, 0], scenario, epoch=epoch) for epoch in (1, 2)]
    shared = make_training_group([1], scenario, epoch=9)
    phase = Phase(epoch=0, mode="eval", temperature=0.0, rollouts=1, scenarios=("a",))
    result = SimpleNamespace(groups=groups[:1], with_dev=groups, shared=(shared,), phase=phase)
    loose = make_rollout(7, 1.0, rollout_id="loose", scenario_id="a")
    log = {r.rollout_id: r for group in groups for r in group.rollouts} | {"loose": loose}
    monkeypatch.setattr(
        lookup, "load_run", lambda _: SimpleNamespace(run_id="run1", scenarios=[scenario], phases=[result])
    )
    monkeypatch.setattr(lookup, "read_log", lambda _: SimpleNamespace(rollouts=log))
    found = list(lookup._rollouts(Path("run1")))
    assert [f.rollout.rollout_id for f in found[:4]] == [r.rollout_id for g in groups for r in g.rollouts]
    assert [f.score.gt_score if f.score else None for f in found] == [1.0, 0.0, 1.0, 0.0, 1.0, None]
    assert [f.shared for f in found] == [""] * 4 + ["run1.e0.a.r0", ""]
    assert found[-1].rollout is loose
