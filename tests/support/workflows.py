"""A job of a GitHub Actions workflow, as far as it can be run here: its `run` steps, in a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

SET_UP = ("actions/checkout@", "actions/setup-python@")
UPLOAD = "actions/upload-artifact@"
_INSTALL = re.compile(r"^\s*pip install .*$", re.MULTILINE)


@dataclass(slots=True)
class Job:
    """What became of a job."""

    steps: list[tuple[str, int]] = field(default_factory=list)
    """Each command that ran, with its exit code."""
    output: str = ""
    uploaded: dict[str, list[Path]] = field(default_factory=dict)
    """What each path of an upload found."""
    summary: str = ""
    """The page of the job."""

    @property
    def failed(self) -> bool:
        return any(code for _, code in self.steps)


def run_job(workflow: Path, name: str, folder: Path) -> Job:
    """Run the job called `name` of a workflow file in `folder`, the checkout; `pip install` does nothing."""
    value: Any = parse_yaml(workflow.read_text(encoding="utf-8")).value
    job = Job()
    files = {name: folder.parent / f"{folder.name}-{name.lower()}" for name in FILES}
    for path in files.values():
        path.touch()
    for step in value["jobs"][name]["steps"]:
        if not _due(step.get("if", "success()"), failed=job.failed):
            continue
        if "run" in step:
            _run(job, step["run"], folder, files)
        elif step["uses"].startswith(UPLOAD):
            paths = step["with"]["path"].split()
            job.uploaded |= {path: sorted(folder.glob(path)) for path in paths}
        else:
            assert step["uses"].startswith(SET_UP), step
    job.summary = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    return job


FILES = ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")


def _due(condition: str, *, failed: bool) -> bool:
    return {"success()": not failed, "failure()": failed, "always()": True}[condition]


def _run(job: Job, command: str, folder: Path, files: Mapping[str, Path]) -> None:
    """Run a step in the shell that is the default of a runner: ``bash -e`` on a file."""
    script = folder.parent / f"{folder.name}-step.sh"
    script.write_text(_INSTALL.sub("true", command) + "\n", encoding="utf-8")
    ours = ("TFGRPO_", "FEATURE_TFGRPO_", "PYTEST_", "GITHUB_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environ |= {name: str(path) for name, path in files.items()}
    environ |= {"CI": "true", "GITHUB_ACTIONS": "true", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environ |= {"PYTEST_ADDOPTS": "-p tfgrpo -p no:cacheprovider"}
    environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environ["PATH"]))
    done = subprocess.run(
        ["bash", "-e", str(script)], cwd=folder, env=environ, capture_output=True, text=True, timeout=100
    )
    job.steps.append((command, done.returncode))
    job.output += f"$ {command}\n{done.stdout}{done.stderr}"
