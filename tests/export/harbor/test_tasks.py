"""Scenarios as Harbor tasks: they come back equal, and what a task cannot say is told."""

import ast
import importlib.util
import json
import os
import re
import tarfile
import tomllib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fixes import FAIL_TO_PASS, PASS_TO_PASS
from support.harbor import exported, import_tasks, other_files, scenarios_in, write_suite
from support.projects_in_archives import write_archive
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import ExportError, ScenarioError
from pytest_tfgrpo.export.harbor import task_files, tasks
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.programs.environments import Environment, stamp_of, to_file

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
WORDS = st.text("abc-_.1", min_size=1, max_size=8).filter(lambda word: word.strip("."))
LISTS = st.lists(TEXTS, max_size=3, unique=True)
FIELDS = st.fixed_dictionaries(
    {"prompt": TEXTS.filter(str.strip)},
    optional={
        "domain": WORDS,
        "split": st.sampled_from(["train", "dev", "eval"]),
        "family": TEXTS,
        "tags": st.lists(WORDS, max_size=3, unique=True),
        "tools": LISTS,
        "agents": LISTS,
        "min_score": st.floats(0, 1),
        "timeout_s": st.integers(1, 900) | st.floats(0.5, 900),
        "rubric": TEXTS.filter(str.strip) | st.just([{"text": "It is short.", "weight": 2}, "It is kind."]),
        "truth": st.just("checks"),
    },
)
CHECKS = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.floats(0.5, 9),
        "runner": st.sampled_from([{"name": "pytest"}, {"name": "pytest", "folder": "shop"}]),
        "credit": st.sampled_from(["all", "share"]),
        "timeout_s": st.integers(1, 900) | st.floats(0.5, 900),
        "protected": LISTS,
        "changes": st.just(
            [{"file": "t.py", "lines": [{"row": 1, "text": "x"}], "fails": [FAIL_TO_PASS[0]]}]
        ),
        "removed": st.just(["tests/old"]),
        "pass_to_pass": st.just([]),
    },
)


@reaches("kept", "plain", "left out")
@settings(max_examples=12)
@given(FIELDS, CHECKS)
def test_a_scenario_comes_back_equal(fields, check):
    with TemporaryDirectory() as place:
        suite = write_suite(Path(place) / "suite", check=check, **fields)
        if not (before := scenarios_in(suite)):
            reached("left out")  # the schemas have limits of their own
            return
        lines = exported(suite, Path(place) / "tasks")
        found = import_tasks(Path(place) / "back", Path(place) / "tasks")
        assert list(found.report()) == []
        assert scenarios_in(Path(place) / "back") == before
        assert other_files(Path(place) / "back") == other_files(suite)
        kept = {*fields} - {"prompt", "timeout_s"} | {
            f"{key} of the check" for key in ("weight", "changes") if key in check
        }
        told = lines[-1].removeprefix("kept for the way back, without effect in a container: ")
        assert ({word.removesuffix(" (1)") for word in told.split(", ")} if kept else set()) == kept
        reached("kept" if kept else "plain")


def test_provenance_and_what_a_fix_removes_come_back(tmp_path):
    suite = write_suite(tmp_path / "suite")
    (suite / "provenance").mkdir()
    (suite / "provenance" / "one.json").write_text('{"removed": ["shop/old one.py", "-x"]}')
    exported(suite, tmp_path / "tasks")
    assert "\nrm -rf -- 'shop/old one.py' -x\n" in (tmp_path / "tasks/one/solution/solve.sh").read_text()
    import_tasks(tmp_path / "back", tmp_path / "tasks" / "one")
    assert other_files(tmp_path / "back") == other_files(suite)


ENVIRONMENT = Environment(
    python="3.12",
    lock=(f"pytest==8.4.1 --hash=sha256:{'0' * 64}",),
    imports=("src", "."),
    variables={"TZ": "UTC", "PRICE": '5 $ "net"\\'},
    distributions={"the-shop": "1.0"},
    entry_points={"the-shop": "[pytest11]\nshop = shop.plugin\n"},
)


def write_environment(suite: Path, environment: Environment) -> str:
    stamp = stamp_of(environment)
    (suite / "environments").mkdir(parents=True)
    (suite / "environments" / f"{stamp}.json").write_text(json.dumps(to_file(environment)))
    return stamp


