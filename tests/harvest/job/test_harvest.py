"""The harvest: what becomes of each change, and that nothing is proven twice."""

import errno
import json
import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.harvest.harvest import TEST, Shop
from support.repositories import everything, git
from support.text_tests import TextRunner, text_plan, text_tools

from pytest_tfgrpo.core.errors import BudgetError, SettingError, SnapshotError, StoreError
from pytest_tfgrpo.harvest.environment.builder import MadeEnvironment
from pytest_tfgrpo.harvest.environment.package_tools import BuildProblem
from pytest_tfgrpo.harvest.fixes import FixCandidate, HarvestStatus, RootCause, Statement
from pytest_tfgrpo.harvest.job.harvest import harvest, holds_changes, preview
from pytest_tfgrpo.harvest.job.verify import verify
from pytest_tfgrpo.harvest.locked_folder import GIT, WORK, locked_folder
from pytest_tfgrpo.harvest.prompt.secrets_found import SecretSearch, secrets_in_text
from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes
from pytest_tfgrpo.harvest.suite.harvest_log import HarvestLog, read_log_of
from pytest_tfgrpo.harvest.suite.provenance import FixOrigin, read_provenance
from pytest_tfgrpo.harvest.suite.scenario_text import split_in
from pytest_tfgrpo.harvest.suite.suite_files import SuitePaths
from pytest_tfgrpo.sandbox.programs.cancelling import require_going
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, SuiteCommand
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


def test_a_fix_becomes_a_scenario_and_each_change_has_a_row(shop):
    commit = shop.fix("one")
    shop.repository.commit({"README.md": "y"}, "Explain")
    steps = shop.harvest()
    assert [(s.row.status, s.row.tests, s.done, s.total) for s in steps] == [
        (HarvestStatus.SKIPPED, 0, 1, 2),
        (HarvestStatus.VALIDATED, 1, 2, 2),
    ]
    id_ = f"add-one-{commit[:12]}"
    provenance = read_provenance(shop.suite / f"provenance/{id_}.json")
    assert provenance.validation.fail_to_pass == (f"{TEST}::has_one",)
    assert provenance.validation.pass_to_pass == (f"{TEST}::old",)
    assert len(provenance.validation.runs) == len(shop.runner.runs) == 9
    assert (shop.suite / f"{id_}.scenario.yaml").is_file()


def test_a_second_harvest_does_only_what_is_new(shop):
    shop.fix("one")
    shop.harvest()
    files, shop.runner.runs = everything(shop.suite), []
    assert shop.harvest() == []
    assert (everything(shop.suite), shop.runner.runs) == (files, [])
    shop.fix("two")
    assert [step.row.tests for step in shop.harvest()] == [1]
    assert len(shop.runner.runs) == 9


@pytest.mark.parametrize(
    ("test", "status", "cause", "reason"),
    [
        ("t b.py old", "validation_failed", "test_failure", "fails after the fix"),
        ("t a.py zero", "validation_failed", "test_failure", "passes before the fix"),
        ("t b.py FLAKY", "validation_failed", "test_failure", "flaky"),
        ("t b.py SKIP", "validation_failed", "test_failure", "skipped after the fix"),
        ("", "validation_failed", "environment", "nothing collected"),
        ("BREAK timeout", "validation_failed", "environment", "out of time"),
        ("BREAK no_runner", "needs_manual_scenario", "scenario_synthesis", "no runner"),
        ("BREAK no_report", "needs_manual_scenario", "scenario_synthesis", "no report"),
    ],
)
def test_what_bad_tests_get(shop, test, status, cause, reason):
    shop.repository.commit({"b.py": "new", "other/test_b.py": test}, "Change b")
    (step,) = shop.harvest()
    assert (step.row.status, step.row.cause) == (HarvestStatus(status), RootCause(cause))
    assert step.row.reason.startswith(reason)
    assert not list(shop.suite.glob("*.yaml"))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"b.py": "x"}, "no test changed"),
        ({TEST: "t a.py zero"}, "no source changed"),
        ({TEST: "x", **{f"s{n}.py": "x" for n in range(16)}}, "16 source files changed, more than 15"),
        ({TEST: "x", "b.py": "x\n" * 1001}, "over 1000 lines of source changed"),
    ],
)
def test_a_change_that_is_no_candidate_is_skipped(shop, files, reason):
    shop.repository.commit(files, "Change")
    (step,) = shop.harvest()
    assert step.row.status is HarvestStatus.SKIPPED
    assert step.row.reason.startswith(reason)
    assert shop.runner.runs == []


def test_a_change_without_an_environment_fails_and_the_next_part_of_its_recipe_is_tried(shop):
    shop.fix("one")
    tried = []

    def environment(part, date):
        tried.append(part.relaxed)
        raise BuildProblem("no version of left-pad")

    tools = text_tools(shop.runner)

    def twice(*given):
        (part,) = tools.recipes(*given)
        return part, replace(part, relaxed=True)

    (step,) = shop.harvest(tools=replace(tools, recipes=twice, environment=environment))
    assert tried == [False, True]
    assert step.row.cause is RootCause.ENVIRONMENT
    assert step.row.reason == "no environment: no version of left-pad"
    assert shop.harvest() == []
    assert [step.row.status for step in shop.harvest(retry=True)] == [HarvestStatus.VALIDATED]


def test_what_plan_and_recipe_say_goes_with_each_run_and_stands_in_the_proof(shop):
    id_ = f"add-one-{shop.fix('one', 'Add one' + chr(10) + chr(10) + 'More.', **{'golden/x': 'x'})[:12]}"
    asked, tools = [], text_tools(shop.runner)

    def run(request):
        asked.append((request.isolation, tuple(sorted(request.protected))))
        return shop.runner(request)

    def recipes(*given):
        return (replace(tools.recipes(*given)[0], relaxed=True, protected=("golden/*",)),)

    origin = FixOrigin(source="capture", job="j-7", approver="ann")
    (step,) = shop.harvest(tools=replace(tools, run=run, recipes=recipes), isolation="none", origin=origin)
    assert step.row.tags == ("captured", "relaxed")
    expected = {("none", ("golden/x", TEST)), ("none", (TEST,))}
    assert {*asked} == expected
    proof = read_provenance(SuitePaths(suite=shop.suite, id=id_).provenance)
    assert (proof.validation.isolation, proof.validation.relaxed) == ("none", True)
    assert (proof.subject, proof.origin) == ("Add one", origin)
    assert "\ndomain: shop\n" in SuitePaths(suite=shop.suite, id=id_).scenario.read_text()
    asked.clear()
    (again,) = verify(shop.suite, run, no_environment, isolation="none")
    assert again.cause is None
    assert {*asked} == expected


def test_what_is_said_of_several_fixes_is_said_once(shop):
    shop.fix("one")
    shop.fix("two")
    noted = MadeEnvironment(notes=("no date", "no date"))
    steps = shop.harvest(tools=text_tools(shop.runner, environment=lambda part, date: noted))
    assert [step.notes.count("no date") for step in steps] == [1, 0]


