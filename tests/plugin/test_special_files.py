"""Files that a project names, and that are none, are an error at once: none is waited for or read on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.preparing import loaded, refusal
from support.project import Project
from support.special_files import KINDS, endless, folder, huge, pipe

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.recording import file

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
USAGE, COLLECTION, FAILED = (
    pytest.ExitCode.USAGE_ERROR,
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.TESTS_FAILED,
)
PLACES: dict[str, tuple[Callable[[Path], None], pytest.ExitCode, str]] = {
    "attachment": (pipe, COLLECTION, "suite.scenario.json:1: #/attachments/0: 'odd' is not a regular file"),
    "golden file": (
        pipe,
        COLLECTION,
        "suite.scenario.json:1: #/checks/0/golden: 'odd' is not a regular file",
    ),
    "scenario file": (
        huge,
        COLLECTION,
        "odd.scenario.yaml:1: #: larger than 256000000 bytes; split the file",
    ),
    "library": (huge, USAGE, "ERROR: cannot read the library {path}: [Errno 27] it has more than 256000000"),
    "baseline": (pipe, USAGE, "{path}: cannot read the baseline: [Errno 22] it is not a regular file"),
    "models": (pipe, USAGE, "ERROR: models: {path}:1: #: cannot be read: it is not a regular file"),
    "gates": (pipe, USAGE, "ERROR: gates: {path}:1: #: cannot be read: it is not a regular file"),
    "replay": (endless, USAGE, "ERROR: there is no recording {path}; record it with --tfgrpo-record=FILE"),
    "record": (pipe, USAGE, "cannot read the recording {path}: [Errno 22] it is not a regular file"),
    "manifest of a pack": (pipe, USAGE, "ERROR: {path}:1: #: cannot be read: it is not a regular file"),
    "text of a pack": (
        pipe,
        USAGE,
        "/prompt-packs/text/manifest.json: 'system.md' is not a regular file",
    ),
    "store of lessons": (
        pipe,
        FAILED,
        "StoreError: cannot open the lesson store {path}: it is not a regular file",
    ),
}
"""A kind of file for each place, how pytest ends with it, and what it says."""
LATER = "store of lessons"
"""Opened when a run has started."""
IS = (
    *("is not a regular file", "bytes", "Is a directory", "is a folder", "a folder", "No such device"),
    *("there is no file", "there is no recording", "is a link that leaves its folder"),
)
"""Words for what a file is, or that there is none."""
OTHER = {("scenario file", folder)}
"""A folder whose tests are collected."""


@pytest.mark.timeout(100)
@pytest.mark.parametrize("what", PLACES)
def test_pytest_ends_at_once_and_says_what_the_file_is(project: Project, what: str) -> None:
    make, code, says = PLACES[what]
    project.ini(actor="python:agent:right").scenarios(train=2, sweep=2)
    name = NAMED[what](project)
    path = project.root / name
    make(path)
    result = project.learn(*([name] if what == "scenario file" else []))
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == code
    assert says.format(path=path) in text
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("what", "make"),
    [(what, make) for what in NAMED for make in KINDS if what != LATER and (what, make) not in OTHER],
)
def test_no_kind_of_file_that_is_none_is_read(
    project: Project, monkeypatch: pytest.MonkeyPatch, what: str, make: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(file, "MAX_LINE", 1000)  # to find no end of the first line takes long enough
    project.ini(actor="python:agent:right").scenarios(train=2, sweep=2)
    path = project.root / NAMED[what](project)
    make(path)
    if PLACES[what][1] == COLLECTION:
        with pytest.raises(ScenarioError) as broken:
            loaded(project)
        text = str(broken.value)
    else:
        text = refusal(project, "--tfgrpo")
    assert path.name in text
    assert any(words in text for words in IS), text