def test_an_environment_becomes_a_dockerfile_and_comes_back(tmp_path):
    suite = tmp_path / "suite"
    write_suite(suite, environment=write_environment(suite, ENVIRONMENT))
    assert exported(suite, tmp_path / "tasks") == ["1 task in " + relative(tmp_path / "tasks")]
    place = tmp_path / "tasks" / "one" / "environment"
    assert (place / "Dockerfile").read_text().splitlines() == [
        "FROM python:3.12-slim",
        "WORKDIR /app",
        "COPY requirements.txt /opt/requirements.txt",
        "RUN python -m pip install --no-cache-dir --no-deps --require-hashes -r /opt/requirements.txt",
        "COPY distributions/ /opt/distributions/",
        'ENV TZ="UTC"',
        'ENV PRICE="5 \\$ \\"net\\"\\\\"',
        'ENV PYTHONPATH="/app/src:/app:/opt/distributions"',
        "ADD workspace.tar.gz /app/",
    ]
    assert (place / "requirements.txt").read_text() == ENVIRONMENT.lock[0] + "\n"
    metadata = place / "distributions" / "the_shop-1.0.dist-info"
    assert (metadata / "METADATA").read_text() == "Metadata-Version: 2.1\nName: the-shop\nVersion: 1.0\n"
    assert (metadata / "entry_points.txt").read_text() == "[pytest11]\nshop = shop.plugin\n"
    assert list(import_tasks(tmp_path / "back", tmp_path / "tasks").report()) == []
    assert scenarios_in(tmp_path / "back") == scenarios_in(suite)
    assert other_files(tmp_path / "back") == other_files(suite)


def relative(path: Path) -> str:

    return os.path.relpath(path)


def test_without_an_environment_the_container_has_the_pytest_of_here(tmp_path):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    dockerfile = (tmp_path / "tasks/one/environment/Dockerfile").read_text()
    assert f"RUN python -m pip install --no-cache-dir pytest=={version('pytest')}\n" in dockerfile


def test_a_task_says_itself_what_has_no_effect_in_it(tmp_path):
    suite = write_suite(tmp_path / "suite", tags=["a"], min_score=0.5, timeout_s=60, check={"timeout_s": 30})
    exported(suite, tmp_path / "tasks")
    text = (tmp_path / "tasks/one/task.toml").read_text()
    assert text.splitlines()[:2] == [
        "# The scenario one of pytest-tfgrpo, written by `tfgrpo export harbor`.",
        "# Kept for the way back, without effect in a container: tags, min_score.",
    ]
    value = tomllib.loads(text)
    assert (value["schema_version"], value["agent"], value["verifier"]) == (
        "1.4",
        {"timeout_sec": 60},
        {"timeout_sec": 90.0},
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"workspace": None, "checks": [{"kind": "exact", "value": "4"}]}, "it has no workspace: a task is"),
        ({"prompt": None, "turns": ["Hello."]}, "it is a conversation"),
        ({"input": {"n": 1}}, "its input is data"),
        ({"attachments": ["archives/one.base.tar.gz"]}, "it has attachments; put them into the archive"),
        ({"setup": {"command": ["true"]}}, "it has a setup"),
        ({"teardown": {"command": ["true"]}}, "it has a teardown"),
        ({"checks": [{"kind": "command", "run": ["true"]}]}, "only one check of kind tests.* it has command"),
        ({"check": {"runner": "jest"}}, "with the runner pytest, can be exported; it has tests"),
        ({"environment": "0" * 64}, "there is no such file, which describes an environment"),
    ],
)
def test_a_scenario_that_no_task_can_stand_for_is_named_with_the_reason(tmp_path, fields, why):
    write_suite(tmp_path / "suite", "other")
    write_suite(tmp_path / "suite", **fields)
    lines = exported(tmp_path / "suite", tmp_path / "tasks")
    (told,) = [line for line in lines if line.startswith("not exported: ")]
    assert told.startswith("not exported: one: ")

    assert re.search(why, told)
    assert [path.name for path in (tmp_path / "tasks").iterdir()] == ["other"]


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        (Environment(files={"package.json": "{}"}), "its environment has no Python"),
        (Environment(python="3.12", setup=(("make",),)), "its environment has set-up commands"),
    ],
)
def test_an_environment_that_no_dockerfile_of_ours_can_make_is_told(tmp_path, environment, why):
    suite = tmp_path / "suite"
    write_suite(suite, environment=write_environment(suite, environment))
    with pytest.raises(ExportError, match=why):
        exported(suite, tmp_path / "tasks")


