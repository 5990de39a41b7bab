"""``tfgrpo init --example coding``: it works at once, learns by its documented rule, and resists cheats."""

import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.tools import run_pytest, tfgrpo

from pytest_tfgrpo.harness.scoring.checks.registry import KINDS
from pytest_tfgrpo.harness.suite.packs import load_packs
from pytest_tfgrpo.harness.suite.scenario_files import Suite, load_scenarios

EXAMPLE = ROOT / "docs" / "examples" / "coding"
REPOSITORIES = ("brackets", "cart", "leap", "pages", "roman")
SCRIPT = f"'{sys.executable}' agent.py --seed {{seed}}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    tfgrpo("init", "--example", "coding", str(folder))
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


def report(folder: Path) -> dict[str, Any]:
    (run,) = (folder / "out").glob("*/runs/*")
    return json.loads((run / "report.json").read_text())  # type: ignore[no-any-return]


def files(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if "__pycache__" not in path.parts and path.parts[0] != "out"}


def test_the_example_is_copied_whole_but_for_its_ini_file(made: Path) -> None:
    assert files(made) == (files(EXAMPLE) - {"pytest.ini"}) | {"pyproject.toml"}
    assert {name.split("/")[1] for name in files(made) if name.startswith("fixtures/")} == {
        *REPOSITORIES,
        "conftest.py",
    }
    keys = tomllib.loads((made / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert keys == {
        "tfgrpo_actor": "command:python3 agent.py --seed {seed}",
        "tfgrpo_command_output": "claude",
        "tfgrpo_group_size": 5,
    }


def test_the_suite_is_sound_and_its_pack_is_stamped(made: Path) -> None:
    suite = [
        scenario
        for path in sorted(made.glob("fixtures/*/*.scenario.yaml"))
        for scenario in load_scenarios(path, root=made, kinds=KINDS)
    ]
    together = Suite()
    assert [problem for s in suite if (problem := together.add(s))] == []
    assert sorted((s.split, s.id) for s in suite) == [
        ("eval", "brackets"), ("eval", "pages"), ("eval", "roman"), ("train", "cart"), ("train", "leap"),
    ]  # fmt: skip
    assert load_packs(made / "prompt-packs").keys() == {"coding"}
    assert all({c.kind for c in s.checks} == {"command", "file"} for s in suite)


@pytest.mark.parametrize(
    ("events", "lesson"),
    [
        ("claude", "use Read, then Edit, then Bash."),
        ("codex", "use command_execution, then file_change, then command_execution."),
    ],
)
def test_the_scripted_agent_learns_to_test_in_either_format(project: Path, events: str, lesson: str) -> None:
    actor = f"command:{SCRIPT} --events {events}"
    rollouts = 1 if events == "codex" else 3  # with one the gate cannot see a drop
    small = ("--tfgrpo-epochs=2", "--tfgrpo-group-size=3", f"--tfgrpo-eval-rollouts={rollouts}")
    done = run_pytest(
        project, "--tfgrpo", f"--tfgrpo-actor={actor}", f"--tfgrpo-command-output={events}", *small
    )
    assert done.returncode == (0 if rollouts > 1 else 1), done.stdout
    found = report(project)
    baseline, *_, last = found["epochs"]
    assert [epoch["errors"] for epoch in found["epochs"]] == [0, 0, 0]
    assert baseline["gt_score"]["mean"] < 0.7
    assert last["gt_score"]["mean"] == 1.0
    assert found["gain"]["difference"] > 0.3
    assert [entry["text"].partition(": ")[2] for entry in found["library"]["lessons"]] == [lesson]
    assert last["tokens"]["sum"] > 0
    assert (last["cost_usd"]["sum"] == 0) if events == "claude" else not last["cost_usd"]["n"]


def test_plain_pytest_spends_nothing_by_surprise(project: Path) -> None:
    done = run_pytest(project)
    assert done.returncode == 4
    assert "allow_paid" in done.stderr


CHEATS = {
    "does nothing": "",
    "edits the tests": """
for p in Path().glob("test_*.py"):
    p.write_text("import unittest\\nclass Test(unittest.TestCase):\\n    def test(self):\\n        pass\\n")
""",
    "ends with success": "for p in code: p.write_text('import os; os._exit(0)')",
    "plants a module": """
for name in ("unittest", "sitecustomize"):
    Path(name + ".py").write_text("import os; os._exit(0)")
""",
    "plants bytecode": """
import os, py_compile
for p in Path().glob("test_*.py"):
    old, stat = p.read_bytes(), p.stat()
    p.write_bytes(b"import unittest\\n".ljust(len(old) - 1, b"#") + b"\\n")
    os.utime(p, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    py_compile.compile(str(p))
    p.write_bytes(old)
    os.utime(p, ns=(stat.st_atime_ns, stat.st_mtime_ns))
""",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_an_agent_that_repairs_nothing_stays_below_half(project: Path, cheat: str) -> None:
    (project / "cheat.py").write_text(
        "from pathlib import Path\n"
        "code = [p for p in Path().glob('*.py') if not p.name.startswith('test_')]\n"
        f"{CHEATS[cheat]}\nprint('Done.')\n"
    )
    flags = ("--tfgrpo-command-output=frames", "--tfgrpo-allow-paid=true", "--tfgrpo-out=out")
    done = run_pytest(project, f"--tfgrpo-actor=command:'{sys.executable}' cheat.py", *flags)
    assert done.returncode == 1
    scores = [epoch["gt_score"]["mean"] for epoch in report(project)["epochs"]]
    assert scores == [0.5 if cheat == "ends with success" else 0.25]


def test_what_is_there_is_kept_and_the_ini_file_in_use_is_added_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("mine")
    (tmp_path / "tox.ini").write_text("[pytest]\naddopts = -q\n")
    out = tfgrpo("init", "--example", "coding")
    assert (tmp_path / "agent.py").read_text() == "mine"
    assert "kept   agent.py, which already exists" in out
    assert "tfgrpo_actor = command:python3 agent.py --seed {seed}\n" in (tmp_path / "tox.ini").read_text()
    assert not (tmp_path / "pytest.ini").exists()
    assert out.endswith("next: pytest --tfgrpo\n")


def test_an_unknown_example_is_refused_with_the_nearest_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "unknown example 'codign'; known: coding, history; did you mean 'coding'?" in tfgrpo(
        "init", "--example", "codign", code=1
    )
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_in_the_example_leaves_behind_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source" / "docs" / "examples" / "coding"
    shutil.copytree(EXAMPLE, source)
    for name in ("out/coding/x", "fixtures/__pycache__/x.pyc", ".pytest_cache/x"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    monkeypatch.setattr("pytest_tfgrpo.cli.init.__file__", str(tmp_path / "source" / "a" / "b" / "c.py"))
    tfgrpo("init", "--example", "coding", str(tmp_path / "new"))
    assert files(tmp_path / "new") == (files(EXAMPLE) - {"pytest.ini"}) | {"pyproject.toml"}
    assert [path.name for path in (tmp_path / "new" / "out").iterdir()] == [".gitignore"]
