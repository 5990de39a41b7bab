"""What the tests of plugin/test_references.py share with the slow ones."""

import json
from typing import Any

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.suite.packs import load_pack, write_pack_stamp
from support.builders import make_experience
from support.project import Project

AGENT = """
from pathlib import Path


def _log(context, version):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.scenario.id} {version} {context.seed}\\n")


def told(context):
    '''Right once the prompt carries a lesson.'''
    version = "told" if "<experiences" in context.prompt.system else "untold"
    _log(context, version)
    return "3" if version == "told" else "4"


def noisy(context):
    '''Right in 8 of 10 rollouts, by its seed and its prompt.'''
    import random
    version = "told" if "<experiences" in context.prompt.system else "untold"
    _log(context, version)
    return "3" if random.Random(f"{context.seed}{version}").random() < 0.8 else "4"


def obedient(context):
    '''Right where the pack tells it to be, and shows its lessons in any case.'''
    version = "wise" if "Be wise." in context.prompt.system else "plain"
    _log(context, f"{version}-{'told' if '<experiences' in context.prompt.system else 'untold'}")
    return "3" if version == "wise" else "4"
"""


def write_pack(project: Project, folder: str, text: str, **changes: Any) -> PromptPack:
    place = project.root / folder
    manifest = {"id": place.name, "domain": "text", "system": "system.md"} | changes
    project.write(f"{folder}/manifest.json", json.dumps(manifest)).write(f"{folder}/system.md", text)
    write_pack_stamp(place)
    return load_pack(place)


def lesson(pack: PromptPack, **changes: Any) -> Experience:
    own = {"prompt_pack_id": pack.id, "stamp_signature": pack.stamp, "summary32": "Count words by letter."}
    return make_experience(**own | changes)


def write_versions(project: Project) -> Project:
    mine = write_pack(project, "prompt-packs/text", "Answer.")
    project.scenarios(train=0, sweep=8).scenarios("other", train=0, sweep=4, domain="other")
    project.write("agent2.py", AGENT)
    save_library(project.root / "taught.json", of([lesson(mine)]))
    save_library(project.root / "empty.json", of([]))
    return project


def held(project: Project, actor: str = "told", **settings: Any) -> Project:
    return project.ini(
        **{"actor": f"python:agent2:{actor}", "library": "taught.json", "baseline": "empty.json"}
        | {"concurrency": 1, "out": "out"} | settings
    )  # fmt: skip


def rule(project: Project, name: str = "baseline") -> dict[str, Any]:
    (found,) = [r for r in project.report()["gate"]["results"] if r["name"] == name]
    return found  # type: ignore[no-any-return]


def look_again(project: Project) -> None:
    held(write_versions(project), "noisy", min_score=0, gate_alarm=0.0001, gate_margin=0).run()