def test_a_proof_that_is_judged_to_be_too_little_is_none(shop):
    shop.fix("one")

    def judge(trees, plan, found, work, run):
        return replace(found, cause=RootCause.TEST_FAILURE, reason=f"{plan.tests[0]} is too easy")

    (step,) = shop.harvest(tools=text_tools(shop.runner, judge=judge))
    assert (step.row.status, step.row.reason) == (HarvestStatus.VALIDATION_FAILED, f"{TEST} is too easy")


@pytest.mark.parametrize(
    ("tests", "status", "reason"),
    [
        ("old a.py zero\nhas_new a.py new\n", "validated", ""),
        ("old a.py zero\nsame a.py e\n", "validation_failed", f"fails after the fix: {TEST}::old"),
    ],
)
def test_tests_that_a_change_breaks_are_counted(shop, tests, status, reason):
    shop.repository.commit({"a.py": "new", TEST: tests}, "Change a")
    (step,) = shop.harvest()
    assert (step.row.status, step.row.broken) == (HarvestStatus(status), 1)
    assert step.row.reason.startswith(reason)
    assert read_log_of(shop.suite) == {step.row.commit: step.row}


def test_tests_that_waver_and_those_that_cannot_be_changed_are_said(shop):
    shop.tests += "wavers a.py FLAKY\n"
    shop.fix("one")
    (step,) = shop.harvest()
    assert (step.row.status, step.row.tests) == (HarvestStatus.VALIDATED, 1)
    assert step.notes == (
        f"wavering tests left out: {TEST}::wavers",
        f"1 of 1 test of the fix cannot be changed to fail: {TEST}::has_one",
    )
    assert step.row.reason == "; ".join(step.notes)


def test_a_removed_file_of_tests_that_no_scenario_can_name_stays(shop):
    odd = "tests/a\\b.txt"
    shop.repository.commit({odd: "x", "tests/c.txt": "x"}, "Data")
    shop.fix("one", **{odd: None, "tests/c.txt": None})
    step = shop.harvest()[-1]
    assert step.row.status is HarvestStatus.VALIDATED
    assert read_provenance(SuitePaths(suite=shop.suite, id=step.row.id).provenance).removed_tests == (
        "tests/c.txt",
    )


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_harvest_and_a_preview_leave_no_folder_of_theirs(shop, tmp_path, monkeypatch, jobs):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    shop.fix("one")
    assert len(list(preview(shop.plan()))) == 1
    assert len(shop.harvest(jobs=jobs)) == 1
    assert list(verify(shop.suite, shop.runner, no_environment, isolation="none"))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_range_holds_a_change_where_one_touches_its_paths(shop):
    assert not holds_changes(shop.plan())
    shop.fix("one")
    assert holds_changes(shop.plan())
    assert holds_changes(shop.plan(paths=("a.py",)))
    assert not holds_changes(shop.plan(paths=("b.py",)))


class Wide:
    """Tools whose second recipe has all extras and groups; `without` ends the first's test."""

    def __init__(self, shop, without=CaseOutcome.SKIPPED, said="", fails=""):
        self.tried = []

        def run(request):
            ran = shop.runner(request)
            mine = [test for test in ran.outcomes if test.endswith("::has_one")]
            if self.tried[-1].extras and not fails:
                return ran
            return replace(
                ran,
                outcomes={**ran.outcomes, **dict.fromkeys(mine, without)},
                messages=dict.fromkeys(mine, said),
            )

        def environment(part, date):
            self.tried.append(part)
            if part.extras and fails == "environment":
                raise BuildProblem("no version of left-pad")
            return MadeEnvironment()

        def recipes(*given):
            (part,) = tools.recipes(*given)
            wide = replace(part, extras=("crypto", "dev"))
            return part, wide, replace(part, relaxed=True), replace(wide, relaxed=True)

        tools = text_tools(run)
        self.tools = replace(tools, recipes=recipes, environment=environment)

    @property
    def parts(self):
        return [(part.extras, part.relaxed) for part in self.tried]


WIDE = ("crypto", "dev")


@pytest.mark.parametrize(
    ("without", "said"),
    [(CaseOutcome.SKIPPED, "needs crypto"), (CaseOutcome.FAILED, "No module named 'crypto'")],
)
def test_a_fix_whose_tests_are_skipped_or_lack_a_module_is_tried_with_all_extras_and_groups(
    shop, without, said
):
    shop.fix("one")
    wide = Wide(shop, without, said)
    (step,) = shop.harvest(tools=wide.tools)
    assert (step.row.status, step.row.tests) == (HarvestStatus.VALIDATED, 1)
    assert wide.parts == [((), False), (WIDE, False)]
    (path,) = (shop.suite / "provenance").glob("*.json")
    assert read_provenance(path).recipe.extras == WIDE


@pytest.mark.parametrize(
    ("fails", "reason", "parts"),
    [
        ("too", "the same", [((), False), (WIDE, False)]),
        ("environment", "no environment: no version of left-pad", [((), False), (WIDE, False), (WIDE, True)]),
    ],
)
def test_what_was_tried_with_all_extras_and_groups_is_in_the_reason(shop, fails, reason, parts):
    shop.fix("one")
    wide = Wide(shop, said="needs crypto", fails=fails)
    (step,) = shop.harvest(tools=wide.tools)
    assert step.row.reason == (
        f"1 new test skipped after the fix, no other proves it: {TEST}::has_one (needs crypto); with all "
        f"that it lists (crypto, dev): {reason}"
    )
    assert step.row.cause is RootCause.TEST_FAILURE
    assert wide.parts == parts


@pytest.mark.parametrize(
    ("without", "said"), [(CaseOutcome.FAILED, "assert 1 == 2"), (CaseOutcome.PASSED, "")]
)
def test_a_fix_whose_tests_lack_nothing_is_not_tried_with_all_extras(shop, without, said):
    shop.fix("one")
    wide = Wide(shop, without, said)
    shop.harvest(tools=wide.tools)
    assert wide.parts == [((), False)]


def test_files_of_tests_that_only_a_recipe_names_prove_a_fix(shop):
    shop.repository.commit({"a.py": "zero one", "tests/basic.ts": "has_one a.py one\n"}, "Add one")
    tools = text_tools(shop.runner)

    def named(*given):
        return (replace(tools.recipes(*given)[0], tests=("tests/*.ts",)),)

    (step,) = shop.harvest(tools=replace(tools, recipes=named))
    assert (step.row.status, step.row.tests) == (HarvestStatus.VALIDATED, 1)
    (path,) = (shop.suite / "provenance").glob("*.json")
    assert read_provenance(path).validation.fail_to_pass == ("tests/basic.ts::has_one",)
    (again,) = verify(shop.suite, shop.runner, no_environment, isolation="none")
    assert again.cause is None


