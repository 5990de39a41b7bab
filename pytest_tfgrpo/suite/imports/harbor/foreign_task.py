"""A task that somebody else wrote, as far as its files say what it is without a container."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, ArchiveProblem, pack
from pytest_tfgrpo.suite.imports.harbor import task_form
from pytest_tfgrpo.suite.imports.harbor.dockerfile import DockerfileReader
from pytest_tfgrpo.suite.imports.harbor.ids_of_tests import ids_in
from pytest_tfgrpo.suite.imports.harbor.reward_script import read_script
from pytest_tfgrpo.suite.imports.harbor.task_folder import TaskFolder, TaskProblem
from pytest_tfgrpo.suite.imports.harbor.task_parts import TaskParts, archive_names

HERE = "harbor_tests"
"""The folder of a workspace that gets the files of ``tests/``."""
NEEDED = {
    "steps": "it has several steps",
    "environment.mcp_servers": "it has MCP servers",
    "environment.healthcheck": "it waits for a service",
    "verifier.env": "its tests need variables",
    "verifier.environment": "its tests have a container of their own",
    "verifier.collect": "its tests have a container of their own",
    "environment.tpu": "it needs a TPU",
}
"""Keys of ``task.toml`` without which a task is another one, and why it is not imported."""
SERVICES = ("docker-compose.yaml", "docker-compose.yml", "singularity-compose.yaml", ".dockerignore")
CONFIGURATION = ("conftest.py", "pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml")
SECONDS = ("agent.timeout_sec", "verifier.timeout_sec")
TAGS = ("metadata.tags", "task.keywords")
TAG = re.compile(r"[A-Za-z0-9._-]{1,64}")
LONGEST_S = 86_400


def read_foreign(folder: TaskFolder, config: Mapping[str, Json], id_: str) -> TaskParts:
    """Return the scenario that a task of somebody else's becomes; raises TaskProblem."""
    _require_simple(folder, config)
    context = folder.files(task_form.ENVIRONMENT)
    reader = DockerfileReader(context)
    reader.read(folder.text(task_form.DOCKERFILE))
    workdir = _text_at(config, "environment", "workdir") or reader.workdir
    if not workdir.startswith("/") or workdir == "/":
        raise TaskProblem("its Dockerfile sets no WORKDIR, so that where the agent works is not known")
    script = folder.text(task_form.TEST_SCRIPT)
    chosen, installed = read_script(script, workdir)
    tests = {
        name: entry
        for name, entry in folder.files(task_form.TESTS).items()
        if name not in ("test.sh", "Dockerfile")
    }
    names = _listed(tests, chosen)
    prompt = folder.text(task_form.INSTRUCTION)
    _require_no_places(
        {task_form.INSTRUCTION: prompt.encode(), **{n: e.data for n, e in tests.items()}}, workdir
    )
    return _parts(
        id_,
        prompt=prompt,
        config=config,
        base=_packed(reader.workspace(workdir)),
        hidden=_packed(replace(entry, name=f"{HERE}/{name}") for name, entry in tests.items()),
        names=names,
        lost=(*reader.lost, *_lost(folder, config, installed)),
    )


def _parts(
    id_: str,
    *,
    prompt: str,
    config: Mapping[str, Json],
    base: bytes,
    hidden: bytes,
    names: list[str],
    lost: tuple[str, ...],
) -> TaskParts:
    archive, tests = archive_names(id_)
    check: dict[str, Json] = {
        "kind": "tests",
        "runner": "pytest",
        "hidden": tests,
        "fail_to_pass": names,
        "protected": [HERE],
    }
    scenario: dict[str, Json] = {
        "prompt": prompt,
        "workspace": {"archive": archive, "sha256": stamp_bytes(base)},
    }
    for key, into in zip(SECONDS, (scenario, check), strict=True):
        if (seconds := _seconds(config, key)) is not None:
            into["timeout_s"] = seconds
    if tags := [tag for key in TAGS for tag in _tags(config, key)]:
        scenario["tags"] = list(dict.fromkeys(tags))
    return TaskParts(
        scenario={**scenario, "checks": [check]}, files={archive: base, tests: hidden}, lost=lost
    )


