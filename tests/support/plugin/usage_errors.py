"""What the tests of plugin/test_usage_errors.py share with the slow ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.project import Project

SOLVE = "def solve(context):\n    return '3'\n"
TRAIN_AND_EVAL: list[dict[str, Any]] = [
    {"id": f"{split}{n}", "split": split, "prompt": f"How many words has {split} letter {n}, a b c?"}
    | {"checks": [{"kind": "exact", "value": "3"}]}
    for split in ("train", "eval")
    for n in range(2)
]
SUITE = json.dumps(TRAIN_AND_EVAL)
LEAK = json.dumps([TRAIN_AND_EVAL[0], TRAIN_AND_EVAL[2] | {"prompt": TRAIN_AND_EVAL[0]["prompt"] + "!"}])
JUDGED = json.dumps(
    [{"id": "j", "split": "eval", "prompt": "Tell a joke.", "rubric": "It is funny.", "truth": "judge"}]
)


@dataclass(frozen=True, slots=True)
class Misuse:
    """A suite that is used wrongly, and what the error says."""

    says: str
    args: tuple[str, ...] = ()
    ini: Mapping[str, object] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[Project], object] = lambda project: None
    """What is done before."""


def hook(name: str, body: str, parameters: str = "config") -> Mapping[str, str]:
    return {"conftest.py": f"def pytest_tfgrpo_{name}({parameters}):\n    {body}\n"}


def actor(spec: str, says: str, *args: str, **more: object) -> Misuse:
    return Misuse(says, args, ini={"actor": spec, **more})


def interrupted(project: Project) -> None:
    """Leave a run that a budget ended."""
    assert project.learn("--tfgrpo-budget-tokens=1", "--tfgrpo-actor=offline").ret != 0


LEARN = "--tfgrpo"
MISUSES: Mapping[str, Misuse] = {
    # settings, found in the controller
    "a bad flag": Misuse("group_size must be an integer >= 2", ("--tfgrpo-group-size=1",)),
    "a bad ini value": Misuse("epochs must be", ini={"epochs": 0}),
    "a bad variable": Misuse("seed must be", environ={"TFGRPO_SEED": "x"}),
    "one epoch": Misuse("use eval_mode=separate", (LEARN, "--tfgrpo-epochs=1")),
    # settings, found once scenarios are known
    "an unknown variable": Misuse("did you mean 'TFGRPO_SEED'?", environ={"TFGRPO_SEAD": "1"}),
    "no actor": Misuse("no actor is configured", ini={"actor": None}),
    "an unknown actor": actor("ofline", "did you mean 'offline'?"),
    "an argument for offline": actor("offline:x", "takes no argument"),
    "no such module": actor("python:nowhere:solve", "no module 'nowhere'"),
    "a module that breaks": Misuse(
        "importing 'broken' failed", ini={"actor": "python:broken:solve"}, files={"broken.py": "1 / 0\n"}
    ),
    "no such function": actor("python:agent:solv", "has no 'solv'"),
    "no program": actor("command:", "names no program"),
    "no such program": actor("command:./agent", "there is no program"),
    "an unknown placeholder": actor("command:python {promt}", "unknown placeholder {promt}"),
    "a sandbox for python": actor("python:agent:right", "cannot isolate a python actor", sandbox="bwrap"),
    **{
        f"{name} without a sandbox, {spec}": actor(spec, f"{name}: ", **{name: value})
        for name, value in (("sandbox_limits", "memory=1GB"), ("sandbox_network", "loopback"))
        for spec in ("offline", "python:agent:right", "command:true")
    },
    "a sandbox without bubblewrap": Misuse(
        "bwrap",
        ini={"actor": "command:./agent.sh", "sandbox": "bwrap"},
        environ={"PATH": "/nowhere"},
        before=lambda project: (project.write("agent.sh", "#!/bin/sh\n").root / "agent.sh").chmod(0o700),
    ),
    "a paid actor": actor("python:agent:paid", "costs money"),
    "no recording": actor("replay:none.jsonl", "none.jsonl"),
    "a recording that is none": Misuse(
        "recording.jsonl", ini={"actor": "replay:recording.jsonl"}, files={"recording.jsonl": "{}\n"}
    ),
    "an unknown optimizer": Misuse("optimizer", (LEARN, "--tfgrpo-optimizer=heuristik")),
    "an optimizer without a teacher": Misuse("teacher", (LEARN, "--tfgrpo-optimizer=llm")),
    "a teacher that is no model": Misuse(
        "is not a language model", (LEARN, "--tfgrpo-optimizer=llm", "--tfgrpo-teacher=offline")
    ),
    "a judge that is no model": Misuse("is not a language model", ("--tfgrpo-judge=offline",)),
    "no judge": Misuse("needs a judge", files={"j.scenario.json": JUDGED}),
    "no models file": Misuse(
        "models.yaml", (LEARN, "--tfgrpo-models=models.yaml", "--tfgrpo-judge=openai:x")
    ),
    "an unknown key of a model": Misuse(
        "did you mean 'base_url'?",
        (LEARN, "--tfgrpo-models=models.yaml", "--tfgrpo-judge=openai:x"),
        files={"models.yaml": "endpoints:\n  x:\n    base_ulr: y\n"},
    ),
    "no packs": Misuse("there is no folder", ("--tfgrpo-prompt-packs=nowhere",)),
    "a pack without a stamp": Misuse(
        "is not stamped",
        files={
            "prompt-packs/all/manifest.json": json.dumps(
                {"id": "all", "domain": "general", "system": "system.md"}
            ),
            "prompt-packs/all/system.md": "Answer in one word.",
        },
    ),
    "no library": Misuse("there is no file", ("--tfgrpo-library=library.json",)),
    "a library that is none": Misuse(
        "library.json", ("--tfgrpo-library=library.json",), files={"library.json": "{}"}
    ),
    "no baseline": Misuse("there is no such baseline", ("--tfgrpo-baseline=main",)),
    "a baseline that is none": Misuse(
        "main.json", ("--tfgrpo-baseline=main",), files={"baselines/main.json": "{}"}
    ),
    "no gates": Misuse("gates.yaml", ("--tfgrpo-gates=gates.yaml",)),
    "an unknown key of a gate": Misuse(
        "did you mean 'min_mean'?",
        ("--tfgrpo-gates=gates.yaml",),
        files={"gates.yaml": "gates:\n  all:\n    min_men: 0.5\n"},
    ),
    "a gate of an unknown domain": Misuse(
        "no eval scenario has the domain",
        ("--tfgrpo-gates=gates.yaml",),
        files={"gates.yaml": "gates:\n  all:\n    domains: [poems]\n    min_mean: 0.5\n"},
    ),
    "leaked answers": Misuse("contamination", (LEARN,), files={"suite.scenario.json": LEAK}),
    "nothing to resume": Misuse("no incomplete run", (LEARN, "--tfgrpo-resume")),
    "no run of that name": Misuse("nowhere", (LEARN, "--tfgrpo-resume=nowhere")),
    "a resume without output": Misuse("needs an output folder", ("--tfgrpo-resume",)),
    "a resume with another seed": Misuse(
        "settings", (LEARN, "--tfgrpo-resume", "--tfgrpo-seed=5"), before=interrupted
    ),
    # hooks
    **{
        f"a hook for {name} that raises": Misuse(
            f"hook pytest_tfgrpo_{name} raised RuntimeError: no luck",
            (LEARN,),
            files=hook(name, "raise RuntimeError('no luck')", parameters),
        )
        for name, parameters in {
            "actor": "spec",
            "optimizer": "spec",
            "rewarders": "config",
            "gate_rules": "config",
            "scenarios": "scenarios",
        }.items()
    },
    **{
        f"a rewarder called {name!r}": Misuse(
            complaint,
            (LEARN,),
            files=hook(
                "rewarders",
                f"return [type('R', (), {{'name': {name!r}, 'weight': 1, '__call__': len}})()]",
                "config",
            ),
        )
        for name, complaint in {
            "gt_score": "belongs to a metric of every rollout; rename yours",
            "be nice": "must be 1 to 64 letters",
            "\x1b[31m<b>": "must be 1 to 64 letters",
        }.items()
    },
    "an actor without a name": Misuse("has no attribute 'name'", files=hook("actor", "return 3", "spec")),
    "a scenario twice": Misuse(
        "ids must be unique", files=hook("scenarios", "return [*scenarios, *scenarios]", "scenarios")
    ),
    # marked test functions
    "an unknown keyword of a mark": Misuse(
        "did you mean 'domain'?",
        files={
            "test_marked.py": "import pytest\n"
            "@pytest.mark.tfgrpo(domian='x', split='eval', prompt='How many?')\n"
            "def test_it(rollout): pass\n"
        },
    ),
    "a mark with a value": Misuse(
        "takes keywords only",
        files={
            "test_marked.py": "import pytest\n@pytest.mark.tfgrpo('x')\ndef test_it(rollout): pass\n",
        },
    ),
    "a mark of the dev split": Misuse(
        "cannot check split='dev'",
        files={
            "test_marked.py": "import pytest\n"
            "@pytest.mark.tfgrpo(split='dev', prompt='How many?')\n"
            "def test_it(rollout): pass\n"
        },
    ),
}


def errors(result: pytest.RunResult) -> list[str]:
    """Return the usage errors that a run ends with."""
    text = result.stderr.str()
    return [part.strip() for part in text.split("ERROR: ")[1:]]


def use(project: Project, misuse: Misuse, environ: pytest.MonkeyPatch) -> None:
    """Write the suite, and do what comes before the error."""
    project.plugins("xdist").write("suite.scenario.json", SUITE)
    for name, text in {"agent2.py": SOLVE, **misuse.files}.items():
        project.write(name, text)
    misuse.before(project)
    settings = {"actor": "python:agent:right", **misuse.ini}
    project.ini(**{name: value for name, value in settings.items() if value is not None})
    for name, value in misuse.environ.items():
        environ.setenv(name, value)