def test_without_a_recipe_a_person_gets_what_is_known_and_retry_proves_it_later(shop):
    commit = shop.fix("one")
    tools = text_tools(shop.runner)
    (step,) = shop.harvest(tools=replace(tools, recipes=lambda *_: ()))
    assert step.row.status is HarvestStatus.NEEDS_MANUAL
    (partial,) = shop.suite.glob("*.scenario.partial.json")
    advice = (shop.suite / f"add-one-{commit[:12]}.manual.md").read_text()
    assert "harvest.toml" in advice
    assert "`tests/test_a.py`" in advice
    assert shop.harvest() == []
    assert [step.row.status for step in shop.harvest(retry=True)] == [HarvestStatus.VALIDATED]
    assert not partial.exists()
    assert shop.harvest(retry=True) == []


def test_a_missing_object_is_an_integrity_failure(shop):
    shop.fix("one", **{"c.py": "precious"})
    shop.fix("two")
    folder = shop.repository.folder
    blob = git(folder, "rev-parse", "main:c.py")
    loosen(folder)
    (folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    rows = [step.row for step in shop.harvest()]
    assert {row.cause for row in rows} == {RootCause.SNAPSHOT_INTEGRITY}
    assert {row.status for row in rows} == {HarvestStatus.VALIDATION_FAILED}


def test_a_secret_in_the_fix_is_refused_and_one_before_it_is_named(shop):
    shop.fix("one")

    def secrets(before, after):
        return tuple(name for name in after if name not in before and name == "a.py")

    (step,) = shop.harvest(tools=text_tools(shop.runner, secrets=lambda before, after: ("key in a.py:1",)))
    assert step.row.status is HarvestStatus.REFUSED
    assert step.row.reason == "the fix holds a secret: key in a.py:1; --exclude leaves a file out"
    assert shop.runner.runs == []
    (step,) = shop.harvest(tools=text_tools(shop.runner, secrets=secrets), retry=True)
    assert step.row.status is HarvestStatus.VALIDATED
    assert step.notes[-1] == "the files before the fix hold secrets: a.py; --exclude leaves them out"


def test_a_secret_in_the_prompt_is_refused(shop):
    shop.fix("one")
    (step,) = shop.harvest(tools=text_tools(shop.runner, secrets_in_text=lambda text: ("token",)))
    assert (step.row.status, step.row.reason) == (HarvestStatus.REFUSED, "the prompt holds a secret: token")
    assert not list(shop.suite.glob("*.yaml"))


def test_an_excluded_file_is_in_no_tree(shop):
    shop.fix("one", **{"conf/secret.env": "x", "keep.txt": "x"})
    held = []

    def run(request):
        held.append((request.tree / "conf/secret.env").exists())
        return shop.runner(request)

    (step,) = shop.harvest(tools=text_tools(run), exclude=("conf/*.env",))
    assert step.row.status is HarvestStatus.VALIDATED
    assert held == [False] * 9


def test_the_suite_in_the_repository_is_part_of_no_tree(shop):
    shop.suite = shop.repository.folder / "bench" / "suite"
    shop.fix("one", **{"bench/suite/answers.yaml": "x"})
    shop.fix("two")
    held = []

    def run(request):
        held.append((request.tree / "bench").exists())
        return shop.runner(request)

    assert len(shop.harvest(tools=text_tools(run))) == 2
    assert held == [False] * 18


def test_the_suite_is_found_in_the_repository_by_a_relative_path_too(shop, monkeypatch):
    monkeypatch.chdir(shop.repository.folder)
    shop.suite = Path("bench/suite")
    shop.repository.commit({"bench/suite/tests/test_x.py": "x", "b.py": "y"}, "Keep the suite")
    (step,) = shop.harvest()
    assert step.row.reason == "no test changed"


def test_globs_of_a_plan_say_what_is_a_test_and_what_is_protected(shop):
    shop.repository.commit(
        {"a.py": "zero one", "checks/n.txt": "one", "checks/a_check.py": "has_one a.py one\n"}, "Add one"
    )
    plan = {"tests": ("checks/*_check.py",), "protected": ("checks/*",)}
    (step,) = shop.harvest(**plan)
    assert (step.row.status, step.row.tests) == (HarvestStatus.VALIDATED, 1)
    proof = read_provenance(SuitePaths(suite=shop.suite, id=step.row.id).provenance)
    assert (proof.protected, proof.sources) == (("checks/a_check.py", "checks/n.txt"), ("a.py",))


def test_the_tests_that_need_changed_data_are_found_by_the_globs_of_the_plan(shop):
    asked = []

    def run(request):
        asked.append(request.files)
        return shop.runner(request)

    shop.repository.commit({"checks/a_check.py": "t a.py zero\n"}, "Check")
    shop.repository.commit({"a.py": "zero one", "tests/data.txt": "one"}, "Change data")
    (*_, step) = shop.harvest(tools=text_tools(run), tests=("checks/*_check.py",))
    assert step.row.reason == "passes before the fix: no test of it fails there"
    assert all("checks/a_check.py" in files for files in asked)


def test_each_commit_is_one_on_request(shop):
    first = git(shop.repository.folder, "rev-parse", "main")
    files = {"a.py": "zero one", TEST: "old a.py zero\nhas_one a.py one\n"}
    side = shop.repository.commit(files, "One", branch="side", parents=[first])
    shop.repository.commit(files, "Merge branch 'side'", parents=[first, side])
    each = [step.row.commit for step in shop.harvest(each_commit=True)]
    assert each == [side]


def test_a_disk_that_fails_while_tests_run_ends_the_harvest_and_names_the_candidate(shop):
    id_ = f"add-one-{shop.fix('one')[:12]}"

    def run(request):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(StoreError, match=f"cannot continue with {id_}: .*; make room and harvest again"):
        shop.harvest(tools=text_tools(run))
    assert read_log_of(shop.suite) == {}


def test_an_environment_is_as_of_the_time_of_the_fix(shop):
    shop.fix("one")
    dates = []

    def environment(part, date):
        dates.append(date)
        return MadeEnvironment()

    (step,) = shop.harvest(tools=text_tools(shop.runner, environment=environment))
    assert dates == [step.row.committed_at]
    proof = read_provenance(SuitePaths(suite=shop.suite, id=step.row.id).provenance)
    assert proof.committed_at == step.row.committed_at > 0


def test_a_recipe_reads_files_after_the_fix_and_no_links(shop):
    shop.repository.commit({"l": "a.py"}, "Link", modes={"l": "120000"})
    shop.fix("one")
    held, tools = [], text_tools(shop.runner)

    def recipes(read, names, candidate):
        held.append(([read(name) for name in ("a.py", "l", "none")], sorted(names)))
        return tools.recipes(read, names, candidate)

    shop.harvest(tools=replace(tools, recipes=recipes))
    assert held == [([b"zero one", None, None], ["README.md", "a.py", "l", TEST])]


def test_what_a_person_gets_is_of_the_domain_and_the_job(shop):
    shop.fix("one")
    origin = FixOrigin(source="capture", job="j-7")
    shop.harvest(tools=text_tools(shop.runner, recipes=lambda *_: ()), origin=origin)
    (partial,) = shop.suite.glob("*.scenario.partial.json")
    (advice,) = shop.suite.glob("*.manual.md")
    assert json.loads(partial.read_text())["domain"] == "shop"
    assert "tfgrpo learn requeue j-7 " in advice.read_text()


@pytest.mark.parametrize("lost", ["base", "commit", "removed_tests"])
def test_a_proof_of_something_else_is_none_of_a_fix(shop, lost):
    shop.repository.commit({"tests/c.txt": "x"}, "Data")
    shop.fix("one", **{"tests/c.txt": None})
    row = shop.harvest()[-1].row
    paths = SuitePaths(suite=shop.suite, id=row.id)
    known = read_provenance(paths.provenance)
    value = json.loads(paths.provenance.read_text())
    paths.provenance.write_text(json.dumps({**value, lost: [] if lost == "removed_tests" else "1" * 40}))
    paths.base.unlink()
    shop.runner.runs = []
    assert [step.row.status for step in shop.harvest()] == [HarvestStatus.VALIDATED]
    assert len(shop.runner.runs) == 9
    assert replace(read_provenance(paths.provenance), validation=known.validation) == known


def test_a_dry_run_lists_candidates_and_writes_nothing(shop, tmp_path):
    shop.fix("one")
    shop.repository.commit({"README.md": "y"}, "Explain")
    shop.repository.commit({"b.py": "x\n" * 1001, TEST: "x"}, "Write much")
    before = everything(tmp_path)
    found = list(preview(text_plan(shop.repository.folder, f"{shop.first}..main", shop.suite)))
    assert [isinstance(one, FixCandidate) for one in found] == [True, False, False]
    assert found[2].reason.startswith("over 1000 lines of source changed")
    assert everything(tmp_path) == before


@pytest.mark.parametrize("commits", ["nope..main", "main..nope", "a...b"])
def test_a_bad_range_is_a_usage_error_that_leaves_no_suite(shop, commits):
    with pytest.raises(SettingError):
        shop.harvest(commits)
    assert not shop.suite.exists()


def test_no_repository_is_a_usage_error(tmp_path):
    with pytest.raises(SettingError, match="not in a git repository"):
        list(harvest(text_plan(tmp_path, "a..b", tmp_path / "suite"), text_tools(TextRunner())))


def test_a_locked_suite_is_a_usage_error(shop):
    shop.fix("one")
    with HarvestLog(shop.suite), pytest.raises(SettingError, match="is locked"):
        shop.harvest()


@pytest.mark.parametrize("jobs", [1, 4])
def test_several_workers_find_the_same(shop, jobs):
    for number in range(6):
        shop.fix(f"w{number}")
    steps = shop.harvest(jobs=jobs)
    assert sorted(step.done for step in steps) == [1, 2, 3, 4, 5, 6]
    assert {step.row.status for step in steps} == {HarvestStatus.VALIDATED}
    assert steps[-1].left_s is None
    done_s = 0.0
    for n, step in enumerate(steps[:-1], 1):
        done_s += step.row.elapsed_s
        assert step.left_s == pytest.approx(done_s / n * (6 - n) / min(jobs, 6 - n))
    assert len(set(shop.runner.runs)) <= jobs


def test_the_split_goes_by_time(shop, monkeypatch):
    monkeypatch.setattr("pytest_tfgrpo.harvest.suite.split_by_time.SPLIT_FROM", 4)
    for number in range(4):
        shop.fix(f"w{number}")
    shop.harvest(jobs=2)
    rows = sorted(read_log_of(shop.suite).values(), key=lambda row: row.committed_at)
    texts = [(shop.suite / f"{row.id}.scenario.yaml").read_text() for row in rows]
    assert [split_in(text) for text in texts] == ["train", "train", "dev", "eval"]


class Killed(BaseException):
    """Stands for a process that ends at once."""


def kill_at(stop_at, monkeypatch):
    """End the process, so to say, at the given write."""
    replace_really, fsync_really, places = Path.replace, os.fsync, []

    def reach():
        places.append(None)
        if len(places) == stop_at:
            raise Killed

    def replace_file(self, target):
        reach()
        done = replace_really(self, target)
        reach()
        return done

    def fsync(handle):
        reach()
        fsync_really(handle)

    monkeypatch.setattr(Path, "replace", replace_file)
    monkeypatch.setattr(os, "fsync", fsync)


def test_a_kill_at_any_write_leaves_no_half_scenario_and_nothing_is_proven_twice(shop, tmp_path, monkeypatch):
    shop.fix("one")
    shop.harvest()
    expected, rows = everything(shop.suite), rows_of(shop)
    for stop_at in range(1, 60, 3):
        shop.suite, shop.runner.runs = tmp_path / f"suite-{stop_at}", []
        kill_at(stop_at, monkeypatch)
        try:
            shop.harvest()
            break
        except Killed:
            monkeypatch.undo()
        proven = list((shop.suite / "provenance").glob("*.json"))
        if list(shop.suite.glob("*.yaml")):
            assert proven
            assert len(list((shop.suite / "archives").glob("*.gz"))) == 2
            assert len(list((shop.suite / "references").glob("*.gz"))) == 1
        ran = len(shop.runner.runs)
        shop.harvest()
        assert len(shop.runner.runs) == (ran if proven else ran + 9)
        assert everything(shop.suite).keys() == expected.keys()
        assert rows_of(shop) == rows
    assert stop_at > 10


def rows_of(shop):
    return [replace(row, elapsed_s=0.0) for row in read_log_of(shop.suite).values()]


def test_a_full_disk_ends_the_harvest_and_nothing_counts_as_a_result(shop, monkeypatch):
    shop.fix("one")
    really = Path.replace

    def full(self, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StoreError, match="make room"):
        shop.harvest()
    monkeypatch.setattr(Path, "replace", really)
    assert read_log_of(shop.suite) == {}
    assert [step.row.status for step in shop.harvest()] == [HarvestStatus.VALIDATED]


def test_too_little_room_for_tests_is_no_result(shop, monkeypatch):
    shop.fix("one")
    monkeypatch.setattr("pytest_tfgrpo.harvest.job.worker.LEAST_ROOM", 10**18)
    with pytest.raises(StoreError, match="make room and harvest again"):
        shop.harvest()
    assert read_log_of(shop.suite) == {}


def test_verification_proves_all_again_and_finds_what_changed(shop):
    shop.fix("one")
    shop.fix("two")
    shop.harvest()
    runs = len(shop.runner.runs)

    def again(run=shop.runner):
        return [(one.cause, one.reason) for one in verify(shop.suite, run, no_environment, isolation="none")]

    assert again() == [(None, "")] * 2
    assert len(shop.runner.runs) == runs + 18

    def lazy(request):
        ran = shop.runner(request)
        return replace(ran, outcomes={test: end for test, end in ran.outcomes.items() if "old" not in test})

    assert again(lazy)[0] == (RootCause.TEST_FAILURE, f"no longer from pass to pass: {TEST}::old")
    archive = next((shop.suite / "archives").glob("*two*.hidden.tar.gz"))
    archive.write_bytes(archive.read_bytes() + b"x")
    causes = [cause for cause, _ in again()]
    assert sorted(causes, key=str) == [None, RootCause.SNAPSHOT_INTEGRITY]


@pytest.mark.parametrize("damage", ["junk", "gone"])
def test_a_scenario_whose_provenance_is_lost_is_not_proven_and_the_others_are_proven(shop, damage):
    shop.fix("one")
    shop.fix("two")
    shop.harvest()
    (lost,) = (shop.suite / "provenance").glob("*one*.json")
    lost.unlink() if damage == "gone" else lost.write_text(damage)
    found = list(verify(shop.suite, shop.runner, no_environment, isolation="none"))
    assert {one.id: one.cause for one in found if one.cause} == {lost.stem: RootCause.SNAPSHOT_INTEGRITY}
    assert [(one.done, one.total) for one in found] == [(1, 2), (2, 2)]
    assert any("restore it" in one.reason for one in found)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("::has_one", "::old", "fail_to_pass in {} lists what was not proven: tests/test_a.py::old"),
        ("kind: tests", "kind: exact", "{} has 0 checks of kind 'tests', not one; restore it"),
        ("hidden: archives/", "hidden: x/", "hidden in {} is "),
        ("hidden_sha256: ", "hidden_sha256: f", "hidden_sha256 in {} is not of the archive that was proven"),
        ("checks:", "chequers: [", "{}:"),
        ("  archive: archives/", "  archive: x/", "the workspace in {} is not the one that was proven"),
        ("changes:", "changes: [1]\n    unchanged:", "changes in {} are not those that were proven"),
        ("runner: pytest", "runner: jest", "runner in {} is 'jest', not 'pytest'; restore it"),
        (
            "kind: tests",
            "removed: [a.py]\n    kind: tests",
            "removed in {} is ['a.py'], not None; restore it",
        ),
        ("checks:", "checks: 5\nchecked:", "{} has 0 checks of kind 'tests', not one; restore it"),
        ("fail_to_pass:", "fail_to_pass: 5\n    failing:", "fail_to_pass in {} is empty; restore it"),
        ("tags:\n", "tags:\n  - hard\n", None),
    ],
)
def test_a_scenario_whose_check_is_not_what_was_proven_is_not_proven(shop, old, new, why):
    shop.fix("one")
    shop.harvest()
    (path,) = shop.suite.glob("*.scenario.yaml")
    path.write_text(path.read_text().replace(old, new))
    (found,) = verify(shop.suite, shop.runner, no_environment, isolation="none")
    assert found.reason.startswith("" if why is None else why.format(path.name))
    assert found.cause is (None if why is None else RootCause.SNAPSHOT_INTEGRITY)


