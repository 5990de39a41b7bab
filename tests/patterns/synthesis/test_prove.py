"""The proof of a captured job: what becomes of it, and where its scenario comes from."""

from dataclasses import replace
from typing import Any

import pytest
from support.captured import JOB, PROMPT, CapturedJob
from support.repositories import remove_object
from support.text_tests import TextRunner, text_tools

from pytest_tfgrpo.harvest.recipe.recipe import RecipeKnowledge
from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes
from pytest_tfgrpo.harvest.suite.provenance import FixOrigin, read_provenance
from pytest_tfgrpo.patterns.synthesis.prove import prove
from pytest_tfgrpo.scoring.runners.protocol import RunProblem
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

TEST = "tests/a.test.js"
BASE: dict[Any, Any] = {"a.js": "zero", TEST: "old a.js zero\n", "README.md": "x"}
FIX: dict[Any, Any] = {"a.js": "zero one", TEST: "old a.js zero\nhas_one a.js one\n"}


def test_a_job_whose_tests_fail_before_and_pass_after_has_a_scenario(tmp_path):
    job = CapturedJob(tmp_path, BASE, FIX)
    found = job.prove(text_tools(TextRunner()))
    id_ = f"the-total-of-a-cart-is-always-zero-{job.commit[:12]}"
    assert (found.status, found.root_cause, found.scenario) == ("validated", None, id_)
    scenario = parse_yaml((job.folder / f"{id_}.scenario.yaml").read_text()).value
    assert scenario["checks"][0]["fail_to_pass"] == [f"{TEST}::has_one"]
    assert scenario["prompt"].startswith(PROMPT.strip())
    provenance = read_provenance(job.folder / "provenance" / f"{id_}.json")
    assert (provenance.commit, provenance.prompt.source) == (job.commit, "prompt")
    assert provenance.origin == FixOrigin(source="capture", job=JOB, approver="ada")
    assert scenario["tags"] == ["captured"]
    assert (job.folder / f"{id_}.scenario.yaml").read_text().startswith(f"# Captured as job {JOB}, commit")


@pytest.mark.parametrize(
    ("change", "status", "cause", "reason"),
    [
        ({TEST: "t a.js zero\n"}, "validation_failed", "test_failure", "passes before the fix"),
        ({TEST: "t a.js two\n"}, "validation_failed", "test_failure", "fails after the fix"),
        ({TEST: "t a.js FLAKY\n"}, "validation_failed", "test_failure", "flaky"),
        ({TEST: "BREAK timeout"}, "validation_failed", "environment", "out of time"),
        ({TEST: "BREAK no_report"}, "needs_manual_scenario", "scenario_synthesis", "no report"),
        ({"a.js": "zero"}, "validation_failed", "scenario_synthesis", "no source changed"),
        ({"b.js": "x\n" * 1001}, "validation_failed", "scenario_synthesis", "over 1000 lines"),
    ],
)
def test_what_becomes_of_a_job_that_is_not_proven(tmp_path, change, status, cause, reason):
    job = CapturedJob(tmp_path, BASE, {**FIX, **change})
    found = job.prove(text_tools(TextRunner()))
    assert (found.status, found.root_cause) == (status, cause)
    assert found.reason.startswith(reason)
    assert not list(job.folder.glob("*.scenario.yaml"))
    assert bool(found.scenario) == (job.folder / f"{found.scenario}.manual.md").is_file()


def test_a_change_without_tests_is_proven_by_those_that_are_named_after_its_sources(tmp_path):
    base = {**BASE, "tests/b.test.js": "b b.js x\n", TEST: "has_one a.js one\n"}
    job = CapturedJob(tmp_path, base, {"a.js": "zero one"})
    found = job.prove(text_tools(TextRunner()))
    assert found.status == "validated"
    (path,) = (job.folder / "provenance").glob("*.json")
    assert read_provenance(path).validation.fail_to_pass == (f"{TEST}::has_one",)


def test_a_secret_in_the_change_or_the_prompt_is_no_scenario(tmp_path):
    job = CapturedJob(tmp_path, BASE, FIX)
    for tool in ("secrets", "secrets_in_text"):
        found = job.prove(text_tools(TextRunner(), **{tool: lambda *_: ("a.py:1: api_key",)}))
        assert (found.status, found.root_cause) == ("validation_failed", "scenario_synthesis")
        assert "holds a secret: a.py:1: api_key" in found.reason


def test_a_job_whose_commit_is_gone_fails_by_its_snapshot(tmp_path):
    job = CapturedJob(tmp_path, BASE, FIX)
    manifest = job.manifest
    remove_object(job.repository, f"{job.commit}^{{tree}}")
    for lost in (manifest, replace(manifest, snapshot=None)):
        found = prove(lost, job.folder, job.tools(text_tools(TextRunner())))
        assert (found.status, found.root_cause) == ("validation_failed", "snapshot_integrity")


def test_tests_that_a_change_breaks_are_counted(tmp_path):
    base = {**BASE, "a.js": "zero", "tests/other.test.js": "other a.js zero\n"}
    job = CapturedJob(tmp_path, base, {"a.js": "one", TEST: "has_one a.js one\n"})
    assert job.prove(text_tools(TextRunner())).broken == 1


@pytest.mark.parametrize(
    ("ran", "reason"),
    [
        ({"uses": ("tracing",)}, "the change brings tracing, which could change its tests"),
        ({"outcomes": {}, "problem": RunProblem.TAMPERED}, "the change interferes with what runs its tests"),
        ({"outcomes": {}, "problem": RunProblem.NO_REPORT}, "the change ends what runs its tests (no report"),
        ({"outcomes": {}, "problem": RunProblem.NO_RUNNER}, "the change ends what runs its tests (no runner"),
    ],
    ids=["traces", "tampers", "ends", "hides the runner"],
)
def test_a_change_that_meddles_with_its_runner_is_refused(tmp_path, ran, reason):
    runner = TextRunner()

    def run(request):
        done = runner(request)
        return replace(done, **ran) if "one" in (request.tree / "a.js").read_text() else done

    found = CapturedJob(tmp_path, BASE, FIX).prove(text_tools(run))
    assert (found.status, found.root_cause) == ("validation_failed", "test_failure")
    assert found.reason.startswith(reason)


def test_tests_run_in_the_isolation_that_is_named(tmp_path):
    runner, seen = TextRunner(), set()

    def run(request):
        seen.add(request.isolation)
        return runner(request)

    job = CapturedJob(tmp_path, BASE, FIX)
    assert job.prove(text_tools(run), isolation="none").status == "validated"
    assert seen == {"none"}


def test_a_reviewed_recipe_says_which_files_are_tests(tmp_path):
    test = "checks/a.txt"
    job = CapturedJob(
        tmp_path, {**BASE, test: "old a.js zero\n"}, {"a.js": "zero one", test: "new a.js one\n"}
    )
    known = RecipeKnowledge(reviewed=parse_recipes('[folder."."]\ntests = ["checks/*.txt"]\n'))
    found = job.prove(text_tools(TextRunner()), knowledge=known)
    assert found.status == "validated"
    validation = read_provenance(job.folder / "provenance" / f"{found.scenario}.json").validation
    assert validation.fail_to_pass == (f"{test}::new",)
