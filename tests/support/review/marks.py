"""What the tests of review/test_marks.py share with the slow ones."""

import json
from pathlib import Path
from typing import Any

STAMPS = {"s": f"{0:064x}", "t": f"{1:064x}"}


def mark(rollout: str, opinion: str = "right", **more: Any) -> dict[str, Any]:
    scenario = rollout.split(".")[2]
    return {
        "rollout": rollout,
        "scenario": scenario,
        "stamp": STAMPS.get(scenario, ""),
        "mark": opinion,
    } | more


def written(folder: Path, name: str, *marks: dict[str, Any], **more: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps({"schema": "tfgrpo.marks/1", "run_id": "run1", "marks": marks} | more))
    return path