@pytest.mark.parametrize(
    ("old", "new", "edited"),
    [
        ("tags:\n", "tags:\n  - hard\n", ()),
        ("timeout_s: 60.0", "timeout_s: 90.0\n    weight: 2",
         ("timeout_s is 90.0, was 60.0", "weight is 2, was not set")),
        ("pass_to_pass:\n      - ", "pass_to_pass: []\n    allow:\n      - ctypes # ",
         ("allow is ['ctypes'], was not set", "1 of 1 test taken out of pass_to_pass")),
        ("    hidden_sha256:", "    # hidden_sha256:", ()),
    ],
)  # fmt: skip
def test_what_of_a_proven_check_was_edited_is_said(shop, old, new, edited):
    shop.fix("one")
    shop.harvest()
    (path,) = shop.suite.glob("*.scenario.yaml")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    (found,) = verify(shop.suite, shop.runner, no_environment, isolation="none")
    assert (found.cause, found.edited) == (None, edited)


def test_a_shallow_clone_is_harvested_and_then_an_error(shop, tmp_path):
    shop.fix("one")
    shop.fix("two")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{shop.repository.folder}", "clone")
    plan = text_plan(clone, "HEAD", shop.suite)
    for _ in range(2):
        with pytest.raises(
            SnapshotError, match=r"its parent .* is missing, `git fetch --unshallow` completes"
        ):
            list(harvest(plan, text_tools(shop.runner)))
    assert sorted(row.status for row in read_log_of(shop.suite).values()) == [
        "validated",
        "validation_failed",
    ]
    with pytest.raises(SnapshotError, match="breaks off before"):
        list(preview(plan))
    assert list(harvest(replace(plan, limit=1), text_tools(shop.runner))) == []


