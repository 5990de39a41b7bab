"""Record the spans of a toy agent in many frameworks, and beside them what the frameworks report themselves.

Run by hand: ``PYTHONPATH=tests python .../record_frameworks.py [NAME[:CASE]...]``. It makes an
environment for each framework with uv, runs each case in it against a scripted server on loopback, and
writes ``recorded/frameworks/NAME/CASE.jsonl`` (OTLP JSON lines) and ``CASE.truth.json``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from support.traces.recording.frameworks import FRAMEWORKS, Framework
from support.traces.recording.normal import normal_spans
from support.traces.recording.server import ScriptedServer
from support.traces.recording.stories import INNER, OUTER, Story, stories
from support.traces.recording.truth import truth_of

HERE = Path(__file__).parent
RECORDED = HERE / "recorded" / "frameworks"
MOST_BYTES, MOST_S = 100_000, 300
"""Of a recording, and of a case."""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or FRAMEWORKS:
            record(name.partition(":")[0], Path(scratch), name.partition(":")[2])


def record(name: str, scratch: Path, only: str) -> None:
    """Record the cases of a framework, or `only` one."""
    framework, environment = FRAMEWORKS[name], scratch / name
    subprocess.run(["uv", "venv", "-q", "--python", "3.11", environment], check=True)
    python = environment / "bin" / "python"
    subprocess.run(["uv", "pip", "install", "-q", "--python", python, *framework.packages], check=True)
    (RECORDED / name).mkdir(parents=True, exist_ok=True)
    told = stories(framework.spelling)
    for case in [only] if only else framework.cases:
        folder = scratch / f"{name}-{case}"
        folder.mkdir()
        truth, lines = record_case(framework, case, told[case], python, folder)
        text = "".join(normal_spans(lines, [folder, environment, scratch, HERE.parents[2], Path.home()]))
        if len(text.encode()) > MOST_BYTES:
            raise SystemExit(f"{name} {case}: {len(text.encode())} bytes of spans, more than {MOST_BYTES}")
        (RECORDED / name / f"{case}.jsonl").write_text(text)
        shown = json.dumps(truth, indent=1, ensure_ascii=False) + "\n"
        (RECORDED / name / f"{case}.truth.json").write_text(shown)
        print(name, case, len(lines), "spans,", len(text), "bytes,", json.dumps(truth["reported"]))
    shutil.rmtree(environment)


def record_case(
    framework: Framework, case: str, story: Story, python: Path, folder: Path
) -> tuple[dict[str, Any], list[str]]:
    """Return the truth of a case, and its spans as OTLP lines."""
    with ScriptedServer(story) as server:
        kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        toy = {
            "HOME": str(folder),
            "TOY_URL": server.url,
            "TOY_CASE": case,
            "TOY_FOLDER": str(folder),
            "TOY_TRACER": framework.tracer,
            "PYTHONPATH": str(HERE.parent),
            "NO_PROXY": "127.0.0.1",
        }
        subprocess.run(
            [python, "-P", HERE / "recorders" / framework.script],
            env=kept | toy | framework.environ,
            cwd=folder,
            timeout=MOST_S,
            check=True,
        )
    report = json.loads((folder / "report.json").read_text())
    names = {OUTER: framework.agents[0], INNER: framework.agents[1]}
    truth = {"packages": list(framework.packages)} | truth_of(story, server.log, report, names)
    return truth, (folder / "spans.jsonl").read_text().splitlines()


if __name__ == "__main__":
    main()
