"""The pattern of a job: what its folder holds, on the shelf of its repository."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.harvests import make_provenance
from support.patterns.jobs import manifest
from support.patterns.subjects import DIFF

from pytest_tfgrpo.core.errors import PatternError, ScenarioError
from pytest_tfgrpo.harvest.suite.provenance import write_provenance
from pytest_tfgrpo.patterns.authoring import job_author
from pytest_tfgrpo.patterns.authoring.job_author import JobAuthor, subject_of
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.scenario_files import load_scenarios

TEST = "tests/test_cart.py::test_total_counts_each_item_once"


def proven(repository: Path, folder: Path) -> JobManifest:
    job = manifest(status=LearningStatus.VALIDATED, scenario="count-once")
    (folder / "provenance").mkdir(parents=True)
    (folder / "diff.patch").write_text(DIFF)
    (folder / "prompt.md").write_text("The total of a cart counts an item twice.\n")
    (folder / "count-once.scenario.yaml").write_text(
        "id: count-once\ndomain: shop\nsplit: train\nprompt: Fix it.\nchecks:\n  - {kind: exact, value: x}\n"
    )
    known = make_provenance()
    proof = replace(known.validation, fail_to_pass=(TEST,), messages={TEST: "assert 4 == 2"})
    write_provenance(folder / "provenance/count-once.json", replace(known, id="count-once", validation=proof))
    repository.mkdir()
    return replace(job, captured=replace(job.captured, repository=str(repository)))


def test_a_proven_job_becomes_one_candidate(tmp_path: Path) -> None:
    repository, folder = tmp_path / "repository", tmp_path / "job"
    job = proven(repository, folder)
    told: list[str] = []
    author = JobAuthor(None, screens=PatternScreens(), tell=told.append)
    write = author(job, folder)
    assert Shelf(repository).files() == []
    name = write()
    assert (write(), author(job, folder)()) == (name, name)
    (file,) = Shelf(repository).files()
    assert (file.name, file.status, told) == (name, PatternStatus.CANDIDATE, [])
    assert file.pattern is not None
    evidence = file.pattern.evidence
    assert job.snapshot is not None
    assert evidence is not None
    assert (evidence.job, evidence.scenario, len(evidence.scenario_stamp)) == (job.job_id, "count-once", 64)
    (scenario,) = load_scenarios(folder / "count-once.scenario.yaml", root=folder, kinds=KINDS)
    assert evidence.scenario_stamp == scenario.stamp
    assert (evidence.commit, evidence.diff_sha256) == (job.snapshot.commit, job.snapshot.diff_sha256)
    assert file.pattern.domain == "shop"
    assert "total counts each item once" in file.pattern.lesson
    assert "assert 4 == 2" in file.pattern.body.problem


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    job = proven(tmp_path / "repository", folder)
    for broken in (replace(job, scenario=""), replace(job, snapshot=None)):
        with pytest.raises(PatternError, match="has no proven scenario"):
            subject_of(broken, folder)
    (folder / "diff.patch").unlink()
    with pytest.raises(PatternError, match=r"cannot read .*diff\.patch: No such file"):
        subject_of(job, folder)
    (folder / "count-once.scenario.yaml").write_text("id: 1")
    with pytest.raises(ScenarioError):
        subject_of(job, folder)


def test_a_subject_has_all_of_the_diff_and_the_digests_of_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "job"
    job = proven(tmp_path / "repository", folder)
    assert job.snapshot is not None
    job = replace(job, snapshot=replace(job.snapshot, tarball_sha256="a" * 64, diff_sha256="d" * 64))
    (folder / "diff.patch").write_text(f"{DIFF}{'#' * 200_000}")
    (folder / "prompt.md").write_bytes(b"Mend it \xff.\r\n")
    subject = subject_of(job, folder)
    assert len(subject.diff) == len(DIFF) + 200_000
    assert subject.prompt == "Mend it \ufffd.\r\n"
    assert (subject.evidence.tarball_sha256, subject.evidence.diff_sha256) == ("a" * 64, "d" * 64)
    assert [(test.id, test.message) for test in subject.tests] == [(TEST, "assert 4 == 2")]
    monkeypatch.setattr(job_author, "READ", 100)
    with pytest.raises(PatternError, match=r"diff\.patch: it has more than 100 bytes; no pattern is written"):
        subject_of(job, folder)