def test_a_file_is_no_folder_for_a_suite(shop, tmp_path):
    shop.suite = tmp_path / "file"
    shop.suite.write_text("")
    shop.fix("one")
    with pytest.raises(SettingError, match="file is not a folder"):
        shop.harvest()


def test_a_reference_that_is_gone_is_named(shop):
    shop.fix("one")
    shop.harvest()
    (lost,) = (shop.suite / "references").iterdir()
    lost.unlink()
    (one,) = verify(shop.suite, shop.runner, no_environment, isolation="none")
    assert one.reason == f"references/{lost.name} is missing; restore it"


def no_environment(suite, stamp):
    raise AssertionError("no scenario has one")


def as_imported(suite: Path, id_: str, name: str = "tasks") -> Path:
    """Put a harvested scenario into a file of JSON lines, as an import writes it; return the file."""
    own, lines = SuitePaths(suite=suite, id=id_).scenario, suite / f"{name}.scenarios.jsonl"
    value = parse_yaml(own.read_text()).value
    lines.write_text(json.dumps({"id": "other", "prompt": "x"}) + "\n" + json.dumps(value) + "\n")
    own.unlink()
    return lines


def test_scenarios_that_came_back_by_an_import_are_verified_too(shop):
    id_ = f"add-one-{shop.fix('one')[:12]}"
    shop.harvest()
    lines = as_imported(shop.suite, id_)
    (one,) = verify(shop.suite, shop.runner, no_environment, isolation="none")
    assert (one.id, one.cause, one.tests) == (id_, None, 1)
    lines.write_text(lines.read_text().replace('"runner": "pytest"', '"runner": "command"'))
    (one,) = verify(shop.suite, shop.runner, no_environment, isolation="none")
    assert one.reason == "runner in tasks.scenarios.jsonl is 'command', not 'pytest'; restore it"
    lines.write_text(lines.read_text() + "{\n")
    with pytest.raises(SettingError, match=r"tasks\.scenarios\.jsonl:3: .*; restore it"):
        list(verify(shop.suite, shop.runner, no_environment, isolation="none"))


