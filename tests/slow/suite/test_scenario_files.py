"""Scenario files: what the fields mean, and what text is left as it is."""

import json
import subprocess
import sys

from support.suite.scenario_files import PLAIN


def test_valid_scenarios_need_no_jsonschema(tmp_path):
    lines = [PLAIN | {"id": f"s{n}"} for n in range(3)]
    (tmp_path / "x.scenarios.jsonl").write_text("\n".join(map(json.dumps, lines)))
    code = (
        "import sys; from pathlib import Path\n"
        "from pytest_tfgrpo.scoring.checks.registry import KINDS\n"
        "from pytest_tfgrpo.suite.scenario_files import load_scenarios\n"
        "print(len(load_scenarios(Path('x.scenarios.jsonl'), root=Path(), kinds=KINDS)))\n"
        "print({'jsonschema', 'yaml', 'regex', 'numpy', 'asyncio'} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout == "3\nset()\n"