def test_what_a_container_lacks_is_told_by_scenario(tmp_path):
    suite = tmp_path / "suite"
    scripts = {"shop": "[console_scripts]\nshop = shop:main\n"}
    environment = Environment(
        python="3.12", variables={"A": "x\ny"}, distributions={"shop": "1"}, entry_points=scripts
    )
    write_suite(suite, environment=write_environment(suite, environment))
    (suite / "references" / "one.tar.gz").unlink()
    assert exported(suite, tmp_path / "tasks")[1:] == [
        "lost: the variable `A`, whose value a Dockerfile cannot hold, of one",
        "lost: programs of the project's own packages, of one",
        "lost: a reference: the suite has none, of one",
    ]
    assert not (tmp_path / "tasks/one/solution").exists()
    assert import_tasks(tmp_path / "back", tmp_path / "tasks").files.keys() == other_files(suite).keys()


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [("# A Canary fails\n\nWhy?", False), ("<!-- canary 1 -->\nWhy?", False), ("A canary\n# canary", True)],
)
def test_a_prompt_that_harbor_does_not_show_whole_is_told(tmp_path, prompt, shown):
    _, *told = exported(write_suite(tmp_path / "suite", prompt=prompt), tmp_path / "tasks")
    wanted = "lost: the first lines of the prompt: Harbor shows no comment that has the word canary, of one"
    assert told == ([] if shown else [wanted])
    assert (tmp_path / "tasks/one/instruction.md").read_text() == prompt


@pytest.mark.parametrize("name", ["check_task.py", "protected.py"])
def test_the_scripts_of_a_task_can_be_read_by_an_old_python(tmp_path, name):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    ast.parse((tmp_path / "tasks/one/tests" / name).read_text(), feature_version=(3, 8))


def test_files_and_scenarios_that_are_wrong_are_told_and_the_others_exported(tmp_path):
    suite = write_suite(tmp_path / "suite", "a")
    (suite / "b.scenario.yaml").write_text("id: b\nprompt: x\nchecks: [{kind: nothing}]\n")
    (suite / "c.scenario.yaml").write_text("id: [\n")
    (suite / "d.scenarios.jsonl").write_text((suite / "a.scenario.json").read_text() + "\n{\n")
    _, *told = exported(suite, tmp_path / "tasks")
    assert len(told) == 4
    for line, words in zip(
        told,
        (
            "b.scenario.yaml:3: #/checks/0/kind: unknown",
            "c.scenario.yaml:2: ",
            "the id 'a' is that of ",
            "d.scenarios.jsonl:2: ",
        ),
        strict=True,
    ):
        assert line.startswith("not exported: ")
        assert words in line


def test_nothing_is_replaced_without_force_and_only_tasks_of_ours_with_it(tmp_path):
    suite, tasks = write_suite(tmp_path / "suite"), tmp_path / "tasks"
    exported(suite, tasks)
    (tasks / "one" / "mine.txt").write_text("")
    with pytest.raises(ExportError, match="one exists; name another folder with --into"):
        exported(suite, tasks)
    exported(suite, tasks, force=True)
    assert not (tasks / "one" / "mine.txt").exists()
    assert [path.name for path in tasks.iterdir()] == ["one"]
    (tasks / "one" / "task.toml").write_text("[metadata]\n")
    with pytest.raises(ExportError, match="one was not written by tfgrpo, and stays"):
        exported(suite, tasks, force=True)


