"""What the tests of plugin/test_judge.py share with the slow ones."""

import json
import re
from pathlib import Path
from typing import Any

from support.fake_model import Body
from support.project import Project

RUBRIC = ["The answer is 3.", {"text": "The answer is short.", "weight": 0.5}]


def criteria(request: Body) -> list[str]:
    """Return the keys that a vote has, from the schema that came with the request."""
    return list(request["response_format"]["json_schema"]["schema"]["properties"])


def judged(request: Body) -> str:
    """Return the attempt's answer: what stands between the fences of the message's own mark."""
    text = next(m["content"] for m in request["messages"] if m["role"] == "user")
    mark = text.splitlines()[0].rpartition(" ")[2]
    found = re.search(rf"^<<<answer:{mark}\n(.*)\nanswer:{mark}>>>$", text, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def vote(request: Body, *met: bool) -> str:
    decisions = zip(criteria(request), met, strict=True)
    return json.dumps(
        {key: {"why": f"it says {judged(request)!r}"[:40], "met": one} for key, one in decisions}
    )


def fair(request: Body, attempt: int) -> str:
    return vote(request, judged(request) == "3", True)


def suite(project: Project, **fields: Any) -> Project:
    """Write two train and two eval scenarios that nobody knows the answers of."""
    values = [
        {"id": f"{split}{n}", "domain": "text", "split": split, "prompt": f"How many words has {split} {n}?"}
        | fields
        for split in ("train", "eval")
        for n in range(2)
    ]
    return project.write("suite.scenario.json", json.dumps(values))


def cut_after(journal: Path, mark: str, count: int) -> int:
    """Cut a journal off behind the event that is the `count`-th with `mark`, as a kill would."""
    kept = []
    for line in journal.read_bytes().splitlines(keepends=True):
        kept.append(line)
        count -= mark.encode() in line
        if count == 0:
            break
    journal.write_bytes(b"".join(kept))
    return sum(mark.encode() in line for line in kept)
