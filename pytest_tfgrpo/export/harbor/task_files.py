"""The files of the task that a scenario becomes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.actors.reference import removed_files
from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.toml_text import toml_table, toml_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.export.harbor import check_task
from pytest_tfgrpo.export.harbor.container import DISTRIBUTIONS, container_of
from pytest_tfgrpo.export.harbor.written_scenarios import WrittenScenario
from pytest_tfgrpo.sandbox.archives import check_member, pack, read_archive
from pytest_tfgrpo.sandbox.programs.environments import ENVIRONMENTS, Environment, read_environment
from pytest_tfgrpo.scoring.checks.hidden import protected
from pytest_tfgrpo.scoring.checks.hidden.fresh_tree import read_base
from pytest_tfgrpo.scoring.checks.hidden.hidden_archives import hidden_archive
from pytest_tfgrpo.suite.imports.harbor import task_form

SCHEMA_VERSION = "1.4"
"""Of the format of ``task.toml``."""
TEST_SCRIPT = f"""#!/bin/bash
# Runs the hidden tests on a copy of the work in {task_form.WORKDIR}, and writes the reward.
set -u
mkdir -p {PurePosixPath(task_form.REWARD).parent}
exec python3 -I "$(dirname "$0")/check_task.py" {task_form.WORKDIR} {task_form.REWARD}
"""
SOLVE_SCRIPT = f"""#!/bin/bash
# Does what the true fix did.
set -euo pipefail
cd {task_form.WORKDIR}
REMOVEtar --no-same-owner -xzf "$(dirname "$0")/reference.tar.gz" -C {task_form.WORKDIR}
"""
UNSEEN = re.compile(r"[ \t]*(?:#|<!--)[^\n]*canary", re.IGNORECASE)
"""How a prompt begins whose first lines Harbor takes for the mark of a data set."""
UNSAID = {
    "turns": "it is a conversation, and a task has one instruction",
    "input": "its input is data, and a task holds only text",
    "attachments": "it has attachments; put them into the archive of its workspace",
    "setup": "it has a setup, which a task cannot run for each attempt",
    "mocks": "it mocks tools, and the agent of a task has its own",
    "teardown": "it has a teardown, which a task cannot run after each attempt",
}
"""Fields of a scenario without which it would be another task, and why it is not exported."""


class NoTask(ValueError):
    """A scenario that no task can stand for; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HarborTask:
    """One task."""

    files: Mapping[str, bytes]
    """By their path in its folder."""
    kept: tuple[str, ...]
    """What of the scenario it keeps for the way back, and does not follow."""
    lost: tuple[str, ...]
    """What of the scenario it has not."""


def task_of(written: WrittenScenario) -> HarborTask:
    """Return the task of a scenario; raises NoTask, and OSError where a file cannot be read."""
    _require_sayable(written)
    try:
        return _made(written)
    except NoTask:
        raise
    except (TfgrpoError, ValueError) as error:
        raise NoTask(str(error)) from error


def _made(written: WrittenScenario) -> HarborTask:
    scenario, check = written.scenario, written.scenario.checks[0]
    assert scenario.workspace is not None
    environment = _environment(written)
    container = container_of(environment)
    solution, known = _solution(written), _provenance(written)
    made = {**container.files, **dict(_tests(scenario, environment)), **solution.scripts}
    kept = _kept(written)
    data: dict[str, bytes] = {
        task_form.INSTRUCTION: written.data["prompt"].encode(),
        task_form.WORKSPACE: scenario.workspace.path.read_bytes(),
        task_form.HIDDEN: hidden_archive(check).read_bytes(),
        **solution.data,
        **known,
    }
    if scenario.environment is not None:
        data[task_form.LOCKED] = _environment_path(written).read_bytes()
    config = _config(written, {name: stamp_bytes(content) for name, content in made.items()}, kept)
    lost = [*container.lost, *(() if solution.data else ("a reference: the suite has none",))]
    if UNSEEN.match(written.data["prompt"]):
        lost.append("the first lines of the prompt: Harbor shows no comment that has the word canary")
    return HarborTask(files={**data, **made, task_form.CONFIG: config}, kept=tuple(kept), lost=tuple(lost))


def _require_sayable(written: WrittenScenario) -> None:
    for key, why in UNSAID.items():
        if key in written.data:
            raise NoTask(why)
    if written.scenario.workspace is None:
        raise NoTask("it has no workspace: a task is checked by what becomes of files, not by an answer")
    checks = written.data.get("checks", [])
    if len(checks) != 1 or not task_form.runs_pytest(checks[0]):
        kinds = ", ".join(check["kind"] for check in checks) or "none"
        raise NoTask(f"only one check of kind tests, with the runner pytest, can be exported; it has {kinds}")


def _environment_path(written: WrittenScenario) -> Path:
    return written.folder / ENVIRONMENTS / f"{written.scenario.environment}.json"


