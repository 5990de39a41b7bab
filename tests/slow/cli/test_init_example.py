"""``tfgrpo init --example coding``: it works at once, learns by its documented rule, and resists cheats."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.tools import run_pytest, tfgrpo

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


@pytest.mark.parametrize(
    ("events", "lesson"),
    [
        ("claude", "Read, then Edit, then Bash."),
        ("codex", "command_execution, then file_change, then command_execution."),
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
    assert [entry["text"].partition(", use ")[2] for entry in found["library"]["lessons"]] == [lesson]
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
