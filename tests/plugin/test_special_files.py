"""Files that are none: a pipe without a writer, an endless device, a folder, a socket, a huge file."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from support.project import Project


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**12)


KINDS = (pipe, endless, folder, listening, huge)
MANIFEST = {"id": "text", "domain": "text", "system": "system.md", "inject": []}


CHECK = {"kind": "exact", "value": "3"}


def scenario(project: Project, **fields: object) -> None:
    one = {"id": "a", "domain": "text", "split": "eval", "prompt": "How many?", "checks": [CHECK]}
    project.write("suite.scenario.json", json.dumps(one | fields))


def attachment(project: Project) -> str:
    scenario(project, attachments=["odd"])
    return "odd"


def golden(project: Project) -> str:
    scenario(project, checks=[{"kind": "file", "path": "a", "golden": "odd"}])
    return "odd"


def pack_manifest(project: Project) -> str:
    project.write("prompt-packs/text/system.md", "Solve it.")
    return "prompt-packs/text/manifest.json"


def pack_text(project: Project) -> str:
    project.write("prompt-packs/text/manifest.json", json.dumps(MANIFEST))
    return "prompt-packs/text/system.md"


def store(project: Project) -> str:
    project.write("out/t/runs/x", "").ini(actor="python:agent:right", task_id="t")
    return "out/t/experiences.jsonl"


def setting(name: str, file: str, actor: str = "python:agent:right") -> Callable[[Project], str]:
    def name_it(project: Project) -> str:
        project.ini(**{"actor": actor, name: file})
        return file.rpartition(":")[2]

    return name_it


NAMED: dict[str, Callable[[Project], str]] = {
    "attachment": attachment,
    "golden file": golden,
    "scenario file": lambda project: "odd.scenario.yaml",
    "library": setting("library", "odd.json"),
    "baseline": setting("baseline", "odd.json"),
    "models": setting("models", "odd.yaml", actor="openai:small"),
    "gates": setting("gates", "odd.yaml"),
    "replay": setting("actor", "replay:odd.jsonl"),
    "record": setting("record", "odd.jsonl"),
    "manifest of a pack": pack_manifest,
    "text of a pack": pack_text,
    "store of lessons": store,
}
OTHER = {("scenario file", folder)}
"""A folder whose tests are collected."""


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("what", "make"), [(what, make) for what in NAMED for make in KINDS if (what, make) not in OTHER]
)
def test_a_file_that_is_none_is_an_error_at_once(
    project: Project, what: str, make: Callable[[Path], None]
) -> None:
    project.ini(actor="python:agent:right").scenarios(train=2, sweep=2)
    name = NAMED[what](project)
    path = project.root / name
    make(path)
    result = project.learn(*([name] if what == "scenario file" else []))
    text = result.stdout.str() + result.stderr.str()
    assert result.ret != pytest.ExitCode.OK
    assert path.name in text
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
