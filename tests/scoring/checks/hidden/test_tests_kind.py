"""The check kind ``tests``: hidden tests on a fresh copy of what an agent made."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.fixes import BASE, FAIL_TO_PASS, HIDDEN, SOLVED, SmallFix, archive

from pytest_tfgrpo.core.errors import CheckError, ScenarioError, SettingError
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, ArchiveProblem
from pytest_tfgrpo.scoring.checks.hidden import fresh_tree, work_under_test
from pytest_tfgrpo.scoring.checks.hidden.check_sandbox import require_checks, warn_of_checks
from pytest_tfgrpo.scoring.checks.hidden.fresh_tree import distinctive_lines, make_tree, read_base
from pytest_tfgrpo.scoring.checks.registry import TESTS
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRun


@pytest.fixture
def fix(tmp_path: Path) -> SmallFix:
    return SmallFix(folder=tmp_path / "suite")


def test_an_agent_that_left_no_folder_to_run_in_scores_nothing(fix):
    assert "is gone" in fix.attempt({}, runner={"name": "pytest", "folder": "sub"}, sandbox="none").reason


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"runner": "nose"}, "/runner: there is no runner 'nose'; known are command"),
        ({"runner": {"name": "pytest", "folder": "../x"}}, "/runner: '../x' must be a plain relative path"),
        ({"runner": {"name": "pytest", "run": ["x"]}}, "/runner: the runner 'command', and no other"),
        ({"runner": {"name": "node-test", "run": ["--eval=1"]}}, "/runner: '--eval=1' is no flag of node"),
        ({"hidden": "archives/none.tar.gz"}, "/hidden: 'archives/none.tar.gz' cannot be read"),
        ({"hidden": "../x.tar.gz"}, "/hidden: '../x.tar.gz' must be"),
        ({"hidden_sha256": "0" * 64}, "/hidden_sha256: 'archives/one.hidden.tar.gz' has the sha256 "),
        ({"fail_to_pass": []}, "/fail_to_pass"),
        ({"fail_to_pass": ["/etc/passwd::test_a"]}, "/fail_to_pass: '/etc/passwd' must be"),
        ({"pass_to_pass": list(FAIL_TO_PASS)}, f"/pass_to_pass: {FAIL_TO_PASS[0]!r} is in fail_to_pass too"),
        (
            {"changes": [{"file": "../a.py", "lines": [{"row": 1, "text": ""}], "fails": ["a"]}]},
            "/changes: '../a.py'",
        ),
        ({"credit": "most"}, "/credit"),
    ],
)
def test_wrong_parameters_are_named(fix, params, said):
    with pytest.raises(ScenarioError) as error:
        fix.scenario(**params)
    assert f"#/checks/0{said}" in str(error.value)


def changing(row: int, text: str, last: int = 0, **more: Any) -> dict[str, Any]:
    """Return a change of the hidden tests, which have 13 rows."""
    lines = [{"row": row, "text": text, **({"last": last} if last else {})}]
    return {"file": "tests/test_cart.py", "lines": lines, "fails": [FAIL_TO_PASS[0]], **more}


RIGHT = changing(9, "    assert total([1, 2]) == 4")
TWICE = [{"row": 9, "text": "x", "last": 10}, {"row": 10, "text": "x"}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changing(14, "x"), "row 14) does not fit its file: there are 13 rows, no row 14"),
        (changing(13, "x", 14), "row 13) does not fit its file: there are 13 rows, no row 14"),
        (changing(13, "x", 12), "row 13) ends in row 12, before row 13 where it begins"),
        (changing(9, "    assert total([1, 2]) == 3"), "row 9) changes nothing"),
        (changing(9, "x", lines=TWICE), "row 9) changes row 10 twice"),
        (
            changing(9, "x", fails=["tests/test_cart.py::test_none"]),
            "'tests/test_cart.py::test_none', which is in",
        ),
        (RIGHT, "is the same as number 0"),
    ],
)
def test_a_change_that_does_not_fit_its_tests_is_an_error_when_the_scenario_is_read(fix, change, said):
    with pytest.raises(ScenarioError) as error:
        fix.scenario(changes=[RIGHT, change])
    assert "#/checks/0/changes: number 1 (of 'tests/test_cart.py', row " in str(error.value)
    assert said in str(error.value)
    assert str(error.value).endswith("; write them again with 'tfgrpo harvest', or leave 'changes' out")


def test_a_change_that_fits_is_read_and_one_of_a_file_of_the_workspace_is_left_to_the_run(fix):
    other = {"file": "tests/test_other.py", "lines": [{"row": 900, "text": "x"}], "fails": [FAIL_TO_PASS[1]]}
    assert len(fix.check(changes=[RIGHT, changing(9, "", 9), other]).params["changes"]) == 3


def test_the_digest_of_the_hidden_tests_is_part_of_the_task_stamp(tmp_path):
    one = SmallFix(folder=tmp_path / "a").scenario()
    other = SmallFix(folder=tmp_path / "b", hidden={**HIDDEN, "tests/more.txt": "x"}).scenario()
    assert one.stamp != other.stamp
    assert one.stamp == SmallFix(folder=tmp_path / "c").scenario().stamp


def test_hidden_tests_that_changed_since_they_were_read_are_an_error(fix):
    scenario = fix.scenario()
    path = fix.folder / "archives" / "one.hidden.tar.gz"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(CheckError, match=r"'archives/one.hidden.tar.gz' was changed"):
        TESTS.evaluate(scenario.checks[0], None)  # type: ignore[arg-type]


def test_answers_are_the_lines_that_only_the_fix_has(fix):
    assert TESTS.answers(fix.check()) == ("return sum(prices)  # the true fix adds all prices",)


def test_a_suite_without_references_has_no_answers(fix):
    check = fix.check()
    (fix.folder / "references" / "one.tar.gz").unlink()
    assert TESTS.answers(check) == ()


def test_lines_that_say_little_are_no_answers():
    fixed = {
        "a": b"return None\n}\n----------------\nvalue = compute(1)\nold = compute(2)\n\xff",
        "b": b"x" * 13,
    }
    assert distinctive_lines(fixed, {"a": b"  old = compute(2)\n"}, 9) == ("x" * 13,)
    assert distinctive_lines({"b": b"value = compute(1)\nother = 22222\n"}, {}, 1) == ("value = compute(1)",)
    rows = ["abcdef = ...", "abcdef = ..", "abcde == ...", "}" * 12]
    assert distinctive_lines({"a": "\n".join(rows).encode()}, {}, 9) == ("abcdef = ...",)


def test_a_run_with_hidden_tests_needs_bubblewrap_or_the_setting(fix, monkeypatch):
    def missing(_isolation):
        raise CheckError("check_sandbox=bwrap needs bubblewrap")

    scenario = fix.scenario()
    monkeypatch.setattr("pytest_tfgrpo.scoring.runners.isolation._bwrap", lambda: missing(0))
    with pytest.raises(SettingError, match="check_sandbox=auto needs bubblewrap"):
        require_checks({"check_sandbox": "auto"}, [scenario])
    require_checks({"check_sandbox": "none"}, [scenario])
    require_checks({"check_sandbox": "auto"}, [])
    assert "run the agents' code as you" in warn_of_checks({"check_sandbox": "none"}, [scenario])[0]
    assert warn_of_checks({"check_sandbox": "none"}, []) == []
    assert warn_of_checks({"check_sandbox": "auto"}, [scenario]) == []


def test_a_run_needs_the_environments_and_workspaces_of_its_hidden_tests(fix):
    scenario = fix.scenario()
    with pytest.raises(ScenarioError, match="needs a workspace"):
        require_checks({"check_sandbox": "none"}, [replace(scenario, workspace=None)])
    with pytest.raises(ScenarioError, match="environments"):
        require_checks({"check_sandbox": "none"}, [replace(scenario, environment="0" * 64)])


def fill(
    tmp_path: Path,
    left: Path,
    globs: tuple[str, ...] = (),
    removed: tuple[str, ...] = (),
    base: Mapping[str, str] = BASE,
) -> dict[str, str]:
    scenario = SmallFix(folder=tmp_path / "suite", base=base).scenario()
    assert scenario.workspace is not None
    tree = tmp_path / "tree"
    tree.mkdir()
    hidden = [ArchiveEntry(name=name, data=text.encode()) for name, text in HIDDEN.items()]
    make_tree(left, tree, base=read_base(scenario.workspace, globs).without(removed), hidden=hidden)
    return {
        str(path.relative_to(tree)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in tree.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_nothing_that_an_agent_left_is_followed_or_opened_but_plain_files(tmp_path):
    left = tmp_path / "left"
    (left / "shop").mkdir(parents=True)
    (left / "shop" / "cart.py").write_text("x")
    (left / "out.txt").symlink_to("/etc/passwd")
    (left / "up.txt").symlink_to("../../suite")
    (left / "inside.txt").symlink_to("shop/cart.py")
    (left / "tests").symlink_to("/etc")
    os.mkfifo(left / "pipe")
    (left / "closed").mkdir(mode=0)
    (left / "odd\nname.py").write_text("x")
    found = fill(tmp_path, left)
    (left / "closed").chmod(0o700)
    assert found == {
        "shop/cart.py": "x",
        "inside.txt": "-> shop/cart.py",
        "pytest.ini": BASE["pytest.ini"],
        **HIDDEN,
    } | ({"odd\nname.py": "x"} if "odd\nname.py" in found else {})


def test_files_and_folders_of_tests_that_a_fix_removes_are_gone(tmp_path):
    data = ("tests/old.txt", "tests/data/a.txt", "tests/data/b/c.txt", "tests/data.txt")
    (left := tmp_path / "left").mkdir()
    found = fill(
        tmp_path, left, removed=("tests/old.txt", "tests/data"), base={**BASE, **dict.fromkeys(data, "x")}
    )
    assert {*data} & found.keys() == {"tests/data.txt"}


def test_a_program_stays_one(tmp_path):
    left = tmp_path / "left"
    left.mkdir()
    (left / "run.sh").write_text("x")
    (left / "run.sh").chmod(0o755)
    fill(tmp_path, left)
    assert (tmp_path / "tree" / "run.sh").stat().st_mode & 0o100


def test_further_globs_protect_files(tmp_path):
    left = tmp_path / "left"
    (left / "shop").mkdir(parents=True)
    (left / "shop" / "cart.py").write_text("x")
    (left / "README.md").write_text("x")
    (left / "NEW.md").write_text("x")
    found = fill(tmp_path, left, globs=("*.md",))
    assert (found["README.md"], found.get("NEW.md")) == (BASE["README.md"], None)


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 3), ("MAX_BYTES", 3), ("DEEPEST", 1)])
def test_too_much_is_not_copied(tmp_path, monkeypatch, limit, value):
    left = tmp_path / "left"
    (left / "a" / "b" / "c").mkdir(parents=True)
    (left / "a" / "b" / "c" / "large.txt").write_text("four")
    monkeypatch.setattr(fresh_tree, limit, value)
    with pytest.raises(fresh_tree.TooMuch):
        fill(tmp_path, left)


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 4), ("MAX_BYTES", 4), ("DEEPEST", 3)])
def test_as_much_as_may_be_is_copied(tmp_path, monkeypatch, limit, value):
    left = tmp_path / "left"
    (left / "a" / "b" / "c").mkdir(parents=True)
    (left / "a" / "b" / "c" / "large.txt").write_text("four")
    monkeypatch.setattr(fresh_tree, limit, value)
    assert "a/b/c/large.txt" in fill(tmp_path, left)


def test_a_copy_for_which_there_is_no_time_scores_nothing(fix):
    result = fix.attempt({}, sandbox="none", timeout_s=1e-9)
    assert (result.credit, result.reason) == (0, "there are more files than can be copied in time")


def test_what_an_agent_installed_to_work_is_not_its_work(tmp_path, monkeypatch):
    left = tmp_path / "left"
    for name in (".venv/lib/a.py", "my-env/lib/b.py", "my-env/pyvenv.cfg", "sub/.tox/c.py", "shop/cart.py"):
        (left / name).parent.mkdir(parents=True, exist_ok=True)
        (left / name).write_text("x")
    monkeypatch.setattr(fresh_tree, "MAX_BYTES", 1)
    assert fill(tmp_path, left).keys() == {"shop/cart.py", "pytest.ini", *HIDDEN}


def test_a_base_that_changed_since_the_scenario_was_read_is_an_error_of_ours(fix):
    scenario = fix.scenario()
    other = archive({**BASE, "shop/cart.py": SOLVED, "README.md": "changed"})
    (fix.folder / "archives" / "one.base.tar.gz").write_bytes(other)
    with pytest.raises(ArchiveProblem, match="changed since"):
        read_base(replace(scenario.workspace, sha256="0" * 64), ())


def test_a_damaged_base_is_an_error_of_ours(fix):
    scenario = fix.scenario()
    (fix.folder / "archives" / "one.base.tar.gz").write_bytes(b"x")
    with pytest.raises(ArchiveProblem):
        read_base(replace(scenario.workspace, sha256=stamp_bytes(b"x")), ())


@pytest.mark.parametrize(
    ("broken", "credit", "share"),
    [((), "all", 0.0), ((), "share", 0.5), (("tests/test_cart.py::test_count",), "share", 0.0)],
)
def test_a_share_is_of_the_tests_of_the_fix_and_needs_all_that_passed_before(fix, broken, credit, share):
    scenario = fix.scenario(credit=credit)
    outcomes = dict.fromkeys(
        (*FAIL_TO_PASS[:1], *scenario.checks[0].params["pass_to_pass"]), CaseOutcome.PASSED
    )
    run = SuiteRun(outcomes={**outcomes, **dict.fromkeys(broken, CaseOutcome.FAILED)})
    found = work_under_test.result_of(scenario.checks[0], run)
    assert found.credit == share
    assert "ended early" not in found.reason
    early = work_under_test.result_of(
        scenario.checks[0], replace(run, problem=RunProblem.TIMEOUT, detail="slow")
    )
    assert early.reason == f"{found.reason}; the run ended early: {RunProblem.TIMEOUT.value}, slow"
