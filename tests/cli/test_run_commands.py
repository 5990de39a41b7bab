"""Commands on finished runs whose parts no other test meets: what each passes on, refuses and says."""

import json
from argparse import ArgumentTypeError, Namespace
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience, make_rollout, make_scenario
from support.journals import write_run
from support.project import Project
from support.report.labels import filled, forty, save
from support.tools import tfgrpo

from pytest_tfgrpo.cli.arena.arguments import dollars
from pytest_tfgrpo.cli.lookup import FoundRollout
from pytest_tfgrpo.cli.runs import baseline, history, labels, lessons, record, runs, show
from pytest_tfgrpo.cli.runs.arguments import _count
from pytest_tfgrpo.core.errors import JournalError, RecordingError
from pytest_tfgrpo.core.lessons import Library, Reward, Tombstone
from pytest_tfgrpo.core.records import CheckResult, Failure, Score
from pytest_tfgrpo.gate.baseline import from_run


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (_count, "1", 1),
        (_count, "1000", 1000),
        (_count, "0", "a number between 1 and 1000, not '0'"),
        (_count, "1001", "a number between 1 and 1000, not '1001'"),
        (_count, "-1", "a number between 1 and 1000, not '-1'"),
        (dollars, "0", 0.0),
        (dollars, "2.5", 2.5),
        (dollars, "-1", "US dollars from 0 on, not '-1'"),
        (dollars, "inf", "US dollars from 0 on, not 'inf'"),
        (dollars, "nan", "US dollars from 0 on, not 'nan'"),
        (dollars, "$3", "US dollars from 0 on, not '$3'"),
    ],
)
def test_numbers_of_seeds_and_dollars_have_limits(kind: Any, text: str, value: Any) -> None:
    if not isinstance(value, str):
        assert kind(text) == value
        return
    with pytest.raises(ArgumentTypeError) as refused:
        kind(text)
    assert str(refused.value) == f"must be {value}"


# -- labels ------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a run that a judge scored."""
    folder = write_run(project.name_task("demo").root / "out/demo/runs/run1", [])
    monkeypatch.setattr(labels, "load_run", lambda _: forty())
    return folder


def test_a_sample_says_what_to_do_with_its_form(labelled: Path, project: Project) -> None:
    run_id = forty().run_id
    said = tfgrpo("labels", "sample", "--tasks=12", "--answers=1", "--seed=7").splitlines()
    assert said[0].startswith(
        "24 answers to 12 tasks, of 40 that the judge scored in both sweeps; which sweep"
    )
    assert said[1].startswith("fill in `label`, from the top down: y or n")
    assert said[2:] == ["form   out/demo/runs/run1/labels.csv", f"then   tfgrpo labels read {run_id}"]
    first = (labelled / "labels.csv").read_bytes()
    said = tfgrpo(
        "labels", "sample", "--tasks=12", "--answers=1", "--seed=8", "--file=my form.csv"
    ).splitlines()
    assert said[2:] == ["form   my form.csv", f"then   tfgrpo labels read {run_id} --file 'my form.csv'"]
    assert (project.root / "my form.csv").read_bytes() != first


