"""What ``tfgrpo learn`` says of jobs and their workers, and the story that its demonstration tells."""

import json
import sys
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.repositories import git

from pytest_tfgrpo.cli.learn import demo, demo_repository, show, status, work
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus

ID = "0123abcd-0000-1111-2222-0123456789ab"


def manifest(**given: Any) -> Any:
    known = {
        "job_id": ID,
        "status": LearningStatus.VALIDATED,
        "root_cause": None,
        "reason": "",
        "scenario": "",
    }
    return SimpleNamespace(**{**known, "pattern": "", **given})


@pytest.mark.parametrize(
    ("given", "lost", "said"),
    [
        ({"scenario": "one", "pattern": "two"}, False, "0123abcd  validated                12.3 s  one, two"),
        ({"scenario": "one"}, True, "0123abcd  validated                12.3 s  one"),
        ({"status": LearningStatus.RUNNING}, True, "0123abcd  lease lost               12.3 s"),
        ({"status": LearningStatus.RUNNING}, False, "0123abcd  running                  12.3 s"),
        (
            {
                "status": LearningStatus.VALIDATION_FAILED,
                "root_cause": RootCause.ENVIRONMENT,
                "reason": "a\nb",
            },
            False,
            "0123abcd  validation_failed        12.3 s  environment: a b",
        ),
    ],
)
def test_a_worked_job_is_a_line(given: dict[str, Any], lost: bool, said: str) -> None:
    done: Any = SimpleNamespace(manifest=manifest(**given), lost=lost, elapsed_s=12.34)
    assert work.work_line(done) == said


def test_proven_scenarios_join_the_suite_and_one_that_cannot_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [
        SimpleNamespace(id=name, status=state, manifest=manifest(scenario=f"of {name}"))
        for name, state in (
            ("new", LearningStatus.VALIDATED),
            ("there", LearningStatus.VALIDATED),
            ("bad", LearningStatus.VALIDATED),
            ("open", LearningStatus.QUEUED),
        )
    ]

    def join(folder: Path, scenario: str, suite: Path) -> bool:
        if folder.name == "bad":
            raise StoreError("another one has its id")
        assert folder.name != "open"
        return folder.name == "new"

    monkeypatch.setattr(work, "join_suite", join)
    queue = SimpleNamespace(jobs=lambda: jobs, folder_of=lambda id_: tmp_path / id_)
    learning: Any = SimpleNamespace(queue=queue)
    assert list(work._join(learning, None)) == []
    assert list(work._join(learning, Path("suite"))) == [
        "          of new joined suite",
        "warning: of bad did not join suite: another one has its id",
    ]


def test_a_crew_is_told_job_by_job_with_notes_and_counted_without_lost_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked(*jobs: Any, end: BaseException | None = None) -> None:
        def crew(folder: Path, tools: object, plan: Any) -> Any:
            seen.append((plan.workers, plan.once))
            yield from jobs
            if end is not None:
                raise end

        monkeypatch.setattr(work, "work_queue", crew)

    seen: list[Any] = []
    settled: list[int] = []
    one = SimpleNamespace(manifest=manifest(scenario="one"), lost=False, elapsed_s=1.0)
    lost = SimpleNamespace(manifest=manifest(status=LearningStatus.RUNNING), lost=True, elapsed_s=1.0)
    monkeypatch.setattr(work, "open_builder", lambda *_: None)
    monkeypatch.setattr(work, "LearningWorker", lambda *_: SimpleNamespace(add_patterns=lambda: ["added p"]))
    monkeypatch.setattr(work, "optimise", lambda learning, group, job: [f"tried {job.scenario}"])
    queue = SimpleNamespace(folder=tmp_path, jobs=list)
    learning: Any = SimpleNamespace(queue=queue, settle=lambda: settled.append(1) or ["owed"])
    arguments = Namespace(check_sandbox="none", jobs=3, once=False)
    author: Any = None
    worked(one, lost)
    group: Any = "an agent"
    lines = list(work._work(learning, arguments, author, ["note 1", "note 2"], None, group))
    assert [line.strip() for line in lines] == [
        "added p", "owed", work.work_line(one), "note 1", "note 2", "tried one", "owed", work.work_line(lost),
        "1 validated",
    ]  # fmt: skip
    assert seen == [(3, False)]
    worked(one, end=KeyboardInterrupt())
    settled.clear()
    lines = []
    with pytest.raises(KeyboardInterrupt):
        lines.extend(work._work(learning, arguments, author, [], None, None))
    assert lines[-1] == "interrupted: a job under way is back in the queue; the same command goes on"
    assert len(settled) == 2