def test_scenarios_in_several_files_of_an_import_are_verified_beside_those_with_their_own(shop):
    ids = sorted(f"add-{word}-{shop.fix(word)[:12]}" for word in ("one", "three", "two"))
    shop.harvest()
    as_imported(shop.suite, ids[0])
    as_imported(shop.suite, ids[2], "more")
    found = list(verify(shop.suite, shop.runner, no_environment, isolation="none"))
    assert [(one.id, one.cause, one.done, one.total) for one in found] == [
        (id_, None, n, 3) for n, id_ in enumerate(ids, 1)
    ]


def test_a_suite_without_scenarios_cannot_be_verified(tmp_path):
    with pytest.raises(SettingError, match="holds no harvested scenario"):
        list(verify(tmp_path, TextRunner(), no_environment, isolation="none"))


def test_a_recipe_for_a_folder_is_kept_with_the_check(shop):
    shop.fix("one")
    tools = text_tools(shop.runner)

    def recipes(*given):
        (part,) = tools.recipes(*given)
        return (replace(part, command=SuiteCommand(runner="command", run=("make", "{report}"))),)

    shop.harvest(tools=replace(tools, recipes=recipes))
    (scenario,) = shop.suite.glob("*.yaml")
    assert "runner:\n      name: command" in scenario.read_text()


def test_a_prompt_that_a_model_fails_to_write_is_no_scenario(shop):
    shop.fix("one")

    def statement(*given):
        raise SettingError("the model has left")

    (step,) = shop.harvest(tools=text_tools(shop.runner, statement=statement))
    assert (step.row.cause, step.row.reason) == (
        RootCause.SCENARIO_SYNTHESIS,
        "no prompt: the model has left",
    )


def test_a_leaking_prompt_is_tagged_in_the_row(shop):
    shop.fix("one")
    leaking = Statement(text="Mend", source="issue 1", cut=("x",))
    (step,) = shop.harvest(tools=text_tools(shop.runner, statement=lambda *_: leaking))
    assert step.row.tags == ("harvested", "leak")


@pytest.mark.parametrize("prefix", [WORK, GIT])
def test_what_a_killed_harvest_left_is_removed_and_what_is_in_use_is_not(tmp_path, monkeypatch, prefix):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"{prefix}dead" / "tree-0").mkdir(parents=True)
    with monkeypatch.context() as another:
        another.setattr("os.geteuid", lambda: os.getuid() + 1)
        with locked_folder(prefix):
            assert (tmp_path / f"{prefix}dead").exists()
    with pytest.raises(Killed), locked_folder(prefix) as ended:
        raise Killed
    assert not ended.exists()
    begun = tmp_path / f"{prefix}begun"
    begun.mkdir()
    with locked_folder(prefix):
        assert begun.exists()
    begun.rmdir()
    (tmp_path / f"{prefix}dead" / "tree-0").mkdir(parents=True)
    with locked_folder(prefix) as first:
        (first / "x").touch()
        with locked_folder(prefix) as second:
            assert sorted(tmp_path.iterdir()) == sorted([first, second])
    assert list(tmp_path.iterdir()) == []


def test_archives_that_are_gone_are_written_again_and_nothing_is_proven_twice(shop):
    id_ = f"add-one-{shop.fix('one')[:12]}"
    shop.harvest()
    paths = SuitePaths(suite=shop.suite, id=id_)
    paths.scenario.write_text(paths.scenario.read_text().replace("split: eval", "split: eval  # mine"))
    files, shop.runner.runs = everything(shop.suite / "archives"), []
    paths.base.unlink()
    paths.hidden.unlink()
    assert [step.row.tests for step in shop.harvest()] == [1]
    assert (everything(shop.suite / "archives"), shop.runner.runs) == (files, [])
    assert "# mine" in paths.scenario.read_text()
    paths.scenario.unlink()
    paths.base.unlink()
    assert shop.harvest() == []  # who deletes a scenario wants it gone


def test_a_scenario_keeps_the_id_that_an_earlier_harvest_gave_it(shop):
    id_, old = f"add-one-{shop.fix('one')[:12]}", "named-before"
    shop.harvest()
    shutil.rmtree(shop.suite / "archives")
    shutil.rmtree(shop.suite / "references")
    for path in [path for path in shop.suite.rglob("*") if path.is_file()]:
        path.write_text(path.read_text().replace(id_, old))
        path.rename(path.with_name(path.name.replace(id_, old)))
    assert [step.row.id for step in shop.harvest()] == [old]
    assert SuitePaths(suite=shop.suite, id=old).base.is_file()


def test_an_interrupt_ends_the_harvest_after_the_run_and_keeps_what_is_proven(shop):
    shop.fix("one")
    shop.fix("two")
    plan = text_plan(shop.repository.folder, f"{shop.first}..main", shop.suite)
    steps = harvest(plan, text_tools(shop.runner))
    next(steps)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert len(read_log_of(shop.suite)) == 1
    shop.runner.runs = []
    assert [step.row.status for step in shop.harvest()] == [HarvestStatus.VALIDATED]


def test_several_fixes_of_a_merge_become_scenarios_of_their_own(shop):
    folder, first = shop.repository.folder, shop.first
    files = [{"a.py": f"zero {w}", TEST: f"old a.py zero\n{w} a.py {w}\n"} for w in ("one", "two")]
    one = shop.repository.commit(files[0], "One", branch="side", parents=[first])
    two = shop.repository.commit(files[1], "Two", branch="side", parents=[one])
    shop.repository.commit(files[1], "Merge branch 'side'", parents=[first, two])
    steps = shop.harvest()
    assert [(s.row.id[:6], s.row.status, s.row.tests) for s in steps] == [
        ("merge-", HarvestStatus.SKIPPED, 0),
        (f"one-{one[:2]}", HarvestStatus.VALIDATED, 1),
        (f"two-{two[:2]}", HarvestStatus.VALIDATED, 1),
    ]
    assert shop.harvest() == []
    assert git(folder, "rev-parse", "main^2") == two
    assert [row.id for row in preview(shop.plan(paths=("b.py",)))] == []


def test_a_harvest_whose_time_is_up_ends_what_runs_and_another_goes_on(shop, monkeypatch):
    for word in ("one", "two", "three"):
        shop.fix(word)
    runs, clock = shop.runner.runs, SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        "pytest_tfgrpo.harvest.job.harvest.time", SimpleNamespace(monotonic=lambda: clock.now)
    )

    def run(request):
        if len(runs) >= 12:  # the second fix hangs in its fourth run
            clock.now = 300.0
            for _ in range(1000):
                require_going()
                time.sleep(0.01)
        return shop.runner(request)

    steps = harvest(shop.plan(budget_s=300), text_tools(run))
    rows = []
    with pytest.raises(BudgetError) as stopped:
        rows.extend(step.row for step in steps)
    assert str(stopped.value) == (
        "stopped after 300 s: 2 candidates are left; run the same command again for the rest"
    )
    assert [row.id[:7] for row in rows] == ["add-one"]
    archives = everything(shop.suite / "archives")
    assert [step.row.id[:7] for step in shop.harvest()] == ["add-two", "add-thr"]
    assert archives.items() <= everything(shop.suite / "archives").items()
    assert len(runs) == 12 + 18


