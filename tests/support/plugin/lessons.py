"""What the tests of plugin/test_lessons.py share with the slow ones."""

import json

from support.project import Project

MANIFEST = {"id": "text", "domain": "text", "system": "system.md", "inject": [], "experience_slots": 4}


def teach(project: Project) -> None:
    project.write("prompt-packs/text/system.md", "Solve it.\n")
    project.write("prompt-packs/text/manifest.json", json.dumps(MANIFEST))
    assert project.cli("stamp") == 0
    project.scenarios(train=12, sweep=12)
    project.ini(actor="python:agent:learner", group_size=4, library="library.json")
    assert project.learn("--tfgrpo-library", "none").ret == 0
    assert project.cli("library", "promote", "latest") == 0
