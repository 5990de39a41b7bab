"""What the tests of plugin/test_resume.py share with the slow ones."""

import json
from pathlib import Path
from typing import Any

from support.project import Project


def comparable(folder: Path) -> Any:
    """Return the report without times and without the names that hang on the run id."""
    text = (folder / "report.json").read_text().replace(folder.name, "RUN")
    report = json.loads(text)
    del report["cost"]  # of what a kill lost, and of pairs that were asked again

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: clean(v) for k, v in value.items() if "latency" not in k and not k.endswith(("_at", "id"))
            }
        return [clean(v) for v in value] if isinstance(value, list) else value

    return clean(report)


def complete(project: Project) -> None:
    project.pages().scenarios(train=4, sweep=12).ini(actor="python:agent:learner", group_size=4)
    assert project.learn().ret == 0