def test_a_budget_in_which_nothing_is_done_says_so(shop):
    shop.repository.commit({"README.md": "y"}, "Explain")
    shop.fix("one")
    with pytest.raises(BudgetError, match=r"before one was finished: 1 candidate is left; set --b"):
        shop.harvest(budget_s=1e-9)
    assert [row.status for row in read_log_of(shop.suite).values()] == [HarvestStatus.SKIPPED]
    assert shop.runner.runs == []


def test_who_watches_sees_which_run_goes_on_and_how_long_all_may_take(shop, monkeypatch):
    monkeypatch.setattr("pytest_tfgrpo.harvest.job.harvest.LOOK_S", 0.001)
    for word in ("one", "two"):
        shop.fix(word)
    seen = []

    def run(request):
        if len(shop.runner.runs) in (4, 10):
            enough, deadline = len(seen) + 2, time.monotonic() + 10  # one look may have begun before
            while len(seen) < enough:
                assert time.monotonic() < deadline
                time.sleep(0.001)
        return shop.runner(request)

    rows = [step.row for step in harvest(shop.plan(), text_tools(run), seen.append)]
    found = {(r.total, one.number, one.id, one.stage, one.run, one.runs) for r in seen for one in r.running}
    assert found >= {(2, 1, rows[0].id, "runs", 5, 10), (2, 2, rows[1].id, "runs", 2, 10)}
    assert all(one.began_s <= r.at_s for r in seen for one in r.running)
    estimates = [reading.estimate for reading in seen if reading.estimate]
    assert {(one.candidates, one.basis) for one in estimates} == {(2, "the first 3 runs of one took 0 s")}
    assert 0 < estimates[0].least_s < estimates[0].most_s


def test_a_fix_that_adds_a_module_which_stands_in_for_another_needs_a_person(shop):
    shop.fix("one", **{"json.py": "x = 1\n", "pkg/json.py": "", "pkg/__init__.py": ""})
    (step,) = shop.harvest()
    assert step.row.status is HarvestStatus.NEEDS_MANUAL
    assert step.row.reason == "the fix adds modules that no check takes from an agent: json.py"


def test_files_run_in_the_order_of_a_check(shop):
    ordered = []

    def run(request):
        ordered.append(request.files)
        return shop.runner(request)

    shop.repository.commit(
        {"a.py": "zero new", TEST: "t a.py new\n", "tests/test_0.py": "t a.py zero\n"}, "Change both"
    )
    shop.harvest(tools=text_tools(run))
    assert set(ordered) == {("tests/test_0.py", TEST), (TEST,)}


def test_a_history_that_breaks_off_is_harvested_as_far_as_it_goes(shop):
    shop.fix("one")
    lost = shop.fix("two")
    shop.fix("three")
    shop.fix("four")
    loosen(shop.repository.folder)
    (shop.repository.folder / ".git/objects" / lost[:2] / lost[2:]).unlink()
    steps = harvest(text_plan(shop.repository.folder, "main", shop.suite), text_tools(shop.runner))
    with pytest.raises(SnapshotError, match="fetch what is missing"):
        list(steps)
    rows = read_log_of(shop.suite).values()
    assert HarvestStatus.VALIDATED in {row.status for row in rows}
    assert {row.cause for row in rows} <= {None, RootCause.SNAPSHOT_INTEGRITY}


def test_a_fix_that_changes_data_of_tests_alone_is_proven_by_the_tests_that_need_them(shop):
    shop.repository.commit(
        {"tests/data/x.txt": "nothing", "tests/test_d.py": "t tests/data/x.txt new\n"}, "Data"
    )
    shop.repository.commit({"tests/data/x.txt": "new", "a.py": "zero more"}, "Change data")
    steps = shop.harvest()
    assert steps[-1].row.reason == "passes before the fix: no test of it fails there"


def test_files_of_tests_that_a_fix_removes_are_in_no_tree_with_its_tests(shop):
    shop.repository.commit({"tests/data/x.txt": "data", "tests/old.txt": "old"}, "Data")
    tests = "t tests/data/x.txt data\nhas_one a.py one\n"
    gone = {"tests/data/x.txt": None, "tests/old.txt": None}
    shop.repository.commit({"a.py": "zero one", "tests/test_d.py": tests, **gone}, "Remove data")
    rows = {step.row.id: step.row for step in shop.harvest()}
    (found,) = [row for id_, row in rows.items() if id_.startswith("remove-data")]
    provenance = read_provenance(SuitePaths(suite=shop.suite, id=found.id).provenance)
    assert provenance.validation.fail_to_pass == ("tests/test_d.py::has_one",)
    listed = (*provenance.validation.fail_to_pass, *provenance.validation.pass_to_pass)
    assert "tests/test_d.py::t" not in listed  # it fails after the true fix
    scenario = SuitePaths(suite=shop.suite, id=found.id).scenario.read_text()
    assert parse_yaml(scenario).value["checks"][0]["removed"] == ["tests/data/x.txt", "tests/old.txt"]
    again = list(verify(shop.suite, shop.runner, no_environment, isolation="none"))
    assert [one.cause for one in again] == [None] * len(again)


def loosen(folder):
    """Let each object of a repository be a file of its own."""
    for pack in list((folder / ".git/objects/pack").glob("*.pack")):
        moved = pack.rename(folder / pack.name)
        pack.with_suffix(".idx").unlink()
        git(folder, "unpack-objects", "-q", given=moved.read_bytes())


def test_a_change_that_is_reverted_or_changes_a_submodule_is_skipped(shop):
    commit = shop.fix("one")
    shop.repository.commit(
        {"a.py": "zero", TEST: "old a.py zero\n"}, f'Revert "Add one"\n\nThis reverts commit {commit}.'
    )
    shop.repository.commit(
        {"sub": "0" * 39 + "1", "b.py": "x", TEST: "x"}, "Move sub", modes={"sub": "160000"}
    )
    reasons = [step.row.reason for step in shop.harvest()]
    assert reasons[0].startswith("it is reverted by ")
    assert reasons[1:] == ["it reverts another change", "it changes a submodule"]
    assert shop.runner.runs == []


KEY = "AKIA" + "Q3EGRZ7XN5WDPLMB"


@pytest.fixture
def searching(shop):
    return text_tools(shop.runner, secrets=SecretSearch().added, secrets_in_text=secrets_in_text)


def test_a_real_secret_in_a_fix_is_refused_by_kind_and_line_and_excluded_by_its_glob(shop, searching):
    shop.fix("one", **{"conf/cloud.ini": f"[aws]\nkey = {KEY}\n"})
    (step,) = shop.harvest(tools=searching)
    assert step.row.status is HarvestStatus.REFUSED
    assert "conf/cloud.ini:2: " in step.row.reason
    assert KEY not in (shop.suite / "harvest.jsonl").read_text()
    (step,) = shop.harvest(tools=searching, retry=True, exclude=("conf/**",))
    assert step.row.status is HarvestStatus.VALIDATED