def test_read_labels_stand_in_the_report_and_each_new_reading_is_counted(
    labelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "was drawn; use `tfgrpo labels sample " in tfgrpo("labels", "read", code=1)
    tfgrpo("labels", "sample", "--tasks=12")
    stored: dict[str, Any] = {"gate": "kept"}
    (labelled / "report.json").touch()
    monkeypatch.setattr(labels, "read_report", lambda folder: stored)
    rows = filled(labelled / "labels.csv", "1")
    save(labelled / "labels.csv", [rows[0], *rows[1:5], *(["", *row[1:]] for row in rows[5:])])
    tfgrpo("labels", "read")
    save(labelled / "labels.csv", rows)
    said = tfgrpo("labels", "read").splitlines()
    assert said[-1].startswith("stored out/demo/runs/run1/labels.json; see also tfgrpo report ")
    written = json.loads((labelled / "report.json").read_text())
    assert written["gate"] == "kept"
    assert written["labels"]["labelled"] == len(rows) - 1
    assert written["labels"]["seed"] == json.loads((labelled / "labels.json").read_text())["seed"]
    assert json.loads((labelled / "labels.json").read_text())["reads"] == [4, len(rows) - 1]
    tfgrpo("labels", "sample", "--tasks=13", "--file=more.csv")
    assert json.loads((labelled / "labels.json").read_text())["reads"] == [4, len(rows) - 1]
    for other in ("--seed=9", "--answers=2"):
        assert "another one would be a choice" in tfgrpo("labels", "sample", "--tasks=13", other, code=1)


@pytest.mark.parametrize("command", ["sample", "read"])
def test_answers_of_a_run_that_has_not_ended_are_not_labelled(
    command: str, labelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "load_run", lambda _: replace(forty(), status="incomplete", run_id="run1"))
    said = tfgrpo("labels", command, code=1)
    assert "run run1 is incomplete; finish it with pytest --tfgrpo --tfgrpo-resume=run1 before people" in said
    assert not (labelled / "labels.json").exists()


# -- lessons -----------------------------------------------------------------------------------------------


def listed(
    project: Any, chosen: list[Any], in_force: list[Any], *, every: Any = None, sort: str = "age"
) -> str:
    known = {e.id: e for e in every or chosen}
    lines = lessons._listing(project, chosen, known, in_force, {}, "somewhere", sort)
    return " ".join(" ".join(lines).split())


def test_effects_are_those_of_the_newest_measure_and_ages_are_counted_in_runs_and_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(run_id: str, measure: str, epochs: tuple[int, ...], rows: int) -> Any:
        return SimpleNamespace(
            run_id=run_id, measure=measure, epochs=epochs, rows=["row"] * rows, actor=f"of {run_id}"
        )

    found = [run("run1", "old", (1, 2), 5), run("run2", "new", (1, 2, 3), 7), run("run3", "new", (1,), 2)]
    pooled: list[int] = []
    monkeypatch.setattr(lessons, "records", lambda folders: (found, ["run0 is left out\nof it"]))
    monkeypatch.setattr(lessons, "list_runs", lambda *_: [])
    monkeypatch.setattr(lessons, "lesson_effects", lambda rows: pooled.append(len(rows)) or {})
    monkeypatch.setattr(lessons, "shrunken", lambda known: known)
    warned: list[str] = []
    monkeypatch.setattr(lessons, "_warn", warned.append)
    one = make_experience(1, run_id="run2", epoch=2, reward=Reward(gt_score=0.5, relative_rank=1.0))
    project: Any = SimpleNamespace(out=Path("out"), task_id="demo")
    said = listed(project, [one], [one])
    assert (
        "1 active lesson (somewhere); effects over 2 runs and 9 training groups with the actor of run3"
        in said
    )
    assert pooled == [9]
    assert "age 2 epochs, 1 run" in said
    assert ", score 0.50" in said
    assert "effect not yet known (needs at least" in said
    assert warned == ["run0 is left out of it"]
    weighed = replace(one, reward=replace(one.reward, gt_score=None, total_reward=0.25))
    assert ", reward 0.25" in listed(project, [weighed], [])
    assert "not active: it belongs to another library than the active one" in listed(project, [weighed], [])


def test_a_lesson_that_is_known_to_help_is_told_with_its_interval() -> None:
    standing = SimpleNamespace(
        included=9, left_out=8, effect=0.25, ci95=(0.125, 0.375), verdict="helpful", p_adjusted=0.01
    )
    row = SimpleNamespace(
        experience=make_experience(1, polarity="avoid"), standing=standing, effect=0.2, epochs=1, runs=2,
        days=1.9, replaced=("old: Use it.",), fate="gone",
    )  # fmt: skip
    said = " ".join(" ".join(lessons._lines(row)).split())  # type: ignore[arg-type]
    assert said.startswith("avoid ")
    assert "effect +0.200, drawn towards the mean of the lessons; alone +0.250 (" in said
    assert "helpful, p 0.01" in said
    assert "; 9 groups with it, 8 without age 1 epoch, 2 runs, 1 day; stamp" in said
    assert said.endswith("revises old: Use it. not active: gone")
    row.days = None
    assert "age 1 epoch, 2 runs; stamp" in " ".join(" ".join(lessons._lines(row)).split())  # type: ignore[arg-type]


def test_what_a_revision_took_the_place_of_is_named_with_its_text_where_that_differs() -> None:
    old, new = make_experience(1, summary32="Use a."), make_experience(2, summary32="Use b.")
    known = {old.id: old, new.id: new}
    assert lessons._named(old.id, known, new) == f"{old.id}: Use a."
    assert lessons._named(old.id, known, replace(new, summary32="Use a.")) == old.id
    assert lessons._named("gone", known, new) == "gone"


def test_lessons_that_runs_started_with_are_taken_from_those_runs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, kept, other = (make_experience(n, summary32=f"Use {n}.") for n in range(3))
    heir = replace(make_experience(4), parents=(started.id,), run_id="run1")
    read: list[str] = []

    def at_start(folder: Path) -> Library:
        read.append(folder.name)
        return Library(experiences=(started, kept, other), hash="")

    monkeypatch.setattr(
        lessons, "list_runs", lambda *_: [tmp_path / name for name in ("run0", "run1", "run2")]
    )
    monkeypatch.setattr(lessons, "library_at_start", at_start)
    project: Any = SimpleNamespace(out=tmp_path, task_id="demo")
    stone = Tombstone(id=other.id, run_id="run2", epoch=1, reason="x")
    found = list(lessons._started_with(project, {heir.id: heir}, {other.id: stone}))
    assert {e.id for e in found} == {started.id, other.id}
    assert read == ["run1", "run2"]
    read.clear()
    assert list(lessons._started_with(project, {started.id: started, heir.id: heir}, {})) == []
    assert read == []


@pytest.mark.parametrize(
    ("sort", "first"), [("age", [1, 2, 0]), ("domain", [0, 2, 1]), ("effect", [2, 0, 1])]
)
def test_equal_lessons_are_sorted_by_run_then_domain_then_what_to_do_before_what_to_avoid(
    sort: str, first: list[int]
) -> None:
    def row(n: int, run_id: str, epoch: int, effect: float | None, **changes: Any) -> Any:
        one = make_experience(n, run_id=run_id, epoch=epoch, summary32="Use it.", **changes)
        return SimpleNamespace(experience=one, standing=SimpleNamespace(groups=0), effect=effect)

    rows = [
        row(0, "run2", 1, 0.1, domain="alpha"),
        row(1, "run1", 9, None, domain="beta", polarity="avoid"),
        row(2, "run2", 0, 0.3, domain="beta", polarity="do"),
    ]
    assert [rows.index(one) for one in sorted(rows, key=lessons._order(sort))] == first


def test_the_domains_that_are_named_are_those_of_the_listed_lessons(project: Project) -> None:
    project.ini(task_id="demo")
    path = project.root / "out" / "demo" / "experiences.jsonl"
    one, gone = make_experience(1, domain="alpha"), make_experience(2, domain="beta")
    with lessons.ExperienceStore.open(path) as store:
        store.append([one, gone, Tombstone(id=gone.id, run_id="run1", epoch=1, reason="x")])
    assert tfgrpo("lessons", "--domain", "x").endswith("domains with lessons: alpha\n")
    assert tfgrpo("lessons", "--all", "--domain", "x").endswith("domains with lessons: alpha, beta\n")


# -- recordings and rollouts -------------------------------------------------------------------------------


def test_a_recording_is_pruned_by_the_runs_that_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(record, "project_of", lambda _: "project")
    monkeypatch.setattr(record, "find_run", lambda project, name: tmp_path / name)
    monkeypatch.setattr(record, "load_run", lambda folder: folder.name)
    monkeypatch.setattr(
        record, "read_log", lambda folder: SimpleNamespace(rollouts={"r": f"of {folder.name}"})
    )
    monkeypatch.setattr(record.maintenance, "use_of", lambda run, rollouts: (run, *rollouts))
    monkeypatch.setattr(record.maintenance, "stat", lambda file: [f"stat of {file}"])
    monkeypatch.setattr(
        record.maintenance,
        "prune",
        lambda file, uses, **given: seen.append((file, uses, given)) or ["pruned"],
    )
    for named, others, dry in ((None, False, True), (["a", "b"], True, False)):
        given = Namespace(file="rec.json", run=named, others=others, dry_run=dry)
        assert list(record.prune(given)) == ["pruned"]
    assert seen == [
        (Path("rec.json"), [("latest", "of latest")], {"others": False, "dry": True}),
        (Path("rec.json"), [("a", "of a"), ("b", "of b")], {"others": True, "dry": False}),
    ]
    assert list(record.stat(Namespace(file="rec.json"))) == ["stat of rec.json"]
    monkeypatch.setattr(record.maintenance, "verify", lambda file: ["line 1", "line 7"])
    with pytest.raises(RecordingError, match=r"^line 1\nline 7$"):
        list(record.verify(Namespace(file="rec.json")))


def found(index: int, reward: float | None, *, epoch: int = 0, **changes: Any) -> FoundRollout:
    rollout = replace(make_rollout(index, reward, epoch=epoch), **changes)
    score = None
    if reward is not None:
        score = Score(
            rollout_id=rollout.rollout_id, gt_score=reward, reward=reward, relative_rank=0.5, advantage=0.0
        )
    return FoundRollout(rollout, score, make_scenario())


def test_a_list_of_rollouts_says_why_each_failed_and_names_the_worst_of_the_last_sweep() -> None:
    def check(kind: str, credit: float) -> CheckResult:
        return CheckResult(kind=kind, credit=credit, reason="y" * 200, weight=1.0)

    rows = [
        found(0, 0.0, epoch=0, checks=(check("exact", 0.0),)),
        found(1, 1.0, epoch=2, checks=(check("exact", 1.0),)),
        found(2, 0.5, epoch=2, checks=(check("regex", 1.0), check("number", 0.5), check("exact", 0.0))),
        found(3, 0.75, epoch=2, checks=()),
    ]
    lines = list(show._listed("count-words", rows))
    assert lines[0] == f"count-words: 4 rollouts in run {rows[0].rollout.run_id}"
    assert [line.split()[3].rstrip(":") if len(line.split()) > 3 else "" for line in lines[2:-1]] == [
        "exact", "", "number", "",
    ]  # fmt: skip
    assert max(map(len, lines[2:-1])) == 80
    short = rows[2].rollout.rollout_id.removeprefix(f"{rows[2].rollout.run_id}.")
    assert lines[-1] == f"next: tfgrpo show {short}"
    failed = found(4, None, failure=Failure(code="timeout", message="after 5 s"))
    assert show._why(failed) == "timeout: after 5 s"
    assert show._score(failed) is None


def test_the_worst_rollout_of_a_scenario_is_one_without_a_score() -> None:
    failure = Failure(code="timeout", message="after 5 s")
    rows = [found(0, 0.5, epoch=2), found(1, None, epoch=2, failure=failure), found(2, 0.25, epoch=2)]
    assert list(show._listed("count-words", rows))[-1].endswith(".r1")


@pytest.mark.parametrize("shared", ["", "run1.e0.count-words.r0"])
def test_an_answer_of_the_control_that_no_agent_was_asked_for_is_told_as_one(
    shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = found(0, 1.0, epoch=2)._replace(shared=shared)
    monkeypatch.setattr(show, "project_of", lambda _: None)
    monkeypatch.setattr(show, "find_rollout", lambda project, wanted: one)
    first, *more = show.show(Namespace(rollout="count-words.r0"))
    assert bool(more) is bool(shared)
    if shared:
        assert first == (
            f"{shared} was not asked: its prompt is that of the final sweep, whose answer serves both"
        )


# -- runs --------------------------------------------------------------------------------------------------


def test_a_run_is_a_row_with_the_mean_of_its_last_sweep_and_a_gain_of_nothing_is_one() -> None:
    epochs = [
        {"mode": mode, "gt_score": {"mean": mean}}
        for mode, mean in (("eval", 0.25), ("train", 0.5), ("eval", 0.75), ("baseline", 0.125))
    ]
    report = {"status": "complete", "epochs": epochs, "gain": {"difference": 0.0}, "gate": None}
    assert runs._row("run1", report) == ["run1", "complete", "-", "0.750", "+0.000", "-"]
    bare = {"status": "aborted", "epochs": epochs[1:2], "gain": None, "gate": {"outcome": "fail"}}
    assert runs._row("run2", bare) == ["run2", "aborted", "fail", "-", "-", "-"]


def test_the_latest_killed_run_is_the_one_to_finish_and_runs_elsewhere_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {"run1": "killed", "run2": "killed", "run3": "running"}
    project = SimpleNamespace(out="out", task_id="demo", resume=lambda run_id: f"resume {run_id}")
    monkeypatch.setattr(runs, "project_of", lambda _: project)
    monkeypatch.setattr(runs, "list_runs", lambda out, task: [tmp_path / name for name in states])
    monkeypatch.setattr(runs, "_status", lambda folder: (states[folder.name], None))
    assert list(runs.runs(Namespace()))[-1] == "to finish a killed run, use: resume run2"
    monkeypatch.setattr(runs, "list_runs", lambda out, task: [])
    for elsewhere, said in (("add --task-id x", "add --task-id x"), ("", "run pytest --tfgrpo")):
        monkeypatch.setattr(runs, "other_tasks", lambda project, told=elsewhere: told)
        assert list(runs.runs(Namespace())) == [f"no runs of task 'demo' under out; {said}"]


@pytest.mark.parametrize(
    ("goes_on", "report", "state"),
    [
        (True, None, "running"),
        (False, None, "killed"),
        (False, {"finished_at": "before"}, "killed"),
        (False, JournalError("damaged"), "unusable report"),
    ],
)
def test_a_run_without_a_report_of_its_own_has_the_commit_of_its_journal(
    goes_on: bool, report: Any, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(folder: Path) -> Any:
        if isinstance(report, Exception):
            raise report
        return report

    monkeypatch.setattr(history, "_header", lambda journal: {"versions": {"commit": "1a2b"}})
    monkeypatch.setattr(history, "is_open", lambda journal: goes_on)
    monkeypatch.setattr(history, "read_report", read)
    monkeypatch.setattr(history, "ended_at", lambda journal, at: False)
    one = history._run_in(tmp_path / "run1")
    assert (one.run_id, one.state, one.commit) == ("run1", state, "1a2b")


# -- baselines ---------------------------------------------------------------------------------------------


def test_a_saved_baseline_pools_its_build_and_keeps_what_eval_splits_have_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}
    run = forty()
    stored = from_run(run, "main")
    pooled = replace(stored, sweeps=("another",))  # type: ignore[arg-type]
    project: Any = SimpleNamespace(
        root=tmp_path, out=tmp_path, task_id="demo", settings=SimpleNamespace(values={"gate": 1})
    )

    def red(rows: Any, settings: Any, **given: Any) -> str:
        seen.update(given, rows=rows)
        return "red in 3 of 100"

    monkeypatch.setattr(baseline, "project_of", lambda _: project)
    monkeypatch.setattr(baseline, "find_run", lambda project, name: tmp_path / name)
    monkeypatch.setattr(baseline, "load_run", lambda folder: run)
    monkeypatch.setattr(baseline, "list_runs", lambda *_: [tmp_path / str(n) for n in range(3)])
    monkeypatch.setattr(baseline, "pooled", lambda one, others: seen.update(others=others) or pooled)
    monkeypatch.setattr(baseline, "sweeps_of", lambda one: ("a", "b", "c"))
    monkeypatch.setattr(baseline, "drift_of", lambda one: "the drift")
    monkeypatch.setattr(baseline, "red_builds", red)
    monkeypatch.setattr(baseline, "looks_on_disk", lambda *_: {"s": ("disk",)})
    library = SimpleNamespace(looks={"s": ("library",)})
    monkeypatch.setattr(baseline, "find_library", lambda *_: (library, ()))
    monkeypatch.setattr(baseline.baseline, "recordings_of", lambda run, root: {"r.jsonl": "0" * 64})
    written: list[Any] = []
    monkeypatch.setattr(baseline.baseline, "save", lambda path, value: written.append((path, value)))
    monkeypatch.setattr(baseline.baseline, "describe", lambda value: ["1", "2", "3", "4"])
    lines = list(baseline.save(Namespace(name="main", run="latest")))
    path = tmp_path / "baselines" / "main.json"
    assert lines == [
        "1", "2", "3", "  pooled from 1 sweeps of this build, whatever their gates said", "  red in 3 of 100",
        f"wrote {path}; commit it, and set tfgrpo_baseline = main",
    ]  # fmt: skip
    assert written[0][0] == path
    assert set(written[0][1].looks["s"]) == {"disk", "library"}
    assert written[0][1].unsigned is None
    assert written[0][1].recordings == {"r.jsonl": "0" * 64}
    assert len(seen["others"]) == 3
    assert (seen["sweeps"], seen["drift"]) == (3, "the drift")
    assert {id_: row.family for id_, row in seen["rows"].items()} == {
        scenario.id: f"text {scenario.family}" for scenario in run.scenarios
    }
    monkeypatch.setattr(baseline, "load", lambda path: replace(stored, looks={"s": ("file",)}))
    with suppress(StopIteration):
        list(baseline.save(Namespace(name="main", run="latest")))
    assert set(written[1][1].looks["s"]) == {"disk", "library", "file"}


def test_a_baseline_on_file_goes_on_where_it_is_of_this_build_and_the_newest_runs_are_pooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, read = from_run(forty(), "main"), list[str]()

    def damaged(folder: Path) -> Any:
        read.append(folder.name)
        raise JournalError("it is damaged")

    monkeypatch.setattr(baseline, "list_runs", lambda *_: [tmp_path / str(n) for n in range(4)])
    monkeypatch.setattr(baseline, "MOST_SWEEPS", 2)
    monkeypatch.setattr(baseline, "load_run", damaged)
    monkeypatch.setattr(baseline, "pooled", lambda one, others: one)
    project: Any = SimpleNamespace(out=tmp_path, task_id="demo")
    older = replace(stored, created_at="then")
    for known, kept in ((older, "then"), (replace(older, temperature=0.9), stored.created_at)):
        monkeypatch.setattr(baseline, "load", lambda path, known=known: known)
        assert baseline._pooled(project, tmp_path / "main.json", stored).created_at == kept
    assert read == ["3", "2"] * 2