def test_a_suite_without_scenarios_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ScenarioError, match="there is no file or folder"):
        exported(tmp_path / "none", tmp_path / "tasks")
    with pytest.raises(ExportError, match="has no scenario file; name the folder of a suite"):
        exported(tmp_path, tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()


def test_a_task_has_one_check():
    check = {"kind": "tests", "runner": "pytest"}
    for checks, kinds in (
        ([check, {"kind": "exact"}], "tests, exact"),
        ([check, check], "tests, tests"),
        ([], "none"),
    ):
        written = SimpleNamespace(data={"checks": checks}, scenario=SimpleNamespace(workspace=True))
        with pytest.raises(task_files.NoTask, match=f"can be exported; it has {kinds}$"):
            task_files._require_sayable(written)


def load_check(task: Path):
    """Return the script of a task as a module."""
    spec = importlib.util.spec_from_file_location("check_task", task / "tests" / "check_task.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, json.loads((task / "tests" / "settings.json").read_text())


def test_what_decides_about_tests_comes_from_the_task_and_not_from_the_work(tmp_path):
    suite = write_suite(tmp_path / "suite", check={"protected": ["golden/**"], "removed": ["tests/gone.py"]})
    base = {
        "shop/cart.py": "",
        "tests/gone.py": "",
        "tests/kept.py": "kept",
        "golden/a": "a",
        "pytest.ini": "own",
    }
    archive = write_archive(suite / "archives" / "one.base.tar.gz", base)
    value = json.loads((suite / "one.scenario.json").read_text())
    value["workspace"]["sha256"] = archive.sha256
    (suite / "one.scenario.json").write_text(json.dumps(value))
    exported(suite, tmp_path / "tasks")
    module, params = load_check(tmp_path / "tasks" / "one")
    work, tree = tmp_path / "work", tmp_path / "tree"
    for name in (
        *(
            "shop/cart.py",
            "shop/new.py",
            "tests/gone.py",
            "tests/kept.py",
            "golden/a",
            "golden/b",
            "pytest.ini",
        ),
        *(
            "conftest.py",
            "shop/conftest.py",
            "pytest.py",
            "json/__init__.py",
            "sitecustomize.py",
            ".git/config",
        ),
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("forged")
    for name, target in (
        ("out", "/etc/passwd"),
        ("up", "../secret"),
        ("in", "shop/cart.py"),
        ("shop/up", "../in"),
    ):
        (work / name).symlink_to(target)
    module.make_tree(str(work), str(tree), params)
    found = {str(path.relative_to(tree)): path.read_text() for path in tree.rglob("*") if path.is_file()}
    assert found.pop("tests/test_cart.py").startswith("from shop.cart import count, total")
    assert found == {
        **{"shop/cart.py": "forged", "shop/new.py": "forged", "in": "forged", "shop/up": "forged"},
        **{"tests/kept.py": "kept", "golden/a": "a", "pytest.ini": "own"},
    }


def test_an_archive_of_the_task_is_laid_through_no_link(tmp_path):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    module, params = load_check(tmp_path / "tasks" / "one")
    work = tmp_path / "work"
    (work / "elsewhere").mkdir(parents=True)
    (work / "elsewhere" / "test_cart.py").write_text("mine")
    (work / "tests").symlink_to("elsewhere")
    module.make_tree(str(work), str(tmp_path / "tree"), params)
    assert not (tmp_path / "tree" / "tests").is_symlink()
    assert "test_total" in (tmp_path / "tree" / "tests" / "test_cart.py").read_text()


def test_links_and_rights_of_the_hidden_files_are_kept(tmp_path):
    suite = write_suite(tmp_path / "suite")
    write_archive(
        suite / "archives" / "one.hidden.tar.gz",
        {
            "tests/run": ArchiveEntry(name="tests/run", data=b"#!/bin/sh\n", executable=True),
            "tests/link": ArchiveEntry(name="tests/link", link="run"),
        },
    )
    exported(suite, tmp_path / "tasks")
    module, params = load_check(tmp_path / "tasks" / "one")
    (tmp_path / "work").mkdir()
    module.make_tree(str(tmp_path / "work"), str(tmp_path / "tree"), params)
    assert (tmp_path / "tree/tests/link").readlink() == Path("run")
    assert (tmp_path / "tree/tests/run").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("passed", "credit", "reward"),
    [
        ((*FAIL_TO_PASS, *PASS_TO_PASS), "all", 1.0),
        ((*FAIL_TO_PASS, *PASS_TO_PASS), "share", 1.0),
        ((FAIL_TO_PASS[0], *PASS_TO_PASS), "all", 0.0),
        ((FAIL_TO_PASS[0], *PASS_TO_PASS), "share", 0.5),
        (FAIL_TO_PASS, "share", 0.0),
        ((), "share", 0.0),
    ],
)
def test_the_reward_is_the_credit_of_the_check(tmp_path, passed, credit, reward):
    exported(write_suite(tmp_path / "suite", check={"credit": credit}), tmp_path / "tasks")
    module, params = load_check(tmp_path / "tasks" / "one")
    assert module.judged(params, set(passed))[0] == reward


def test_the_archive_of_a_workspace_goes_out_as_it_is(tmp_path):
    suite = write_suite(tmp_path / "suite")
    exported(suite, tmp_path / "tasks")
    place = tmp_path / "tasks/one/environment/workspace.tar.gz"
    assert place.read_bytes() == (suite / "archives/one.base.tar.gz").read_bytes()
    with tarfile.open(place) as members:
        assert "shop/cart.py" in members.getnames()


def test_everybody_may_read_a_task_and_run_its_scripts(tmp_path):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    for path in (tmp_path / "tasks" / "one", *(tmp_path / "tasks" / "one").rglob("*")):
        wanted = 0o5 if path.is_dir() or path.suffix == ".sh" else 0o4
        assert path.stat().st_mode & wanted == wanted, path


@pytest.mark.parametrize(
    ("outcomes", "passed"),
    [
        (["passed"], True),
        (["rerun", "passed"], True),
        (["failed"], False),
        (["rerun", "failed"], False),
        (["skipped"], False),
        (["passed", "failed"], False),
        ([], False),
    ],
)
def test_a_test_passed_if_all_its_phases_did_in_the_end(tmp_path, outcomes, passed):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    module, _ = load_check(tmp_path / "tasks" / "one")
    said = [("", "began", ""), ("t", "setup", "passed"), *(("t", "call", o) for o in outcomes)]
    lines = [json.dumps(values).encode() for values in [*said, ("t", "teardown", "passed")]]
    assert module._passed(b"\n".join([*lines, b"no JSON", b"cut"])) == ({"t"} if passed else set())
    assert module._passed(b"\n".join([*lines[1:], b""])) is None


def settings_of(task: Path) -> dict:
    return json.loads((task / "tests" / "settings.json").read_text())


def test_the_settings_of_the_tests_are_those_of_the_check_and_of_the_environment(tmp_path):
    plain, own = tmp_path / "plain", tmp_path / "own"
    exported(write_suite(plain), tmp_path / "a")
    found = settings_of(tmp_path / "a" / "one")
    assert found == {
        **{"fail_to_pass": list(FAIL_TO_PASS), "pass_to_pass": list(PASS_TO_PASS), "credit": "all"},
        **{"files": ["tests/test_cart.py"], "folder": ".", "timeout_s": found["timeout_s"]},
        **{
            "protected": [],
            "alone": True,
            "imports": [],
            "variables": {},
            "distributions": "/opt/distributions",
        },
        **{"taken": found["taken"], "places": found["places"]},
    }
    check = {"runner": {"name": "pytest", "folder": "shop"}, "timeout_s": 7.5, "protected": ["golden/**"]}
    write_suite(own, check=check, environment=write_environment(own, ENVIRONMENT))
    exported(own, tmp_path / "b")
    found = settings_of(tmp_path / "b" / "one")
    assert {
        key: found[key] for key in ("folder", "timeout_s", "protected", "alone", "imports", "variables")
    } == {
        **{"folder": "shop", "timeout_s": 7.5, "protected": ["golden/**"], "alone": False},
        **{"imports": ["src", "."], "variables": {"TZ": "UTC", "PRICE": '5 $ "net"\\'}},
    }


def test_what_only_a_folder_of_the_base_holds_is_a_place_for_modules(tmp_path):
    suite = write_suite(tmp_path / "suite")
    base = {"shop/cart.py": "", "tests/json/data.txt": "", "json/notes.txt": "", "top.py": ""}
    archive = write_archive(suite / "archives" / "one.base.tar.gz", base)
    value = json.loads((suite / "one.scenario.json").read_text())
    value["workspace"]["sha256"] = archive.sha256
    (suite / "one.scenario.json").write_text(json.dumps(value))
    exported(suite, tmp_path / "tasks")
    found = settings_of(tmp_path / "tasks" / "one")
    assert not {*found["taken"]} & {*found["places"]}
    assert {"shop", "top.py", "shop/cart.py"} <= {*found["taken"], *found["places"]}


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("mocks", {"pay": {"returns": 1}}, "it mocks tools, and the agent of a task has its own"),
        (
            "environment",
            Environment(python="3.12", links=("node_modules",)),
            "has set-up commands; only packages",
        ),
    ],
)
def test_mocks_and_links_of_an_environment_are_refused_too(tmp_path, field, value, why):
    suite = tmp_path / "suite"
    given = write_environment(suite, value) if field == "environment" else value
    write_suite(suite, **{field: given})
    with pytest.raises(ExportError, match=f"not exported: one: .*{why}"):
        exported(suite, tmp_path / "tasks")