def test_a_real_secret_before_the_fix_is_named(shop, searching):
    shop.repository.commit({"conf/cloud.ini": f"key = {KEY}\n"}, "Configure")
    shop.fix("one")
    step = shop.harvest(tools=searching)[-1]
    assert step.row.status is HarvestStatus.VALIDATED
    assert "conf/cloud.ini:1: " in step.row.reason


def test_a_real_secret_in_the_message_is_refused(shop, searching):
    shop.fix("one", message=f"Add one, which needs {KEY}")
    (step,) = shop.harvest(tools=searching)
    assert step.row.status is HarvestStatus.REFUSED
    assert step.row.reason.startswith("the prompt holds a secret: line 1")


def test_a_person_is_told_what_to_do(shop, golden):
    commit = shop.fix("one")
    shop.harvest(tools=text_tools(shop.runner, recipes=lambda *_: ()))
    (advice,) = shop.suite.glob("*.manual.md")
    (recipe,) = parse_recipes(advice.read_text().partition("```toml\n")[2].partition("```")[0])
    assert (recipe.folder, recipe.runner) == (".", "command")
    golden("harvest-manual.md", advice.read_text().replace(commit, "c" * 40).replace(commit[:12], "c" * 12))


def test_a_base_that_has_none_of_the_tests_runs_none(shop):
    shop.repository.commit({"b.py": "new", "fresh/test_n.py": "t b.py new\n"}, "Add with tests")
    (step,) = shop.harvest()
    assert (step.row.status, step.row.tests) == (HarvestStatus.VALIDATED, 1)
    assert len(shop.runner.runs) == 6
    runs = read_provenance(shop.suite / f"provenance/{step.row.id}.json").validation.runs
    assert [run.problem for run in runs if run.tree == "base"] == ["nothing_collected"] * 3


def test_a_scenario_whose_environment_is_not_built_is_not_proven(shop):
    shop.fix("one")
    shop.harvest()
    (path,) = (shop.suite / "provenance").glob("*.json")
    value = json.loads(path.read_text())
    value["validation"]["environment"] = "e" * 64
    path.write_text(json.dumps(value))

    def again(error):
        def find(suite, stamp):
            assert (suite, stamp) == (shop.suite, "e" * 64)
            raise error

        (found,) = verify(shop.suite, shop.runner, find, isolation="none")
        return found.cause, found.reason

    assert again(SettingError("build it\nfirst")) == (RootCause.ENVIRONMENT, "build it first")
    with pytest.raises(StoreError, match="the cache is full"):
        again(StoreError("the cache is full"))
    (scenario,) = shop.suite.glob("*.scenario.yaml")
    scenario.write_text(scenario.read_text().replace("timeout_s: 60.0", "timeout_s: 90.0"))
    (found,) = verify(shop.suite, shop.runner, no_such_environment, isolation="none")
    assert (found.cause, found.edited) == (RootCause.ENVIRONMENT, ("timeout_s is 90.0, was 60.0",))


def no_such_environment(suite, stamp):
    raise SettingError("build it first")


def test_what_is_verified_runs_in_the_environment_in_which_it_was_proven(shop):
    shop.fix("one")
    shop.harvest()
    (path,) = (shop.suite / "provenance").glob("*.json")
    value = json.loads(path.read_text())
    value["validation"]["environment"] = "e" * 64
    path.write_text(json.dumps(value))
    built = BuiltEnvironment(
        stamp="e" * 64, folder=shop.suite, python=None, programs=(), imports=(), variables={}, links={},
        readable=(),
    )  # fmt: skip
    asked = []

    def run(request):
        asked.append(request.environment)
        return shop.runner(request)

    (found,) = verify(shop.suite, run, lambda suite, stamp: built, isolation="none")
    assert found.cause is None
    assert asked == [built] * 9


@pytest.mark.parametrize(("word", "lost"), [("never", ""), ("zero", f"{TEST}::has_one")])
def test_changes_of_tests_are_proven_again(shop, word, lost):
    shop.fix("one")
    shop.harvest()
    test = f"{TEST}::has_one"
    change = {"file": TEST, "lines": [{"row": 2, "text": f"has_one a.py {word}"}], "fails": [test]}
    (path,) = (shop.suite / "provenance").glob("*.json")
    value = json.loads(path.read_text())
    value["validation"]["changes"] = [change]
    path.write_text(json.dumps(value))
    (scenario,) = shop.suite.glob("*.scenario.yaml")
    scenario.write_text(scenario.read_text().replace("changes: []", f"changes: [{json.dumps(change)}]"))
    (found,) = verify(shop.suite, shop.runner, no_environment, isolation="none")
    reason = f"where they expect something else they do not fail alone: {lost}"
    assert (found.cause, found.reason) == ((RootCause.TEST_FAILURE, reason) if lost else (None, ""))


def test_a_change_that_is_not_proven_by_the_log_is_no_scenario_to_verify(shop):
    shop.fix("one")
    (step,) = shop.harvest()
    paths = SuitePaths(suite=shop.suite, id=step.row.id)
    paths.provenance.unlink()
    with HarvestLog(shop.suite) as log:
        log.append([replace(step.row, status=HarvestStatus.REFUSED)])
    assert paths.scenario.is_file()
    with pytest.raises(SettingError, match="holds no harvested scenario"):
        list(verify(shop.suite, shop.runner, no_environment, isolation="none"))


def test_what_is_not_proven_again_is_named(shop):
    shop.tests += "also_one a.py one\nmore_one a.py one\n"
    shop.fix("one")
    shop.harvest()

    def ran(change):
        def run(request):
            found = shop.runner(request)
            return replace(found, outcomes=change(found.outcomes))

        (one,) = verify(shop.suite, run, no_environment, isolation="none")
        return one.cause, one.reason

    cause, reason = ran(lambda ends: {test: end for test, end in ends.items() if "also" not in test})
    assert (cause, reason) == (RootCause.TEST_FAILURE, f"no longer from fail to pass: {TEST}::also_one")
    cause, reason = ran(
        lambda ends: {test: end for test, end in ends.items() if "also" not in test and "more" not in test}
    )
    assert reason == f"no longer from fail to pass: {TEST}::also_one, {TEST}::more_one"
    cause, reason = ran(lambda ends: dict.fromkeys(ends, CaseOutcome.PASSED))
    assert (cause, reason) == (RootCause.TEST_FAILURE, "passes before the fix: no test of it fails there")


def test_a_full_disk_while_a_prompt_is_written_ends_the_harvest(shop):
    def full(*_):
        raise StoreError("the disk is full")

    shop.fix("one")
    with pytest.raises(StoreError, match="the disk is full"):
        shop.harvest(tools=text_tools(shop.runner, statement=full))
    assert read_log_of(shop.suite) == {}