@pytest.mark.parametrize(
    ("into", "suite", "joined"),
    [("mine", "ours", Path("mine")), (None, "ours", Path("/r/ours")), (None, "", None)],
)
def test_scenarios_join_the_suite_that_is_named_else_that_of_the_settings(
    into: str | None, suite: str, joined: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = SimpleNamespace(
        root=Path("/r"), settings=SimpleNamespace(suite=suite), project=None, settle=lambda: ["owed"]
    )
    asked: list[Any] = []
    monkeypatch.setattr(work, "open_learning", lambda arguments: nullcontext(learning))
    monkeypatch.setattr(work, "open_author", lambda *_: nullcontext("author"))
    monkeypatch.setattr(work, "require_sandbox", asked.append)
    monkeypatch.setattr(work, "_work", lambda learning, arguments, author, notes, suite, group: [suite])
    given = Namespace(jobs=64, once=False, check_sandbox="bwrap", into=into, rollouts=None)
    assert list(work.work(given)) == ["owed", joined]
    assert asked == ["bwrap"]


def job(**given: Any) -> Any:
    captured = SimpleNamespace(
        created_at="2026-01-01",
        trigger="self",
        approver="ann",
        tests_by="agent",
        improves="",
        files=("a", "b"),
    )
    known = manifest(captured=captured, released_by="", snapshot=None, attempts=(), requeues=(), **given)
    return SimpleNamespace(id=ID, manifest=known, holder="w1", waits=False, status=known.status)


def test_a_job_is_shown_with_its_attempts_and_who_let_it_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = job(scenario="one")
    one.manifest.captured.improves = "an older job"
    one.manifest.released_by = "ben"
    one.manifest.snapshot = SimpleNamespace(commit="c1", ref="refs/x")
    one.manifest.attempts = (
        SimpleNamespace(worker="w1", started_at="t1", status="", reason=""),
        SimpleNamespace(worker="w0", started_at="t2", status="", reason=""),
        SimpleNamespace(worker="w0", started_at="t3", status="failed", reason="no\nnetwork"),
    )
    one.manifest.requeues = (
        SimpleNamespace(at="t4", approver="eve", reason="again", scenario_sha256="abc"),
        SimpleNamespace(at="t5", approver="eve", reason="again", scenario_sha256=""),
    )
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "2.txt").write_text("x" * 6000)
    (tmp_path / "logs" / "1.txt").write_bytes(b"first \xff")
    (tmp_path / "one.manual.md").touch()
    monkeypatch.setattr(show, "read_rollouts", lambda folder: "found")
    monkeypatch.setattr(show, "rollouts_line", lambda found: "1 of 4 passed")
    lines = list(show._job(one, tmp_path))
    assert lines[1:13] == [
        "captured 2026-01-01, self by ann; tests by agent",
        "a smaller fix of job an older job",
        "approved by ben",
        "files: a, b",
        "snapshot: commit c1, ref refs/x",
        "attempt t1: running",
        "attempt t2: its worker was lost",
        "attempt t3: failed  no network",
        "requeued t4 by eve: again, signed abc",
        "requeued t5 by eve: again",
        f"folder: {tmp_path}",
        f"what to do: {tmp_path / 'one.manual.md'}",
    ]
    assert lines[13:16] == ["optimised: 1 of 4 passed", "--- logs/1.txt", "first \ufffd"]
    assert lines[16] == "--- logs/2.txt"
    assert 4900 < len(lines[17]) < 5200
    with pytest.raises(StoreError, match=r"^cannot read .*gone: No such file or directory$"):
        show._read(tmp_path / "gone")


def test_the_parts_of_a_diff_that_are_of_tests_are_told_by_their_name_after_it() -> None:
    diff = b"diff --git a/x.py b/test_x.py\n+1\ndiff --git a/src/a.py b/src/a.py\n+diff --git\n"
    diff += b'diff --git "a/t" "b/tests/\\303.py"\n+2\n'
    parts = show._parts(diff)
    assert b"".join(parts) == diff
    assert [show._is_of_tests(part) for part in parts] == [True, False, True]