@pytest.mark.parametrize("kind", ["removed", "reference"])
def test_a_reference_that_may_do_harm_or_is_damaged_is_not_exported(tmp_path, kind):
    suite = write_suite(tmp_path / "suite")
    if kind == "removed":
        (suite / "provenance").mkdir()
        (suite / "provenance" / "one.json").write_text('{"removed": ["../up"]}')
    else:
        path = suite / "references" / "one.tar.gz"
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ExportError, match=r"not exported: one: .*(plain relative path|damaged)"):
        exported(suite, tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()


def test_a_link_in_the_place_of_a_task_stays(tmp_path):
    suite, tasks = write_suite(tmp_path / "suite"), tmp_path / "tasks"
    exported(suite, tmp_path / "other")
    tasks.mkdir()
    (tasks / "one").symlink_to(tmp_path / "other" / "one")
    with pytest.raises(ExportError, match="one was not written by tfgrpo, and stays"):
        exported(suite, tasks, force=True)
    (tasks / "one").unlink()
    (tasks / "one").symlink_to("nowhere")
    for force, said in ((False, "one exists; name another folder"), (True, "was not written by tfgrpo")):
        with pytest.raises(ExportError, match=said):
            exported(suite, tasks, force=force)
    assert [path.name for path in tasks.iterdir()] == ["one"]


def test_a_task_that_cannot_be_written_leaves_no_draft_and_the_one_before(tmp_path, monkeypatch):
    suite, folder = write_suite(tmp_path / "suite"), tmp_path / "tasks"
    exported(suite, folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "_write_files", full)
        with pytest.raises(OSError, match="No space left"):
            exported(suite, folder, force=True)
    with monkeypatch.context() as patch:
        real = tasks.remove
        patch.setattr(tasks, "remove", lambda at: "'x': it is stuck" if at.name == "one" else real(at))
        with pytest.raises(ExportError, match=r"cannot replace .*one: 'x': it is stuck"):
            exported(suite, folder, force=True)
    assert [path.name for path in folder.iterdir()] == ["one"]
    assert (folder / "one" / "task.toml").exists()


def test_what_is_lost_names_five_scenarios_at_most(tmp_path):
    for name in "abcdef":
        write_suite(tmp_path / "suite", name)
        (tmp_path / "suite" / "references" / f"{name}.tar.gz").unlink()
    lines = exported(tmp_path / "suite", tmp_path / "tasks")
    assert lines[0].startswith("6 tasks in ")
    assert lines[1:] == ["lost: a reference: the suite has none, of a, b, c, d, e, ..."]


def test_a_scenario_has_the_defaults_of_its_file_unless_it_says_otherwise(tmp_path):
    suite = write_suite(tmp_path / "suite")
    value = json.loads((suite / "one.scenario.json").read_text())
    (suite / "one.scenario.json").unlink()
    two = {
        "defaults": {"domain": "shop", "tags": ["a"]},
        "scenarios": [value, {**value, "id": "two", "domain": "x"}],
    }
    (suite / "both.scenarios.json").write_text(json.dumps(two))
    exported(suite, tmp_path / "tasks")
    own = {
        name: tomllib.loads((tmp_path / "tasks" / name / "task.toml").read_text())["metadata"]["tfgrpo"][
            "scenario"
        ]
        for name in ("one", "two")
    }
    assert [(one["domain"], one["tags"]) for one in own.values()] == [("shop", ["a"]), ("x", ["a"])]


def test_a_file_that_cannot_be_read_is_told_and_the_others_exported(tmp_path):
    suite = write_suite(tmp_path / "suite")
    for name in ("a.scenario.yaml", "b.scenarios.jsonl"):
        (suite / name).symlink_to("nowhere")
    _, *told = exported(suite, tmp_path / "tasks")
    assert told == [
        f"not exported: {suite}/a.scenario.yaml:1: cannot be read: No such file or directory",
        f"not exported: {suite}/b.scenarios.jsonl: No such file or directory",
    ]


def test_the_name_of_a_distribution_is_one_for_a_folder(tmp_path):
    suite = tmp_path / "suite"
    environment = replace(ENVIRONMENT, distributions={"the.big-shop": "1.0-2", "b": "2"}, entry_points={})
    write_suite(suite, environment=write_environment(suite, environment))
    exported(suite, tmp_path / "tasks")
    place = tmp_path / "tasks/one/environment/distributions"
    assert sorted(path.name for path in place.iterdir()) == ["b-2.dist-info", "the_big_shop-1.0_2.dist-info"]
    assert [path.name for path in (place / "b-2.dist-info").iterdir()] == ["METADATA"]


def test_work_that_is_too_large_and_what_a_program_of_a_work_stands_in_for(tmp_path, monkeypatch):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    module, params = load_check(tmp_path / "tasks" / "one")
    work = tmp_path / "work"
    work.mkdir()
    for name in "abc":
        (work / name).write_bytes(b"12345")
    for limit, value, fits in (("MAX_BYTES", 15, True), ("MAX_BYTES", 14, False), ("MAX_FILES", 3, True),
                               ("MAX_FILES", 2, False)):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(module, limit, value)
            tree = tmp_path / f"tree-{limit}-{value}"
            if fits:
                module.make_tree(str(work), str(tree), params)
                assert (tree / "c").read_bytes() == b"12345"
                continue
            with pytest.raises(module.TooMuchWork, match="the work is too large to be checked"):
                module.make_tree(str(work), str(tree), params)
    for name in ("site-packages/one", "dist-packages/two.py", "other/three"):
        (tmp_path / "path" / name).mkdir(parents=True)
    monkeypatch.setattr(
        module.sys, "path", [str(tmp_path / "path" / n) for n in ("site-packages", "dist-packages", "other")]
    )
    assert {"one", "two", "json"} <= module.foreign_modules()
    assert "three" not in module.foreign_modules()


@pytest.mark.parametrize("alone", [True, False])
def test_the_words_of_pytest_name_the_files_that_are_there(tmp_path, alone, monkeypatch):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    module, params = load_check(tmp_path / "tasks" / "one")
    (tmp_path / "tree" / "tests").mkdir(parents=True)
    (tmp_path / "tree" / "tests" / "test_cart.py").touch()
    request = {**params, "tree": str(tmp_path / "tree"), "alone": alone}
    request["files"] = ["tests/test_cart.py", "tests/test_gone.py"]
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: name)
    words = module._arguments(request, str(tmp_path / "tree" / "tests"))
    assert words[-1] == "./test_cart.py"
    assert not any("test_gone" in word for word in words)
    assert ("--no-cov" in words, "-n" in words) == (not alone, not alone)
    assert {"no:cacheprovider", "no:randomly", "no:random_order", "--maxfail=0"} <= {*words}


def test_the_reason_names_ten_tests_that_did_not_pass(tmp_path):
    exported(write_suite(tmp_path / "suite"), tmp_path / "tasks")
    module, params = load_check(tmp_path / "tasks" / "one")
    many = {
        **params,
        "fail_to_pass": [f"t{n}" for n in range(12)],
        "pass_to_pass": ["kept"],
        "credit": "share",
    }
    assert module.judged(many, {"t0", "kept"}) == (
        1 - 11 / 12,
        "did not pass: " + ", ".join(f"t{n}" for n in range(1, 11)),
    )
    assert module.judged(many, set(many["fail_to_pass"])) == (0.0, "did not pass: kept")
    assert module.judged(many, {*many["fail_to_pass"], "kept"}) == (1.0, "all listed tests passed")
