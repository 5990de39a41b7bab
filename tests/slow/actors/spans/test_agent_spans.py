"""Agents in this process that report no frames, and emit spans."""

from pathlib import Path

from support.tools import run_pytest


def test_a_run_whose_agent_loads_no_opentelemetry_loads_none(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text("def solve(context):\n    return '3'\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\n\ndef pytest_unconfigure():\n"
        "    print([name for name in sys.modules if 'opentelemetry' in name or 'rollout_spans' in name])\n"
    )
    (tmp_path / "a.scenario.yaml").write_text(
        "id: a\nsplit: eval\nprompt: p\nchecks: [{kind: exact, value: '3'}]\n"
    )
    done = run_pytest(tmp_path, "-q", "-s", "--tfgrpo-actor=python:toy:solve")
    assert done.stdout.rstrip().endswith("[]"), done.stdout
