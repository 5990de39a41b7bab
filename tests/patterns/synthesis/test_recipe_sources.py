"""Where the recipe of captured work comes from."""

import json
from dataclasses import replace
from typing import Any

import pytest
from support.captured import JOB, PROMPT, CapturedJob
from support.text_tests import TextRunner, text_tools

from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.harvest.recipe.recipe import RecipeKnowledge, recipe_of
from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes
from pytest_tfgrpo.harvest.suite.provenance import read_provenance
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus, RanCommand
from pytest_tfgrpo.patterns.synthesis.captured_fix import read_prompt
from pytest_tfgrpo.patterns.synthesis.ran_tests import read_command
from pytest_tfgrpo.patterns.synthesis.recipe_sources import FoundCommand, found_commands, named_tests

TEST = "web/a.test.js"
BASE: dict[Any, Any] = {
    "web/a.js": "zero", TEST: "old web/a.js zero\n", "web/b.test.js": "b web/a.js zero\n",
    "web/package.json": "{}", "package.json": "{}",
}  # fmt: skip
FIX: dict[Any, Any] = {"web/a.js": "zero one", TEST: "old web/a.js zero\nhas_one web/a.js one\n"}


def ran(command: str, code: int | None = 0, cwd: str = "") -> RanCommand:
    return RanCommand(command=command, exit_code=code, cwd=cwd)


def part_of(job: CapturedJob, **knowledge: Any):
    """Prove a job; return the recipe that proved it."""
    known = RecipeKnowledge(**knowledge)
    tools = text_tools(TextRunner(), recipes=lambda *given: recipe_of(*given, known))
    found = job.prove(tools, knowledge=known)
    if found.status != "validated":
        return found
    recipe = read_provenance(job.folder / "provenance" / f"{found.scenario}.json").recipe
    assert recipe.sources == found.sources
    return recipe


@pytest.fixture
def job(tmp_path):
    return CapturedJob(tmp_path, BASE, FIX)


@pytest.mark.parametrize(
    ("history", "prompt", "runner", "source"),
    [
        ([ran("vitest web/a.test.js"), ran("jest")], "", "vitest", "history 1: vitest web/a.test.js"),
        ([ran("jest web/b.test.js", cwd=""), ran("vitest")], "", "vitest", "history 2: vitest"),
        ([ran("jest", 1), ran("jest", None), ran("ls")], "`vitest run`", "vitest", "prompt: vitest run"),
        ([ran("pytest")], "```sh\njest\n```\n`vitest`", "jest", "prompt: jest"),
        ([ran("vitest; rm -rf /"), ran("npm test")], "`jest`", "jest", "prompt: jest"),
    ],
    ids=["names a changed file", "last", "prompt", "of another language", "shell"],
)
def test_the_best_command_says_how_tests_run(job, history, prompt, runner, source):
    job.write(PROMPT + prompt, history)
    part = part_of(job)
    assert (part.command.runner, part.command.folder, part.sources["runner"]) == (runner, ".", source)
    assert part.sources["tests"].startswith("changed tests")


def test_a_command_runs_where_it_ran_and_the_tests_that_it_names_are_run_too(job):
    job.write(PROMPT, [ran("TZ=UTC node --test --import=tsx b.test.js", cwd="web")])
    part = part_of(job)
    assert part.command == replace(part.command, runner="node-test", folder="web", run=("--import=tsx",))
    assert part.variables == {"TZ": "UTC"}
    assert part.sources["tests"] == "changed tests, history 1: TZ=UTC node --test --import=tsx b.test.js"


def test_a_reviewed_recipe_of_the_folder_counts_more_than_a_command(job):
    job.write(PROMPT, [ran("vitest web/a.test.js")])
    reviewed = parse_recipes('[folder."."]\nrunner = "jest"\n')
    part = part_of(job, reviewed=reviewed)
    assert (part.command.runner, part.sources["runner"]) == ("jest", 'harvest.toml [folder."."] runner')


def test_what_a_person_signed_for_a_job_counts_more_than_all_else(job):
    job.write(PROMPT, [ran("vitest web/a.test.js")])
    (job.folder / "manual.harvest.toml").write_text('[folder."web"]\nrunner = "node-test"\n')
    part = part_of(job, reviewed=parse_recipes('[folder."."]\nrunner = "jest"\n'))
    assert (part.command.runner, part.command.folder) == ("node-test", "web")


def test_a_proven_job_of_the_same_folder_lends_its_last_good_command(job):
    other = job.folder.parent / "other"
    other.mkdir()
    history = [ran("jest"), ran("vitest"), ran("jest", 1)]
    (other / "history.jsonl").write_text("".join(json.dumps(to_wire(one)) + "\nodd\n" for one in history))
    captured = replace(job.manifest.captured, files=("web/c.js",))
    earlier = replace(job.manifest, job_id="1111", captured=captured, status=LearningStatus.VALIDATED)
    for manifest, proven in (
        (replace(earlier, status=LearningStatus.VALIDATION_FAILED), False),
        (replace(earlier, captured=replace(captured, files=("api/c.js",))), False),
        (earlier, True),
    ):
        (other / "manifest.json").write_text(json.dumps(to_wire(manifest)))
        found = part_of(job)
        if proven:
            assert found.sources["runner"] == "history of job 1111, 2: vitest"
        else:
            assert found.status == "needs_manual_scenario"
            advice = (job.folder / f"{found.scenario}.manual.md").read_text()
            assert f"Then sign it: `tfgrpo learn requeue {JOB} --scenario FILE --approver YOU" in advice
            assert "in the root of the repository" not in advice