def test_jobs_that_wait_for_a_person_come_last_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = job()
    waiting.waits = True
    for one, state in ((job(), LearningStatus.STALLED_SNAPSHOT), (job(), LearningStatus.SNAPSHOT_FAILED)):
        one.status = state
        lines = list(status._needed([job(), one]))
        assert lines[:2] == ["", "waiting for a person:"]
        assert len(lines) == 3
        assert "0123abcd" in lines[2]
    assert list(status._needed([job()])) == []
    assert status.job_line(waiting).endswith("waits for approval")
    failed = job(root_cause=RootCause.TEST_FAILURE, reason="it fails", scenario="one")
    assert status.job_line(failed) == "0123abcd  validated              test_failure: it fails"
    monkeypatch.setattr(status, "alert_counts", lambda queue: {"failed": 2, "called": 3})
    learning: Any = SimpleNamespace(queue=None)
    assert list(status._alerts(learning)) == ["warning: alert_command failed in 2 of 5 calls"]
    monkeypatch.setattr(status, "alert_counts", lambda queue: {"failed": 0, "called": 3})
    assert list(status._alerts(learning)) == []


def test_the_demonstration_captures_a_cheat_and_a_fix_and_promotes_what_the_fix_taught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    jobs = [
        {"job_id": "other", "status": "validation_failed", "pattern": "no"},
        {"job_id": "open", "status": "validated", "pattern": None},
        {"job_id": ID, "status": "validated", "pattern": "read-at-once"},
    ]

    def run(shop: Path, argv: list[str]) -> str:
        ran.append([str(word) for word in argv])
        if argv[-1] == "--json":
            return json.dumps({"jobs": jobs})
        return "\n".join(f"line {n}" for n in range(20))

    monkeypatch.setattr(demo, "_run", run)
    monkeypatch.setattr(demo, "make_shop", lambda shop: shop.mkdir())
    monkeypatch.setattr(demo, "change", lambda shop, what: ran.append([what]))
    into = tmp_path / "demo"
    lines = list(demo.demo(Namespace(into=str(into))))
    assert lines[-1] == f"all of it is in {into}"
    assert (into / "prompt.md").read_text() == demo_repository.prompt()
    assert json.loads((into / "history.jsonl").read_text()) == demo.TESTED
    steps = [words[3:] if words[1:2] == ["-c"] else words for words in ran]
    capture = ["learn", "capture", "--approver", "ann", "--prompt", "../prompt.md"]
    assert steps[:4] == [["cheat"], capture, ["fix"], [*capture, "--history", "../history.jsonl"]]
    assert steps[4:7] == [["learn", "work"], ["learn", "status", "--json"], [
        "patterns", "trial", "read-at-once", "--suite", "bench"]]  # fmt: skip
    assert steps[7] == ["learn", "show", ID, "--tests", "--reviewer", "ann"]
    assert steps[8][:5] == ["patterns", "promote", "read-at-once", "--by", "ann"]
    assert steps[9:] == [["patterns", "sync"], [sys.executable, "-m", "pytest", "-q", "bench"]]
    assert "$ tfgrpo learn show 0123abcd --tests --reviewer ann" in lines
    work_at = lines.index("$ tfgrpo learn work")
    assert lines[work_at + 1 : work_at + 13] == [f"    line {n}" for n in range(8, 20)]
    shown_at = lines.index("$ tfgrpo learn show 0123abcd --tests --reviewer ann")
    assert lines[shown_at + 1 : shown_at + 3] == ["    line 19", next(
        line for line in lines if line.startswith("$ tfgrpo patterns promote"))]  # fmt: skip
    jobs.pop()
    with pytest.raises(StoreError, match=r"^no job of the demonstration was proven; the lines above say"):
        demo._proven(tmp_path)


def test_a_step_of_the_demonstration_that_fails_ends_it_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = SimpleNamespace(returncode=1, stdout="out", stderr="x" * 3000 + " the end\n")
    monkeypatch.setattr(demo.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(StoreError, match=r"^a step of the demonstration failed: x+ the end$") as failed:
        demo._run(tmp_path, ["x"])
    assert len(str(failed.value)) < 2100
    done.stderr = ""
    with pytest.raises(StoreError, match=r"failed: out$"):
        demo._run(tmp_path, ["x"])
    done.returncode = 0
    assert demo._run(tmp_path, ["x"]) == "out"


def test_a_change_of_the_demonstration_takes_the_one_before_it_away(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    demo_repository.make_shop(shop)
    assert git(shop, "log", "--format=%an %s") == "Ada Begin the shop"
    assert git(shop, "status", "--short") == ""

    def changed() -> set[str]:
        return {row[2:].strip() for row in git(shop, "status", "--short", "-uall").splitlines()}

    demo_repository.change(shop, demo_repository.CHEAT)
    cheat = changed()
    demo_repository.change(shop, demo_repository.FIX)
    fix = changed()
    assert cheat
    assert fix
    assert cheat != fix
    demo_repository.change(shop, demo_repository.CHEAT)
    assert changed() == cheat