def _require_simple(folder: TaskFolder, config: Mapping[str, Json]) -> None:
    for key, why in NEEDED.items():
        if _at(config, *key.split(".")):
            raise TaskProblem(f"{why} (`{key}` of its task.toml)")
    if (_text_at(config, "environment", "os") or "linux").lower() != "linux":
        raise TaskProblem("it is for Windows")
    if _text_at(config, "verifier", "environment_mode") == "separate":
        raise TaskProblem("its tests have a container of their own (`verifier.environment_mode`)")
    if folder.holds("trajectory.json"):
        raise TaskProblem("it begins with a conversation (trajectory.json)")
    for name in SERVICES:
        if folder.holds(f"{task_form.ENVIRONMENT}/{name}"):
            raise TaskProblem(f"what {task_form.ENVIRONMENT}/{name} does to its container cannot be followed")
    if not folder.holds(task_form.DOCKERFILE) and (image := _text_at(config, "environment", "docker_image")):
        raise TaskProblem(f"its files are in the image {short(image)}")


def _listed(tests: Mapping[str, ArchiveEntry], chosen: tuple[str, ...]) -> list[str]:
    """Return the ids of the tests that count, in the workspace; raises TaskProblem."""
    for name in tests:
        if name.rpartition("/")[2] in CONFIGURATION:
            raise TaskProblem(f"its tests have a {name} of their own, which may change what runs")
    files = chosen or tuple(
        name for name in tests if re.fullmatch(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py", name)
    )
    found: list[str] = []
    for name in files:
        if name not in tests or tests[name].link is not None:
            raise TaskProblem(f"its test.sh names the file {short(name)}, which is not in tests/")
        text = tests[name].data.decode("utf-8", "replace")
        found += [f"{HERE}/{id_}" for id_ in ids_in(name, text)]
    if not found:
        raise TaskProblem("no test was found in tests/")
    return found


def _require_no_places(texts: Mapping[str, bytes], workdir: str) -> None:
    """Raise TaskProblem for a text with a folder of a container: here each attempt has one of its own."""
    for name, data in texts.items():
        for place in (workdir, "/tests", "/logs", "/solution"):
            if re.search(rb"(?<![\w.])" + re.escape(place.encode()) + rb"(?![\w-])", data):
                raise TaskProblem(f"{name} names the folder {place}, which only a container has")


def _packed(entries: Iterator[ArchiveEntry] | list[ArchiveEntry]) -> bytes:
    try:
        return pack(entries)
    except ArchiveProblem as error:
        raise TaskProblem(str(error)) from None


def _lost(folder: TaskFolder, config: Mapping[str, Json], installed: bool) -> Iterator[str]:
    if installed:
        yield "packages that a test.sh installs"
    if folder.holds(task_form.SOLUTION):
        yield "a solution, as it is a script"
    followed = ["version", "schema_version"]
    followed += [key for key in SECONDS if _seconds(config, key) is not None]
    followed += [key for key in TAGS if _tags(config, key) == _at(config, *key.split("."))]
    for key, value in task_form.settings_of(config):
        if key not in followed and value not in ("", [], {}):
            yield f"`{key}` of a task.toml"


def _tags(config: Mapping[str, Json], key: str) -> list[str]:
    """Return those words of a list that can be tags; none where it is no list."""
    given = _at(config, *key.split("."))
    words = given if isinstance(given, list) else []
    return [word for word in words if isinstance(word, str) and TAG.fullmatch(word)]


def _seconds(config: Mapping[str, Json], key: str) -> float | None:
    """Return a time limit; None where it is none that a scenario can have."""
    given = _at(config, *key.split("."))
    fit = isinstance(given, int | float) and not isinstance(given, bool) and 0 < given <= LONGEST_S
    return given if fit else None


def _at(config: Mapping[str, Json], *keys: str) -> Json:
    value: Json = config
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text_at(config: Mapping[str, Json], *keys: str) -> str:
    value = _at(config, *keys)
    return value if isinstance(value, str) else ""