def _environment(written: WrittenScenario) -> Environment | None:
    if written.scenario.environment is None:
        return None
    found = read_environment(_environment_path(written))
    if found.python is None:
        raise NoTask("its environment has no Python")
    if found.setup or found.links:
        raise NoTask("its environment has set-up commands; only packages of Python can be exported")
    return found


def _tests(scenario: Scenario, environment: Environment | None) -> Iterator[tuple[str, bytes]]:
    """Yield what runs the tests: a script, its settings, and the protected files before the fix."""
    assert scenario.workspace is not None
    params = scenario.checks[0].params
    globs = tuple(params.get("protected", ()))
    base = read_base(scenario.workspace, globs).without(params.get("removed", ()))
    listed = [*params["fail_to_pass"], *params.get("pass_to_pass", ())]
    runner = params["runner"]
    settings: dict[str, Json] = {
        "fail_to_pass": list(params["fail_to_pass"]),
        "pass_to_pass": list(params.get("pass_to_pass", ())),
        "credit": params.get("credit", "all"),
        "files": sorted({id_.partition("::")[0] for id_ in listed}),
        "folder": "." if isinstance(runner, str) else runner.get("folder", "."),
        "timeout_s": params["timeout_s"],
        "protected": list(globs),
        "alone": environment is None,
        "imports": [] if environment is None else list(environment.imports),
        "variables": {} if environment is None else dict(environment.variables),
        "distributions": DISTRIBUTIONS,
        "taken": sorted(base.taken),
        "places": sorted(base.places - base.taken),
    }
    yield task_form.TEST_SCRIPT, TEST_SCRIPT.encode()
    yield f"{task_form.TESTS}/settings.json", (json.dumps(settings, indent=1) + "\n").encode()
    yield f"{task_form.TESTS}/before.tar.gz", pack(base.protected)
    for module in (check_task, protected):
        path = Path(str(module.__file__))
        yield f"{task_form.TESTS}/{path.name}", path.read_bytes()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Solution:
    data: Mapping[str, bytes]
    scripts: Mapping[str, bytes]


def _solution(written: WrittenScenario) -> _Solution:
    """Return the reference, and the script that lays it; nothing where the suite has none."""
    place = _beside(written)
    path = place / "references" / f"{written.scenario.id}.tar.gz" if place else None
    if path is None or not path.is_file():
        return _Solution(data={}, scripts={})
    for _ in read_archive(path):
        pass
    removed = removed_files(place / "provenance" / f"{written.scenario.id}.json") if place else []
    for name in removed:
        check_member(name)
    remove = f"rm -rf -- {' '.join(map(shlex.quote, removed))}\n" if removed else ""
    script = SOLVE_SCRIPT.replace("REMOVE", remove).encode("utf-8", "surrogateescape")
    return _Solution(data={task_form.REFERENCE: path.read_bytes()}, scripts={task_form.SOLVE_SCRIPT: script})


def _provenance(written: WrittenScenario) -> dict[str, bytes]:
    place = _beside(written)
    path = place / "provenance" / f"{written.scenario.id}.json" if place else None
    return {task_form.PROVENANCE: path.read_bytes()} if path and path.is_file() else {}


def _beside(written: WrittenScenario) -> Path | None:
    """Return the folder that has references and provenance; None where it is not in the suite."""
    assert written.scenario.workspace is not None
    parts = PurePosixPath(written.scenario.workspace.archive).parts
    return written.folder.joinpath(*parts[:-2]) if len(parts) > 1 else None


def _kept(written: WrittenScenario) -> list[str]:
    keys = [key for key in task_form.KEPT if key in written.data]
    params = written.data["checks"][0]
    return [*keys, *(f"{key} of the check" for key in task_form.WITHOUT_EFFECT if params.get(key))]


def _config(written: WrittenScenario, made: Mapping[str, str], kept: list[str]) -> bytes:
    """Return the text of ``task.toml``."""
    data, check = written.data, written.data["checks"][0]
    own = {key: value for key, value in data.items() if key in (*task_form.KEPT, "checks")}
    own["workspace"] = {"archive": data["workspace"]["archive"]}
    ours = {"form": task_form.FORM, "made": made, "scenario": own}
    tables: dict[str, Mapping[str, Json]] = {"verifier": {"timeout_sec": task_form.verifier_limit(check)}}
    if "timeout_s" in data:
        tables["agent"] = {"timeout_sec": data["timeout_s"]}
    rows = [f"# The scenario {written.scenario.id} of pytest-tfgrpo, written by `tfgrpo export harbor`."]
    if kept:
        rows.append(f"# Kept for the way back, without effect in a container: {', '.join(kept)}.")
    rows += [f"schema_version = {toml_text(SCHEMA_VERSION)}"]
    for name, table in tables.items():
        rows += ["", *toml_table(name, table)]
    rows += ["", *toml_table(f"metadata.{task_form.OURS}", ours)]
    return ("\n".join(rows) + "\n").encode()
