"""What the tests of plugin/test_agent_folders.py share with the slow ones."""

from __future__ import annotations

import json
from pathlib import Path

from support.project import Project


def run_of_an_earlier_version(root: Path, out: str = "out") -> Path:
    """Write a killed run, with a workspace in its folder, as earlier versions left it; return its folder."""
    run = root / out / "demo" / "runs" / "20260101T000000-00000000"
    workspace = run / "work" / "20260101T000000-00000000.e1.one.r0"
    workspace.mkdir(parents=True)
    header = '{"n":1,"event":"run","data":{"schema":"tfgrpo.journal/1","run_id":"r"},"crc":"00000000"}\n'
    (run / "journal.jsonl").write_text(header)
    code = f"from pathlib import Path\nPath({str(root / 'planted-code-ran')!r}).touch()\n"
    (workspace / "conftest.py").write_text(code)
    (workspace / "test_planted.py").write_text(f"{code}def test_planted(): pass\n")
    (workspace / "planted.scenario.json").write_text(
        json.dumps({"id": "planted", "split": "eval", "prompt": "p", "checks": []})
    )
    return run


def own_test(project: Project) -> Project:
    return project.write("tests/test_own.py", "def test_own(): pass\n")
