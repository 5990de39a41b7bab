"""CI files as far as they can be run here: their shell steps, in a folder.

`pip install` does nothing, as everything is installed. A cache is a folder that is copied. An expression is
looked up in what a test gives; one that it does not give is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support import ROOT

SET_UP = ("actions/checkout@", "actions/setup-python@")
UPLOAD, RESTORE, SAVE = "actions/upload-artifact@", "actions/cache/restore@", "actions/cache/save@"
FILES = ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")
EXAMPLES = ROOT / "docs" / "examples"
_INSTALL = re.compile(r"^\s*pip install .*$", re.MULTILINE)
_EXPRESSION = re.compile(r"\$\{\{ (.+?) \}\}")
_KEY = re.compile(r"^([\w-]+)=(.*)$", re.MULTILINE)


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
    outputs: dict[str, str] = field(default_factory=dict)
    """What its steps set."""

    @property
    def failed(self) -> bool:
        return any(code for _, code in self.steps)


def read(file: Path) -> Any:
    """Return a CI file; GitHub's key `on` stays a text."""
    value = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {"on" if key is True else key: one for key, one in value.items()} if type(value) is dict else value


def run_job(workflow: Path, name: str, folder: Path, **more: Any) -> Job:
    """Run the job called `name` of a workflow file in `folder`, the checkout."""
    return run_steps(read(workflow)["jobs"][name]["steps"], folder, **more)


def run_steps(
    steps: Iterable[Mapping[str, Any]],
    folder: Path,
    *,
    values: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> Job:
    """Run the steps of a job or of a composite action; `values` are those of expressions, by name."""
    job = Job()
    files = {name: folder.parent / f"{folder.name}-{name.lower()}" for name in FILES}
    for path in files.values():
        path.write_text("")
    for step in steps:
        if not _due(step.get("if", "success()"), failed=job.failed):
            continue
        if "run" in step:
            own = {key: _filled(text, values or {}) for key, text in step.get("env", {}).items()}
            ours = {name: str(path) for name, path in files.items()} | {"GITHUB_ACTIONS": "true"}
            _run(job, step["run"], folder, {**(environ or {}), **own, **ours})
        elif step["uses"].startswith(UPLOAD):
            paths = step["with"]["path"].split()
            job.uploaded |= {path: sorted(folder.glob(path)) for path in paths}
        elif step["uses"].startswith((RESTORE, SAVE)):
            _copy(step, folder, cache)
        else:
            assert step["uses"].startswith(SET_UP), step
    job.summary = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    job.outputs = dict(_KEY.findall(files["GITHUB_OUTPUT"].read_text(encoding="utf-8")))
    return job


def run_script(script: Iterable[str], folder: Path, environ: Mapping[str, str]) -> Job:
    """Run the script of a job on GitLab: one shell for all its lines, which ends at the first that fails."""
    job = Job()
    _run(job, "\n".join(script), folder, {"GITLAB_CI": "true", **environ})
    return job


def _copy(step: Mapping[str, Any], folder: Path, cache: Path | None) -> None:
    assert cache is not None, "a job with a cache needs a folder for it"
    place = folder / step["with"]["path"]
    source, target = (cache, place) if step["uses"].startswith(RESTORE) else (place, cache)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)


def _due(condition: str, *, failed: bool) -> bool:
    known = {"success()": not failed, "failure()": failed, "always()": True}
    return (known | {"failure() || cancelled()": failed})[condition]


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: _value(found[1], values), text)


def _value(expression: str, values: Mapping[str, str]) -> str:
    name, _, default = expression.partition(" || ")
    return values[name] or default.strip("'")


def _run(job: Job, command: str, folder: Path, more: Mapping[str, str]) -> None:
    """Run a step in the shell that is the default of a runner: ``bash -e`` on a file."""
    script = folder.parent / f"{folder.name}-step.sh"
    script.write_text(_INSTALL.sub("true", command) + "\n", encoding="utf-8")
    ours = ("TFGRPO_", "FEATURE_TFGRPO_", "PYTEST_", "GITHUB_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environ |= {"CI": "true", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environ |= {"PYTEST_ADDOPTS": "-p tfgrpo -p no:cacheprovider", **more}
    environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environ["PATH"]))
    done = subprocess.run(
        ["bash", "-e", str(script)], cwd=folder, env=environ, capture_output=True, text=True, timeout=100
    )
    job.steps.append((command, done.returncode))
    job.output += f"$ {command}\n{done.stdout}{done.stderr}"