def test_of_earlier_jobs_of_a_repository_the_newest_come_first_also_for_an_attempt(job):
    captured = replace(job.manifest.captured, files=("web/c.js",))
    for name, day, command in (("1-old", 1, "vitest"), ("0-new", 3, "jest"), ("2-foreign", 4, "tox")):
        folder = job.folder.parent / name
        folder.mkdir()
        (folder / "history.jsonl").write_text(json.dumps(to_wire(ran(command))) + "\n")
        where = "/elsewhere" if name == "2-foreign" else captured.repository
        there = replace(captured, created_at=f"2026-01-0{day}T00:00:00Z", repository=where)
        other = replace(job.manifest, job_id=name, captured=there, status=LearningStatus.VALIDATED)
        (folder / "manifest.json").write_text(json.dumps(to_wire(other)))
    (job.folder / "manifest.json").write_text(
        json.dumps(to_wire(replace(job.manifest, status=LearningStatus.VALIDATED)))
    )
    attempt = job.folder / "attempts" / "1"
    attempt.mkdir(parents=True)
    for folder in (job.folder, attempt):
        found = [one.source for one in found_commands(job.manifest, folder, "")]
        assert found == ["history of job 0-new, 1: jest", "history of job 1-old, 1: vitest"]


def test_a_command_in_a_folder_without_a_manifest_is_of_the_project_around_it(job):
    job.write(PROMPT, [ran("node --test ../b.test.js", cwd="web/lib")])
    part = part_of(job)
    assert (part.command.runner, part.command.folder) == ("node-test", "web")


def test_where_no_folder_has_a_manifest_a_command_is_of_the_root(tmp_path):
    base = {name: text for name, text in BASE.items() if not name.endswith(".json")}
    job = CapturedJob(tmp_path, base, FIX)
    job.write(PROMPT, [ran("node --test a.test.js", cwd="web")])
    assert part_of(job).command.folder == "."


@pytest.mark.parametrize("end", ["js", "mjs", "cjs", "ts", "tsx", "jsx", "mts"])
def test_a_runner_of_python_runs_no_tests_of_javascript(tmp_path, end):
    test = f"web/a.test.{end}"
    base: dict[Any, Any] = {"web/a.js": "zero", test: "old web/a.js zero\n", "package.json": "{}"}
    job = CapturedJob(tmp_path, base, {"web/a.js": "zero one", test: "has_one web/a.js one\n"})
    job.write(PROMPT, [ran("jest"), ran("pytest")])
    assert part_of(job).command.runner == "jest"


def test_of_the_files_that_a_command_names_tests_that_are_there_are_run():
    command = read_command("pytest tests/test_a.py a.py tests/test_gone.py tests/test_a.py::test_b")
    assert command is not None
    found = [FoundCommand(command=command, source="x")]
    tree = frozenset({"tests/test_a.py", "a.py", "tests/test_c.py"})
    assert named_tests(found, tree) == ("tests/test_a.py",)
    assert named_tests([], tree) == ()


def test_a_prompt_is_read_also_where_it_is_no_text(tmp_path):
    assert read_prompt(tmp_path) == ""
    (tmp_path / "prompt.md").write_bytes(b"Mend \xff.")
    assert read_prompt(tmp_path) == "Mend \ufffd."


def test_manifests_that_a_change_touches_add_set_up(tmp_path):
    package = json.dumps({"devDependencies": {"jest": "29"}})
    job = CapturedJob(tmp_path, BASE, {**FIX, "web/package.json": package, "web/package-lock.json": "{}"})
    part = part_of(job)
    assert part.command.folder == "web"
    assert part.setup == (("npm", "ci", "--no-audit", "--no-fund"),)
    assert part.files["package.json"] == package


def test_a_changed_list_of_requirements_is_installed(tmp_path):
    base: dict[Any, Any] = {"a.txt": "zero", "tests/test_a.py": "old a.txt zero\n", "setup.py": ""}
    change = {
        "a.txt": "zero one",
        "tests/test_a.py": "one a.txt one\n",
        "requirements-test.txt": "attrs==23.1\n",
    }
    job = CapturedJob(tmp_path, base, {**change})
    tried = []
    tools = text_tools(TextRunner(), recipes=recipe_of)
    environment = tools.environment
    job.prove(replace(tools, environment=lambda part, date: tried.append(part) or environment(part, date)))
    assert "attrs==23.1" in tried[0].dependencies
    assert "requirements-test.txt" in tried[0].sources["dependencies"]


def test_for_a_change_without_any_test_a_person_is_shown_what_can_be_run(tmp_path):
    script = "if __name__ == '__main__':\n    print({})\n"
    job = CapturedJob(tmp_path, {"tools/mail.py": script.format(1)}, {"tools/mail.py": script.format(2)})
    found = part_of(job)
    assert (found.status, found.root_cause) == ("needs_manual_scenario", "scenario_synthesis")
    assert found.reason.endswith("nearest to it `python tools/mail.py` (tools/mail.py) can be run")
    assert found.sources["surface"] == "tools/mail.py"
    assert "`python tools/mail.py`" in (job.folder / f"{found.scenario}.manual.md").read_text()
